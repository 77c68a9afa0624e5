// SPDX-License-Identifier: MIT OR GPL-2.0
#include "gpu_dev.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

struct rgate_dring gpu_dev_dring(struct rgate_ring *ring)
{
	struct rgate_dring d = { 0 };
	struct rgate_view v;

	rgate_ring_view(ring, &v);
	d.slots = v.slots;
	d.credits = v.credits;
	d.prod = v.prod;
	d.mask = v.nslots - 1;
	d.lap_shift = (uint32_t)__builtin_ctz(v.nslots);
	d.size_shift = (uint32_t)__builtin_ctz(v.slot_size);
	d.chain = !!(v.prod->features & RGATE_FEAT_CHAIN);
	return d;
}

/* As the runtime does it (lib/gpu/bind.c), for a ring nobody has consumed from */
void gpu_dev_add(struct gpu_dev *d, struct rgate_ring *ring)
{
	uint32_t i = d->ctx.nrings++;
	uint64_t n;

	d->ring[i] = ring;
	d->ctx.ring[i] = gpu_dev_dring(ring);
	n = (d->ctx.ring[i].mask + 1) / RGATE_BATCH;
	d->state[i].finished = calloc(n, sizeof(uint32_t));
	assert_non_null(d->state[i].finished);
	d->state[i].check_end = 2 * (d->ctx.ring[i].mask + 1);
}

void gpu_dev_begin(struct gpu_dev *d)
{
	uint32_t cells = 64, i;

	while (cells < (d->ctx.ring[0].mask + 1) * d->ctx.nrings)
		cells *= 2;
	d->queue.cell = calloc(cells, sizeof(*d->queue.cell));
	assert_non_null(d->queue.cell);
	d->queue.mask = cells - 1;
	for (i = 0; i < cells; i++)
		d->queue.cell[i].v[1] = RGATE_DCELL_WORD(i, 0, 0);
	d->ctx.state = d->state;
	d->ctx.stat = d->stat;
	d->ctx.queue = &d->queue;
	d->ctx.share = &d->share;
	d->ctx.ctl = &d->ctl;
	d->ctx.report = &d->report;
	d->ctx.npollers = 1;
	d->ctx.grain = 32;
	for (i = 0; i < d->ctx.nrings; i++)
		rgate_dpoll_load(&d->ctx, &d->poll[i], i);
}

struct gpu_dev *gpu_dev_new(struct rgate_ring *ring)
{
	struct gpu_dev *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	gpu_dev_add(d, ring);
	gpu_dev_begin(d);
	return d;
}

void gpu_dev_free(struct gpu_dev *d)
{
	uint32_t i;

	for (i = 0; i < d->ctx.nrings; i++) {
		free(d->state[i].finished);
		rgate_ring_close(d->ring[i]);
	}
	free(d->queue.cell);
	free(d);
}

uint32_t gpu_dev_find(struct gpu_dev *d, struct rgate_drun *run)
{
	struct rgate_dseen seen;

	rgate_dpoll_find(&d->ctx, &d->poll[0], RGATE_DLOOK_BATCHES, 1, &seen);
	rgate_dpoll_note(&d->poll[0], &seen);
	*run = seen.run;
	return run->count;
}
