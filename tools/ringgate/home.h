/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The agent of a program's sockets: this process's own one, or a member of one that is shared. */
#ifndef HOME_H
#define HOME_H

#include "agent.h"
#include "agent_wire.h"

struct home {
	struct agent *agent;		/* NULL: it is shared, or gone */
	struct agent_member *member;
	int sock;			/* of the shared one; -1 */
	int left_watch;			/* of this process's own; -1 */
	char path[AGENT_PATH_MAX];	/* what programs have in AGENT_ENV */
	struct agent_info info;		/* as it was told last */
};

/* As agent_open() */
int home_open(struct home *home, const struct agent_opts *opts);
/*
 * home_join - the agent that the daemon has for this user's programs
 * @path: the daemon's socket of requests; @group: "": all programs that name none
 * -ENOENT: it offers none; -EPERM: that has groups that this process has not; -EPROTONOSUPPORT:
 * another version; as agent_open()
 */
int home_join(struct home *home, const char *path, const char *group);
/* Letters, digits and . _ -, AGENT_GROUP_MAX - 1 at most */
bool home_is_group(const char *name);
void home_close(struct home *home);

/* Has it been opened, and not closed since? */
bool home_is_open(const struct home *home);
/* To be waited for, and how long at most, as agent_fd() and agent_timeout() */
int home_fd(const struct home *home);
int home_timeout(const struct home *home);
/* As agent_step() */
int home_step(struct home *home);
/* Of this process's programs; what was told before if it is gone */
void home_info(struct home *home, struct agent_info *info);

#endif
