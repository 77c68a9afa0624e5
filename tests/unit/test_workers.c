// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Consumers that share a ring and are killed: the others go on, and what the dead had
 * in hand is read again, or skipped.
 */
#include "bed.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

static void expect_orphans(struct bed *b, uint64_t batches, uint64_t skipped)
{
	uint64_t seen[2];

	rgate_ring_orphans(b->ring, &seen[0], &seen[1]);
	assert_int_equal(seen[0], batches);
	assert_int_equal(seen[1], skipped);
}

static void reread(void **state)
{
	struct bed b;

	(void)state;
	bed_up(&b, 256, 150, &bed_shared);
	bed_hold_and_kill(&b, 40);
	bed_put(&b, 50);
	bed_expect(&b, 32, 200);
	assert_int_equal(bed_take(&b.c), UINT64_MAX);
	expect_orphans(&b, 1, 0);
	bed_put(&b, 24);
	bed_expect(&b, 200, 224);
	bed_round(&b);
	bed_down(&b);
}

static void skip_whole(void **state)
{
	struct bed b;

	(void)state;
	bed_up(&b, 256, 150, &bed_skipping);
	bed_hold_and_kill(&b, 40);
	bed_expect(&b, 64, 150);
	expect_orphans(&b, 1, 32);
	bed_put(&b, 10);
	bed_expect(&b, 150, 160);
	bed_round(&b);
	bed_down(&b);
}

/* Of a batch that is not full only what was there is skipped. */
static void skip_part(void **state)
{
	struct bed b;

	(void)state;
	bed_up(&b, 256, 50, &bed_skipping);
	bed_hold_and_kill(&b, 40);
	assert_int_equal(bed_take(&b.c), UINT64_MAX);
	expect_orphans(&b, 1, 18);
	bed_put(&b, 30);
	bed_expect(&b, 50, 80);
	bed_put(&b, 16);
	bed_expect(&b, 80, 96);
	bed_round(&b);
	bed_down(&b);
}

/* It had the batch, and died before it said so to the counter. */
static void before_the_counter(void **state)
{
	struct rgate_view v;
	struct bed b;

	(void)state;
	bed_up(&b, 256, 64, &bed_shared);
	bed_hold_and_kill(&b, 40);
	rgate_ring_view(b.ring, &v);
	assert_int_equal(v.cons->claim, 2);
	v.cons->claim = 1;
	bed_expect(&b, 32, 64);
	assert_int_equal(v.cons->claim, 2);
	expect_orphans(&b, 1, 0);
	bed_round(&b);
	bed_down(&b);
}

/* Two die one after the other with the same batch. */
static void twice(void **state)
{
	struct bed b;

	(void)state;
	bed_up(&b, 256, 40, &bed_shared);
	bed_hold_and_kill(&b, 5);
	bed_hold_and_kill(&b, 7);
	bed_expect(&b, 0, 40);
	expect_orphans(&b, 2, 0);
	bed_put(&b, 24);
	bed_expect(&b, 40, 64);
	bed_round(&b);
	bed_down(&b);
}

/* Who is about to sleep looks once more at what the others hold: nobody may come after him. */
static void armed(void **state)
{
	struct bed b;
	int sock, pid;

	(void)state;
	bed_up(&b, 256, 96, &bed_shared);
	pid = bed_hold(&b, 40, &sock);
	bed_expect(&b, 64, 96);
	assert_int_equal(bed_take(&b.c), UINT64_MAX);
	bed_kill(pid, sock);
	assert_int_equal(bed_take(&b.c), UINT64_MAX);
	assert_int_equal(rgate_consumer_arm(&b.c), 1);
	bed_expect(&b, 32, 64);
	expect_orphans(&b, 1, 0);
	bed_round(&b);
	bed_down(&b);
}

/* A process that does not run is not dead. */
static void stopped(void **state)
{
	struct bed b;
	int sock, pid;
	char x;

	(void)state;
	bed_up(&b, 256, 96, &bed_shared);
	pid = bed_hold(&b, 40, &sock);
	kill(pid, SIGSTOP);
	bed_expect(&b, 64, 96);
	assert_int_equal(bed_take(&b.c), UINT64_MAX);
	assert_int_equal(rgate_consumer_wait(&b.c, 300), 0);
	kill(pid, SIGCONT);
	assert_int_equal(write(sock, "x", 1), 1);
	assert_int_equal(read(sock, &x, 1), 1);
	expect_orphans(&b, 0, 0);
	bed_round(&b);
	bed_kill(pid, sock);
	bed_down(&b);
}

