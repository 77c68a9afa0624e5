// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: index arithmetic and the slot writer, on memory without users. */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/vmalloc.h>
#include "mem.h"
#include "writer.h"

#define SLOTS	64U
#define SIZE	256U
#define ROOM	(SIZE - RGATE_SLOT_HDR)

/*
 * The areas are separate allocations, so that whatever is written beside one
 * is seen by KASAN.
 */
struct rgate_writer_ctx {
	struct rgate_mem mem;
	struct rgate_writer w;
};

static int rgate_writer_test_init(struct kunit *test)
{
	struct rgate_writer_ctx *ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	KUNIT_ASSERT_EQ(test, rgate_geo_init(&ctx->mem.geo, SLOTS, SIZE), 0);
	ctx->mem.prod = kunit_kzalloc(test, sizeof(*ctx->mem.prod), GFP_KERNEL);
	ctx->mem.cons = kunit_kzalloc(test, sizeof(*ctx->mem.cons), GFP_KERNEL);
	ctx->mem.credits = kunit_kzalloc(test, SLOTS / RGATE_BATCH * sizeof(u64),
					 GFP_KERNEL);
	ctx->mem.slots = kunit_kzalloc(test, SLOTS * SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ctx->mem.prod);
	KUNIT_ASSERT_NOT_NULL(test, ctx->mem.cons);
	KUNIT_ASSERT_NOT_NULL(test, ctx->mem.credits);
	KUNIT_ASSERT_NOT_NULL(test, ctx->mem.slots);
	test->priv = ctx;
	return 0;
}

static struct rgate_writer *rgate_writer_begin(struct kunit *test, u32 flags,
					       u32 policy)
{
	struct rgate_writer_ctx *ctx = test->priv;

	rgate_writer_init(&ctx->w, &ctx->mem, flags, policy);
	return &ctx->w;
}

static struct rgate_slot *rgate_slot_at(struct kunit *test, u64 pos)
{
	struct rgate_writer_ctx *ctx = test->priv;

	return (struct rgate_slot *)(ctx->mem.slots + pos % SLOTS * SIZE);
}

/* Puts one frame of @len bytes; how many slots it took */
static u32 rgate_put(struct rgate_writer *w, u32 len)
{
	u32 n = rgate_writer_reserve(w, len), i;

	for (i = 0; i < n; i++)
		memset((u8 *)rgate_writer_slot(w, i) + RGATE_SLOT_HDR, 0x5a, ROOM);
	if (n)
		rgate_writer_commit(w, n, len);
	return n;
}

static void rgate_return_batch(struct rgate_writer *w, u64 batch)
{
	u64 pos = batch * RGATE_BATCH;

	w->credits[(pos & w->mask) / RGATE_BATCH] = rgate_writer_lap(w, pos);
}

static void rgate_writer_laps(struct kunit *test)
{
	struct rgate_writer *w = rgate_writer_begin(test, 0, RGATE_POLICY_DROP);
	u64 pos, batch;

	for (pos = 0; pos < 10 * SLOTS; pos++) {
		if (pos >= SLOTS && pos % RGATE_BATCH == 0) {
			/* full until the batch that stands there is returned */
			KUNIT_ASSERT_EQ(test, rgate_writer_reserve(w, 60), 0);
			batch = pos / RGATE_BATCH - SLOTS / RGATE_BATCH;
			rgate_return_batch(w, batch);
		}
		KUNIT_ASSERT_EQ(test, rgate_put(w, 60), 1);
		KUNIT_EXPECT_EQ(test, rgate_slot_at(test, pos)->seq,
				pos / SLOTS + 1);
		KUNIT_EXPECT_EQ(test, w->prod->head, pos + 1);
	}
	KUNIT_EXPECT_EQ(test, w->stats->delivered, 10 * SLOTS);
	KUNIT_EXPECT_EQ(test, w->stats->bytes, 600 * SLOTS);
}

