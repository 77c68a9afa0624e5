/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The asking side: spawn_client.c has the object, spawn_client_send.c and
 * spawn_client_recv.c its messages, spawn_client_job.c a job's functions,
 * spawn_client_ask.c questions that are answered once.
 */
#ifndef RGATE_SPAWN_CLIENT_H
#define RGATE_SPAWN_CLIENT_H

#include <endian.h>
#include <errno.h>
#include <pthread.h>

#include "call.h"
#include "events.h"
#include "index.h"
#include "record.h"
#include "session.h"
#include "xfer.h"

#define RGATE_CLIENT_SIGNALS	8

struct client_signal {
	int32_t signal;
	uint32_t scope;
};

enum client_need {		/* messages to be sent, in this order */
	RGATE_NEED_START	= 1U << 0,
	RGATE_NEED_ATTACH	= 1U << 1,
	RGATE_NEED_CONTROL	= 1U << 2,
	RGATE_NEED_DETACH	= 1U << 3,
	RGATE_NEED_RELEASE	= 1U << 4,
};

struct rgate_spawn_job {
	struct index_node by_cookie;
	struct rgate_spawn_job *next, **prev;	/* all of them */
	struct rgate_spawn_job *news_next, *work_next;
	bool in_news, in_work;
	struct rgate_spawn *spawn;
	uint64_t cookie;
	uint64_t id;
	uint32_t owner;			/* for whom, as the messages have it */
	void *data;
	/* Its memory is being freed; with the lock. NULL: nobody wants to know */
	void (*freed)(struct rgate_spawn_job *job, void *ctx);
	void *freed_ctx;
	const struct rgate_buf *buf;	/* which the server writes: status, rings of output */
	const struct rgate_buf *lent;	/* and reads: record, ring of stdin */
	const struct rgate_buf *said;	/* the message that is under way */
	uint32_t record_len;
	uint32_t ring[3], ring_len[3];	/* stdin, stdout, stderr */
	uint32_t need;			/* enum client_need */
	struct xfer message;
	bool sent;			/* the first message, once at least */
	bool answered;			/* the server knows it */
	bool greeted;			/* and where its streams begin */
	bool closed;			/* the caller's handle is gone */
	bool gone;			/* the server does not use its memory */
	bool detached;
	bool leaves;			/* closed, and to be detached when it is answered */
	bool keep;			/* its result, too, until this handle is closed */
	bool kept;			/* the server has it */
	bool ended;
	uint64_t asked_ns;		/* 0: an answer is not awaited */
	struct rgate_spawn_result result;
	uint32_t stream_ended;		/* enum rgate_spawn_ended */
	bool lost;			/* with less than all of its output */
	uint64_t consumed[2], told[2];
	uint64_t given, taken;
	bool given_all;
	struct client_signal signals[RGATE_CLIENT_SIGNALS];
	uint32_t signal_base;		/* what the server counted before its first status */
	uint32_t signal_last;		/* behind it: number of the last that was asked for, */
	uint32_t signal_sent;		/* sent */
	uint32_t signal_seen;		/* and taken by the server */
};

struct rgate_spawn {
	pthread_mutex_t lock;
	struct rgate_spawn_opts o;
	struct rgate_node *node;
	struct rgate_pool *pool;	/* where it is written, */
	struct rgate_pool *readable;	/* read, */
	struct rgate_pool *stage;	/* and where no peer reaches */
	struct rgate_peer *peer;
	struct events ev;
	int timer_fd;
	uint64_t wake_ns;
	struct session session;
	struct xfer_list xfers;		/* messages */
	uint64_t next_cookie;
	struct index by_cookie;
	struct rgate_spawn_job *jobs;
	struct rgate_spawn_job *news, **news_last;
	struct rgate_spawn_job *work, **work_last;
	struct call_client calls;	/* questions */
};

/* All with the lock */
void client_process(struct rgate_spawn *spawn);
/* Whether there is a connection, and which: jobs are told */
void client_check_peer(struct rgate_spawn *spawn, uint64_t now);
void client_need(struct rgate_spawn_job *job, uint32_t need);
void client_news(struct rgate_spawn_job *job);
struct rgate_spawn_job *client_job_create(struct rgate_spawn *spawn, const uint32_t ring_len[3],
					  uint32_t record_len, int *err);