/* The handle's number is another's before anybody looked. */
static void given_again(void **state)
{
	struct rgate_ring *r[RGATE_HANDLES_MAX];
	struct rgate_view v;
	unsigned int i, n;
	int sock, pid, sv[2];
	struct bed b;

	(void)state;
	bed_up(&b, 256, 96, &bed_shared);
	pid = bed_hold(&b, 40, &sock);
	for (n = 0; n < RGATE_HANDLES_MAX - 2; n++)
		assert_int_equal(rgate_ring_dup(&r[n], b.ring), 0);
	bed_kill(pid, sock);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	assert_int_equal(rgate_ring_send(b.ring, sv[0]), 0);
	assert_int_equal(rgate_ring_recv(&r[n], sv[1]), 0);
	rgate_ring_view(r[n], &v);
	assert_int_equal(v.handle, 1);
	bed_expect(&b, 32, 96);
	expect_orphans(&b, 1, 0);
	bed_round(&b);
	for (i = 0; i <= n; i++)
		rgate_ring_close(r[i]);
	close(sv[0]);
	close(sv[1]);
	bed_down(&b);
}

/* One that sleeps takes over by itself. */
static void asleep(void **state)
{
	struct bed b;
	uint64_t start;
	int sock, pid;

	(void)state;
	bed_up(&b, 256, 64, &bed_shared);
	pid = bed_hold(&b, 40, &sock);
	assert_int_equal(rgate_consumer_wait(&b.c, 20), 0);
	bed_kill(pid, sock);
	start = unit_now_ns();
	assert_int_equal(rgate_consumer_wait(&b.c, -1), 1);
	assert_true(unit_now_ns() - start < 2000000000ULL * unit_patience());
	bed_expect(&b, 32, 64);
	bed_round(&b);
	bed_down(&b);
}

/* So does one that waits for the rest of a batch of its own. */
static void aside(void **state)
{
	struct bed b;
	int sock, pid;

	(void)state;
	bed_up(&b, 256, 70, &bed_shared);
	pid = bed_hold(&b, 40, &sock);
	bed_expect(&b, 64, 70);
	assert_int_equal(rgate_consumer_wait(&b.c, 20), 0);
	bed_kill(pid, sock);
	assert_int_equal(rgate_consumer_wait(&b.c, -1), 1);
	bed_expect(&b, 32, 64);
	bed_put(&b, 26);
	bed_expect(&b, 70, 96);
	expect_orphans(&b, 1, 0);
	bed_round(&b);
	bed_down(&b);
}

/* Nobody ever finds the ring empty: what was held is found all the same, in time. */
static void always_behind(void **state)
{
	unsigned char seen[1024] = { 0 };
	struct bed b;
	uint64_t i;

	(void)state;
	bed_up(&b, 512, 96, &bed_shared);
	bed_expect(&b, 0, 1);			/* everything was looked at once */
	bed_hold_and_kill(&b, 5);
	while (b.in < sizeof(seen)) {
		bed_put(&b, 32);
		for (i = 0; i < 32; i++)
			seen[bed_take(&b.c)]++;
	}
	while ((i = bed_take(&b.c)) != UINT64_MAX)
		seen[i]++;
	for (i = 1; i < sizeof(seen); i++)
		assert_int_equal(seen[i], 1);
	expect_orphans(&b, 1, 0);
	bed_down(&b);
}

/* What a consumer that ends leaves, and what one leaves that does not say so */
static void ends(void **state)
{
	struct rgate_consumer other;
	struct rgate_ring *ring;
	struct bed b;

	(void)state;
	bed_up(&b, 256, 128, &bed_shared);
	assert_int_equal(rgate_ring_dup(&ring, b.ring), 0);
	assert_int_equal(rgate_consumer_init(&other, ring, &bed_shared), 0);
	assert_int_equal(bed_take(&other), 0);
	assert_int_equal(bed_take(&other), 1);
	assert_non_null(rgate_consumer_next(&other));
	rgate_consumer_fini(&other);
	rgate_consumer_fini(&other);
	bed_expect(&b, 2, 32);
	expect_orphans(&b, 0, 0);
	assert_int_equal(bed_take(&other), 32);
	rgate_ring_close(ring);
	bed_expect(&b, 32, 128);
	expect_orphans(&b, 1, 0);
	bed_round(&b);
	bed_down(&b);
}

