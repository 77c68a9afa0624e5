// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Rings whose memory goes: those resized are followed, bad ones are unbound. Each alone: the
 * others do not wait for it.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

#include "clock.h"
#include "gpu.h"
#include "opts.h"
#include "ring_memfd.h"

/* The device has nothing of it. What it was, for the user */
static void lose(struct rgate_gpu *gpu, unsigned int i, int why, const char *what)
{
	struct rgate_gpu_ring *r = &gpu->ring[i];

	rgate_gpu_fail(gpu, why, "ring %u was unbound: %s", i, what);
	r->bound = RGATE_GPU_UNBOUND;
	r->why = why;
	r->event = true;
	eventfd_write(gpu->event_fd, 1);
}

static bool retired(const struct rgate_gpu_ring *r)
{
	return __atomic_load_n(&r->view.prod->state, __ATOMIC_ACQUIRE) == RGATE_STATE_RETIRED;
}

static bool ended(const struct rgate_gpu *gpu, unsigned int i)
{
	return __atomic_load_n(&gpu->stat[i].ended, __ATOMIC_RELAXED);
}

/* Has its producer published more than there is room for, as no batch from next on was returned? */
static bool lies(const struct rgate_gpu *gpu, unsigned int i)
{
	const struct rgate_gpu_ring *r = &gpu->ring[i];
	uint64_t head = __atomic_load_n(&r->view.prod->head, __ATOMIC_ACQUIRE);

	return head > gpu->stat[i].next && head - gpu->stat[i].next > r->view.nslots;
}

static bool hung_up(const struct rgate_gpu_ring *r)
{
	struct pollfd fd = { .fd = rgate_ring_life(r->ring) };

	return poll(&fd, 1, 0) > 0 && fd.revents & POLLHUP;
}

/* Maps new memory, if it has come. It is not the device's, so a kernel may run. */
static void fetch(struct rgate_gpu *gpu, unsigned int i)
{
	struct rgate_gpu_ring *r = &gpu->ring[i];
	bool gone = hung_up(r);		/* before: what was sent may be the last */
	int err = rgate_ring_remap(r->ring);

	if (err == 1)
		r->arrived = true;
	else if (err && err != -ESTALE)
		lose(gpu, i, err, "it was resized, and what came is not its memory");
	else if (gone)
		lose(gpu, i, -EPIPE, "its producer ended while it resized it");
	else if (rgate_clock_now(CLOCK_MONOTONIC) - r->since > gpu->stall_ns)
		lose(gpu, i, -ETIMEDOUT, "it was resized, and its new memory did not come");
}

/* 1: it has memory again */
static int follow_one(struct rgate_gpu *gpu, unsigned int i)
{
	struct rgate_gpu_ring *r = &gpu->ring[i];
	int err;

	if (r->bound == RGATE_GPU_BOUND) {
		bool liar = lies(gpu, i);

		/* the device has said so, or a batch kernel left nothing */
		if (!liar && (!retired(r) ||
			      (!ended(gpu, i) && !rgate_dring_bare(&r->host, gpu->stat[i].next))))
			return 0;
		/* first, as the old mapping may go with the remap */
		err = rgate_gpu_take_away(gpu, i);
		if (err)
			return err;
		if (liar) {
			lose(gpu, i, -EPROTO, "its producer tells of more frames than it has slots");
			return 0;
		}
		r->bound = RGATE_GPU_AWAITED;
		r->arrived = false;
		r->since = rgate_clock_now(CLOCK_MONOTONIC);
	}
	if (r->bound == RGATE_GPU_AWAITED && !r->arrived)
		fetch(gpu, i);
	if (r->bound != RGATE_GPU_AWAITED || !r->arrived)
		return 0;
	err = rgate_gpu_set_up(gpu, i);
	if (err)
		lose(gpu, i, err, "it was resized, and its new memory cannot be bound");
	return !err;
}

int rgate_gpu_follow(struct rgate_gpu *gpu)
{
	unsigned int i;
	int n = 0, ret;

	for (i = 0; i < gpu->nrings; i++) {
		ret = follow_one(gpu, i);
		if (ret < 0)
			return ret;
		n += ret;
	}
	return n;
}

bool rgate_gpu_follow_wanted(struct rgate_gpu *gpu)
{
	bool wanted = false;
	unsigned int i;

	for (i = 0; i < gpu->nrings; i++) {
		struct rgate_gpu_ring *r = &gpu->ring[i];

		if (r->bound == RGATE_GPU_AWAITED && !r->arrived)
			fetch(gpu, i);
		wanted |= r->bound == RGATE_GPU_BOUND ? ended(gpu, i) && retired(r) :
			  r->bound == RGATE_GPU_AWAITED && r->arrived;
	}
	return wanted;
}

bool rgate_gpu_awaits(const struct rgate_gpu *gpu)
{
	unsigned int i;

	for (i = 0; i < gpu->nrings; i++)
		if (gpu->ring[i].bound == RGATE_GPU_AWAITED)
			return true;
	return false;
}

int rgate_gpu_event(struct rgate_gpu *gpu, struct rgate_gpu_event *event)
{
	struct rgate_gpu_event e = { .sz = sizeof(e) };
	unsigned int i, n = 0;
	eventfd_t count;
	int err;

	pthread_mutex_lock(&gpu->lock);
	for (i = gpu->nrings; i--;)
		if (gpu->ring[i].event) {
			e.ring = i;
			e.error = gpu->ring[i].why;
			n++;
		}
	err = n ? rgate_info_copy(event, &e, sizeof(e)) : 0;
	if (n && !err)
		gpu->ring[e.ring].event = false;
	if (n == 1 && !err)
		eventfd_read(gpu->event_fd, &count);	/* none is left */
	pthread_mutex_unlock(&gpu->lock);
	return err ? err : n > 0;
}

int rgate_gpu_event_fd(const struct rgate_gpu *gpu)
{
	return gpu->event_fd;
}
