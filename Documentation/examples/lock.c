// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Locks and barriers: threads that count in turn, and one after the other has all of it. Here all
 * are of one process, which serves itself; with a daemon (no opts) they are of any, at any node.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <ringgate/rgate_barrier.h>
#include <ringgate/rgate_lock.h>
#include <ringgate/rgate_session.h>

#define THREADS	4
#define ROUNDS	100

static const struct rgate_sync_opts opts = {
	.sz = sizeof(opts), .where = RGATE_SESSION_PROCESS,
};

static unsigned long count;	/* what the lock is for */
static unsigned long long newest;

static int count_up(struct rgate_lock *lock)
{
	uint64_t token;
	int err;

	err = rgate_lock_acquire(lock, 0, 1000, &token);
	if (err)
		return err;
	/* What checks the token takes nothing from one who has lost the lock and not seen it. */
	if (rgate_lock_valid(lock) && token > newest) {
		newest = token;
		count++;
	}
	return rgate_lock_release(lock);
}

static int work(void)
{
	struct rgate_barrier *done = NULL;
	struct rgate_lock *lock;
	int err, i;

	err = rgate_lock_open(&lock, "example/count", &opts);
	if (err)
		return err;
	err = rgate_barrier_open(&done, "example/done", THREADS, &opts);
	for (i = 0; !err && i < ROUNDS; i++)
		err = count_up(lock);
	if (!err)
		err = rgate_barrier_meet(done, -1, NULL, NULL);
	/* All have counted. */
	if (!err)
		err = count != THREADS * ROUNDS;
	rgate_barrier_close(done);
	rgate_lock_close(lock);
	return err;
}

static void *thread(void *arg)
{
	*(int *)arg = work();
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	int err[THREADS], i, failed = 0;

	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, thread, &err[i]))
			return 1;
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		if (err[i])
			fprintf(stderr, "a thread: %s\n", strerror(err[i] < 0 ? -err[i] : err[i]));
		failed |= err[i];
	}
	printf("counted: %lu\n", count);
	return failed != 0;
}
