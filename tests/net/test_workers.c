// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Processes that share a ring which the gateway fills, and some of them are killed.
 *
 * RGATE_SOAK_SECONDS=N: let workers be killed at random for so long (default 3)
 */
#include "plane.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS	4
#define FRAME	200U

static const struct rgate_consumer_opts shared = {
	.sz = sizeof(shared), .take = RGATE_TAKE_SHARED,
};

static const struct rgate_consumer_opts skipping = {
	.sz = sizeof(skipping), .take = RGATE_TAKE_SHARED, .orphans = RGATE_ORPHAN_SKIP,
};

/* Takes 40 frames, says so, and stays until it is killed. */
static int child_hold(int sock, void *arg)
{
	struct rgate_consumer c;
	struct rgate_ring *ring;
	unsigned int n;

	(void)arg;
	unit_require(!rgate_ring_recv(&ring, sock));
	unit_require(!rgate_consumer_init(&c, ring, &shared));
	for (n = 0; n < 40; n++) {
		unit_require(rgate_consumer_next(&c));
		rgate_consumer_release(&c);
	}
	unit_require(write(sock, "x", 1) == 1);
	pause();
	return 1;
}

static void send_some(struct plane *p, uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		assert_true(plane_send(p, 1, from, FRAME, true));
}

static void expect(struct compute *at, uint64_t from, uint64_t to)
{
	unsigned int flow;
	uint64_t i;

	for (; from < to; from++) {
		assert_true(plane_take(at, &flow, &i, NULL, MS));
		assert_int_equal(i, from);
	}
}

/* 96 frames arrive; a process reads 40 of them and is killed: it has the second batch. */
static void orphaned(struct plane *p, const struct rgate_consumer_opts *opts)
{
	struct compute *at = &p->at[1];
	int pid, sock;
	char x;

	plane_up(p, &(struct plane_opts){ .computes = 1, .slots = 256 });
	assert_int_equal(rgate_consumer_init(&at->c, at->ring, opts), 0);
	send_some(p, 0, 96);
	wait_for(plane_inlet(at).stats.delivered == 96);
	pid = unit_fork(child_hold, NULL, &sock);
	assert_int_equal(rgate_ring_send(at->ring, sock), 0);
	assert_int_equal(read(sock, &x, 1), 1);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(sock);
}

static void orphans_are(struct compute *at, uint64_t want_batches, uint64_t want_skipped)
{
	uint64_t batches, skipped;

	rgate_ring_orphans(at->ring, &batches, &skipped);
	assert_int_equal(batches, want_batches);
	assert_int_equal(skipped, want_skipped);
}

static void read_again(void **state)
{
	struct plane p;

	(void)state;
	orphaned(&p, &shared);
	/* the second batch again, all of it, and the ring goes round */
	expect(&p.at[1], 32, 96);
	orphans_are(&p.at[1], 1, 0);
	send_some(&p, 96, 480);
	expect(&p.at[1], 96, 480);
	plane_down(&p);
}

static void skipped(void **state)
{
	struct plane p;

	(void)state;
	orphaned(&p, &skipping);
	/* the second batch is nobody's, what came behind it is here, and the ring goes round */
	expect(&p.at[1], 64, 96);
	orphans_are(&p.at[1], 1, 32);
	send_some(&p, 96, 480);
	expect(&p.at[1], 96, 480);
	orphans_are(&p.at[1], 1, 32);
	plane_down(&p);
}

struct soak {
	struct plane p;
	unsigned char *seen;	/* atomic, by the frame's number; shared with the workers */
	uint64_t sent, kills;
	int pid[WORKERS], sock[WORKERS];
};

/* Counts what it takes. A frame is counted before it is returned: who is killed between
 * the two has it read again by others, and not lost.
 */
