/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * An agent: has TCP and UDP sockets for programs that know nothing of it, and carries their bytes
 * to the service of sockets and back. To a program each of them is an AF_UNIX socket, see
 * agent_wire.h.
 *
 * Its programs are those of its members, each of which may come and go: to all of them its
 * loopback is one, and where a member leaves the sockets of its programs break.
 *
 * It has one thread, whose loop is the host's: whoever has agent_fd() readable, or agent_timeout()
 * over, calls agent_step(). It trusts no program: what one asks is copied, and what one does not
 * read or close holds up nobody else.
 */
#ifndef RGATE_AGENT_H
#define RGATE_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ringgate/rgate_session.h>

struct agent;
struct agent_member;

enum agent_loopback {
	AGENT_LOOPBACK_OWN = 0,		/* 127.0.0.0/8 and ::1 are this agent's programs' own */
	AGENT_LOOPBACK_SERVED = 1,	/* they are those of who serves the sockets */
};

struct agent_opts {
	size_t sz;
	const char *path;	/* as of rgate_session_opts */
	uint32_t where;		/* enum rgate_session_where */
	uint32_t loopback;	/* enum agent_loopback */
	const char *parent;	/* its directory lies there; NULL: XDG_RUNTIME_DIR, or /tmp */
	/* Sockets of programs at once; 0: half of RLIMIT_NOFILE, as it is now, but 4096 at least */
	uint32_t conns;
	uint32_t reserved;
	/* A line to who has that member, of what its programs did; NULL: it is logged */
	void (*warn)(void *ctx, const struct agent_member *member, const char *line);
	void *ctx;
	/*
	 * Asked from time to time while the agent waits for who serves, from whom nothing has come
	 * for so many ns: true: that is not waited for any more. NULL: it is, for ever
	 */
	bool (*enough)(void *ctx, uint64_t ns);
	void *enough_ctx;
};

struct agent_info {
	size_t sz;
	uint64_t sockets;	/* that programs have or had */
	uint64_t connected, accepted;
	uint64_t local;		/* connections to another program of this agent */
	uint64_t sent, received; /* bytes of programs that the service has taken, or given */
	uint64_t resets;	/* connections that broke */
	uint64_t datagrams;	/* that went, or came, or from one program to another one */
	uint64_t lost;		/* of these, also that a program did not take, or could not send */
	uint64_t refused;	/* sockets of kinds that there are not */
	uint64_t lies;		/* questions that could not be */
	uint32_t now;		/* sockets at the moment */
	uint32_t moving;	/* of these connections that have something to do */
	uint32_t sessions;	/* of the service */
	uint32_t reserved;
};

/*
 * agent_open - as rgate_sockets_open(); -ENAMETOOLONG: of its directory; -errno of making it;
 * -ENOSYS: there is no /proc
 */
int agent_open(struct agent **agent, const struct agent_opts *opts);
/* Connections that there are break. NULL is allowed */
void agent_close(struct agent *agent);

const char *agent_dir(const struct agent *agent);

/* Nobody can ask an agent that has no member. -ENOMEM; -errno */
int agent_join(struct agent *agent, struct agent_member **member);
/* Its sockets break. It is its agent's, and goes with that, too */
void agent_leave(struct agent_member *member);
/* What its programs have in AGENT_ENV */
const char *agent_member_path(const struct agent_member *member);

/*
 * agent_left - after the end of an agent that was killed: it tells who waits in accept(2), and
 * removes the directory. If it was not, or if it lives, nothing is done
 * @path: agent_member_path()
 */
void agent_left(const char *path);

int agent_fd(const struct agent *agent);
/* In ms, how long agent_fd() may be waited for; to be asked each time. Arms the sessions */
int agent_timeout(struct agent *agent);
/* Does what there is to do, and does not wait. -EPIPE: the service is gone; -errno */
int agent_step(struct agent *agent);

/* @info->sz is set by the caller. -EINVAL */
int agent_info(const struct agent *agent, struct agent_info *info);
/* Of one; lies and sessions are all of the agent's */
int agent_member_info(const struct agent_member *member, struct agent_info *info);

#endif
