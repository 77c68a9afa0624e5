/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 *	client.c	sets, what is begun in them, and how that ends
 *	client_call.c	calls that wait
 *	client_resolve.c names
 *
 * A request under way has a place: its number is the low half of the cookie, and it has room in
 * the session's memory, behind the user's, for an address or an option.
 */
#ifndef RGATE_SOCKET_CLIENT_PRIV_H
#define RGATE_SOCKET_CLIENT_PRIV_H

#include <ringgate/rgate_socket.h>

#include "list.h"

#define PLACE_ROOM	RGATE_SOCKET_OPTION_MAX

struct rgate_socket {
	struct rgate_sockets *set;
	struct link all;
	uint32_t handle;
	uint32_t type;
	uint32_t timeout_ms;
	bool closing;
	bool lost;			/* socket_is_lost() */
	uint32_t under_way;
};

struct place {
	struct link link;		/* free, or ended and not taken */
	struct rgate_socket *s;
	struct rgate_socket *made;	/* for who is accepted */
	struct rgate_socket *of;	/* whose option it is, of which nobody is told */
	uint32_t what;			/* enum rgate_socket_do; 0: somebody waits for it */
	uint32_t generation;
	bool busy;			/* under way */
	bool ended;
	bool quiet;			/* nobody is told */
	bool has_addr;			/* there will be one in its room */
	uint64_t cookie;		/* the user's */
	int32_t result;
	uint64_t value;
	uint32_t room;			/* RESOLVE: bytes for its answer */
};

struct rgate_sockets {
	struct rgate_session *session;
	unsigned char *mem;
	uint64_t user_len;		/* the user's part of it */
	uint32_t nplaces;
	uint32_t used;			/* of these that were ever: others have no memory yet */
	uint64_t until;			/* sockets_end_by(); 0: for ever */
	bool (*enough)(void *ctx, uint64_t ns);	/* sockets_open_asking(); NULL */
	void *enough_ctx;
	uint64_t heard;			/* completions, so far */
	uint64_t silent_ns;		/* since when a call waits in vain; 0: none does */
	struct link all, free, ended;
	struct place place[];		/* nplaces, and one that only rgate_socket_close() uses */
};

/* A place; NULL: all are in use */
struct place *place_get(struct rgate_sockets *set);
void place_put(struct rgate_sockets *set, struct place *p);
/* That of rgate_socket_close(), which it has to itself until it is put */
struct place *place_kept(struct rgate_sockets *set);
uint64_t place_off(const struct rgate_sockets *set, const struct place *p);
void *place_room(const struct rgate_sockets *set, const struct place *p);

/* Submits it for the place, as rgate_session_submit() */
int place_submit(struct rgate_sockets *set, struct place *p, struct rgate_request *q);
/* Takes what has ended; 1: something has. @timeout_ms as of rgate_session_wait() */
int sockets_take(struct rgate_sockets *set, int timeout_ms);
/* Waits until something may have ended. 0; -ETIMEDOUT: sockets_end_by(); -EPIPE */
int sockets_await(struct rgate_sockets *set);
/* ... or a millisecond is over */
int sockets_pause(struct rgate_sockets *set);
/* Where in the session's memory; -EFAULT: it is not */
int sockets_off(const struct rgate_sockets *set, const void *buf, uint32_t len, uint64_t *off);

/* Submits it, and waits: its end is in the place then, or the place is nobody's any more */
int place_ask(struct rgate_sockets *set, struct place *p, struct rgate_request *q);
/* RESOLVE: how many addresses it came to, or its error */
int place_found(const struct place *p);

struct rgate_socket *socket_make(struct rgate_sockets *set, uint32_t type);
void socket_forget(struct rgate_socket *s);

#endif
