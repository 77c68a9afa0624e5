/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The service RGATE_REQ_SOCKET: sockets of this machine's network stack, for sessions.
 *
 * Two threads work for it. The engine's takes requests in and cancels them; the service's own
 * makes all calls on sockets, none of which waits, and waits by epoll(7). One lock, never held
 * over a call that takes long, is between them. The kernel copies from and to the session's memory.
 * Names are looked up by some more: socket_resolve.h.
 */
#ifndef RGATE_SOCKET_SERVICE_H
#define RGATE_SOCKET_SERVICE_H

#include "engine.h"
#include "socket_policy.h"

struct socket_service;

struct socket_opts {
	size_t sz;
	/* Who may do what; the service's from now on, if it is made. NULL: all may everything */
	struct socket_policy *policy;
	uint32_t most;		/* sockets in all, if the policy says nothing; 0: no limit */
	uint32_t reserved;
};

/* @opts: NULL for the defaults. -ENOMEM; -EINVAL; -EMFILE; -EAGAIN as pthread_create(3) */
int socket_service_create(struct socket_service **service, const struct socket_opts *opts);

/* The service gets requests of that engine from now on; as rgate_engine_add() */
int socket_service_add(struct socket_service *service, struct rgate_engine *engine);

/* socket_service_destroy - after the engine that it was added to; NULL is allowed */
void socket_service_destroy(struct socket_service *service);

/*
 * socket_service_policy - another one holds from now on
 * @policy: becomes the service's. What it does not allow ends: connections are reset, and their
 * requests get -EACCES. Any thread; only where there was a policy.
 */
void socket_service_policy(struct socket_service *service, struct socket_policy *policy);

/* For who forks: nothing of the service is between states while it does, and the child has no
 * descriptors of it, nor a service. _prepare(), then _parent() or _child()
 */
void socket_service_fork_prepare(struct socket_service *service);
void socket_service_fork_parent(struct socket_service *service);
void socket_service_fork_child(struct socket_service *service);

struct socket_stats {
	size_t sz;
	uint64_t sockets;	/* now */
	uint64_t opened;	/* so far, accepted ones too */
	uint64_t accepted;
	uint64_t refused;	/* by the policy */
	uint64_t killed;
	uint64_t sent;		/* bytes */
	uint64_t received;
};

/* Any thread; @stats->sz is set by the caller. -EINVAL */
int socket_service_stats(struct socket_service *service, struct socket_stats *stats);

/* What there is to tell of a socket */
struct socket_info {
	uint64_t id;
	uid_t uid;
	uint32_t family, type;
	struct rgate_socket_addr local, peer;	/* family 0: none */
	uint32_t state;		/* as TCP's of the kernel, TCP_ESTABLISHED, ...; 0: none */
	uint32_t unread, unsent;	/* bytes that the kernel has */
	uint32_t under_way;	/* requests */
	uint32_t reserved;
	uint64_t sent, received;	/* bytes */
};

/*
 * socket_service_list - up to @n sockets with an id beyond @after, by id
 * Returns how many. Any thread.
 */
unsigned int socket_service_list(struct socket_service *service, uint64_t after,
				 struct socket_info *to, unsigned int n);

/*
 * socket_service_kill - a connection is reset, a listener is gone; what is under way, and what is
 * asked after it, gets -ECONNABORTED. -ENOENT: there is no such socket. Any thread.
 */
int socket_service_kill(struct socket_service *service, uint64_t id);

#endif
