/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Which node may run what, as whom: a file; Documentation/spawn.rst has its lines. */
#ifndef RGATE_SPAWN_POLICY_H
#define RGATE_SPAWN_POLICY_H

#include <limits.h>
#include <sys/types.h>

#include "record.h"

#define RGATE_POLICY_PATH	"/etc/ringgate/spawn.conf"
#define RGATE_POLICY_MAX	(256U << 10)	/* bytes of the file */
#define RGATE_POLICY_GROUPS	1024		/* of a user */

struct rgate_spawn_policy;

struct rgate_policy_user {
	char name[33];
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	uint32_t ngroups;
	char *home;
	char *shell;
};

struct rgate_policy_node {
	bool known;
	bool admin;
	bool no_new_privs;
	bool need_cgroup;	/* runs nothing where limits are not for all of its processes */
	uint32_t max_running;	/* 0: as all */
	uint32_t max_queued;
	struct rgate_policy_user user;
	/* not more than that; 0: no limit */
	uint64_t wall_ms;
	uint64_t memory;
	uint32_t processes;
	uint32_t files;
	uint32_t cpu_s;
	int32_t nice;		/* not less */
	const char **env;	/* patterns, ends with NULL; NULL: the default */
};

/* What a request was allowed */
struct rgate_policy_grant {
	char path[PATH_MAX];
	bool with_hash;		/* else any content */
	uint8_t sha256[32];
};

#define RGATE_POLICY_WHY	RGATE_SPAWN_REASON

/* The file's @text, for free(). -ENOENT; -EPERM: others may write it; -EFBIG */
int rgate_policy_read(const char *path, char **text, size_t *len);
/* And -EINVAL: malformed, the log says where */
int rgate_policy_load(struct rgate_spawn_policy **policy, const struct rgate_cluster *cluster,
		      const char *path);
/* @name: for messages */
int rgate_policy_parse(struct rgate_spawn_policy **policy, const struct rgate_cluster *cluster,
		       const char *name, const char *text, size_t len);
/* One that allows nothing */
int rgate_policy_nothing(struct rgate_spawn_policy **policy);
void rgate_policy_free(struct rgate_spawn_policy *policy);

uint32_t rgate_policy_max_running(const struct rgate_spawn_policy *policy);
/* Of node @id alone */
uint32_t rgate_policy_max_queued(const struct rgate_spawn_policy *policy, uint32_t id);
/* Directories, separated by colons */
const char *rgate_policy_search(const struct rgate_spawn_policy *policy);
/* NULL: that node may run nothing */
const struct rgate_policy_node *rgate_policy_node(const struct rgate_spawn_policy *policy,
						  uint32_t id);

/*
 * rgate_policy_check - may node @id run @req? Takes its limits down to what is allowed.
 * -EACCES, -ENOENT (looked for without a path, and not there), -ENAMETOOLONG, -EINVAL;
 * @why: in words
 */
int rgate_policy_check(const struct rgate_spawn_policy *policy, uint32_t id,
		       struct rgate_spawn_parsed *req, struct rgate_policy_grant *grant,
		       char why[RGATE_POLICY_WHY]);
/* The same in two parts: environment and limits, without any look at files; then what is
 * executed, which looks for a command as the user that calls it */
int rgate_policy_limits(const struct rgate_spawn_policy *policy, uint32_t id,
			struct rgate_spawn_parsed *req, char why[RGATE_POLICY_WHY]);
int rgate_policy_path(const struct rgate_spawn_policy *policy, uint32_t id,
		      const struct rgate_spawn_parsed *req, struct rgate_policy_grant *grant,
		      char why[RGATE_POLICY_WHY]);

#endif
