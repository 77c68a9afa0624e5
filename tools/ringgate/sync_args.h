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

#define OPTS_SYNC \
	{ "socket", 'S', "PATH", 0, "The daemon's socket of requests", 0 }, \
	{ "node", 'n', "N", 0, "Its home is that node, by number (default: this one)", 0 }, \
	{ "owner", OPT_SYNC_OWNER, "UID", 0, "It is that user's (default: the own one)", 0 }, \
	{ "others", OPT_SYNC_OTHERS, NULL, 0, "If it is made: for other users, too", 0 }, \
	{ "timeout", 'w', "SECONDS", 0, "Wait no longer", 0 }

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
