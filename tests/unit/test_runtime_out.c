// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A runtime's output ring, on a CUDA of the test's own: taken over in the middle of a batch,
 * bound to a runtime of another device, with many pieces under way, left by a kernel that failed.
 */
#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_consumer.h>

#include "fake_cuda.h"
#include "runtime.h"

#define FRAME	60U
#define MANY	5000U

/* test_gpu_out has the same by the ends of batches, which are shown by what it does know */
#define FENCE	"a fence and what is stored behind it are a release, of which it knows nothing"

/* The frame back, with its number */
static uint32_t echo(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	(void)arg;
	memcpy(result, pkt->near, FRAME);
	rgate_dreply_header(result)->hash = (uint32_t)pkt->pos;
	return FRAME;
}

/* Frames as they have to be, by number: each once */
struct seen {
	unsigned char times[MANY];	/* atomic, like the others */
	uint32_t good, wrong;
};

static uint32_t check(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	const uint32_t i = pkt->hdr->hash;
	struct seen *s = arg;

	(void)result;
	if (i < MANY && pkt->len == FRAME && !unit_pattern_check(pkt->near, i, FRAME) &&
	    !__atomic_fetch_add(&s->times[i], 1, __ATOMIC_RELAXED))
		__atomic_fetch_add(&s->good, 1, __ATOMIC_RELEASE);
	else
		__atomic_fetch_add(&s->wrong, 1, __ATOMIC_RELEASE);
	return 0;
}

/* Workers come to a gate, which the warp that looks passes by */
struct gate {
	uint32_t waiting, passed;	/* atomic, like the other */
	bool open;
};

static uint32_t gated(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	struct gate *g = arg;

	if (fake_polls) {
		__atomic_fetch_add(&g->passed, 1, __ATOMIC_RELAXED);
		return echo(pkt, result, NULL);
	}
	__atomic_fetch_add(&g->waiting, 1, __ATOMIC_RELAXED);
	while (!__atomic_load_n(&g->open, __ATOMIC_ACQUIRE))
		rgate_dpause(0);
	return echo(pkt, result, NULL);
}

FAKE_LANES(echoing, echo, 64, 64);
FAKE_LANES(gating, gated, 64, 64);
FAKE_LANES(checking, check, 64, 0);

static const struct rgate_slot *next_of(struct rgate_consumer *c)
{
	const struct rgate_slot *s;

	runtime_until((s = rgate_consumer_next(c)));
	return s;
}

/* @n frames of the CPU's own, published and taken */
static void by_hand(struct rgate_ring *ring, struct rgate_consumer *c, unsigned int n)
{
	struct rgate_producer p;
	unsigned int i;

	assert_int_equal(rgate_producer_init(&p, ring), 0);
	for (i = 0; i < n; i++) {
		assert_int_equal(unit_put(&p, i, FRAME), 0);
		assert_int_equal(unit_pattern_check(rgate_slot_data(next_of(c)), i, FRAME), 0);
		rgate_consumer_release(c);
	}
	rgate_producer_fini(&p);
}

/* The device goes on in the batch, and in the lap, that another producer began */
static void taken_over(void **state)
{
	struct rgate_ring *out = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_consumer c;
	struct runtime r;
	unsigned int i;

	(void)state;
	unit_not_for_tsan(FENCE);
	assert_int_equal(rgate_consumer_init(&c, out, NULL), 0);
	by_hand(out, &c, 64 + 40);
	runtime_open(&r, 0, 1, 256);
	assert_int_equal(rgate_gpu_bind_output(r.gpu, out, RGATE_GPU_FULL_WAIT), 0);
	assert_int_equal(rgate_gpu_start(r.gpu, &echoing, &r.start), 0);
	runtime_put(&r, 0, 200);
	for (i = 0; i < 200; i++) {
		const struct rgate_slot *s = next_of(&c);

		assert_int_equal(unit_pattern_check(rgate_slot_data(s), s->hash, FRAME), 0);
		rgate_consumer_release(&c);
	}
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	runtime_close(&r);
	by_hand(out, &c, 100);
	rgate_ring_close(out);
}

static uint32_t blocks_of(const struct runtime *r)
{
	struct rgate_gpu_status st = { .sz = sizeof(st) };

	assert_int_equal(rgate_gpu_query(r->gpu, &st), 0);
	return st.blocks;
}

/* One device's output ring is the input of another one's, whose looks go by batches */
static void chained(void **state)
{
	struct rgate_ring *between = unit_ring(128, 256, 0, RGATE_POLICY_DROP);
	struct seen seen = { .good = 0 };
	struct runtime from, to;

	(void)state;
	unit_not_for_tsan(FENCE);
	runtime_open(&from, 0, 1, 256);
	runtime_open(&to, 1, 0, 0);
	assert_int_equal(rgate_gpu_bind_output(from.gpu, between, RGATE_GPU_FULL_WAIT), 0);
	assert_int_equal(rgate_gpu_bind(to.gpu, between, NULL), 0);
	to.start.arg = &seen;
	assert_int_equal(rgate_gpu_start(from.gpu, &echoing, &from.start), 0);
	assert_int_equal(rgate_gpu_start(to.gpu, &checking, &to.start), 0);
	/* smaller pieces, where none has its turn in an output ring, want more warps */
	assert_int_equal(blocks_of(&from), 16);
	assert_int_equal(blocks_of(&to), 32);
	runtime_put(&from, 0, MANY);
	runtime_until(__atomic_load_n(&seen.good, __ATOMIC_ACQUIRE) +
		      __atomic_load_n(&seen.wrong, __ATOMIC_ACQUIRE) == MANY);
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(rgate_gpu_stop(from.gpu, runtime_ms()), 0);
	assert_int_equal(rgate_gpu_stop(to.gpu, runtime_ms()), 0);
	runtime_close(&to);
	runtime_close(&from);
	rgate_ring_close(between);
}

