// SPDX-License-Identifier: MIT OR GPL-2.0
#include "sync_args.h"

#include <stdlib.h>

#include <ringgate/rgate_cluster.h>
#include <ringgate/rgate_session.h>

#include "util.h"

error_t sync_parse_opt(struct sync_args *a, int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case ARGP_KEY_INIT:
		a->opts.sz = sizeof(a->opts);
		a->opts.where = RGATE_SESSION_DAEMON;
		a->opts.path = getenv("RGATE_REQUESTS");
		return 0;
	case 'S':
		a->opts.path = arg;
		return 0;
	case 'n':
		a->opts.home = (uint32_t)arg_number(state, "--node", arg, 0, RGATE_NODES_MAX - 1);
		a->opts.flags |= RGATE_SYNC_AT;
		return 0;
	case OPT_SYNC_OWNER:
		a->opts.owner = (uint32_t)arg_number(state, "--owner", arg, 0, UINT32_MAX - 1);
		a->opts.flags |= RGATE_SYNC_OF;
		return 0;
	case OPT_SYNC_OTHERS:
		a->opts.flags |= RGATE_SYNC_ANYBODY;
		return 0;
	case 'w':
		a->timeout_ns = arg_seconds(state, "--timeout", arg);
		if (a->timeout_ns > INT32_MAX * 1000000ULL)
			argp_error(state, "--timeout is too long: 2000000 at most");
		a->timed = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int sync_timeout_ms(const struct sync_args *a)
{
	return a->timed ? (int)((a->timeout_ns + 999999) / 1000000) : -1;
}
