/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Who is connected to the socket of requests */
#ifndef REQUESTS_CLIENTS_H
#define REQUESTS_CLIENTS_H

#include <pthread.h>

#include "events.h"
#include "journal.h"
#include "requests.h"
#include "requests_log.h"
#include "requests_policy.h"

#define CLIENTS_MAX	4096
#define REQUESTS_SERVICES 16	/* that the daemon adds to the engine's own, at most */

struct request_client {
	int sock;			/* -1: none */
	uid_t uid;
	uint64_t until;			/* CLOCK_MONOTONIC ns: says hello before; 0: has */
	struct rgate_seat *seat;	/* NULL: has not said hello */
	struct request_rights rights;
};

struct requests {
	struct rgate_engine *engine;
	struct request_log *log;
	void *service[REQUESTS_SERVICES]; /* NULL: was not started */
	struct socket_service *sockets;	/* one of them; NULL: they are the gateway's */
	struct gate_service *gate;	/* NULL: no sockets of other nodes here, nor there */
	struct gate_service *queue_gate; /* queues of other nodes, and theirs of this one */
	struct queue_service *queues;
	struct journal_opts journal;	/* of these; dir NULL: none */
	bool sockets_there;
	const char *path, *policy_path, *sockets_path;
	int listen_fd;
	struct events ev;		/* woken: it ends */
	pthread_t thread;
	pthread_mutex_t policy_lock;	/* taken last, and never held for long: the hub's thread
					 * looks at the policy with it */
	pthread_mutex_t lock;		/* all below */
	struct request_policy *policy;	/* changed with both */
	struct requests_stats stats;	/* without the engine's */
	unsigned int nclients;		/* places of the table that were ever used */
	struct request_client clients[CLIENTS_MAX];
};

#define REQUESTS_TAG_LISTEN	CLIENTS_MAX

/* All but the last: with the lock held */

/* Somebody waits at the listening socket. -errno: is to be tried later */
int clients_accept(struct requests *rq);
/* There is something to read, or it is over. */
void clients_read(struct requests *rq, struct request_client *c);
/* Those that did not say hello in time go. In how many ms to look again; -1: need not */
int clients_expire(struct requests *rq);
/* The policy is another one */
void clients_review(struct requests *rq);
void clients_drop(struct requests *rq, struct request_client *c);

#endif
