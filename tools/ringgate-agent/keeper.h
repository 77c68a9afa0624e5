/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The process that gives each user who asks an agent: one process a user, with that user's rights,
 * as the kernel has them of who connected first. It has the rights for that, so it reads no word
 * that any of them says, does not have the network, and decides nothing but whose process gets a
 * connection.
 *
 * It is run by ringgated, as ringgate-agent PATH, with a connection at KEEPER_SOCK: it says its
 * version, and hears one byte, with who listens for users; when that connection ends, so does it,
 * and all agents.
 */
#ifndef KEEPER_H
#define KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#define KEEPER_SOCK	3
#define KEEPER_HOSTS	256U	/* users that have agents at once */
#define KEEPER_GROUPS	256U	/* of a process that are looked at */

/* Who connected */
struct keeper_who {
	uid_t uid;
	gid_t gid;
	unsigned int n;
	gid_t groups[KEEPER_GROUPS];
};

/* Has that process every group that the other one has? */
bool keeper_has_all(const struct keeper_who *who, const struct keeper_who *other);
/* -errno */
int keeper_who_is(int sock, struct keeper_who *who);

/* In the new process: nothing is left of what this one may; -errno */
int keeper_become(const struct keeper_who *who);

#endif
