// SPDX-License-Identifier: MIT OR GPL-2.0
/* Frames over several slots, filler, and what is cut. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM (256 - RGATE_SLOT_HDR)
#define LONGEST (ROOM * RGATE_CHAIN_MAX)

static unsigned char frame[70000], back[70000];

static int put(struct rgate_producer *p, uint64_t i, size_t len, size_t wire)
{
	unit_pattern(frame, i, len);
	return rgate_producer_write(p, NULL, frame, len, wire);
}

static void one_by_one(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, RGATE_RING_CHAIN,
					    RGATE_POLICY_DROP);
	struct rgate_slot hdr = { .protocol = 0x0800, .flags = RGATE_SLOT_VLAN |
				  RGATE_SLOT_PAD, .vlan_tci = 5, .seq = 99 };
	const struct rgate_slot *s;
	struct rgate_producer p;
	struct rgate_consumer c;
	unsigned int i, parts;
	size_t at, len;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	for (len = 0; len <= LONGEST + 400; len += 97) {
		size_t kept = len < LONGEST ? len : LONGEST;

		unit_pattern(frame, len, len);
		assert_int_equal(rgate_producer_write(&p, &hdr, frame, len, len), 0);
		s = rgate_consumer_next(&c);
		assert_non_null(s);
		parts = kept > ROOM ? (unsigned int)((kept + ROOM - 1) / ROOM) : 1;
		assert_int_equal(s->chain_cnt, parts);
		assert_int_equal(rgate_consumer_parts(&c), parts);
		for (i = 0, at = 0; i < parts; i++) {
			const struct rgate_slot *part = rgate_consumer_part(&c, i);
			uint32_t flags = RGATE_SLOT_VLAN;

			if (i)
				flags |= RGATE_SLOT_CONT;
			if (kept < len)
				flags |= RGATE_SLOT_TRUNC;
			assert_int_equal(part->flags, flags);
			assert_int_equal(part->chain_idx, i);
			assert_int_equal(part->wire_len, len);
			assert_int_equal(part->protocol, 0x0800);
			assert_int_equal(part->vlan_tci, 5);
			memcpy(back + at, rgate_slot_data(part), part->len);
			at += part->len;
		}
		assert_int_equal(at, kept);
		assert_int_equal(unit_pattern_check(back, len, kept), 0);
		rgate_consumer_release(&c);
	}
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

/* Filler stands before a chain that would cross a batch, and is not given out. */
/* Each part's own header, as a producer of its own fills it */
static void parts(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, RGATE_RING_CHAIN, RGATE_POLICY_DROP);
	struct rgate_slot *s, filled;
	struct rgate_producer p;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	rgate_producer_stamp(&p);
	s = rgate_producer_reserve(&p);
	unit_require(s);
	rgate_producer_fill(&p, s, 55, 700);
	filled = *s;
	/* what stood there before goes */
	memset((void *)s, 0xff, sizeof(*s));
	rgate_producer_fill_part(&p, s, 1, 3, 55, 600, 700);
	assert_int_equal(s->len, 55);
	assert_int_equal(s->wire_len, 700);
	assert_int_equal(s->tstamp, filled.tstamp);
	assert_int_equal(s->protocol, filled.protocol);
	assert_int_equal(s->flags, RGATE_SLOT_TRUNC | RGATE_SLOT_CONT);
	assert_int_equal(s->chain_idx, 1);
	assert_int_equal(s->chain_cnt, 3);
	rgate_producer_fill_part(&p, s, 0, 3, 55, 700, 700);
	assert_int_equal(s->flags, 0);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

static void padding(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, RGATE_RING_CHAIN,
					    RGATE_POLICY_DROP);
	const struct rgate_slot *v[RGATE_BATCH];
	struct rgate_producer p;
	struct rgate_consumer c;
	struct rgate_stats st;
	unsigned int i;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	for (i = 0; i < 30; i++)
		assert_int_equal(put(&p, i, 64, 64), 0);
	assert_int_equal(put(&p, 30, 3 * ROOM, 3 * ROOM), 0);
	assert_int_equal(rgate_consumer_peek(&c, v, RGATE_BATCH), RGATE_BATCH);
	assert_int_equal(v[30]->flags, RGATE_SLOT_PAD);
	assert_int_equal(v[31]->flags, RGATE_SLOT_PAD);
	assert_int_equal(v[30]->len, 0);
	for (i = 0; i < 30; i++)
		assert_int_equal(rgate_consumer_copy(&c, NULL, back, sizeof(back)), 64);
	assert_int_equal(rgate_consumer_copy(&c, NULL, back, sizeof(back)), 3 * ROOM);
	assert_int_equal(unit_pattern_check(back, 30, 3 * ROOM), 0);
	rgate_producer_flush(&p);
	rgate_ring_stats(ring, &st);
	assert_int_equal(st.delivered, 31);
	assert_int_equal(st.padded, 2);
	assert_int_equal(st.chained, 1);
	assert_int_equal(st.bytes, 30 * 64 + 3 * ROOM);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