static struct rgate_slot *slot_of(struct rgate_ring *ring, uint64_t pos)
{
	struct rgate_view v;

	rgate_ring_view(ring, &v);
	return (struct rgate_slot *)((uintptr_t)v.slots + pos * v.slot_size);
}

/* A packet that comes alone: the warp that looks does it itself */
static void put_alone(struct runtime *r, const struct gate *g)
{
	const uint32_t was = __atomic_load_n(&g->passed, __ATOMIC_RELAXED);
	const uint64_t end = unit_now_ns() + (uint64_t)runtime_ms() * 1000000;

	do {
		assert_true(unit_now_ns() < end);
		runtime_put(r, 0, 1);
		usleep(2000);
	} while (__atomic_load_n(&g->passed, __ATOMIC_RELAXED) == was);
}

/*
 * A ring that became larger while a kernel stays has more pieces under way. Workers that wait for
 * their turn behind an answer of the polling warp's do not hold up its clerk, who is to pass it on.
 */
static void grown(void **state)
{
	struct rgate_ring *out = unit_ring(1024, 256, 0, RGATE_POLICY_DROP);
	struct gate g = { 0 };
	struct runtime r;

	(void)state;
	unit_not_for_tsan(FENCE);
	runtime_open(&r, 0, 1, 64);
	r.start.arg = &g;
	r.start.grain = r.start.direct = 1;
	assert_int_equal(rgate_gpu_bind_output(r.gpu, out, RGATE_GPU_FULL_DROP), 0);
	assert_int_equal(rgate_gpu_start(r.gpu, &gating, &r.start), 0);
	assert_int_equal(rgate_ring_resize(r.ring[0], 1024, 256), 0);
	rgate_producer_flush(&r.p[0]);
	runtime_until(runtime_launches(&r) == 2);
	runtime_put(&r, 0, 100);
	runtime_until(__atomic_load_n(&g.waiting, __ATOMIC_RELAXED) == FAKE_WORKERS);
	put_alone(&r, &g);
	__atomic_store_n(&g.open, true, __ATOMIC_RELEASE);
	assert_int_equal(rgate_gpu_drain(r.gpu, runtime_ms()), 0);
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	runtime_close(&r);
	rgate_ring_close(out);
}

/* Each of the first @n slots, whatever is in hand of it */
static void publish_over(struct rgate_ring *ring, unsigned int n, uint64_t lap)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		__atomic_store_n(&slot_of(ring, i)->seq, lap, __ATOMIC_RELEASE);
	usleep(100000);
}

/*
 * A producer that waits for no credit has no more pieces under way than the ring has slots. So the
 * clerk does not wait for workers who wait for an answer that the clerk is to pass on.
 */
static void overrun(void **state)
{
	struct rgate_ring *out = unit_ring(1024, 256, 0, RGATE_POLICY_DROP);
	struct rgate_gpu_stats stats = { .sz = sizeof(stats) };
	struct gate g = { 0 };
	struct runtime r;

	(void)state;
	unit_not_for_tsan(FENCE);
	runtime_open(&r, 0, 1, 64);
	r.start.arg = &g;
	r.start.grain = r.start.direct = 1;
	assert_int_equal(rgate_gpu_bind_output(r.gpu, out, RGATE_GPU_FULL_DROP), 0);
	assert_int_equal(rgate_gpu_start(r.gpu, &gating, &r.start), 0);
	runtime_put(&r, 0, 64);
	runtime_until(__atomic_load_n(&g.waiting, __ATOMIC_RELAXED) == FAKE_WORKERS);
	publish_over(r.ring[0], 64, 2);
	publish_over(r.ring[0], 1, 3);
	__atomic_store_n(&g.open, true, __ATOMIC_RELEASE);
	assert_int_equal(rgate_gpu_drain(r.gpu, runtime_ms()), 0);
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	assert_int_equal(rgate_gpu_ring_stats(r.gpu, 0, &stats), 0);
	assert_int_equal(stats.packets, 64 + 64 + 1);
	runtime_close(&r);
	rgate_ring_close(out);
}

/* A kernel that failed has shown slots behind one that it has not: the next producer's are these */
static void left_a_gap(void **state)
{
	struct rgate_ring *out = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_consumer c;
	struct runtime r;
	unsigned int i;

	(void)state;
	assert_int_equal(rgate_consumer_init(&c, out, NULL), 0);
	runtime_open(&r, 0, 1, 64);
	assert_int_equal(rgate_gpu_bind_output(r.gpu, out, RGATE_GPU_FULL_DROP), 0);
	assert_int_equal(rgate_gpu_start(r.gpu, &echoing, &r.start), 0);
	runtime_put(&r, 0, 5);
	runtime_until(__atomic_load_n(&c.prod->head, __ATOMIC_ACQUIRE) == 5);
	for (i = 0; i < 5; i++) {
		next_of(&c);
		rgate_consumer_release(&c);
	}
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	/* as a warp leaves them that was ahead of one that never came to show its own */
	slot_of(out, 7)->seq = 1;
	slot_of(out, 40)->seq = 1;
	runtime_close(&r);
	assert_int_equal(slot_of(out, 4)->seq, 1);
	assert_int_equal(slot_of(out, 7)->seq, 0);
	assert_int_equal(slot_of(out, 40)->seq, 0);
	by_hand(out, &c, 200);
	rgate_ring_close(out);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(taken_over, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(chained, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(grown, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(overrun, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(left_a_gap, fake_setup, fake_teardown),
};

UNIT_MAIN(tests)
