// SPDX-License-Identifier: MIT OR GPL-2.0
#include "unit.h"

#include <errno.h>
#include <pthread.h>

#include "sleepy.h"

#define WORKERS		3

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct rgate_req *todo[4096];
	unsigned int n;
	bool stop;
	pthread_t worker[WORKERS];
} sleepy = { .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };

static int echo(struct rgate_req *r, void *ctx)
{
	(void)ctx;
	pthread_mutex_lock(&sleepy.lock);
	unit_require(sleepy.n < ARRAY_LEN(sleepy.todo));
	sleepy.todo[sleepy.n++] = r;
	pthread_cond_signal(&sleepy.cond);
	pthread_mutex_unlock(&sleepy.lock);
	return RGATE_REQ_LATER;
}

/* Too late when a worker has it */
static int cancel_echo(struct rgate_req *r, void *ctx)
{
	int err = -EALREADY;
	unsigned int i;

	(void)ctx;
	pthread_mutex_lock(&sleepy.lock);
	for (i = 0; i < sleepy.n; i++) {
		if (sleepy.todo[i] != r)
			continue;
		sleepy.todo[i] = sleepy.todo[--sleepy.n];
		err = 0;
		break;
	}
	pthread_mutex_unlock(&sleepy.lock);
	if (!err)
		rgate_req_end(r, -ECANCELED, 0);
	return err;
}

static int hold(struct rgate_req *r, void *ctx)
{
	(void)r;
	(void)ctx;
	return RGATE_REQ_LATER;
}

static int cancel_hold(struct rgate_req *r, void *ctx)
{
	(void)ctx;
	rgate_req_end(r, -ECANCELED, 0);
	return 0;
}

static void *work(void *arg)
{
	uint64_t rnd = (uintptr_t)arg + 1, value;
	struct rgate_req *r;
	unsigned int i;

	pthread_mutex_lock(&sleepy.lock);
	for (;;) {
		while (!sleepy.n && !sleepy.stop)
			pthread_cond_wait(&sleepy.cond, &sleepy.lock);
		if (!sleepy.n)
			break;
		i = (unsigned int)(unit_random(&rnd) % sleepy.n);
		r = sleepy.todo[i];
		sleepy.todo[i] = sleepy.todo[--sleepy.n];
		pthread_mutex_unlock(&sleepy.lock);
		value = rgate_req_get(r)->a0;
		rgate_req_end(r, 0, value);
		pthread_mutex_lock(&sleepy.lock);
	}
	pthread_mutex_unlock(&sleepy.lock);
	return NULL;
}

static const struct rgate_req_op ops[] = {
	{ .name = "echo", .uses = RGATE_USES_A0, .begin = echo, .cancel = cancel_echo },
	{ .name = "hold", .begin = hold, .cancel = cancel_hold },
};

const struct rgate_req_service sleepy_service = {
	.number = SLEEPY, .nops = ARRAY_LEN(ops), .name = "sleepy", .ops = ops,
};

void sleepy_start(void)
{
	uintptr_t i;

	sleepy.stop = false;
	for (i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&sleepy.worker[i], NULL, work, (void *)i), 0);
}

void sleepy_stop(void)
{
	unsigned int i;

	pthread_mutex_lock(&sleepy.lock);
	sleepy.stop = true;
	pthread_cond_broadcast(&sleepy.cond);
	pthread_mutex_unlock(&sleepy.lock);
	for (i = 0; i < WORKERS; i++)
		pthread_join(sleepy.worker[i], NULL);
}
