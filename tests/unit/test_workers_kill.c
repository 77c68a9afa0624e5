// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Consumers that share a ring are killed after any instruction, and at random; and lie.
 *
 * RGATE_SOAK_SECONDS=N: let workers be killed at random for so long (default 4)
 */
#include "bed.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 4

/* Killed after any instruction */

/* What the child takes: to the middle of its second batch */
#define STEPPED 40

static int child_stepped(int sock, void *arg)
{
	struct rgate_consumer c;
	struct rgate_ring *ring;
	unsigned int n;

	(void)arg;
	unit_require(!rgate_ring_recv(&ring, sock));
	unit_require(!rgate_consumer_init(&c, ring, &bed_shared));
	unit_require(!ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	raise(SIGSTOP);
	for (n = 0; n < STEPPED; n++) {
		if (!rgate_consumer_next(&c))
			break;
		rgate_consumer_release(&c);
	}
	pause();
	return 1;
}

static void killed_after(unsigned int steps, bool heir)
{
	unsigned char seen[256] = { 0 };
	uint64_t i, batches, skipped;
	int pid, sock, st;
	struct bed b;

	bed_up(&b, 128, 100, &bed_shared);
	if (heir)
		bed_hold_and_kill(&b, 3);
	pid = unit_fork(child_stepped, NULL, &sock);
	assert_int_equal(rgate_ring_send(b.ring, sock), 0);
	assert_int_equal(waitpid(pid, &st, 0), pid);
	assert_true(WIFSTOPPED(st));
	while (steps--) {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &st, 0), pid);
		assert_true(WIFSTOPPED(st));
	}
	bed_kill(pid, sock);
	while ((i = bed_take(&b.c)) != UINT64_MAX)
		seen[i]++;
	rgate_ring_orphans(b.ring, &batches, &skipped);
	/* what was not returned is there, once, from its beginning, and nothing else */
	for (i = 0; i < 100; i++)
		assert_int_equal(seen[i], i < 32 && !seen[0] ? 0 : 1);
	assert_true(batches <= 2 && !skipped);
	bed_put(&b, 28);
	bed_expect(&b, 100, 128);
	bed_round(&b);
	bed_down(&b);
}

static void every_instruction(void **state)
{
	unsigned int k, step = unit_rounds_or(1, 50);

	(void)state;
	for (k = 0; k < 1600; k += k < 300 ? step : 13 * step) {
		killed_after(k, false);
		killed_after(k, true);
	}
}

/* Stopped after any instruction before it takes a batch, while others go on for a lap */

/* Laps before: a consumer that has just begun looks at more than one that has not */
#define BEFORE 3

static int child_stopped(int sock, void *arg)
{
	const uint64_t before = (uintptr_t)arg;
	struct rgate_consumer c;
	struct rgate_ring *ring;
	uint64_t n = 0;

	unit_require(!rgate_ring_recv(&ring, sock));
	unit_require(!rgate_consumer_init(&c, ring, &bed_shared));
	while (n < before) {
		if (bed_take(&c) == UINT64_MAX)
			unit_require(rgate_consumer_wait(&c, -1) == 1);
		else
			n++;
	}
	/* the last batch goes back before it is stopped */
	unit_require(!rgate_consumer_next(&c));
	unit_require(!ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	raise(SIGSTOP);
	unit_require(!rgate_consumer_next(&c));
	raise(SIGSTOP);
	return 0;
}

static void child_goes_on(int pid)
{
	int st;

	assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &st, 0), pid);
	assert_true(WIFSTOPPED(st));
	assert_int_equal(WSTOPSIG(st), SIGSTOP);
}

