// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The output ring's device code on this CPU: answers built by it, taken by the library's
 * consumer.
 */
#include "unit.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "gpu_dev.h"

#define REPLY 128
#define SLOTS 128	/* of an output ring, at most */

static void out_open(struct gpu_dev *d, struct rgate_ring *ring, bool wait)
{
	static uint32_t filled[SLOTS / RGATE_BATCH];
	struct rgate_dring r = gpu_dev_dring(ring);

	assert_true(r.mask < SLOTS);
	memset(filled, 0, sizeof(filled));
	memset(&d->out, 0, sizeof(d->out));
	d->ctx.out = (struct rgate_dout){
		.slots = (unsigned char *)r.slots,
		.credits = r.credits,
		.prod = (struct rgate_prod *)r.prod,
		.state = &d->out,
		.filled = filled,
		.mask = r.mask,
		.lap_shift = r.lap_shift,
		.size_shift = r.size_shift,
		.wait = wait,
	};
}

/* Every third packet has no answer */
static uint32_t echo(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	uint32_t i;

	(void)arg;
	if (pkt->pos % 3 == 2)
		return 0;
	for (i = 0; i < pkt->len; i++)
		((unsigned char *)result)[i] = pkt->near[i];
	rgate_dreply_header(result)->hash = (uint32_t)pkt->pos;
	return pkt->len;
}

static const struct rgate_dshape answering = { REPLY, REPLY, 32, 0, echo };

/* Answers to the packets before @n, and their bytes */
static uint64_t want_bytes(uint64_t n, uint64_t *bytes)
{
	uint64_t i, frames = 0;

	*bytes = 0;
	for (i = 0; i < n; i++) {
		if (i % 3 == 2 || !(i % (REPLY + 1)))
			continue;
		frames++;
		*bytes += i % (REPLY + 1);
	}
	return frames;
}

