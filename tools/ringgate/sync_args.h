/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What `ringgate lock` and `ringgate barrier` have in common: which one is meant. */
#ifndef SYNC_ARGS_H
#define SYNC_ARGS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include <ringgate/rgate_sync.h>

#define SYNC_EXIT_TIME	124	/* the time was over */
#define SYNC_EXIT_LOST	255	/* it was not had, or is lost */

enum { OPT_SYNC_OWNER = 512, OPT_SYNC_OTHERS };

#define OPT_SYNC_SOCKET	{ "socket", 'S', "PATH", 0, "The daemon's socket of requests", 0 }
#define OPT_SYNC_NODE	{ "node", 'n', "N", 0, "Its home is that node, by number (default: " \
			  "this one)", 0 }
#define OPT_SYNC_USER	{ "owner", OPT_SYNC_OWNER, "UID", 0, "It is that user's (default: the " \
			  "own one)", 0 }
#define OPT_SYNC_ALL	{ "others", OPT_SYNC_OTHERS, NULL, 0, "If it is made: for other " \
			  "users, too", 0 }
#define OPT_SYNC_WAIT	{ "timeout", 'w', "SECONDS", 0, "Wait no longer", 0 }

struct sync_args {
	struct rgate_sync_opts opts;
	uint64_t timeout_ns;
	bool timed;
};

/* One of these options, or ARGP_ERR_UNKNOWN */
error_t sync_parse_opt(struct sync_args *a, int key, char *arg, struct argp_state *state);
/* -1, or so many ms */
int sync_timeout_ms(const struct sync_args *a);

#endif
