// SPDX-License-Identifier: MIT OR GPL-2.0
/* Several consumers on one ring, as threads and as processes: each frame once. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "claim.h"
#include "ring.h"

#define WORKERS 4

/* How often each frame was seen, shared by processes */
static unsigned char *seen;
static uint64_t frames;

static void seen_new(uint64_t n)
{
	frames = n;
	seen = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(seen != MAP_FAILED);
}

static void seen_check(void)
{
	uint64_t i;

	for (i = 0; i < frames; i++)
		if (seen[i] != 1)
			fail_msg("frame %llu was seen %u times", (unsigned long long)i,
				 seen[i]);
	munmap(seen, frames);
}

struct worker {
	struct rgate_ring *ring;
	struct rgate_consumer_opts o;
	pthread_t th;
	uint64_t taken;
};

/* Takes all until the producer is gone. */
static void drain(struct rgate_ring *ring, const struct rgate_consumer_opts *o,
		  uint64_t *taken)
{
	struct rgate_consumer c;
	int r;

	unit_require(!rgate_consumer_init(&c, ring, o));
	for (;;) {
		const struct rgate_slot *s = rgate_consumer_next(&c);
		uint64_t i;

		if (!s) {
			r = rgate_consumer_wait(&c, 10000);
			if (r == -EPIPE)
				break;
			unit_require(r == 1);
			continue;
		}
		unit_require(s->len >= 8 && s->len <= 192);
		memcpy(&i, rgate_slot_data(s), sizeof(i));
		unit_require(i < frames);
		unit_require(!unit_pattern_check(rgate_slot_data(s), i, s->len));
		__atomic_add_fetch(&seen[i], 1, __ATOMIC_RELAXED);
		(*taken)++;
		rgate_consumer_release(&c);
	}
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;

	drain(w->ring, &w->o, &w->taken);
	return NULL;
}

/* Publishes frames number 0 to n - 1, waiting for room, in bursts. */
static void produce(struct rgate_ring *ring, uint64_t n)
{
	struct rgate_producer p;
	uint64_t i, seed = 3;

	assert_int_equal(rgate_producer_init(&p, ring), 0);
	for (i = 0; i < n; i++) {
		while (unit_put(&p, i, 8 + i % 180)) {
			rgate_producer_flush(&p);
			sched_yield();
		}
		if (!(unit_random(&seed) % 50)) {
			rgate_producer_flush(&p);
			sched_yield();
		}
	}
	rgate_producer_fini(&p);
}

static void threads(uint32_t take)
{
	struct rgate_ring *ring = unit_ring(256, 256, 0, RGATE_POLICY_DROP);
	struct worker w[WORKERS];
	uint64_t sum = 0;
	unsigned int i;

	seen_new(unit_rounds(200000));
	for (i = 0; i < WORKERS; i++) {
		w[i] = (struct worker){
			.o = RGATE_OPTS(rgate_consumer_opts, .take = take, .index = i,
					.count = WORKERS),
		};
		assert_int_equal(rgate_ring_dup(&w[i].ring, ring), 0);
		assert_int_equal(pthread_create(&w[i].th, NULL, worker_main, &w[i]), 0);
	}
	produce(ring, frames);
	for (i = 0; i < WORKERS; i++) {
		pthread_join(w[i].th, NULL);
		sum += w[i].taken;
		rgate_ring_close(w[i].ring);
	}
	assert_int_equal(sum, frames);
	seen_check();
	rgate_ring_close(ring);
}

static void threads_shared(void **state)
{
	(void)state;
	threads(RGATE_TAKE_SHARED);
}

static void threads_stride(void **state)
{
	(void)state;
	threads(RGATE_TAKE_STRIDE);
}

static int child_drain(int sock, void *arg)
{
	struct rgate_consumer_opts *o = arg;
	struct rgate_ring *ring;
	uint64_t taken = 0;

	unit_require(!rgate_ring_recv(&ring, sock));
	unit_require(!rgate_ring_slots_rw(ring));
	drain(ring, o, &taken);
	rgate_ring_close(ring);
	return 0;
}

