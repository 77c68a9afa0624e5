// SPDX-License-Identifier: MIT OR GPL-2.0
/* rgate_lock and rgate_barrier, by threads of a process that serves itself */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"

#define THREADS	8U
/* Client and engine have mapped a session's area each for itself. */
#define TSAN	"it does not know that two mappings are the same memory"

static const struct rgate_sync_opts process = {
	.sz = sizeof(process), .where = RGATE_SESSION_PROCESS,
};

static struct rgate_lock *open_lock(const char *name)
{
	struct rgate_lock *lock;

	assert_int_equal(rgate_lock_open(&lock, name, &process), 0);
	return lock;
}

/* ---- Locks ---- */

static struct {
	unsigned long count;
	unsigned int inside;
	uint64_t token;
	unsigned int bad;
} shared;

static void *counts(void *arg)
{
	struct rgate_lock *lock;
	unsigned int i, n = unit_rounds(200);
	uint64_t token;

	(void)arg;
	if (rgate_lock_open(&lock, "count", &process))
		return NULL;
	for (i = 0; i < n; i++) {
		if (rgate_lock_acquire(lock, 0, -1, &token))
			break;
		shared.bad += shared.inside++ || token <= shared.token ||
			      !rgate_lock_valid(lock) || rgate_lock_token(lock) != token;
		shared.token = token;
		shared.count++;
		shared.inside--;
		if (rgate_lock_release(lock) || rgate_lock_valid(lock))
			break;
	}
	rgate_lock_close(lock);
	return NULL;
}

/* No atomics: what a holder did is there for the next one. */
static void one_at_a_time(void **state)
{
	pthread_t t[THREADS];
	unsigned int i;

	(void)state;
	unit_not_for_tsan(TSAN);
	memset(&shared, 0, sizeof(shared));
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, counts, NULL), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(shared.count, THREADS * unit_rounds(200));
	assert_int_equal(shared.bad, 0);
}

static void in_time(void **state)
{
	struct rgate_lock *a = open_lock("l"), *b = open_lock("l");
	struct rgate_lock_info info;
	uint64_t token, next;

	(void)state;
	assert_int_equal(rgate_lock_until(a), 0);
	assert_int_equal(rgate_lock_acquire(a, 0, 0, &token), 0);
	assert_true(rgate_lock_until(a) == RGATE_SYNC_FOREVER);
	assert_int_equal(rgate_lock_acquire(a, 0, 0, NULL), -EALREADY);
	assert_int_equal(rgate_lock_acquire(b, RGATE_LOCK_TRY, -1, NULL), -EAGAIN);
	assert_int_equal(rgate_lock_acquire(b, 0, 20, NULL), -ETIMEDOUT);
	assert_false(rgate_lock_valid(b));
	assert_int_equal(rgate_lock_info(b, &info), 0);
	assert_int_equal(info.holders, 1);
	assert_int_equal(info.waiters, 0);
	assert_true(info.token == token);
	assert_int_equal(rgate_lock_release(b), -ENOLCK);
	assert_int_equal(rgate_lock_release(a), 0);
	assert_int_equal(rgate_lock_acquire(b, 0, 20, &next), 0);
	assert_true(next > token);
	/* to close it is to give it back */
	rgate_lock_close(b);
	assert_int_equal(rgate_lock_acquire(a, RGATE_LOCK_SHARED, 0, NULL), 0);
	b = open_lock("l");
	assert_int_equal(rgate_lock_acquire(b, RGATE_LOCK_SHARED, 0, NULL), 0);
	rgate_lock_close(a);
	rgate_lock_close(b);
	rgate_lock_close(NULL);
}

static void nothing(int sig)
{
	(void)sig;
}