/* Return: whether it was stopped before it had the batch */
static bool stopped_after(unsigned int steps)
{
	const uint64_t *owner;
	struct rgate_view v;
	int pid, sock, st;
	uint64_t first, was;
	struct bed b;
	bool early;

	bed_up(&b, 128, 0, &bed_shared);
	rgate_ring_view(b.ring, &v);
	owner = (const uint64_t *)((const unsigned char *)v.prod + v.prod->owners_off);
	first = BEFORE * v.nslots;
	pid = unit_fork(child_stopped, (void *)(uintptr_t)first, &sock);
	assert_int_equal(rgate_ring_send(b.ring, sock), 0);
	while (b.in < first) {
		if (unit_put(&b.p, b.in, 64))
			sched_yield();
		else
			b.in++;
		rgate_producer_flush(&b.p);
	}
	assert_int_equal(waitpid(pid, &st, 0), pid);
	assert_true(WIFSTOPPED(st));
	bed_put(&b, RGATE_BATCH);
	while (steps--) {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &st, 0), pid);
		assert_true(WIFSTOPPED(st));
	}
	early = bed_take(&b.c) == first;
	if (early) {
		bed_expect(&b, first + 1, first + RGATE_BATCH);
		bed_put(&b, v.nslots);
		/* to the middle of the batch that stands where the first stood */
		bed_expect(&b, first + RGATE_BATCH, first + v.nslots + 3);
		was = __atomic_load_n(owner, __ATOMIC_RELAXED);
		assert_int_equal(was >> RGATE_OWNER_LAP_SHIFT, BEFORE + 2);
		child_goes_on(pid);
		assert_int_equal(__atomic_load_n(owner, __ATOMIC_RELAXED), was);
		bed_expect(&b, first + v.nslots + 3, b.in);
		bed_round(&b);
	}
	bed_kill(pid, sock);
	bed_down(&b);
	return early;
}

static void every_stop(void **state)
{
	unsigned int lo = 0, hi = 5000, k, step = unit_rounds_or(1, 10);

	(void)state;
	assert_true(stopped_after(0));
	/* the instruction that takes it, and all that are not long before it */
	while (hi - lo > 1) {
		k = lo + (hi - lo) / 2;
		if (stopped_after(k))
			lo = k;
		else
			hi = k;
	}
	/* Sanitizers' own instructions are not as many each time: it may have it in some. */
	for (k = lo > 150 ? lo - 150 : 1; k < lo; k += step)
		(void)stopped_after(k);
}