static void processes(uint32_t take)
{
	struct rgate_ring *ring = unit_ring(256, 256, 0, RGATE_POLICY_DROP);
	struct rgate_consumer_opts o[2];
	int pid[2], sock[2];
	unsigned int i;

	seen_new(unit_rounds(100000));
	for (i = 0; i < 2; i++) {
		o[i] = RGATE_OPTS(rgate_consumer_opts, .take = take, .index = i,
				  .count = 2);
		pid[i] = unit_fork(child_drain, &o[i], &sock[i]);
		assert_int_equal(rgate_ring_send(ring, sock[i]), 0);
	}
	produce(ring, frames);
	for (i = 0; i < 2; i++) {
		unit_reap(pid[i], 0);
		close(sock[i]);
	}
	seen_check();
	rgate_ring_close(ring);
}

static void processes_shared(void **state)
{
	(void)state;
	processes(RGATE_TAKE_SHARED);
}

static void processes_stride(void **state)
{
	(void)state;
	processes(RGATE_TAKE_STRIDE);
}

/* Takes some frames, says so, and stays until it is killed. */
static int child_hold(int sock, void *arg)
{
	struct rgate_consumer_opts o = RGATE_OPTS(rgate_consumer_opts,
						  .take = (uint32_t)(uintptr_t)arg);
	struct rgate_ring *ring;
	struct rgate_consumer c;
	unsigned int n;

	unit_require(!rgate_ring_recv(&ring, sock));
	unit_require(!rgate_consumer_init(&c, ring, &o));
	for (n = 0; n < 40; n++) {
		unit_require(rgate_consumer_next(&c));
		rgate_consumer_release(&c);
	}
	unit_require(write(sock, "x", 1) == 1);
	pause();
	return 1;
}