/* A credit counts only if it is that of the very lap before */
static void rgate_writer_credits(struct kunit *test)
{
	struct rgate_writer *w = rgate_writer_begin(test, 0, RGATE_POLICY_DROP);
	static const u64 wrong[] = { 0, 2, 3, 100, S64_MAX, 1ULL << 63, U64_MAX };
	u32 i;

	for (i = 0; i < SLOTS; i++)
		KUNIT_ASSERT_EQ(test, rgate_put(w, 60), 1);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		w->credits[0] = wrong[i];
		KUNIT_EXPECT_EQ_MSG(test, rgate_writer_reserve(w, 60), 0,
				    "credit %llx", wrong[i]);
	}
	/* one batch returned is one batch to fill, not two */
	w->credits[0] = 1;
	for (i = 0; i < RGATE_BATCH; i++)
		KUNIT_EXPECT_EQ(test, rgate_put(w, 60), 1);
	KUNIT_EXPECT_EQ(test, rgate_writer_reserve(w, 60), 0);
	/* what was reserved and not committed is reserved again */
	w->credits[1] = 1;
	KUNIT_EXPECT_EQ(test, rgate_writer_reserve(w, 60), 1);
	KUNIT_EXPECT_EQ(test, rgate_writer_reserve(w, 60), 1);
	KUNIT_EXPECT_EQ(test, w->head, SLOTS + RGATE_BATCH);
}

/* Far on: nothing depends on positions being small */
static void rgate_writer_far(struct kunit *test)
{
	struct rgate_writer *w = rgate_writer_begin(test, 0, RGATE_POLICY_DROP);
	u64 lap = (1ULL << 57) + 5, start = (lap - 1) * SLOTS, i;

	w->head = start;
	w->limit = start;
	w->credits[0] = lap - 1;
	w->credits[1] = lap - 1;
	for (i = 0; i < SLOTS; i++) {
		KUNIT_ASSERT_EQ(test, rgate_put(w, 60), 1);
		KUNIT_EXPECT_EQ(test, rgate_slot_at(test, start + i)->seq, lap);
	}
	KUNIT_EXPECT_EQ(test, rgate_put(w, 60), 0);
	rgate_return_batch(w, start / RGATE_BATCH);
	KUNIT_EXPECT_EQ(test, rgate_put(w, 60), 1);
	KUNIT_EXPECT_EQ(test, rgate_slot_at(test, start)->seq, lap + 1);
}

static void rgate_writer_sizes(struct kunit *test)
{
	struct rgate_writer *w = rgate_writer_begin(test, 0, RGATE_POLICY_DROP);

	/* without chains a frame has one slot, whatever its length */
	KUNIT_EXPECT_EQ(test, rgate_writer_reserve(w, 0), 1);
	KUNIT_EXPECT_EQ(test, rgate_writer_reserve(w, 1), 1);
	KUNIT_EXPECT_EQ(test, rgate_writer_reserve(w, ROOM), 1);
	KUNIT_EXPECT_EQ(test, rgate_writer_reserve(w, ROOM + 1), 1);
	KUNIT_EXPECT_EQ(test, rgate_writer_reserve(w, U32_MAX), 1);

	w = rgate_writer_begin(test, RGATE_RING_CHAIN, RGATE_POLICY_DROP);
	KUNIT_EXPECT_EQ(test, rgate_writer_reserve(w, 0), 1);
	KUNIT_EXPECT_EQ(test, rgate_writer_reserve(w, ROOM), 1);
	KUNIT_EXPECT_EQ(test, rgate_writer_reserve(w, ROOM + 1), 2);
	KUNIT_EXPECT_EQ(test, rgate_writer_reserve(w, 5 * ROOM), 5);
	KUNIT_EXPECT_EQ(test, rgate_writer_reserve(w, RGATE_CHAIN_MAX * ROOM + 1),
			RGATE_CHAIN_MAX);
	KUNIT_EXPECT_EQ(test, rgate_writer_reserve(w, 1 << 20), RGATE_CHAIN_MAX);
}

