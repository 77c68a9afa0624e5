// SPDX-License-Identifier: MIT OR GPL-2.0
/* Slots brought near, on this CPU: kernels that want more of a frame than a slot has. */
#include "unit.h"

#include <string.h>

#include "gpu_dev.h"

#define NEAR	320U
#define SLOTS	64U
#define SLOT	256U
#define RUN	32U

static unsigned char near_mem[RGATE_DWARP_BYTES(NEAR, 0, RUN)] __attribute__((aligned(16)));
static uint64_t seen;

static uint32_t check_frame(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	(void)result;
	(void)arg;
	assert_int_equal(pkt->near_len, pkt->len);
	assert_int_equal(unit_pattern_check(pkt->near, seen, pkt->len), 0);
	seen++;
	return 0;
}

static const struct rgate_dshape wide = { NEAR, 0, RUN, 0, check_frame };

/* A copy holds its slot and nothing beyond: the last one's neighbour is no memory of the ring */
static void slot_alone(void **state)
{
	struct rgate_ring *ring = unit_ring(SLOTS, SLOT, 0, RGATE_POLICY_DROP);
	struct gpu_dev *d = gpu_dev_new(ring);
	const uint32_t stride = RGATE_DSTAGE_STRIDE(NEAR);
	struct rgate_producer p;
	uint32_t i, k;

	(void)state;
	assert_int_equal(rgate_producer_init(&p, ring), 0);
	for (i = 0; i < SLOTS; i++)
		assert_int_equal(unit_put(&p, i, SLOT - RGATE_SLOT_HDR), 0);
	memset(near_mem, 0xee, sizeof(near_mem));
	rgate_dstage(&d->ctx.ring[0], SLOTS - RUN, RUN, near_mem, NEAR);
	for (i = 0; i < RUN; i++) {
		const unsigned char *copy = near_mem + i * stride;

		assert_memory_equal(copy, rgate_dring_slot(&d->ctx.ring[0], SLOTS - RUN + i),
				    SLOT);
		for (k = SLOT; k < stride; k++)
			assert_int_equal(copy[k], 0xee);
	}
	rgate_producer_fini(&p);
	gpu_dev_free(d);
}

/* The ring is resized to shorter slots: the same kernel goes on with what there is */
static void shorter_slots(void **state)
{
	static const uint32_t sizes[] = { 512, SLOT };
	struct rgate_dnear near;
	unsigned int i, k;

	(void)state;
	rgate_dnear_init(&near, near_mem, &wide);
	for (i = 0; i < ARRAY_LEN(sizes); i++) {
		struct rgate_ring *ring = unit_ring(SLOTS, sizes[i], 0, RGATE_POLICY_DROP);
		uint32_t room = sizes[i] - RGATE_SLOT_HDR;
		struct gpu_dev *d = gpu_dev_new(ring);
		struct rgate_producer p;
		struct rgate_drun run;

		seen = 0;
		assert_int_equal(rgate_producer_init(&p, ring), 0);
		for (k = 0; k < 40; k++)
			assert_int_equal(unit_put(&p, k, room < NEAR ? room : NEAR), 0);
		while (gpu_dev_find(d, &run))
			rgate_drun_work(&d->ctx, &wide, &run, &near);
		assert_int_equal(seen, 40);
		rgate_producer_fini(&p);
		gpu_dev_free(d);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(slot_alone),
	cmocka_unit_test(shorter_slots),
};

UNIT_MAIN_ALONE(tests)
