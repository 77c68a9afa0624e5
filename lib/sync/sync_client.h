/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A session with one lock, barrier or queue, whose caller waits for what it asks */
#ifndef RGATE_SYNC_CLIENT_H
#define RGATE_SYNC_CLIENT_H

#include <stdbool.h>

#include <ringgate/rgate_session.h>
#include <ringgate/rgate_sync.h>

#define SYNC_CLIENT_MOST	5U	/* requests at once */

/* One request that is not waited for, see sync_later.h */
struct sync_later {
	uint64_t cookie;	/* 0: there is none */
	bool there;		/* its end is */
	bool has_fd;
	int fd, bell;
	struct rgate_completion end;
};

struct sync_client {
	struct rgate_session *session;
	struct rgate_sync_place *place;
	void *room;		/* of the session, for what is told: SYNC_CLIENT_ROOM */
	struct rgate_request open; /* to be asked again when its life is over */
	uint64_t cookie;
	unsigned int nkept;
	/* that came while another one's was waited for */
	struct rgate_completion kept[SYNC_CLIENT_MOST];
	struct sync_later later;
	uint32_t handle;	/* 0: it could not be opened again, so far */
	int timeout_ms;
};

#define SYNC_CLIENT_ROOM	512U	/* where it begins */
#define SYNC_CLIENT_SURE	(-2)	/* no time is too long, and no signal ends it */

/* A session alone: place and handle are nothing's. As rgate_session_open() */
int sync_client_connect(struct sync_client *sc, const struct rgate_sync_opts *opts);
/* With what is called so. @op: RGATE_REQ_LOCK_OPEN or _BARRIER_OPEN */
int sync_client_open(struct sync_client *sc, const char *name, uint32_t op, uint32_t members,
		     const struct rgate_sync_opts *opts);
void sync_client_close(struct sync_client *sc, uint32_t op);

/* The handle is of a life that is over: another one. As for OPEN */
int sync_client_again(struct sync_client *sc, uint32_t close_op);

/*
 * Asks for @n at once, SYNC_CLIENT_MOST at most, which gives each its cookie. They end in any
 * order; each is waited for.
 */
int sync_client_start(struct sync_client *sc, struct rgate_request *q, unsigned int n);
int sync_client_finish(struct sync_client *sc, uint64_t cookie, int timeout_ms, uint64_t *value);

/*
 * Asks, and waits for the end. @timeout_ms: -1: no limit; @value: out, or NULL
 * When the time is over, or a signal comes, it is cancelled: -ETIMEDOUT, -EINTR, if it had not
 * ended before that.
 */
int sync_client_ask(struct sync_client *sc, struct rgate_request q, int timeout_ms,
		    uint64_t *value);

/*
 * The completion of @cookie, when it is there: 1; others wait until they are asked for; or as
 * rgate_session_poll()
 */
int sync_client_take(struct sync_client *sc, uint64_t cookie, struct rgate_completion *c);
/* Cancels it, and waits for its end: 1; or why that never comes */
int sync_client_give_up(struct sync_client *sc, uint64_t cookie, struct rgate_completion *c);

#endif
