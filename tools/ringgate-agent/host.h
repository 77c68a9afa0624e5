/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The agents of one user's programs, in a process of that user's: one for each group of them. What
 * a program, or who joins for it, says is read here alone, so that nobody harms more than his own.
 */
#ifndef HOST_H
#define HOST_H

#include <stdint.h>

/*
 * Between keeper and host, over a pair of SOCK_SEQPACKET: the keeper passes one who has connected,
 * with no word of his read, behind a byte. The host says how many it had when it has been without
 * anybody for a while; if that is all of them, the keeper closes its end, and the host ends.
 */
struct host_idle {
	uint64_t taken;
};

/*
 * host_run - until @keeper is closed; an exit status
 * @requests: the daemon's socket of requests; @dir: this user's own
 */
int host_run(int keeper, const char *requests, const char *dir);

#endif
