/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Who serves the sockets of an agent, for fuzz_agent.c: what is begun there is under way until the
 * input says how it ends, or the socket is closed. Each socket has two streams that no other one
 * has, so that a byte in the wrong place is seen.
 */
#ifndef AGENT_SERVED_H
#define AGENT_SERVED_H

#include <ringgate/rgate_socket.h>

#include "fuzz.h"

#define SERVED_SOCKETS	256U
#define SERVED_SETS	32U
#define SERVED_OPS	512U
#define SERVED_PORT	20000U	/* of the first of those that are accepted */

/* What it refuses */
#define SERVED_NO_SET	(1U << 0)
#define SERVED_NO_SOCKET (1U << 1)
#define SERVED_NO_NAME	(1U << 2)	/* bind and listen */
#define SERVED_NO_OPTION (1U << 3)
#define SERVED_NO_PLACE	(1U << 4)
#define SERVED_OTHER_GATEWAY (1U << 5)	/* a session's next socket is -ECONNRESET */

struct rgate_socket {
	struct rgate_sockets *set;	/* NULL: closed, or none yet */
	uint32_t number, family;
	bool datagram;
	bool listens, accepted;
	bool stream;			/* the agent was told that it is connected */
	bool cut;			/* a close is a reset */
	bool broken;			/* the agent was told of an error */
	bool shut;			/* it sends no more */
	bool over;			/* the agent was told of the other side's end */
	uint64_t sent, given;		/* bytes either way, as the agent was told */
	/* Its program's side */
	bool wild;			/* it is not known whose bytes go there */
	bool ended;			/* the program has ended its stream */
	bool spoilt;			/* it began with something else than the hello */
	uint64_t written;
};

struct served {
	uint32_t refuses;		/* SERVED_* */
	int error;			/* with which */
	bool gone;			/* the sessions are over */
	bool lost;			/* a socket may have been made again, as another one */
	const struct rgate_socket *good; /* what it has under way is not the input's */
	uint32_t nsockets, under_way;
	uint64_t connected, accepted, sent, received;
};

extern struct served served;

void served_begin(void);
/* After the agent has gone: nothing is left there */
void served_check(void);

/* The byte of a stream; @up: from the program */
unsigned char served_byte(const struct rgate_socket *s, bool up, uint64_t at);
/* What is sent is what a program has sent, in memory that nothing else uses */
void served_check_send(const struct rgate_socket *s, const struct rgate_socket_io *io);
struct rgate_socket *served_at(uint32_t number);

/* One of those that are under way ends, as the input says */
void served_end(struct fuzz_in *in);
/*
 * As who serves well: what does not wait has ended, and what waits for room. One byte comes for
 * @with, if there is one. @all: also what waits for others
 */
void served_end_well(const struct rgate_socket *with, bool all);

/* Something of it is under way that has one */
bool served_has_buffer(const struct rgate_socket *s);

int __wrap_socket_setopt_quiet(struct rgate_socket *s, uint32_t option, const void *value,
			       uint32_t len);
int __wrap_socket_close_quiet(struct rgate_socket *s);
int __wrap_sockets_open_asking(struct rgate_sockets **set, const struct rgate_sockets_opts *o,
			       bool (*enough)(void *ctx, uint64_t ns), void *ctx);
bool __wrap_sockets_are_here(struct rgate_sockets *set);
int __wrap_sockets_settle(struct rgate_sockets *set);
bool __wrap_sockets_settled(const struct rgate_sockets *set);
void __wrap_sockets_end_by(struct rgate_sockets *set, uint64_t ns);
int __wrap_rgate_sockets_open(struct rgate_sockets **set, const struct rgate_sockets_opts *o);
void __wrap_rgate_sockets_close(struct rgate_sockets *set);
void *__wrap_rgate_sockets_memory(const struct rgate_sockets *set, size_t *len);
int __wrap_rgate_sockets_fd(const struct rgate_sockets *set);
int __wrap_rgate_sockets_arm(struct rgate_sockets *set);
int __wrap_rgate_sockets_next(struct rgate_sockets *set, struct rgate_socket_end *end,
			      int timeout_ms);
int __wrap_rgate_socket_open(struct rgate_sockets *set, struct rgate_socket **out,
			     uint32_t family, uint32_t type);
int __wrap_rgate_socket_close(struct rgate_socket *s);
int __wrap_rgate_sockets_resolve_begin(struct rgate_sockets *set,
				       const struct rgate_socket_query *q);
int __wrap_rgate_sockets_cancel(struct rgate_sockets *set, uint64_t cookie);
int __wrap_rgate_socket_begin(struct rgate_socket *s, const struct rgate_socket_io *io);
int __wrap_rgate_socket_bind(struct rgate_socket *s, const struct rgate_socket_addr *addr);
int __wrap_rgate_socket_connect(struct rgate_socket *s, const struct rgate_socket_addr *addr);
int __wrap_rgate_socket_send(struct rgate_socket *s, const void *buf, uint32_t len, uint32_t flags);
int __wrap_rgate_socket_sendto(struct rgate_socket *s, const void *buf, uint32_t len,
			       uint32_t flags, const struct rgate_socket_addr *addr);
int __wrap_rgate_socket_listen(struct rgate_socket *s, int backlog);
int __wrap_rgate_socket_name(struct rgate_socket *s, struct rgate_socket_addr *addr);
int __wrap_rgate_socket_peer(struct rgate_socket *s, struct rgate_socket_addr *addr);
int __wrap_rgate_socket_shutdown(struct rgate_socket *s, uint32_t how);
int __wrap_rgate_socket_setopt(struct rgate_socket *s, uint32_t option, const void *value,
			       uint32_t len);
int __wrap_rgate_socket_getopt(struct rgate_socket *s, uint32_t option, void *value,
			       uint32_t len);

#endif
