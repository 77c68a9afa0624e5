// SPDX-License-Identifier: MIT OR GPL-2.0
/* What device code finds in a packet, on this CPU: the vectors are those of tests/gpu. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "../gpu/lib/vectors.cuh"

static const struct vector vectors[V_COUNT] = V_ALL;

/* Through a ring, with the frame near, partly near, and far */
static void layers(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_dring r = { 0 };
	struct rgate_producer p;
	struct rgate_view view;
	unsigned int i, k;

	(void)state;
	rgate_ring_view(ring, &view);
	r.slots = view.slots;
	r.mask = 63;
	r.lap_shift = 6;
	r.size_shift = 8;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	for (i = 0; i < V_COUNT; i++) {
		const struct vector *v = &vectors[i];
		struct rgate_slot *s = rgate_producer_reserve(&p);

		memcpy(rgate_producer_data(s), v->frame, v->len);
		rgate_producer_fill(&p, s, v->len, v->len);
		vector_header(v, s);
		rgate_producer_publish(&p);
		for (k = 0; k <= v->len; k += 8) {
			struct rgate_dpkt pkt;
			uint32_t wrong;

			rgate_dpkt_view(&pkt, &r, i, 1);
			pkt.near_len = k;
			wrong = vector_check(v, &pkt);
			if (wrong)
				print_message("# %s, %u near: %u\n", v->name, k, wrong);
			assert_int_equal(wrong, 0);
		}
	}
	rgate_producer_fini(&p);
	rgate_ring_close(ring);
}

static void view_of(struct rgate_dpkt *pkt, struct rgate_dring *r, void *slot)
{
	memset(r, 0, sizeof(*r));
	r->slots = slot;
	r->size_shift = 8;
	rgate_dpkt_view(pkt, r, 0, 1);
}

/* No byte string makes it read beyond the frame: what is outside reads as 0 */
static void any_bytes(void **state)
{
	unsigned char slot[512] __attribute__((aligned(64)));
	unsigned char other[512] __attribute__((aligned(64)));
	uint64_t seed = 77;
	unsigned int i, k;

	(void)state;
	for (i = 0; i < unit_rounds(200000); i++) {
		struct rgate_slot *h = (struct rgate_slot *)slot;
		struct rgate_dlayers l, m;
		struct rgate_dring r, q;
		struct rgate_dpkt pkt, same;
		uint32_t len = (uint32_t)(unit_random(&seed) % 193);

		for (k = 0; k < sizeof(slot); k++)
			slot[k] = (unsigned char)(unit_random(&seed) >> 7);
		vector_header(&vectors[i % V_COUNT], h);
		h->flags = 0;
		h->ip_proto = 0;
		h->len = len;
		memcpy(slot + 64, vectors[i % V_COUNT].frame, len < 40 ? len : 40);
		slot[64 + unit_random(&seed) % 40] ^= 1U << unit_random(&seed) % 8;
		memcpy(other, slot, sizeof(slot));
		memset(other + 64 + len, (int)(unit_random(&seed) & 255), sizeof(other) - 64 - len);
		view_of(&pkt, &r, slot);
		view_of(&same, &q, other);
		rgate_dpkt_layers(&pkt, &l);
		rgate_dpkt_layers(&same, &m);
		assert_memory_equal(&l, &m, sizeof(l));
		assert_int_equal(rgate_dpkt_flow(&pkt), rgate_dpkt_flow(&same));
		assert_int_equal(rgate_dpkt_l4_ok(&pkt, &l), rgate_dpkt_l4_ok(&same, &m));
	}
}

/* Packets of a flow have the same number; others another one, mostly */
static void flows(void **state)
{
	unsigned char slot[512] __attribute__((aligned(64))) = { 0 };
	const struct vector *v = &vectors[0];
	struct rgate_slot *h = (struct rgate_slot *)slot;
	uint32_t first, changed = 0, i;
	struct rgate_dring r;
	struct rgate_dpkt pkt;

	(void)state;
	vector_header(v, h);
	h->len = v->len;
	memcpy(slot + 64, v->frame, v->len);
	view_of(&pkt, &r, slot);
	first = rgate_dpkt_flow(&pkt);
	assert_true(first != 0);
	slot[64 + 18] ^= 1;	/* the IP header's identification */
	slot[64 + 44] ^= 1;	/* payload */
	assert_int_equal(rgate_dpkt_flow(&pkt), first);
	for (i = 26; i < 38; i++) {	/* addresses and ports */
		slot[64 + i] ^= 4;
		changed += rgate_dpkt_flow(&pkt) != first;
		slot[64 + i] ^= 4;
	}
	assert_int_equal(changed, 12);
	h->flags = RGATE_SLOT_HASH;
	h->hash = 4711;
	assert_int_equal(rgate_dpkt_flow(&pkt), 4711);
}

/* Sums of odd and even lengths; a block with its checksum in it sums to 0 */
static void checksums(void **state)
{
	unsigned char b[64];
	uint64_t seed = 3;
	unsigned int i, len;

	(void)state;
	for (len = 2; len <= sizeof(b); len++) {
		uint32_t sum;

		for (i = 0; i < len; i++)
			b[i] = (unsigned char)(unit_random(&seed) >> 9);
		b[0] = b[1] = 0;
		sum = rgate_dcsum_fold(rgate_dcsum_add(0, b, len));
		b[0] = (unsigned char)(sum >> 8);
		b[1] = (unsigned char)sum;
		assert_int_equal(rgate_dcsum_fold(rgate_dcsum_add(0, b, len)), 0);
		b[len / 2] ^= 1;
		assert_int_not_equal(rgate_dcsum_fold(rgate_dcsum_add(0, b, len)), 0);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(layers),
	cmocka_unit_test(any_bytes),
	cmocka_unit_test(flows),
	cmocka_unit_test(checksums),
};

UNIT_MAIN_ALONE(tests)