static void no_room(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, RGATE_RING_CHAIN,
					    RGATE_POLICY_DROP);
	struct rgate_producer p;
	struct rgate_consumer c;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	assert_int_equal(put(&p, 0, LONGEST, LONGEST), 0);
	assert_int_equal(put(&p, 1, 64, 64), 0);
	assert_int_equal(put(&p, 2, LONGEST, LONGEST), -ENOBUFS);
	assert_int_equal(put(&p, 2, 64, 64), -ENOBUFS);
	assert_int_equal(rgate_consumer_copy(&c, NULL, back, sizeof(back)), LONGEST);
	assert_int_equal(put(&p, 2, LONGEST, LONGEST), 0);
	assert_int_equal(rgate_consumer_copy(&c, NULL, back, sizeof(back)), 64);
	assert_int_equal(rgate_consumer_copy(&c, NULL, back, 10), LONGEST);
	assert_int_equal(rgate_consumer_copy(&c, NULL, back, 10), -EAGAIN);
	assert_null(rgate_producer_reserve_chain(&p, 0));
	assert_null(rgate_producer_reserve_chain(&p, RGATE_CHAIN_MAX + 1));
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

static void truncated(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	const struct rgate_slot *s;
	struct rgate_producer p;
	struct rgate_consumer c;
	struct rgate_stats st;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	assert_null(rgate_producer_reserve_chain(&p, 2));
	assert_int_equal(put(&p, 0, 1500, 9000), 0);
	s = rgate_consumer_next(&c);
	assert_int_equal(s->len, ROOM);
	assert_int_equal(s->wire_len, 9000);
	assert_int_equal(s->flags, RGATE_SLOT_TRUNC);
	assert_int_equal(s->chain_cnt, 1);
	rgate_producer_flush(&p);
	rgate_ring_stats(ring, &st);
	assert_int_equal(st.truncated, 1);
	assert_int_equal(st.chained, 0);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

/* All lengths, random, against a small ring, also one that overwrites */
static void mixed(void **state)
{
	uint32_t policy = (uint32_t)(uintptr_t)*state;
	struct rgate_ring *ring = unit_ring(128, 256, RGATE_RING_CHAIN, policy);
	uint64_t seed = 11, in = 0, out = 0;
	static size_t lens[1 << 16];
	struct rgate_producer p;
	struct rgate_consumer c;
	struct rgate_slot hdr;

	assert_int_equal(rgate_producer_init(&p, ring), 0);
	assert_int_equal(rgate_consumer_init(&c, ring, NULL), 0);
	while (in < unit_rounds(30000)) {
		unsigned int n = (unsigned int)(unit_random(&seed) % 9);
		long got;

		while (n--) {
			size_t len = 8 + unit_random(&seed) % (LONGEST - 8);

			if (unit_random(&seed) & 3)
				len = 8 + len % 400;
			if (put(&p, in, len, len))
				break;
			lens[in++ & 0xffff] = len;
		}
		n = (unsigned int)(unit_random(&seed) % 9);
		while (n-- && (got = rgate_consumer_copy(&c, &hdr, back,
							 sizeof(back))) >= 0) {
			uint64_t i;

			memcpy(&i, back, sizeof(i));
			if (policy == RGATE_POLICY_DROP)
				assert_int_equal(i, out);
			assert_true(i >= out && i < in);
			out = i + 1;
			assert_int_equal(got, lens[i & 0xffff]);
			assert_int_equal(hdr.wire_len, got);
			assert_int_equal(unit_pattern_check(back, i, (size_t)got), 0);
		}
	}
	assert_true(out > in / 2 || policy == RGATE_POLICY_OVERWRITE);
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(one_by_one),
	cmocka_unit_test(parts),
	cmocka_unit_test(padding),
	cmocka_unit_test(no_room),
	cmocka_unit_test(truncated),
	cmocka_unit_test_prestate(mixed, (void *)RGATE_POLICY_DROP),
	cmocka_unit_test_prestate(mixed, (void *)RGATE_POLICY_OVERWRITE),
};

UNIT_MAIN_ALONE(tests)