/* At the end of a ring what one has read of the last batch is not read by another. */
static void at_the_end(void **state)
{
	struct rgate_consumer other;
	struct rgate_ring *ring;
	struct bed b;
	uint64_t i;

	(void)state;
	bed_up(&b, 256, 70, &bed_shared);
	assert_int_equal(rgate_ring_dup(&ring, b.ring), 0);
	assert_int_equal(rgate_consumer_init(&other, ring, &bed_shared), 0);
	for (i = 0; i < 70; i++)
		assert_int_equal(bed_take(&other), i);
	rgate_producer_fini(&b.p);
	assert_int_equal(rgate_consumer_wait(&other, 0), -EPIPE);
	rgate_ring_close(ring);
	assert_int_equal(rgate_consumer_wait(&b.c, 0), -EPIPE);
	assert_int_equal(bed_take(&b.c), UINT64_MAX);
	/* a next producer goes on in the same batch */
	assert_int_equal(rgate_producer_init(&b.p, b.ring), 0);
	b.in = 70;
	bed_put(&b, 26);
	bed_expect(&b, 70, 96);
	bed_round(&b);
	/* and one that dies before the end leaves its batch to who is there */
	bed_put(&b, 40);
	bed_hold_and_kill(&b, 5);
	rgate_producer_fini(&b.p);
	assert_int_equal(rgate_consumer_wait(&b.c, -1), 1);
	bed_expect(&b, b.in - 8, b.in);
	assert_int_equal(rgate_consumer_wait(&b.c, -1), 1);
	bed_expect(&b, b.in - 40, b.in - 8);
	assert_int_equal(rgate_consumer_wait(&b.c, -1), -EPIPE);
	rgate_ring_close(b.ring);
}

/* A batch in memory that was replaced is read before that is left. */
static void resized(void **state)
{
	struct bed b;
	uint64_t i;

	(void)state;
	bed_up(&b, 256, 80, &bed_shared);
	bed_hold_and_kill(&b, 40);
	assert_int_equal(rgate_ring_resize(b.ring, 128, 256), 0);
	bed_put(&b, 0);
	bed_put(&b, 10);
	for (i = 32; i < 90; i++) {
		while (rgate_consumer_wait(&b.c, 1000) != 1)
			;
		assert_int_equal(bed_take(&b.c), i);
	}
	bed_put(&b, 22);
	bed_expect(&b, 90, 112);
	bed_round(&b);
	bed_down(&b);
}

/* Rings that overwrite, and those of older producers, have a counter alone. */
static void counter_alone(void **state)
{
	struct rgate_ring *ring = unit_ring(256, 256, 0, RGATE_POLICY_OVERWRITE);
	struct rgate_view v;

	(void)state;
	rgate_ring_view(ring, &v);
	assert_false(v.prod->features & RGATE_FEAT_OWNERS);
	assert_int_equal(v.prod->owners_off, 0);
	rgate_ring_close(ring);
	ring = unit_ring(256, 256, 0, RGATE_POLICY_DROP);
	rgate_ring_view(ring, &v);
	assert_true(v.prod->features & RGATE_FEAT_OWNERS);
	assert_true(v.prod->life[v.handle] & 1);
	rgate_ring_close(ring);
}

static void bad_option(void **state)
{
	struct rgate_consumer_opts o = bed_shared;
	struct bed b;

	(void)state;
	bed_up(&b, 64, 0, &bed_shared);
	o.orphans = RGATE_ORPHAN_SKIP + 1;
	assert_int_equal(rgate_consumer_init(&b.c, b.ring, &o), -EINVAL);
	bed_down(&b);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(reread),
	cmocka_unit_test(skip_whole),
	cmocka_unit_test(skip_part),
	cmocka_unit_test(before_the_counter),
	cmocka_unit_test(twice),
	cmocka_unit_test(armed),
	cmocka_unit_test(stopped),
	cmocka_unit_test(given_again),
	cmocka_unit_test(asleep),
	cmocka_unit_test(aside),
	cmocka_unit_test(always_behind),
	cmocka_unit_test(ends),
	cmocka_unit_test(at_the_end),
	cmocka_unit_test(resized),
	cmocka_unit_test(counter_alone),
	cmocka_unit_test(bad_option),
};

UNIT_MAIN_ALONE(tests)
