// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The local provider as late as a device may be. Otherwise an operation is over when its
 * post returns, and who frees its memory too early, or takes an answer for granted, is
 * never found out. Here a thread of the connection does it some time after it was posted,
 * its completion comes some time after that, and what a failed connection still has to do
 * goes on until it is destroyed. For tests: the environment variable RGATE_LOCAL_LATE has
 * the longest of these times, in microseconds.
 *
 * The thread alone reaches the peer's memory. Under the lock are the queue, completions and
 * their descriptor, and whether the connection has failed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "clock.h"
#include "local.h"
#include "thread.h"

#define LATE_MAX	1000000UL	/* us */

struct late_op {
	struct rgate_op op;
	struct rgate_sge sge[RGATE_SGE_MAX + 1];
	unsigned char copy[LOCAL_LATE_INLINE];
	uint64_t id;
	bool signal;
};

struct local_late {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	struct late_op *queue;		/* a ring of as many as may be outstanding */
	uint64_t in, out;
	uint64_t longest_ns;
	unsigned int seed;
	bool stop;
};

LOCAL_COUNTS(struct local_late, in, out);

unsigned long local_late_us(void)
{
	const char *text = secure_getenv("RGATE_LOCAL_LATE");
	char *end;
	unsigned long us;

	if (!text)
		return 0;
	us = strtoul(text, &end, 10);
	return *end || us > LATE_MAX ? 0 : us;
}

void local_lock(struct rgate_conn *conn)
{
	if (conn->late)
		pthread_mutex_lock(&conn->late->lock);
}

void local_unlock(struct rgate_conn *conn)
{
	if (conn->late)
		pthread_mutex_unlock(&conn->late->lock);
}

/* With the lock, which is let go meanwhile. Most are short, some are not: out of step */
static void linger(struct local_late *late)
{
	const uint64_t part = late->longest_ns >> (unsigned int)rand_r(&late->seed) % 6;
	const uint64_t end = rgate_clock_now(CLOCK_MONOTONIC) +
			     part * (unsigned int)(rand_r(&late->seed) % 1000) / 1000;
	const struct timespec ts = rgate_clock_timespec(end);

	while (!late->stop && rgate_clock_now(CLOCK_MONOTONIC) < end)
		pthread_cond_timedwait(&late->changed, &late->lock, &ts);
}

/* With the lock, which is let go while the operation is done */
static void do_one(struct rgate_conn *conn, const struct late_op *o)
{
	struct local_late *late = conn->late;
	int err = -ECANCELED;

	linger(late);
	if (late->stop)
		return;
	/* One that failed is the last that was done. */
	if (!conn->flushing) {
		pthread_mutex_unlock(&late->lock);
		err = local_perform(conn, &o->op, false);
		pthread_mutex_lock(&late->lock);
		linger(late);
	}
	if (!late->stop)
		local_performed(conn, o->id, o->signal, err);
}

static void *late_main(void *arg)
{
	struct rgate_conn *conn = arg;
	struct local_late *late = conn->late;

	pthread_mutex_lock(&late->lock);
	while (!late->stop) {
		if (late->in == late->out) {
			pthread_cond_wait(&late->changed, &late->lock);
			continue;
		}
		do_one(conn, &late->queue[late->out % conn->done_depth]);
		late->out++;
	}
	pthread_mutex_unlock(&late->lock);
	return NULL;
}

static int start(struct rgate_conn *conn)
{
	return rgate_thread_start(&conn->late->thread, NULL, late_main, conn);
}

int local_late_begin(struct rgate_conn *conn)
{
	const unsigned long us = local_late_us();
	struct local_late *late;
	int err = -ENOMEM;

	if (!us)
		return 0;
	late = calloc(1, sizeof(*late));
	if (!late)
		return -ENOMEM;
	late->queue = calloc(conn->done_depth, sizeof(*late->queue));
	if (!late->queue)
		goto free_late;
	late->longest_ns = us * 1000;
	late->seed = (unsigned int)rgate_clock_now(CLOCK_MONOTONIC);
	pthread_mutex_init(&late->lock, NULL);
	rgate_cond_init(&late->changed);
	conn->late = late;
	err = start(conn);
	if (!err)
		return 0;
	conn->late = NULL;
	pthread_cond_destroy(&late->changed);
	pthread_mutex_destroy(&late->lock);
	free(late->queue);
free_late:
	free(late);
	return err;
}

void local_late_end(struct rgate_conn *conn)
{
	struct local_late *late = conn->late;

	if (!late)
		return;
	pthread_mutex_lock(&late->lock);
	late->stop = true;
	pthread_cond_signal(&late->changed);
	pthread_mutex_unlock(&late->lock);
	/* It may be waiting for the peer to say where its memory is, or for room. */
	shutdown(conn->sock, SHUT_RDWR);
	if (conn->ask_sock >= 0)
		shutdown(conn->ask_sock, SHUT_RDWR);
	pthread_join(late->thread, NULL);
	pthread_cond_destroy(&late->changed);
	pthread_mutex_destroy(&late->lock);
	free(late->queue);
	free(late);
	conn->late = NULL;
}

/* What a device copies when it is posted, as it is no longer than that and read first */
static void copy_inline(struct late_op *o)
{
	const uint64_t bytes = rgate_op_bytes(&o->op);
	unsigned char *to = o->copy;
	unsigned int i;

	if (o->op.kind == RGATE_OP_READ || o->op.kind == RGATE_OP_FETCH_ADD ||
	    o->op.kind == RGATE_OP_COMPARE_SWAP || o->op.flags & RGATE_OP_FENCE || !bytes ||
	    bytes > LOCAL_LATE_INLINE)
		return;
	for (i = 0; i < o->op.nsge; i++) {
		memcpy(to, o->sge[i].addr, o->sge[i].length);
		o->sge[i].addr = to;
		to += o->sge[i].length;
	}
}

int local_late_post(struct rgate_conn *conn, const struct rgate_prov_work *work, unsigned int n)
{
	struct local_late *late = conn->late;
	unsigned int i;

	if (conn->failed || !conn->up)
		return -ENOTCONN;
	/* Each may have a completion, which needs a place. */
	if (n > conn->done_depth - (late->in - late->out) - (conn->done_in - conn->done_out))
		return -EAGAIN;
	for (i = 0; i < n; i++) {
		struct late_op *o = &late->queue[late->in++ % conn->done_depth];

		o->op = *work[i].op;
		if (o->op.nsge)
			memcpy(o->sge, work[i].op->sge, o->op.nsge * sizeof(*o->sge));
		o->op.sge = o->sge;
		o->id = work[i].id;
		o->signal = work[i].signal;
		copy_inline(o);
	}
	pthread_cond_signal(&late->changed);
	return 0;
}
