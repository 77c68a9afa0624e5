/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Which users of this machine may ask for what: a file; ringgated(8) has its lines. */
#ifndef REQUESTS_POLICY_H
#define REQUESTS_POLICY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine.h"

#define REQUESTS_GROUPS	256	/* of a process that are looked at */

enum request_limit {
	LIMIT_SESSIONS, LIMIT_REQUESTS, LIMIT_HANDLES, LIMIT_MEMORY, LIMITS
};

/* What a process may; all 0: not even have a session */
struct request_rights {
	uint32_t services;	/* bits */
	bool urgent;		/* may use that class */
	uint64_t most[LIMITS];	/* of the user, 0: no limit */
};

struct request_policy;

/*
 * request_policy_load - reads it
 * @path: NULL: nobody may anything but who always may
 * 0; -EINVAL: malformed; -EPERM: others may write it; -errno. The log says where and what.
 * Looks users and groups up, which may take a while.
 */
int request_policy_load(struct request_policy **policy, const char *path);
void request_policy_free(struct request_policy *policy);

/* Root, and the user that the daemon is, always may everything. */
struct request_rights request_policy_rights(const struct request_policy *policy, uid_t uid,
					    const gid_t *groups, unsigned int ngroups);

/* Does the node speak for that user, when it asks for what users here have? Nobody's does unless a
 * line says so. */
bool request_policy_speaks(const struct request_policy *policy, uint32_t node, uid_t uid);

/* Adds what @more may to @rights: the user may what one of his processes may. */
void request_rights_add(struct request_rights *rights, const struct request_rights *more);
/* As the engine has them */
void request_rights_limits(const struct request_rights *rights, struct rgate_limits *limits);

#endif
