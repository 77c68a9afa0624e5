/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Nodes that run processes, and are not there: what is asked of them is written to standard
 * error, in one order with what the command says.
 */
#ifndef NODES_FAKE_H
#define NODES_FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include <ringgate/rgate_spawn.h>

#define NODES	3	/* web, db, mail */
#define PIECES	24

/* In place of a piece of output */
#define AGAIN	"\001again"	/* there is nothing yet */
#define INT	"\002"		/* whoever reads gets SIGINT ... */
#define TERM	"\017"		/* ... or SIGTERM, while there is nothing yet */
#define HUP	"\003"
#define FULL	"\004"		/* a line, and standard output takes no more */
#define BROKEN	"\005"		/* -ECONNRESET */

struct rgate_spawn {
	int fd;
	bool news;
	unsigned int node;
};

struct rgate_spawn_job {
	struct rgate_spawn *spawn;
	const char *piece[2][PIECES];
	unsigned int at[2];
	struct rgate_spawn_result r;
	int wait;		/* -errno of asking for its end */
	bool wants_input;	/* nothing comes out before its input has ended */
	bool takes_none;	/* -EPIPE when it is written to */
	bool closed;
	bool full;		/* of input, every other time */
};

extern struct fake_nodes {
	unsigned int count, gone;	/* @gone: a bit for each that cannot be reached */
	int open, start, detach, kill[NODES], list;	/* what these calls return */
	struct rgate_spawn spawn[NODES];
	struct rgate_spawn_job job[NODES];
	struct rgate_spawn_info info[2];
	unsigned int infos;
} nodes;

/* A setup: cli_begin(), one node where all ends well, and no input */
int nodes_begin(void **state);

#endif
