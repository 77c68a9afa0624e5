/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_REQUEST_SESSION_PRIV_H
#define RGATE_REQUEST_SESSION_PRIV_H

#include <ringgate/rgate_session.h>

#include "area.h"
#include "engine.h"
#include "list.h"
#include "spin.h"

#define LINE	64	/* what different threads write lies in different cache lines */

#define RGATE_WAIT_DAEMON	1U	/* what wait_fd says of the socket; else it is the engine */

struct rgate_session {
	struct rgate_area area;
	uint32_t owner;
	uint32_t where;
	uint64_t fork;		/* rgate_session_forks when it was opened */
	int kick_fd, wait_fd;
	int sock;		/* to the daemon; -1: none */
	bool lent;		/* both rings are another's, for good */
	struct rgate_seat *seat;	/* RGATE_SESSION_PROCESS */
	void *mem;
	size_t mem_len;
	struct link of_process;	/* all sessions: their lock is in session_process.c */
	struct rgate_session_opts opts;	/* of a daemon's; path is this session's copy */
	uint32_t over;		/* atomic: the other side is gone */

	/* Who submits. Counters are read by any thread. */
	uint64_t submitted __attribute__((aligned(LINE)));
	uint64_t room;		/* positions below may be written */
	uint64_t kicks;

	/* Who takes completions */
	uint64_t completed __attribute__((aligned(LINE)));
	uint64_t credit_kicks;
	uint64_t sleeps;
	unsigned int misses;	/* polls that found nothing since the daemon was looked after */
	bool armed;
	struct rgate_spin spin;
};

/* How often this process and those before it forked */
extern uint64_t rgate_session_forks;

/* It is the parent's, and its memory is not there. Any thread */
static inline bool rgate_session_forked(const struct rgate_session *s)
{
	return s->fork != __atomic_load_n(&rgate_session_forks, __ATOMIC_RELAXED);
}

/* The socket's other end is closed? Then the session is over from now on. */
bool rgate_session_gone(struct rgate_session *s);

/* session_process.c: sessions of this process */
void rgate_session_enlist(struct rgate_session *s);
void rgate_session_delist(struct rgate_session *s);
/* A seat at the engine of this process, which is made for the first; as rgate_seat_add() */
int rgate_process_seat(const struct rgate_seat_opts *opts, uint32_t spin_us,
		       struct rgate_seat **seat, struct rgate_welcome *w, int fds[RGATE_FDS]);
/* Removes it; after the last one the engine ends. */
void rgate_process_unseat(struct rgate_seat *seat);

/*
 * What that engine serves besides what every engine does, from the layers above, which have
 * these (lib/socket/process.c). @services: out, for _free() after the engine's end; NULL is
 * allowed there.
 */
int rgate_process_services(struct rgate_engine *engine, void **services);
void rgate_process_services_free(void *services);

/* For fork(2): nothing of them is between states then, and the child has none. NULL is allowed */
enum rgate_process_fork {
	RGATE_FORK_PREPARE, RGATE_FORK_PARENT, RGATE_FORK_CHILD
};

void rgate_process_services_fork(void *services, enum rgate_process_fork when);

#endif