static void answers(void **state)
{
	static unsigned char near[RGATE_DWARP_BYTES(REPLY, REPLY, 32)]
		__attribute__((aligned(16)));
	struct rgate_ring *in = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_ring *out = unit_ring(128, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(in);
	const struct rgate_slot *s;
	struct rgate_producer p;
	struct rgate_consumer c;
	struct rgate_dnear n;
	struct rgate_drun run;
	const unsigned char *f;
	uint64_t i, want = 0, bytes;

	(void)state;
	out_open(d, out, false);
	rgate_dnear_init(&n, near, &answering);
	assert_int_equal(rgate_producer_init(&p, in), 0);
	assert_int_equal(rgate_consumer_init(&c, out, NULL), 0);
	for (i = 0; i < 2000; i++) {
		assert_int_equal(unit_put(&p, i, i % (REPLY + 1)), 0);
		if (i % 5)
			continue;
		while (gpu_dev_find(d, &run))
			rgate_drun_work(&d->ctx, &answering, &run, &n);
		while ((s = rgate_consumer_next(&c))) {
			while (want % 3 == 2 || !(want % (REPLY + 1)))
				want++;
			assert_int_equal(s->hash, want);
			assert_int_equal(s->len, want % (REPLY + 1));
			assert_int_equal(s->wire_len, s->len);
			f = rgate_slot_data(s);
			assert_int_equal(unit_pattern_check(f, want, s->len), 0);
			if (s->len % 64)	/* zero up to the next multiple of 64 */
				assert_int_equal(f[s->len | 63], 0);
			rgate_consumer_release(&c);
			want++;
		}
		assert_true(want + 5 > i);
	}
	assert_int_equal(d->out.dropped, 0);
	rgate_dlaunch_out(&d->ctx, 1);
	assert_int_equal(d->ctx.out.prod->head, d->out.tail);
	assert_int_equal(d->out.told, d->out.tail);
	assert_int_equal(d->ctx.out.prod->stats.delivered, d->out.tail);
	assert_int_equal(d->out.tail, want_bytes(1996, &bytes));
	assert_int_equal(d->ctx.out.prod->stats.bytes, bytes);
	rgate_producer_fini(&p);
	rgate_ring_close(out);
	gpu_dev_free(d);
}

/* All of @n slots, or RGATE_DOUT_FULL for none */
static uint64_t reserve(struct gpu_dev *d, struct rgate_dhint *hint, uint32_t n)
{
	uint32_t got = n;
	uint64_t pos = rgate_dout_reserve(&d->ctx, hint, &got);

	assert_int_equal(got, pos == RGATE_DOUT_FULL ? 0 : n);
	return pos;
}

/* A full output ring: what has no room is dropped and counted, or waits until told to end */
static void answers_full(void **state)
{
	struct rgate_ring *in = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_ring *out = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(in);
	struct rgate_dhint hint = { 0, 0 }, late = { 0, 0 };
	struct rgate_consumer c;
	uint64_t pos;
	int i;

	(void)state;
	out_open(d, out, false);
	for (i = 0; i < 2; i++) {
		pos = reserve(d, &hint, 32);
		assert_int_equal(pos, i * 32);
		memset(rgate_dout_slot(&d->ctx.out, pos), 0, 32 * 256);
		rgate_dout_publish(&d->ctx.out, pos, 32, 0);
	}
	assert_true(reserve(d, &hint, 1) == RGATE_DOUT_FULL);
	assert_int_equal(d->out.dropped, 1);
	d->ctx.out.wait = 1;
	d->ctl.drop = 1;
	assert_true(reserve(d, &hint, 5) == RGATE_DOUT_FULL);
	assert_int_equal(d->out.dropped, 6);
	/* who waited has told how far it is: the consumer may sleep until head says so */
	assert_int_equal(d->ctx.out.prod->head, 64);
	assert_int_equal(rgate_consumer_init(&c, out, NULL), 0);
	for (i = 0; i < 32; i++) {
		assert_non_null(rgate_consumer_next(&c));
		rgate_consumer_release(&c);
	}
	assert_int_equal(reserve(d, &hint, 5), 64);
	/* one who knows nothing, or what was long ago */
	assert_int_equal(reserve(d, &late, 27), 69);
	assert_true(reserve(d, &hint, 1) == RGATE_DOUT_FULL);
	assert_int_equal(d->out.lock, 0);
	/* not while another is at it */
	d->out.lock = 1;
	rgate_dout_report(&d->ctx.out);
	assert_int_equal(d->ctx.out.prod->stats.dropped_full, 6);
	d->out.lock = 0;
	rgate_dout_report(&d->ctx.out);
	assert_int_equal(d->ctx.out.prod->stats.dropped_full, 7);
	assert_int_equal(d->ctx.out.prod->head, 64);
	rgate_ring_close(out);
	gpu_dev_free(d);
}

/* Room for some of a piece's answers: those go, in their order, and the others are counted */
static void answers_partly(void **state)
{
	static unsigned char near[RGATE_DWARP_BYTES(REPLY, REPLY, 32)]
		__attribute__((aligned(16)));
	struct rgate_ring *in = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_ring *out = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(in);
	uint64_t want = 0, bytes = 0;
	const struct rgate_slot *s;
	struct rgate_producer p;
	struct rgate_consumer c;
	struct rgate_dnear n;
	struct rgate_drun run;
	int i;

	(void)state;
	out_open(d, out, false);
	rgate_dnear_init(&n, near, &answering);
	assert_int_equal(rgate_producer_init(&p, in), 0);
	assert_int_equal(rgate_consumer_init(&c, out, NULL), 0);
	/* 4 slots, then pieces of 22, 21, 21 and 22 answers: room for 17 of the third */
	assert_int_equal(reserve(d, &n.hint, 4), 0);
	memset(rgate_dout_slot(&d->ctx.out, 0), 0, 4 * 256);
	rgate_dout_publish(&d->ctx.out, 0, 4, 0);
	for (i = 0; i < 4; i++) {
		while (!unit_put(&p, want, REPLY) && ++want % 32)
			;
		while (gpu_dev_find(d, &run))
			rgate_drun_work(&d->ctx, &answering, &run, &n);
	}
	assert_int_equal(want, 128);
	assert_int_equal(d->out.dropped, 4 + 22);
	assert_int_equal(d->out.tail, 64);
	for (i = 0; i < 4; i++) {
		assert_non_null(rgate_consumer_next(&c));
		rgate_consumer_release(&c);
	}
	for (want = i = 0; (s = rgate_consumer_next(&c)); i++, want++) {
		if (want % 3 == 2)
			want++;
		assert_int_equal(s->hash, want);
		assert_int_equal(unit_pattern_check(rgate_slot_data(s), want, s->len), 0);
		bytes += s->len;
		rgate_consumer_release(&c);
	}
	assert_int_equal(i, 60);
	assert_int_equal(d->out.frames, 64);
	assert_int_equal(d->out.bytes, bytes);
	rgate_producer_fini(&p);
	rgate_ring_close(out);
	gpu_dev_free(d);
}

/* A warp that wants room, while another has the lock */
struct asker {
	struct gpu_dev *d;
	pthread_t thread;
	uint64_t pos;
	uint32_t got;
	int asks, over;		/* atomic */
};

static void *asker_main(void *arg)
{
	struct rgate_dhint hint = { 0, 0 };
	struct asker *a = arg;
	uint32_t n = 32;

	__atomic_store_n(&a->asks, 1, __ATOMIC_RELEASE);
	a->pos = rgate_dout_reserve(&a->d->ctx, &hint, &n);
	a->got = n;
	__atomic_store_n(&a->over, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void asker_start(struct asker *a, struct gpu_dev *d)
{
	memset(a, 0, sizeof(*a));
	a->d = d;
	assert_int_equal(pthread_create(&a->thread, NULL, asker_main, a), 0);
	while (!__atomic_load_n(&a->asks, __ATOMIC_ACQUIRE))
		usleep(100);
	usleep(20000);
}

/* The lock says nothing of room: one who finds it taken waits for it, or for what is found */
static void answers_held(void **state)
{
	struct rgate_ring *in = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_ring *out = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(in);
	struct asker a;
	int i;

	(void)state;
	out_open(d, out, false);
	for (i = 0; i < 2; i++) {
		rgate_dgpu_release(&d->out.lock, 1);
		asker_start(&a, d);
		assert_int_equal(rgate_dgpu_load(&d->out.dropped), 0);
		rgate_dgpu_release(&d->out.lock, 0);
		assert_int_equal(pthread_join(a.thread, NULL), 0);
		assert_int_equal(a.pos, i * 32);
		rgate_dgpu_release(&d->out.limit, (i + 1) * 32);
	}
	rgate_dgpu_release(&d->out.lock, 1);
	asker_start(&a, d);
	/* a look in vain may have begun before: the one after it counts */
	for (i = 0; i < 1000 && !__atomic_load_n(&a.over, __ATOMIC_ACQUIRE); i++) {
		assert_true(i != 1 || !rgate_dgpu_load(&d->out.dropped));
		rgate_dgpu_add(&d->out.vain, 1);
		usleep(10000);
	}
	assert_true(i > 1 && i < 1000);
	assert_int_equal(pthread_join(a.thread, NULL), 0);
	assert_true(a.pos == RGATE_DOUT_FULL);
	assert_int_equal(d->out.dropped, 32);
	rgate_ring_close(out);
	gpu_dev_free(d);
}

/* Looks at the credits in vain until @vain were, or it has come to an end */
static bool waits_on(struct asker *a, uint64_t vain)
{
	uint64_t end = unit_now_ns() + 20000000000ULL * unit_patience();

	while (rgate_dgpu_load(&a->d->out.vain) < vain) {
		if (__atomic_load_n(&a->over, __ATOMIC_ACQUIRE))
			return false;
		assert_true(unit_now_ns() < end);
		usleep(100);
	}
	return true;
}

/*
 * Who waits for room is not sent away by the launch's end, whatever the reason: a time limit,
 * producers that have ended, a resize. Only by the word for it, and then with what there is.
 */
static void answers_wait(void **state)
{
	struct rgate_ring *in = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_ring *out = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(in);
	struct rgate_dhint hint = { 0, 0 };
	struct rgate_consumer c;
	struct asker a;
	int i;

	(void)state;
	out_open(d, out, true);
	for (i = 0; i < 44; i += 22) {
		assert_int_equal(reserve(d, &hint, 22), i);
		memset(rgate_dout_slot(&d->ctx.out, (uint64_t)i), 0, 22 * 256);
		rgate_dout_publish(&d->ctx.out, (uint64_t)i, 22, 0);
	}
	d->ctl.stop = 1;
	d->share.ended = d->ctx.nrings;
	d->share.until = 1;
	d->share.quit = RGATE_DEXIT_TIME;
	asker_start(&a, d);
	assert_true(waits_on(&a, 5));
	assert_int_equal(rgate_consumer_init(&c, out, NULL), 0);
	for (i = 0; i < 32; i++) {
		assert_non_null(rgate_consumer_next(&c));
		rgate_consumer_release(&c);
	}
	assert_int_equal(pthread_join(a.thread, NULL), 0);
	assert_int_equal(a.pos, 44);
	assert_int_equal(a.got, 32);
	assert_int_equal(d->out.dropped, 0);
	asker_start(&a, d);
	assert_true(waits_on(&a, rgate_dgpu_load(&d->out.vain) + 5));
	__atomic_store_n(&d->ctl.drop, 1, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(a.thread, NULL), 0);
	assert_int_equal(a.pos, 76);
	assert_int_equal(a.got, 20);
	assert_int_equal(d->out.dropped, 12);
	rgate_ring_close(out);
	gpu_dev_free(d);
}

/* What a GPU sees of @r from @pos on: slots, by the ends of batches or one by one */
static uint32_t sees(const struct rgate_dring *r, uint64_t pos, uint32_t *full)
{
	return rgate_dring_look(r, pos, 4, RGATE_DLOOK_SLOTS, full);
}

/*
 * Warps show their slots in any order, the last one of a batch comes when all of it are there:
 * at it alone looks a GPU that takes from the ring.
 */
static void ends_last(void **state)
{
	struct rgate_ring *in = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_ring *out = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(in);
	const struct rgate_dring r = gpu_dev_dring(out);
	const struct rgate_dout *o = &d->ctx.out;
	struct rgate_dhint hint = { 0, 0 };
	uint32_t full;

	(void)state;
	out_open(d, out, false);
	assert_int_equal(reserve(d, &hint, 20), 0);
	assert_int_equal(reserve(d, &hint, 20), 20);
	rgate_dout_show(o, 20, 20);
	assert_true(rgate_dring_ready(&r, 20) && rgate_dring_ready(&r, 39));
	assert_int_equal(sees(&r, 0, &full), 0);
	assert_int_equal(full, 0);
	rgate_dout_show(o, 0, 20);
	assert_int_equal(sees(&r, 0, &full), RGATE_DLOOK_SLOTS);
	assert_false(rgate_dring_ready(&r, 31));
	/* who comes last may be one of them that has not the end */
	rgate_dout_pass(o, 0, 20, 0);
	assert_int_equal(sees(&r, 0, &full), 32);
	assert_int_equal(full, 1);
	rgate_dout_pass(o, 20, 20, 0);
	assert_int_equal(sees(&r, 32, &full), 8);
	/* and who has the end is not to wait for its turn */
	assert_int_equal(reserve(d, &hint, 20), 40);
	assert_int_equal(reserve(d, &hint, 4), 60);
	rgate_dout_show(o, 60, 4);
	assert_int_equal(sees(&r, 32, &full), 8);
	rgate_dout_show(o, 40, 20);
	rgate_dout_pass(o, 40, 20, 0);
	assert_int_equal(sees(&r, 32, &full), 32);
	assert_int_equal(sees(&r, 0, &full), 64);
	assert_int_equal(full, 2);
	rgate_dout_pass(o, 60, 4, 0);
	assert_int_equal(d->out.tail, 64);
	/* the next lap: a batch that is one warp's */
	rgate_dring_release(&r, 0);
	rgate_dring_release(&r, 32);
	assert_int_equal(reserve(d, &hint, 32), 64);
	assert_int_equal(sees(&r, 64, &full), 0);
	rgate_dout_show(o, 64, 32);
	assert_int_equal(sees(&r, 64, &full), 32);
	rgate_dout_pass(o, 64, 32, 0);
	rgate_ring_close(out);
	gpu_dev_free(d);
}

#define GIVERS 4
#define GIVEN (SLOTS * 300U)	/* by all of them */

struct giver {
	struct gpu_dev *d;
	pthread_t thread;
	uint32_t seed;
};

/* A warp: slots in runs of any length, with their positions in them, some a while later */
static void *giver_main(void *arg)
{
	struct giver *g = arg;
	const struct rgate_dout *o = &g->d->ctx.out;
	struct rgate_dhint hint = { 0, 0 };
	uint32_t x = g->seed, n, i, left = GIVEN / GIVERS;
	uint64_t pos;

	for (; left; left -= n) {
		x = x * 1664525 + 1013904223;
		n = 1 + (x >> 16) % 32;
		if (n > left)
			n = left;
		pos = rgate_dout_reserve(&g->d->ctx, &hint, &n);
		/* the others go on meanwhile */
		if (x >> 8 & 1)
			usleep(x >> 20 & 127);
		for (i = 0; i < n; i++) {
			struct rgate_slot *s = rgate_dout_slot(o, pos + i);

			rgate_dout_header(s, NULL, 64, RGATE_DOUT_FLAGS);
			unit_pattern((unsigned char *)s + RGATE_SLOT_HDR, pos + i, 64);
		}
		rgate_dout_publish(o, pos, n, n * 64);
	}
	return NULL;
}

/* @n slots from @pos on: they are whole, and go back */
static void taken(const struct rgate_dring *r, uint64_t pos, uint32_t n)
{
	const uint64_t end = pos + n;

	for (; pos < end; pos++) {
		const struct rgate_slot *s = rgate_dring_slot(r, pos);

		assert_int_equal(s->len, 64);
		assert_int_equal(unit_pattern_check(rgate_slot_data(s), pos, 64), 0);
		if (pos == rgate_dring_last(pos))
			rgate_dring_release(r, pos);
	}
}

/* One device's output ring is another one's input: what that takes is whole */
static void chained(void **state)
{
	const uint64_t until = unit_now_ns() + 60000000000ULL * unit_patience();
	struct rgate_ring *in = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_ring *between = unit_ring(SLOTS, 256, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(in);
	const struct rgate_dring r = gpu_dev_dring(between);
	struct giver g[GIVERS];
	uint32_t i, n, full;
	uint64_t pos = 0;

	(void)state;
	out_open(d, between, true);
	for (i = 0; i < GIVERS; i++) {
		g[i] = (struct giver){ .d = d, .seed = i + 1 };
		assert_int_equal(pthread_create(&g[i].thread, NULL, giver_main, &g[i]), 0);
	}
	for (; pos < GIVEN; pos += n) {
		n = sees(&r, pos, &full);
		/* single slots are shown behind a fence, of which this checker knows nothing */
		if (unit_tsan() && !full)
			n = 0;
		taken(&r, pos, n);
		assert_true(unit_now_ns() < until);
		if (!n)
			usleep(50);
	}
	for (i = 0; i < GIVERS; i++)
		assert_int_equal(pthread_join(g[i].thread, NULL), 0);
	assert_int_equal(d->out.tail, GIVEN);
	assert_int_equal(d->out.frames, GIVEN);
	rgate_ring_close(between);
	gpu_dev_free(d);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(answers),
	cmocka_unit_test(answers_full),
	cmocka_unit_test(answers_partly),
	cmocka_unit_test(answers_held),
	cmocka_unit_test(answers_wait),
	cmocka_unit_test(ends_last),
	cmocka_unit_test(chained),
};

UNIT_MAIN(tests)