/* A signal ends the wait, and not the lock of who has it. */
static void interrupted(void **state)
{
	struct rgate_lock *a = open_lock("l"), *b = open_lock("l");
	const struct sigaction sa = { .sa_handler = nothing };
	const struct itimerval soon = { .it_value = { .tv_usec = 50000 } };

	(void)state;
	assert_int_equal(sigaction(SIGALRM, &sa, NULL), 0);
	assert_int_equal(rgate_lock_acquire(a, 0, 0, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
	assert_int_equal(rgate_lock_acquire(b, 0, -1, NULL), -EINTR);
	assert_true(rgate_lock_valid(a));
	assert_int_equal(rgate_lock_release(a), 0);
	assert_int_equal(rgate_lock_acquire(a, RGATE_LOCK_TRY, 0, NULL), 0);
	rgate_lock_close(a);
	rgate_lock_close(b);
}

static void refused(void **state)
{
	struct rgate_sync_opts o = process;
	char name[RGATE_SYNC_NAME_ROOM + 1];
	struct rgate_lock *lock;

	(void)state;
	memset(name, 'x', RGATE_SYNC_NAME_ROOM);
	name[RGATE_SYNC_NAME_ROOM] = '\0';
	assert_int_equal(rgate_lock_open(&lock, name, &o), -EINVAL);
	assert_int_equal(rgate_lock_open(&lock, "a b", &o), -EINVAL);
	assert_int_equal(rgate_lock_open(&lock, NULL, &o), -EINVAL);
	o.flags = 16;
	assert_int_equal(rgate_lock_open(&lock, "l", &o), -EINVAL);
	o.flags = RGATE_SYNC_EXISTS;
	assert_int_equal(rgate_lock_open(&lock, "l", &o), -ENOENT);
	o.flags = RGATE_SYNC_OF;
	o.owner = geteuid() + 1;
	assert_int_equal(rgate_lock_open(&lock, "l", &o), -ENOENT);
	o.flags = RGATE_SYNC_AT;
	assert_int_equal(rgate_lock_open(&lock, "l", &o), -ENXIO);
	o.flags = 0;
	o.where = RGATE_SESSION_DAEMON;
	o.path = "/nowhere/request.sock";
	assert_int_equal(rgate_lock_open(&lock, "l", &o), -ECONNREFUSED);
}

static int count_one(void *ctx, const struct rgate_lock_info *info)
{
	unsigned int *n = ctx;

	return info->name[0] == 'l' && ++*n == 2 ? 77 : 0;
}

static void listed(void **state)
{
	struct rgate_lock *a = open_lock("l1"), *b = open_lock("k"), *c = open_lock("l2");
	unsigned int n = 0;

	(void)state;
	assert_int_equal(rgate_lock_list(&process, count_one, &n), 77);
	rgate_lock_close(c);
	n = 0;
	assert_int_equal(rgate_lock_list(&process, count_one, &n), 0);
	assert_int_equal(n, 1);
	rgate_lock_close(a);
	rgate_lock_close(b);
}

/* ---- Barriers ---- */

static unsigned int rounds_done[THREADS];
static unsigned int too_early;

static void *meets(void *arg)
{
	unsigned int *mine = arg, i, j, n = unit_rounds(50);
	struct rgate_barrier *b;
	uint64_t generation;

	if (rgate_barrier_open(&b, "b", THREADS, &process))
		return NULL;
	for (i = 1; i <= n; i++) {
		*mine = i;
		if (rgate_barrier_arrive(b) ||
		    rgate_barrier_wait(b, -1, &generation, NULL) || generation != 2 * i - 1)
			break;
		for (j = 0; j < THREADS; j++)
			if (rounds_done[j] != i)
				__atomic_add_fetch(&too_early, 1, __ATOMIC_RELAXED);
		/* and again before anybody writes */
		if (rgate_barrier_meet(b, -1, &generation, NULL) || generation != 2 * i)
			break;
	}
	rgate_barrier_close(b);
	return i > n ? arg : NULL;
}

static void all_meet(void **state)
{
	pthread_t t[THREADS];
	void *well;
	unsigned int i;

	(void)state;
	unit_not_for_tsan(TSAN);
	too_early = 0;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, meets, &rounds_done[i]), 0);
	for (i = 0; i < THREADS; i++) {
		pthread_join(t[i], &well);
		assert_ptr_equal(well, &rounds_done[i]);
	}
	assert_int_equal(too_early, 0);
}

static void breaks(void **state)
{
	struct rgate_barrier_info info;
	struct rgate_barrier *a, *b, *c;

	(void)state;
	assert_int_equal(rgate_barrier_open(&a, "b", 0, &process), -EINVAL);
	assert_int_equal(rgate_barrier_open(&a, "b", 2, &process), 0);
	assert_int_equal(rgate_barrier_open(&b, "b", 3, &process), -EINVAL);
	assert_int_equal(rgate_barrier_open(&b, "b", 2, &process), 0);
	assert_int_equal(rgate_barrier_open(&c, "b", 2, &process), -EUSERS);
	assert_int_equal(rgate_barrier_wait(a, 0, NULL, NULL), -ENOLCK);
	assert_int_equal(rgate_barrier_arrive(a), 0);
	assert_int_equal(rgate_barrier_wait(a, 10, NULL, NULL), -ETIMEDOUT);
	assert_int_equal(rgate_barrier_info(b, &info), 0);
	assert_int_equal(info.arrived, 1);
	/* it has arrived, so it may not leave */
	rgate_barrier_close(a);
	assert_int_equal(rgate_barrier_arrive(b), -EPIPE);
	assert_int_equal(rgate_barrier_wait(b, 0, NULL, &info), -EPIPE);
	assert_int_equal(info.dead, 1);
	assert_int_equal(info.members, 2);
	rgate_barrier_close(b);
	rgate_barrier_close(NULL);
}