/* It goes on without the caller */
void client_job_let_run(struct rgate_spawn_job *job);
/* Frees it as soon as nothing uses its memory */
void client_job_reap(struct rgate_spawn_job *job);
void client_job_lose(struct rgate_spawn_job *job, int err, uint32_t stage, const char *reason);
/* Its end, told by the server or found here: nothing will be written to its memory. */
void client_job_end(struct rgate_spawn_job *job);
struct rgate_spawn_job *client_find(struct rgate_spawn *spawn, uint64_t cookie);
void client_wake_at(struct rgate_spawn *spawn, uint64_t ns);
void client_receive(struct rgate_spawn *spawn);
/* Sends what is to be sent; true: something could not be */
bool client_send(struct rgate_spawn *spawn);

/*
 * For who shares the peer and has a thread that calls rgate_spawn_process() when it is due, so
 * that nobody needs the descriptor. Without the lock
 */
struct client_wish {
	bool idle;		/* nothing to do before something is asked for */
	bool posted;		/* the end of a transfer is waited for */
	bool news;		/* for rgate_spawn_next() */
	uint64_t wake_ns;	/* CLOCK_MONOTONIC, UINT64_MAX: never */
};

struct client_wish client_wish(struct rgate_spawn *spawn);
/* What rgate_spawn_close() waits for, for so long: nothing of the pool is used by the node */
#define CLIENT_CLOSE_MS	2000
bool client_settled(struct rgate_spawn *spawn);
/* From a node that does not let go of memory in time: without the connection it cannot reach it */
void client_take_back(struct rgate_spawn *spawn);
/*
 * Of a list: copied first, as the node can write it at any time. -EPROTO unless the id is above
 * @last, which it becomes: who asks for what comes next gets somewhere.
 */
int client_take_entry(struct rgate_spawn_entry *to, const struct rgate_spawn_entry *from,
		      uint64_t *last);
/* Which user's it is, as the messages have it: the functions without are the node's own */
int client_start(struct rgate_spawn *spawn, const struct rgate_spawn_request *request,
		 uint32_t owner, struct rgate_spawn_job **job);
int client_attach(struct rgate_spawn *spawn, uint64_t id, uint32_t ring_bytes, uint32_t owner,
		  struct rgate_spawn_job **job);
/*
 * A step of rgate_spawn_job_detach(), without waiting, as often as there is news. False: not
 * yet; else nothing uses its memory, and client_job_leave() is due. @err: 0, or why it did not run
 */
bool client_job_detach(struct rgate_spawn_job *job, int *err);
/*
 * The handle is gone, the job goes on, or its result stays there. Input that its node has not
 * taken is lost, and so is a job that it was not told of.
 */
void client_job_leave(struct rgate_spawn_job *job);

/* A question that is answered once, and who wants to know */
struct client_ask {
	uint8_t type;		/* RGATE_SPAWN_LIST, RGATE_SPAWN_KILL */
	uint32_t owner;
	uint64_t id;
	int signal;
	uint32_t scope;
	/* @err: 0, or why there is no answer. Of a list @answer->count are at @entries. With the
	 * lock; nothing of the client may be called. */
	void (*over)(void *arg, int err, const struct rgate_spawn_answer *answer,
		     const struct rgate_spawn_entry *entries);
	void *arg;
};

struct client_question;

/* 0: over() will be called, maybe already was, and *@q is there until then; -EAGAIN: later,
 * others ask; -ENOMEM, -ENOBUFS */
int client_ask(struct rgate_spawn *spawn, const struct client_ask *ask,
	       struct client_question **q);
/* Nobody waits for the answer: over() is called as soon as no memory is used, maybe at once */
void client_ask_leave(struct client_question *q);

/* As its node would write it; without the count of signals. Without the lock */
void client_job_status(struct rgate_spawn_job *job, struct rgate_spawn_status *status);

/*
 * Without the lock, which is held while @done is asked. 0: it was so; -ETIMEDOUT
 */
int client_wait(struct rgate_spawn *spawn, bool (*done)(void *arg), void *arg, int timeout_ms);

#define CLIENT_ERRNO_MAX	4095

/* 0 or -errno, of the number that the other side says; what is none is -EIO */
static inline int client_error(uint32_t le)
{
	const uint32_t v = le32toh(le);

	return v > CLIENT_ERRNO_MAX ? -EIO : -(int)v;
}

/* Where the bytes of stream 0 (stdin), 1 or 2 are */
static inline uint8_t *client_ring(const struct rgate_spawn_job *job, int stream)
{
	return (uint8_t *)(stream ? job->buf : job->lent)->addr + job->ring[stream];
}

#endif
