// SPDX-License-Identifier: MIT OR GPL-2.0
#include "unit.h"

#include <string.h>
#include <unistd.h>

#include "runtime.h"

int runtime_ms(void)
{
	return 20000 * (int)unit_patience();
}

void runtime_prepare(struct runtime *r, uint32_t device)
{
	memset(r, 0, sizeof(*r));
	r->opts.sz = sizeof(r->opts);
	r->opts.device = device;
	/* a machine that is slow is no kernel that hangs */
	r->opts.stall_ms = 600000;
	r->start.sz = sizeof(r->start);
}

void runtime_begin(struct runtime *r, unsigned int rings, uint32_t slots)
{
	unsigned int i;

	assert_int_equal(rgate_gpu_open(&r->gpu, &r->opts), 0);
	for (i = 0; i < rings; i++) {
		r->ring[i] = unit_ring(slots, 256, 0, RGATE_POLICY_DROP);
		assert_int_equal(rgate_producer_init(&r->p[i], r->ring[i]), 0);
		assert_int_equal(rgate_gpu_bind(r->gpu, r->ring[i], NULL), 0);
		r->rings++;
	}
}

void runtime_open(struct runtime *r, uint32_t device, unsigned int rings, uint32_t slots)
{
	runtime_prepare(r, device);
	runtime_begin(r, rings, slots);
}

void runtime_end(struct runtime *r)
{
	unsigned int i;

	for (i = 0; i < r->rings; i++) {
		rgate_producer_fini(&r->p[i]);
		rgate_ring_close(r->ring[i]);
	}
}

void runtime_close(struct runtime *r)
{
	rgate_gpu_close(r->gpu);
	runtime_end(r);
}

void runtime_put(struct runtime *r, unsigned int i, unsigned int n)
{
	while (n--) {
		runtime_until(!unit_put(&r->p[i], r->next[i], 60));
		r->next[i]++;
	}
	rgate_producer_flush(&r->p[i]);
}

static struct rgate_gpu_status query(struct runtime *r)
{
	struct rgate_gpu_status st = { .sz = sizeof(st) };

	assert_int_equal(rgate_gpu_query(r->gpu, &st), 0);
	return st;
}

uint32_t runtime_state(struct runtime *r)
{
	return query(r).state;
}

uint64_t runtime_launches(struct runtime *r)
{
	return query(r).launches;
}