static struct of_parent {
	struct rgate_lock *lock;
	struct rgate_barrier *barrier;
} of_parent;

static int child_asks(int sock, void *arg)
{
	const struct of_parent *p = arg;
	struct rgate_barrier_info barrier;
	struct rgate_lock_info info;

	(void)sock;
	unit_require(!rgate_lock_valid(p->lock));
	unit_require(!rgate_lock_until(p->lock));
	unit_require(!rgate_lock_token(p->lock));
	unit_require(rgate_lock_acquire(p->lock, 0, 0, NULL) == -EOWNERDEAD);
	unit_require(rgate_lock_release(p->lock) == -EOWNERDEAD);
	unit_require(rgate_lock_info(p->lock, &info) == -EOWNERDEAD);
	unit_require(rgate_barrier_arrive(p->barrier) == -EOWNERDEAD);
	unit_require(rgate_barrier_wait(p->barrier, 0, NULL, &barrier) == -EOWNERDEAD);
	unit_require(rgate_barrier_meet(p->barrier, 0, NULL, &barrier) == -EOWNERDEAD);
	unit_require(rgate_barrier_info(p->barrier, &barrier) == -EOWNERDEAD);
	rgate_barrier_close(p->barrier);
	rgate_lock_close(p->lock);
	return 0;
}

/* A child has not the memory of what its parent opened: no call touches it, and nothing is its. */
static void of_a_child(void **state)
{
	int pid, sock, st;

	(void)state;
	unit_not_for_tsan(TSAN);
	of_parent.lock = open_lock("parents");
	assert_int_equal(rgate_barrier_open(&of_parent.barrier, "parents", 2, &process), 0);
	assert_int_equal(rgate_lock_acquire(of_parent.lock, 0, -1, NULL), 0);
	pid = unit_fork(child_asks, &of_parent, &sock);
	assert_int_equal(waitpid(pid, &st, 0), pid);
	assert_int_equal(st, 0);
	close(sock);
	assert_true(rgate_lock_valid(of_parent.lock));
	assert_int_equal(rgate_barrier_arrive(of_parent.barrier), 0);
	rgate_barrier_close(of_parent.barrier);
	assert_int_equal(rgate_lock_release(of_parent.lock), 0);
	rgate_lock_close(of_parent.lock);
}

static void *comes_later(void *arg)
{
	usleep(20000);
	return rgate_barrier_meet(arg, -1, NULL, NULL) ? NULL : arg;
}

/* Who gave up has arrived; it goes on by either call, and arrives once for each time. */
static void meets_later(void **state)
{
	struct rgate_barrier_info info;
	struct rgate_barrier *a, *b;
	uint64_t generation;
	pthread_t t;
	void *well;

	(void)state;
	assert_int_equal(rgate_barrier_open(&a, "b", 2, &process), 0);
	assert_int_equal(rgate_barrier_open(&b, "b", 2, &process), 0);
	assert_int_equal(rgate_barrier_meet(a, 10, NULL, NULL), -ETIMEDOUT);
	assert_int_equal(rgate_barrier_info(b, &info), 0);
	assert_int_equal(info.arrived, 1);
	assert_int_equal(rgate_barrier_arrive(a), -EALREADY);
	assert_int_equal(pthread_create(&t, NULL, comes_later, b), 0);
	assert_int_equal(rgate_barrier_meet(a, -1, &generation, NULL), 0);
	assert_int_equal(generation, 1);
	pthread_join(t, &well);
	assert_ptr_equal(well, b);
	assert_int_equal(rgate_barrier_info(b, &info), 0);
	assert_int_equal(info.arrived, 0);
	/* broken while it waits, and before it comes */
	assert_int_equal(rgate_barrier_arrive(b), 0);
	rgate_barrier_close(b);
	memset(&info, 0, sizeof(info));
	assert_int_equal(rgate_barrier_meet(a, -1, NULL, &info), -EPIPE);
	assert_int_equal(info.members, 2);
	assert_int_equal(info.dead, 2);
	assert_int_equal(rgate_barrier_meet(a, -1, NULL, NULL), -EPIPE);
	rgate_barrier_close(a);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(one_at_a_time),
	cmocka_unit_test(in_time),
	cmocka_unit_test(interrupted),
	cmocka_unit_test(refused),
	cmocka_unit_test(listed),
	cmocka_unit_test(all_meet),
	cmocka_unit_test(of_a_child),
	cmocka_unit_test(breaks),
	cmocka_unit_test(meets_later),
};

UNIT_MAIN(tests)