/* Nonsense in every word that consumers share: each call comes to an end. */
static void nonsense(void **state)
{
	struct rgate_ring *ring = unit_ring(256, 256, 0, RGATE_POLICY_DROP);
	uint64_t seed = 7, *owners, *word, i, k, in = 0;
	struct rgate_consumer c[2];
	struct rgate_producer p;
	struct rgate_view v;

	(void)state;
	rgate_ring_view(ring, &v);
	owners = (uint64_t *)((unsigned char *)v.prod + v.prod->owners_off);
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	for (i = 0; i < 2; i++)
		assert_int_equal(rgate_consumer_init(&c[i], ring,
						     i ? &bed_skipping : &bed_shared), 0);
	for (i = 0; i < unit_rounds(20000); i++) {
		const uint64_t r = unit_random(&seed);

		for (k = 0; k < 40 && !unit_put(&p, in, 64); k++)
			in++;
		word = r & 1 ? &owners[r >> 8 & 7] : r & 2 ? (uint64_t *)&v.cons->claim :
		       r & 4 ? &v.credits[r >> 8 & 7] : (uint64_t *)&v.cons->waiter[0].closed;
		*word = r & 16 ? unit_random(&seed) :
			(in / 256 + 1 - (r >> 5 & 1)) << RGATE_OWNER_LAP_SHIFT |
			(uint32_t)unit_random(&seed);
		if (r & 64)
			*word = r >> 16 & 3;
		for (k = 0; k < 64; k++) {
			const struct rgate_slot *s = rgate_consumer_next(&c[k & 1]);

			if (s)
				rgate_consumer_release(&c[k & 1]);
			assert_in_range(c[k & 1].end - c[k & 1].done, 0, RGATE_BATCH);
		}
		assert_in_range(rgate_consumer_wait(&c[0], 0), 0, 1);
	}
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

/* Four workers, one after the other killed at random */

struct soak {
	struct bed b;
	unsigned char *seen;
	int pid[WORKERS], sock[WORKERS];
	uint64_t kills, moved_ns;
};

static int child_work(int sock, void *arg)
{
	unsigned char *seen = arg;
	struct rgate_consumer c;
	struct rgate_ring *ring;
	uint64_t i, last = 0;
	int r = 1;

	unit_require(!rgate_ring_recv(&ring, sock));
	unit_require(!rgate_consumer_init(&c, ring, &bed_shared));
	while (r >= 0) {
		while ((i = bed_take(&c)) != UINT64_MAX) {
			/* in order within a batch */
			unit_require(i / RGATE_BATCH != last / RGATE_BATCH || i == last + 1 ||
				     !(i % RGATE_BATCH));
			last = i;
			__atomic_add_fetch(&seen[i], 1, __ATOMIC_RELAXED);
		}
		r = rgate_consumer_wait(&c, -1);
	}
	unit_require(r == -EPIPE);
	rgate_ring_close(ring);
	return 0;
}

static void hire(struct soak *s, unsigned int i)
{
	s->pid[i] = unit_fork(child_work, s->seen, &s->sock[i]);
	assert_int_equal(rgate_ring_send(s->b.ring, s->sock[i]), 0);
}

/* Nothing moved for long: the ring stands still. */
static void not_stuck(const struct soak *s)
{
	assert_true(unit_now_ns() - s->moved_ns < 5000000000ULL * unit_patience());
}

static void soak_put(struct soak *s, unsigned int n)
{
	while (n--) {
		while (unit_put(&s->b.p, s->b.in, 64)) {
			rgate_producer_flush(&s->b.p);
			sched_yield();
			not_stuck(s);
		}
		s->b.in++;
		s->moved_ns = unit_now_ns();
	}
	rgate_producer_flush(&s->b.p);
}

static void soak_returned(struct soak *s)
{
	struct rgate_view v;
	uint64_t b, nb;

	rgate_ring_view(s->b.ring, &v);
	nb = v.nslots / RGATE_BATCH;
	for (b = s->b.in / RGATE_BATCH - nb; b < s->b.in / RGATE_BATCH; b++)
		while (__atomic_load_n(&v.credits[b % nb], __ATOMIC_ACQUIRE) != b / nb + 1) {
			usleep(1000);
			not_stuck(s);
		}
}

static void soak_check(struct soak *s)
{
	uint64_t b, batches, skipped, again = 0;
	unsigned int i, more;

	for (b = 0; b < s->b.in; b += RGATE_BATCH) {
		for (i = more = 0; i < RGATE_BATCH; i++) {
			assert_in_range(s->seen[b + i], 1, 255);
			more |= s->seen[b + i] > 1;
		}
		again += more;
	}
	rgate_ring_orphans(s->b.ring, &batches, &skipped);
	assert_true(again <= batches && batches <= s->kills);
	assert_int_equal(skipped, 0);
	print_message("# %llu frames, %llu workers killed, %llu batches taken over, "
		      "%llu seen again\n", (unsigned long long)s->b.in,
		      (unsigned long long)s->kills, (unsigned long long)batches,
		      (unsigned long long)again);
}

static void random_kills(void **state)
{
	const char *secs = getenv("RGATE_SOAK_SECONDS");
	const uint64_t most = 1ULL << 31, start = unit_now_ns();
	const uint64_t ns = (secs ? strtoull(secs, NULL, 10) : 4) * 1000000000ULL;
	uint64_t seed = start | 1, next = start;
	struct soak s = { .moved_ns = start };
	unsigned int i;

	(void)state;
	alarm(120 * unit_patience() + (unsigned int)(ns / 1000000000));
	s.seen = mmap(NULL, most, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(s.seen != MAP_FAILED);
	bed_up(&s.b, 256, 0, &bed_shared);
	for (i = 0; i < WORKERS; i++)
		hire(&s, i);
	while (unit_now_ns() - start < ns && s.b.in < most - 4096) {
		soak_put(&s, (unsigned int)(unit_random(&seed) % 200));
		if (!(unit_random(&seed) % 64))
			usleep(unit_random(&seed) % 3000);
		if (unit_now_ns() < next)
			continue;
		i = (unsigned int)(unit_random(&seed) % WORKERS);
		bed_kill(s.pid[i], s.sock[i]);
		s.kills++;
		hire(&s, i);
		next = unit_now_ns() + unit_random(&seed) % 20000000;
	}
	soak_put(&s, RGATE_BATCH - (unsigned int)(s.b.in % RGATE_BATCH));
	soak_returned(&s);
	rgate_producer_fini(&s.b.p);
	for (i = 0; i < WORKERS; i++) {
		unit_reap(s.pid[i], 0);
		close(s.sock[i]);
	}
	soak_check(&s);
	rgate_ring_close(s.b.ring);
	munmap(s.seen, most);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(every_instruction),
	cmocka_unit_test(every_stop),
	cmocka_unit_test(nonsense),
	cmocka_unit_test(random_kills),
};

UNIT_MAIN(tests)