/* One that takes over sees again what the dead one had not returned. */
static void killed(uint32_t take)
{
	struct rgate_ring *ring = unit_ring(128, 256, 0, RGATE_POLICY_DROP);
	struct rgate_consumer_opts o = RGATE_OPTS(rgate_consumer_opts, .take = take);
	struct rgate_producer p;
	struct rgate_consumer c;
	uint64_t i, in = 0;
	int pid, sock;
	char x;

	assert_int_equal(rgate_producer_init(&p, ring), 0);
	while (!unit_put(&p, in, 64))
		in++;
	rgate_producer_flush(&p);
	pid = unit_fork(child_hold, (void *)(uintptr_t)take, &sock);
	assert_int_equal(rgate_ring_send(ring, sock), 0);
	assert_int_equal(read(sock, &x, 1), 1);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(sock);
	if (take == RGATE_TAKE_SHARED)
		rgate_consumer_reset_claim(ring);
	assert_int_equal(rgate_consumer_init(&c, ring, &o), 0);
	for (i = 32; i < in; i++) {
		const struct rgate_slot *s = rgate_consumer_next(&c);

		assert_non_null(s);
		assert_int_equal(unit_pattern_check(rgate_slot_data(s), i, 64), 0);
		rgate_consumer_release(&c);
	}
	assert_null(rgate_consumer_next(&c));
	assert_int_equal(unit_put(&p, in, 64), 0);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

static void killed_all(void **state)
{
	(void)state;
	killed(RGATE_TAKE_ALL);
}

static void killed_shared(void **state)
{
	(void)state;
	killed(RGATE_TAKE_SHARED);
}

/* A batch that others returned before an older one is not seen again. */
static void holes(void **state)
{
	struct rgate_ring *ring = unit_ring(256, 256, 0, RGATE_POLICY_DROP);
	struct rgate_consumer_opts o = RGATE_OPTS(rgate_consumer_opts,
						  .take = RGATE_TAKE_SHARED);
	struct rgate_consumer a, b;
	struct rgate_producer p;
	const struct rgate_slot *s;
	uint64_t i, in = 0;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	while (in < 128)
		assert_int_equal(unit_put(&p, in++, 64), 0);
	rgate_producer_flush(&p);
	assert_int_equal(rgate_consumer_init(&a, ring, &o), 0);
	assert_int_equal(rgate_consumer_init(&b, ring, &o), 0);
	assert_non_null(rgate_consumer_next(&a));	/* claims batch 0 */
	for (i = 32; i < 64; i++) {
		s = rgate_consumer_next(&b);		/* claims batch 1 */
		assert_int_equal(unit_pattern_check(rgate_slot_data(s), i, 64), 0);
		rgate_consumer_release(&b);
	}
	/* both end here; a third begins anew */
	rgate_consumer_reset_claim(ring);
	assert_int_equal(rgate_consumer_init(&a, ring, &o), 0);
	for (i = 0; i < 128; i++) {
		if (i == 32)
			i = 64;
		s = rgate_consumer_next(&a);
		assert_non_null(s);
		assert_int_equal(unit_pattern_check(rgate_slot_data(s), i, 64), 0);
		rgate_consumer_release(&a);
	}
	assert_null(rgate_consumer_next(&a));
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

/*
 * The producer gets a lap further between the start of one that takes over and
 * its first look: the oldest batch, which was returned, is gone; no other is.
 */
static void overtaken(void **state)
{
	struct rgate_ring *ring = unit_ring(256, 256, 0, RGATE_POLICY_DROP);
	struct rgate_consumer_opts o = RGATE_OPTS(rgate_consumer_opts,
						  .take = RGATE_TAKE_SHARED);
	struct rgate_consumer c;
	struct rgate_producer p;
	const struct rgate_slot *s;
	uint64_t i, in = 0;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, &o), 0);
	while (in < 32)
		assert_int_equal(unit_put(&p, in++, 64), 0);
	for (i = 0; i < 32; i++) {
		assert_non_null(rgate_consumer_next(&c));
		rgate_consumer_release(&c);
	}
	/* no flush: head does not tell of these 32 yet */
	rgate_consumer_reset_claim(ring);
	assert_int_equal(rgate_consumer_init(&c, ring, &o), 0);
	while (in < 256 + 1)
		assert_int_equal(unit_put(&p, in++, 64), 0);
	for (i = 32; i < in; i++) {
		s = rgate_consumer_next(&c);
		assert_non_null(s);
		assert_int_equal(unit_pattern_check(rgate_slot_data(s), i, 64), 0);
		rgate_consumer_release(&c);
	}
	assert_null(rgate_consumer_next(&c));
	assert_int_equal(rgate_consumer_lost(&c), 0);
	/* and all was returned: the ring goes round */
	for (i = 0; i < 256; i++)
		assert_int_equal(unit_put(&p, in++, 64), i < 255 ? 0 : -ENOBUFS);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

static void handles(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP), *far;
	struct rgate_ring *d[RGATE_HANDLES_MAX];
	struct rgate_view v;
	uint32_t mask = 1;
	unsigned int i;
	int sv[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	for (i = 1; i < RGATE_HANDLES_MAX; i++) {
		assert_int_equal(rgate_ring_dup(&d[i], ring), 0);
		rgate_ring_view(d[i], &v);
		assert_false(mask & (1U << v.handle));
		mask |= 1U << v.handle;
	}
	assert_int_equal(rgate_ring_dup(&d[0], ring), -EMFILE);
	assert_int_equal(rgate_ring_send(ring, sv[0]), -EMFILE);
	rgate_ring_close(d[7]);
	assert_int_equal(rgate_ring_send(ring, sv[0]), 0);
	assert_int_equal(rgate_ring_recv(&far, sv[1]), 0);
	assert_int_equal(rgate_ring_dup(&d[7], ring), -EMFILE);
	assert_int_equal(rgate_ring_dup(&d[0], far), -EOPNOTSUPP);
	assert_int_equal(rgate_ring_send(far, sv[0]), -EOPNOTSUPP);
	assert_int_equal(rgate_ring_resize(far, 64, 256), -EOPNOTSUPP);
	/* a handle that its owner closed can be given again */
	rgate_ring_close(far);
	assert_int_equal(rgate_ring_dup(&d[7], ring), 0);
	for (i = 1; i < RGATE_HANDLES_MAX; i++)
		rgate_ring_close(d[i]);
	close(sv[0]);
	assert_int_equal(rgate_ring_send(ring, -1), -EBADF);
	assert_int_equal(rgate_ring_recv(&far, sv[1]), -EPIPE);
	close(sv[1]);
	rgate_ring_close(ring);
}

static unsigned int open_files(void)
{
	unsigned int fd, n = 0;

	for (fd = 0; fd < 1024; fd++)
		n += fcntl((int)fd, F_GETFD) >= 0;
	return n;
}

/* Whom it does not reach keeps no handle, and nothing stays open. */
static void handed_to_nobody(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP), *d;
	unsigned int i, before;
	int sv[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	close(sv[1]);
	before = open_files();
	for (i = 0; i < 2 * RGATE_HANDLES_MAX; i++)
		assert_int_equal(rgate_ring_send(ring, sv[0]), -EPIPE);
	assert_int_equal(open_files(), before);
	assert_int_equal(rgate_ring_dup(&d, ring), 0);
	rgate_ring_close(d);
	close(sv[0]);
	rgate_ring_close(ring);
}

static bool nobody_gone(const struct rgate_ring *ring, uint32_t handle)
{
	(void)ring;
	(void)handle;
	return false;
}

/* Who waits for what others hold looks after them by and by, and never waits longer for it. */
static void naps(void **state)
{
	const struct rgate_ring_ops asks = { .holder_gone = nobody_gone }, knows = { 0 };
	struct rgate_ring ring = { .ops = &asks };
	uint64_t owner;
	struct rgate_consumer c = { .ring = &ring, .owners = &owner };
	int i;

	(void)state;
	for (i = 0; i < 10; i++)
		assert_int_equal(rgate_claim_nap(&c, -1), RGATE_ORPHAN_MS << (i < 4 ? i : 4));
	assert_int_equal(rgate_claim_nap(&c, RGATE_ORPHAN_MS), RGATE_ORPHAN_MS);
	assert_int_equal(rgate_claim_nap(&c, 0), 0);
	c.naps = 0;
	assert_int_equal(rgate_claim_nap(&c, RGATE_ORPHAN_MS), RGATE_ORPHAN_MS);
	assert_int_equal(rgate_claim_nap(&c, RGATE_ORPHAN_MS + 1), RGATE_ORPHAN_MS);
	assert_int_equal(c.naps, 1);
	/* nobody else holds anything; nobody to ask; not shared */
	c.naps = 0xff;
	assert_int_equal(rgate_claim_nap(&c, -1), -1);
	assert_int_equal(rgate_claim_nap(&c, 7777), 7777);
	c.naps = 0;
	ring.ops = &knows;
	assert_int_equal(rgate_claim_nap(&c, -1), -1);
	ring.ops = &asks;
	c.owners = NULL;
	assert_int_equal(rgate_claim_nap(&c, -1), -1);
	assert_int_equal(c.naps, 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(threads_shared),
	cmocka_unit_test(threads_stride),
	cmocka_unit_test(processes_shared),
	cmocka_unit_test(processes_stride),
	cmocka_unit_test(killed_all),
	cmocka_unit_test(killed_shared),
	cmocka_unit_test(holes),
	cmocka_unit_test(overtaken),
	cmocka_unit_test(handles),
	cmocka_unit_test(handed_to_nobody),
	cmocka_unit_test(naps),
};

UNIT_MAIN(tests)