static int child_count(int sock, void *arg)
{
	unsigned char *seen = arg, want[FRAME];
	const struct rgate_slot *s;
	struct rgate_consumer c;
	struct rgate_ring *ring;
	uint64_t i;
	int r = 1;

	unit_require(!rgate_ring_recv(&ring, sock));
	unit_require(!rgate_consumer_init(&c, ring, &shared));
	while (r >= 0) {
		while ((s = rgate_consumer_next(&c))) {
			unit_require(s->len == FRAME);
			memcpy(&i, (const char *)rgate_slot_data(s) + 42, sizeof(i));
			plane_frame(want, 1, i, FRAME, false);
			unit_require(!memcmp(rgate_slot_data(s), want, FRAME));
			__atomic_add_fetch(&seen[i], 1, __ATOMIC_RELAXED);
			/* as with work to do: most of its life a worker has a batch in hand */
			if (!(i % 64))
				usleep(500);
			rgate_consumer_release(&c);
		}
		r = rgate_consumer_wait(&c, -1);
	}
	unit_require(r == -EPIPE);
	rgate_ring_close(ring);
	return 0;
}

static void hire(struct soak *s, unsigned int i)
{
	s->pid[i] = unit_fork(child_count, s->seen, &s->sock[i]);
	assert_int_equal(rgate_ring_send(s->p.at[1].ring, s->sock[i]), 0);
}

static void replace(struct soak *s, unsigned int i)
{
	kill(s->pid[i], SIGKILL);
	assert_int_equal(waitpid(s->pid[i], NULL, 0), s->pid[i]);
	close(s->sock[i]);
	s->kills++;
	hire(s, i);
}

static void soak_check(struct soak *s)
{
	struct compute *at = &s->p.at[1];
	uint64_t i, batches, passed, extra = 0;

	for (i = 0; i < s->sent; i++)
		wait_for(__atomic_load_n(&s->seen[i], __ATOMIC_RELAXED));
	/* the workers drain the ring, and no batch is taken over after they have ended */
	assert_int_equal(rgate_inlet_remove(at->inlet, at->number), 0);
	for (i = 0; i < WORKERS; i++) {
		unit_reap(s->pid[i], 0);
		close(s->sock[i]);
	}
	rgate_ring_orphans(at->ring, &batches, &passed);
	rgate_ring_close(at->ring);
	at->ring = NULL;
	for (i = 0; i < s->sent; i++)
		extra += s->seen[i] - 1U;
	print_message("# %llu frames, %llu workers killed, %llu batches taken over, "
		      "%llu frames seen again\n", (unsigned long long)s->sent,
		      (unsigned long long)s->kills, (unsigned long long)batches,
		      (unsigned long long)extra);
	assert_true(batches && batches <= s->kills);
	assert_true(extra <= batches * RGATE_BATCH);
	assert_int_equal(passed, 0);
}

static bool taken_over(const struct soak *s)
{
	uint64_t batches, passed;

	rgate_ring_orphans(s->p.at[1].ring, &batches, &passed);
	return batches;
}

/* Until the time is over, and longer where so little happens that nobody had a batch */
static bool go_on(const struct soak *s, uint64_t past_ns, uint64_t ns)
{
	return past_ns < ns || (!taken_over(s) && past_ns < ns + MS * 1000000ULL);
}

/* Four workers, one after the other killed at random, while the gateway sends */
static void random_kills(void **state)
{
	const char *secs = getenv("RGATE_SOAK_SECONDS");
	const uint64_t most = 1ULL << 31, start = unit_now_ns();
	const uint64_t ns = (secs ? strtoull(secs, NULL, 10) : 3) * 1000000000ULL;
	uint64_t seed = start | 1, next = start, n;
	static struct soak s;
	unsigned int i;

	(void)state;
	alarm(120 * unit_patience() + (unsigned int)(ns / 1000000000));
	s.seen = mmap(NULL, most, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(s.seen != MAP_FAILED);
	plane_up(&s.p, &(struct plane_opts){ .computes = 1, .slots = 256 });
	for (i = 0; i < WORKERS; i++)
		hire(&s, i);
	while (go_on(&s, unit_now_ns() - start, ns) && s.sent < most - 4096) {
		n = unit_random(&seed) % 200;
		send_some(&s.p, s.sent, s.sent + n);
		s.sent += n;
		if (!(unit_random(&seed) % 64))
			usleep(unit_random(&seed) % 3000);
		if (unit_now_ns() < next)
			continue;
		replace(&s, (unsigned int)(unit_random(&seed) % WORKERS));
		next = unit_now_ns() + unit_random(&seed) % 20000000;
	}
	soak_check(&s);
	plane_down(&s.p);
	munmap(s.seen, most);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(read_again),
	cmocka_unit_test(skipped),
	cmocka_unit_test(random_kills),
};

UNIT_MAIN(tests)
