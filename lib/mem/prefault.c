// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include "prefault.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23	/* Linux 5.14 */
#endif

#define CHUNK		((size_t)16 << 20)
#define MOST_THREADS	8
#define TELL_NS		50000000

/* @next, @done, @running: atomic, relaxed. @err: the first one */
struct job {
	char *addr;
	size_t len;
	size_t next;
	size_t done;
	int err;
	unsigned int running;
};

/* One chunk; -EAGAIN: all are taken */
static int one(struct job *j)
{
	size_t at = __atomic_fetch_add(&j->next, CHUNK, __ATOMIC_RELAXED), n;
	int err = 0;

	if (at >= j->len || __atomic_load_n(&j->err, __ATOMIC_RELAXED))
		return -EAGAIN;
	n = j->len - at < CHUNK ? j->len - at : CHUNK;
	/* A signal ends the call half-way: it is made again. */
	while (madvise(j->addr + at, n, MADV_POPULATE_WRITE))
		if (errno != EINTR && errno != EAGAIN) {
			err = errno == EFAULT || errno == EHWPOISON ? -ENOMEM : -errno;
			break;
		}
	if (err)
		__atomic_store_n(&j->err, err, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(&j->done, n, __ATOMIC_RELAXED);
	return err;
}

static void *work(void *arg)
{
	struct job *j = arg;

	while (!one(j))
		;
	__atomic_fetch_sub(&j->running, 1, __ATOMIC_RELEASE);
	return NULL;
}

static unsigned int cpus(void)
{
	cpu_set_t set;
	int n;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	n = CPU_COUNT(&set);
	return n < 1 ? 1 : n > MOST_THREADS ? MOST_THREADS : (unsigned int)n;
}

/* The caller works too if nobody wants to hear how far it is. */
static void follow(struct job *j, rgate_pool_progress_fn progress, void *ctx)
{
	const struct timespec pause = { .tv_nsec = TELL_NS };

	if (!progress) {
		while (!one(j))
			;
		return;
	}
	while (__atomic_load_n(&j->running, __ATOMIC_ACQUIRE)) {
		nanosleep(&pause, NULL);
		progress(ctx, __atomic_load_n(&j->done, __ATOMIC_RELAXED), j->len);
	}
	while (!one(j))		/* no thread could be had */
		progress(ctx, __atomic_load_n(&j->done, __ATOMIC_RELAXED), j->len);
	/* Threads may have ended before anybody looked. */
	progress(ctx, __atomic_load_n(&j->done, __ATOMIC_RELAXED), j->len);
}

int rgate_prefault(void *addr, size_t len, uint32_t threads, rgate_pool_progress_fn progress,
		   void *ctx)
{
	struct job j = { .addr = addr, .len = len };
	pthread_t id[MOST_THREADS];
	unsigned int n, i, want = threads && threads < MOST_THREADS ? threads : cpus();

	if (len <= CHUNK)
		want = 1;
	if (!progress)
		want--;
	for (n = 0; n < want; n++) {
		__atomic_fetch_add(&j.running, 1, __ATOMIC_RELAXED);
		if (pthread_create(&id[n], NULL, work, &j)) {
			__atomic_fetch_sub(&j.running, 1, __ATOMIC_RELAXED);
			break;
		}
	}
	follow(&j, progress, ctx);
	for (i = 0; i < n; i++)
		pthread_join(id[i], NULL);
	return j.err;
}
