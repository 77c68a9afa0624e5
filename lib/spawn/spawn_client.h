/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The asking side: spawn_client.c has the object, spawn_client_send.c and
 * spawn_client_recv.c its messages, spawn_client_job.c a job's functions,
 * spawn_client_ask.c questions that are answered once.
 */
#ifndef RGATE_SPAWN_CLIENT_H
#define RGATE_SPAWN_CLIENT_H

#include <pthread.h>

#include "call.h"
#include "record.h"
#include "session.h"
#include "xfer.h"

#define RGATE_CLIENT_BUCKETS	1024
#define RGATE_CLIENT_SIGNALS	8

struct client_signal {
	uint32_t number;
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
	struct rgate_spawn_job *next_cookie;	/* bucket */
	struct rgate_spawn_job *next, **prev;	/* all of them */
	struct rgate_spawn_job *news_next, *work_next;
	bool in_news, in_work;
	struct rgate_spawn *spawn;
	uint64_t cookie;
	uint64_t id;
	void *data;
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
	uint32_t signal_last;		/* number of the last one that was asked for, */
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
	int epoll_fd, timer_fd;
	uint64_t wake_ns;
	struct session session;
	struct xfer_list xfers;		/* messages */
	uint64_t next_cookie;
	struct rgate_spawn_job *by_cookie[RGATE_CLIENT_BUCKETS];
	struct rgate_spawn_job *jobs;
	uint32_t handles;		/* that the caller has */
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
/* What rgate_spawn_close() waits for, while the messages are still handed on */
void client_settle(struct rgate_spawn *spawn);
/* As its node would write it; without the count of signals. Without the lock */
void client_job_status(struct rgate_spawn_job *job, struct rgate_spawn_status *status);

/*
 * Without the lock, which is held while @done is asked. 0: it was so; -ETIMEDOUT
 */
int client_wait(struct rgate_spawn *spawn, bool (*done)(void *arg), void *arg, int timeout_ms);

/* Where the bytes of stream 0 (stdin), 1 or 2 are */
static inline uint8_t *client_ring(const struct rgate_spawn_job *job, int stream)
{
	return (uint8_t *)(stream ? job->buf : job->lent)->addr + job->ring[stream];
}

#endif
