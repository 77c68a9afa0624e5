/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 *	queue_worker.c		the object: threads, and their end
 *	queue_worker_thread.c	what each does
 *	queue_worker_tell.c	what it says of its tasks
 */
#ifndef RGATE_QUEUE_QUEUE_WORKER_H
#define RGATE_QUEUE_QUEUE_WORKER_H

#include <pthread.h>

#include <ringgate/rgate_queue_worker.h>

#include "fair.h"
#include "list.h"

/* A task of a thread: claimed, then at its handler, then a result to be told */
struct taken {
	struct link link;
	struct rgate_queue_task task;
	uint64_t begun;			/* ns; 0: it was not */
	uint64_t touched;
	void *result;
	uint32_t len;
	bool unwritten;			/* as the home has said, once it was told */
	char data[] __attribute__((aligned(16)));
};

struct queue_thread {
	struct rgate_queue_worker *worker;
	pthread_t id;
	/* for what follows, up to buf; and for each call of the queue's; who touches has turns */
	struct fair lock;
	struct rgate_queue *queue;
	struct link ahead, ended;	/* claimed; results to be told */
	unsigned int nahead, nended;
	struct taken *now;
	bool asked;			/* a claim is in the background */
	bool refused;			/* a result was, for now */
	bool crowded;			/* too many wait at the home: this one does so here */
	uint64_t told;			/* ns: when results were, or the first of these ended */
	/* of who touches */
	bool passed_by;
	/* the thread's own */
	char *buf;			/* room for a result */
	struct rgate_queue_got got[RGATE_QUEUE_CLAIM_MAX];
	/* atomic */
	struct rgate_queue_worker_info n;
};

enum worker_state { WORKER_GOES, WORKER_DRAINS, WORKER_STOPS };

struct rgate_queue_worker {
	char *name, *path;
	struct rgate_queue_opts queue;	/* o.queue points to it, or is NULL */
	struct rgate_queue_worker_opts o;
	struct rgate_queue_handler *handlers;
	const struct rgate_queue_handler *by_type[RGATE_QUEUE_TYPES];
	uint64_t types;			/* 0: all */
	int state;			/* enum worker_state, atomic */
	int bell;			/* eventfd: readable from the end of WORKER_GOES on */
	struct queue_thread *threads;
	unsigned int nthreads;		/* of which the queue is open, */
	unsigned int nstarted;		/* that were started, */
	pthread_t toucher;
	bool touches;
	/* and under the lock: that have not ended */
	pthread_mutex_t lock;
	pthread_cond_t ended;
	unsigned int nrunning;
	int error;			/* of the first one */
};

#define worker_count(t, what, by) \
	((void)__atomic_fetch_add(&(t)->n.what, (by), __ATOMIC_RELAXED))

static inline int worker_state(const struct rgate_queue_worker *w)
{
	return __atomic_load_n(&w->state, __ATOMIC_ACQUIRE);
}

/* queue_worker.c */
int worker_open(struct queue_thread *t);

/* queue_worker_thread.c. Until the worker is stopped, drained, or something is wrong: 0 or that */
int worker_loop(struct queue_thread *t);

/* queue_worker_tell.c: with the thread's lock held. 0; or an error after which nothing that it has
 * claimed is its own */

/* The attempt begins; results that there are go along. *ours: false: the claim is over */
int worker_begin(struct queue_thread *t, struct taken *task, bool *ours);
/* What the handler returned; the task is over, or among those that are to be told */
int worker_tell(struct queue_thread *t, struct taken *task, int ret,
		const struct rgate_queue_work *work);
/* Asks for more in the background, and tells results */
int worker_ask(struct queue_thread *t, uint32_t flags);
/* Tells results that there are */
int worker_flush(struct queue_thread *t);
/* What is claimed ahead is another one's to claim */
int worker_give_back(struct queue_thread *t);
/* Touches what has run for as long as the options have it since it was touched, if it is to be */
int worker_touch(struct queue_thread *t);
/* One that is in no list */
void worker_drop(struct taken *task);
/* Nothing of it is its own any more. */
void worker_forget(struct queue_thread *t);

#endif
