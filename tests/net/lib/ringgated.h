/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Daemons of this build, as children: a gateway of a cluster on this machine, and node 1 */
#ifndef RINGGATED_CHILD_H
#define RINGGATED_CHILD_H

#include "unit.h"

#include <sys/types.h>

#define NOBODY	65534U

struct ringgated {
	pid_t pid;		/* 0: does not run */
	unsigned int node;
	char dir[64];
	char log[96];		/* what it says */
	char policy[96];	/* of requests */
	char control[96];	/* its sockets */
	char requests[96];
	const char *more;	/* one more line of requests that it has; NULL: none */
	const char *journal;	/* its line; NULL: none */
};

/* False: not built */
bool ringgated_built(void);
/* A directory with all that it reads */
void ringgated_make(struct ringgated *r);
/* Two of one cluster, in one directory, which goes with the first */
void ringgated_make_pair(struct ringgated r[2]);
/* It sees the other one; */
bool ringgated_sees(const struct ringgated *r);
/* each does */
bool ringgated_met(const struct ringgated r[2]);
/* Starts it, and waits until it is ready. @log_fd: for what it says; -1: r->log. @policy: of
 * requests, or NULL: without one. */
void ringgated_start(struct ringgated *r, const char *policy, int log_fd);
/* The policy becomes this one, and the daemon has read it. */
void ringgated_reload(struct ringgated *r, const char *policy);
/* Ends it by that signal; its wait status */
int ringgated_stop(struct ringgated *r, int sig);
/* And nothing of it stays, which is called when it does not run, too */
void ringgated_free(struct ringgated *r);

/* Its log has that text */
bool ringgated_said(const struct ringgated *r, const char *text);
unsigned int ringgated_fds(const struct ringgated *r);
/* A number of its status, "key": N, the first one behind "requests"; UINT64_MAX: none */
uint64_t ringgated_count(const struct ringgated *r, const char *key);

#endif
