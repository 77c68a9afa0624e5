/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A node of which there is only the pool, and a connection that does what the input says. */
#ifndef SPAWN_PEER_H
#define SPAWN_PEER_H

#include <ringgate/rgate_cluster.h>
#include <ringgate/rgate_peer.h>

#include "fuzz.h"

#define PEER_LENT	1024	/* four a step of the server's */
#define PEER_JOBS	8

struct spawn_peer {
	struct fuzz_in in;
	bool up, at_once;
	uint32_t epoch;
	uint64_t incarnation;
	uint64_t posted, done;
	struct rgate_remote lent[PEER_LENT];	/* over this connection, for access */
	unsigned int nlent;
	uint8_t *status[PEER_JOBS];		/* of the client's jobs, */
	uint64_t cookie[PEER_JOBS];
	uint32_t room[PEER_JOBS];
	unsigned int njobs;
	uint8_t msg[256] __attribute__((aligned(8)));	/* to be received */
	size_t msg_len;
};

extern struct spawn_peer peer;
extern struct rgate_cluster *peer_cluster;
extern int peer_ready_fd;			/* always readable */

void spawn_peer_init(void);			/* once */
void spawn_peer_begin(const uint8_t *data, size_t size);
void spawn_peer_connection(uint8_t how);	/* another one, or none */
/* @access: for which alone it may be used */
void spawn_peer_lend(const struct rgate_desc *d, uint32_t access);
void spawn_peer_check_pool(void);		/* nothing of it is in use */

#endif