/* A chain stands in one batch; what is left of the batch before is filler */
static void rgate_writer_chains(struct kunit *test)
{
	struct rgate_writer *w = rgate_writer_begin(test, RGATE_RING_CHAIN,
						    RGATE_POLICY_DROP);
	u32 i;

	for (i = 0; i < RGATE_BATCH - 2; i++)
		KUNIT_ASSERT_EQ(test, rgate_put(w, 60), 1);
	KUNIT_EXPECT_EQ(test, rgate_put(w, 3 * ROOM), 3);
	KUNIT_EXPECT_EQ(test, w->head, RGATE_BATCH + 3);
	KUNIT_EXPECT_EQ(test, w->stats->padded, 2);
	KUNIT_EXPECT_EQ(test, w->stats->chained, 1);
	for (i = RGATE_BATCH - 2; i < RGATE_BATCH; i++) {
		KUNIT_EXPECT_EQ(test, rgate_slot_at(test, i)->flags, RGATE_SLOT_PAD);
		KUNIT_EXPECT_EQ(test, rgate_slot_at(test, i)->seq, 1);
	}
	/* one that does not fit any more: the batch is filled up, then full */
	KUNIT_EXPECT_EQ(test, rgate_writer_reserve(w, 30 * ROOM), 0);
	KUNIT_EXPECT_EQ(test, w->head, SLOTS);
	rgate_return_batch(w, 0);
	KUNIT_EXPECT_EQ(test, rgate_put(w, 30 * ROOM), 30);
}

static void rgate_writer_overwrite(struct kunit *test)
{
	struct rgate_writer *w = rgate_writer_begin(test, 0,
						    RGATE_POLICY_OVERWRITE);
	u64 pos;

	for (pos = 0; pos < 5 * SLOTS; pos++) {
		KUNIT_ASSERT_EQ(test, rgate_writer_reserve(w, 60), 1);
		/* busy before a byte of it changes */
		KUNIT_EXPECT_EQ(test, rgate_slot_at(test, pos)->seq,
				RGATE_SEQ_BUSY);
		rgate_writer_commit(w, 1, 60);
		KUNIT_EXPECT_EQ(test, rgate_slot_at(test, pos)->seq,
				pos / SLOTS + 1);
	}
	KUNIT_EXPECT_EQ(test, w->stats->overwritten, 4 * SLOTS);
	/* what was returned in time is not overwritten */
	rgate_return_batch(w, 4 * SLOTS / RGATE_BATCH);
	KUNIT_EXPECT_EQ(test, rgate_put(w, 60), 1);
	KUNIT_EXPECT_EQ(test, w->stats->overwritten, 4 * SLOTS);
}

/*
 * Credit words of every kind and frames of every length: a frame is refused or
 * gets slots of one batch that were returned, and nothing else is written.
 */
static void rgate_writer_hostile(struct kunit *test)
{
	struct rgate_writer *w = rgate_writer_begin(test, RGATE_RING_CHAIN,
						    RGATE_POLICY_DROP);
	struct rnd_state rnd;
	u64 head, credit;
	u32 i, n, len;

	prandom_seed_state(&rnd, 0x7267);
	for (i = 0; i < 20000; i++) {
		credit = prandom_u32_state(&rnd) % 4 ?
			rgate_writer_lap(w, w->head) - 1 :
			(u64)prandom_u32_state(&rnd) << 32 | prandom_u32_state(&rnd);
		w->credits[prandom_u32_state(&rnd) % (SLOTS / RGATE_BATCH)] = credit;
		len = prandom_u32_state(&rnd) % (40 * ROOM);
		head = w->head;
		n = rgate_put(w, len);
		if (!n)
			continue;
		KUNIT_ASSERT_LE(test, n, RGATE_BATCH);
		KUNIT_ASSERT_EQ(test, (w->head - n) / RGATE_BATCH,
				(w->head - 1) / RGATE_BATCH);
		KUNIT_ASSERT_LT(test, w->head - head, 2 * RGATE_BATCH);
		KUNIT_ASSERT_LE(test, w->head, w->limit);
	}
	KUNIT_EXPECT_GT(test, w->stats->delivered, 1000);
}

static struct kunit_case rgate_writer_cases[] = {
	KUNIT_CASE(rgate_writer_laps),
	KUNIT_CASE(rgate_writer_credits),
	KUNIT_CASE(rgate_writer_far),
	KUNIT_CASE(rgate_writer_sizes),
	KUNIT_CASE(rgate_writer_chains),
	KUNIT_CASE(rgate_writer_overwrite),
	KUNIT_CASE(rgate_writer_hostile),
	{}
};

static struct kunit_suite rgate_writer_suite = {
	.name = "ringgate-writer",
	.init = rgate_writer_test_init,
	.test_cases = rgate_writer_cases,
};

kunit_test_suite(rgate_writer_suite);
