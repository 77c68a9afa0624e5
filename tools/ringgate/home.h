/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The agent of a program's sockets, and this process's member of it. */
#ifndef HOME_H
#define HOME_H

#include "agent.h"
#include "agent_wire.h"

struct home {
	struct agent *agent;		/* NULL: it is gone */
	struct agent_member *member;
	char path[AGENT_PATH_MAX];	/* what programs have in AGENT_ENV */
};

/* As agent_open() */
int home_open(struct home *home, const struct agent_opts *opts);
void home_close(struct home *home);

/* Has it been opened, and not closed since? */
bool home_is_open(const struct home *home);
/* To be waited for, and how long at most, as agent_fd() and agent_timeout() */
int home_fd(const struct home *home);
int home_timeout(const struct home *home);
/* As agent_step() */
int home_step(struct home *home);
/* Of this process's programs */
void home_info(struct home *home, struct agent_info *info);

#endif
