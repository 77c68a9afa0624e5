// SPDX-License-Identifier: MIT OR GPL-2.0
/* Rings bound to a device: their memory, and where to begin */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

void rgate_gpu_areas_unmap(struct rgate_gpu_areas *areas)
{
	while (areas->n)
		rgate_gpu_host_unmap(areas->addr[--areas->n]);
}

void rgate_gpu_areas_abandon(const struct rgate_gpu_areas *areas)
{
	unsigned int i;

	for (i = 0; i < areas->n; i++)
		rgate_gpu_host_abandon(areas->addr[i]);
}

/* Registers [@from, @to) of the mapping; @device: out, where the device has it */
static int map_area(struct rgate_gpu *gpu, struct rgate_gpu_areas *areas,
		    const unsigned char *from, const unsigned char *to, bool readonly,
		    void **device)
{
	void *addr = (void *)(uintptr_t)from;
	int err;

	if (readonly && !gpu->readonly)
		return rgate_gpu_fail(gpu, -EOPNOTSUPP,
				      "this device cannot register read-only memory: make the ring with RGATE_RING_RW_SLOTS");
	err = rgate_gpu_host_map(gpu, addr, (size_t)(to - from), readonly, device);
	if (!err)
		areas->addr[areas->n++] = addr;
	return err;
}

int rgate_gpu_areas_map(struct rgate_gpu *gpu, struct rgate_ring *ring,
			const struct rgate_view *view, struct rgate_gpu_areas *areas,
			struct rgate_dring *dring)
{
	const unsigned char *base = (const unsigned char *)view->prod;
	const unsigned char *cons = (const unsigned char *)view->cons;
	const unsigned char *slots = view->slots, *end = base + view->map_len;
	bool rw = rgate_ring_slots_rw(ring), own = rw && !rgate_ring_id(ring);
	void *prod = NULL, *user = NULL, *data = NULL;
	int err;

	/* the producer area can be written in a memfd ring of this process only */
	areas->n = 0;
	err = map_area(gpu, areas, base, cons, !own, &prod);
	if (!err)
		err = map_area(gpu, areas, cons, slots, false, &user);
	if (!err)
		err = map_area(gpu, areas, slots, end, !rw, &data);
	if (err) {
		rgate_gpu_areas_unmap(areas);
		return err;
	}
	memset(dring, 0, sizeof(*dring));
	dring->prod = prod;
	dring->credits = (uint64_t *)((unsigned char *)user +
				      ((const unsigned char *)view->credits - cons));
	dring->slots = data;
	dring->mask = view->nslots - 1;
	dring->lap_shift = (uint32_t)__builtin_ctz(view->nslots);
	dring->size_shift = (uint32_t)__builtin_ctz(view->slot_size);
	dring->chain = !!(view->prod->features & RGATE_FEAT_CHAIN);
	return 0;
}

/* The same with the host's addresses */
static void host_view(struct rgate_gpu_ring *r, const struct rgate_dring *dring)
{
	r->host = *dring;
	r->host.prod = r->view.prod;
	r->host.credits = r->view.credits;
	r->host.slots = r->view.slots;
}

/*
 * The count of slots finished of each batch: that of the lap before the one to come, or
 * of that lap where its credit says that the batch was returned already.
 */
static int set_finished(struct rgate_gpu *gpu, struct rgate_gpu_ring *r, uint64_t start)
{
	uint64_t n = r->view.nslots / RGATE_BATCH, first = start / RGATE_BATCH, b;
	uint32_t *count = calloc(n, sizeof(*count));
	int err;

	if (!count)
		return rgate_gpu_fail(gpu, -ENOMEM, "no memory");
	for (b = first; b < first + n; b++) {
		uint64_t lap = rgate_dring_lap(&r->host, b * RGATE_BATCH);
		uint64_t credit = __atomic_load_n(&r->view.credits[b & (n - 1)], __ATOMIC_ACQUIRE);

		count[b & (n - 1)] = (uint32_t)(credit == lap ? lap : lap - 1) * RGATE_BATCH;
	}
	err = rgate_gpu_cuda(gpu, cudaMemcpy(r->finished, count, n * sizeof(*count),
					     cudaMemcpyHostToDevice), "cudaMemcpy");
	free(count);
	return err;
}

/* What the device keeps of a ring, at its beginning */
static int set_state(struct rgate_gpu *gpu, struct rgate_gpu_ring *r, unsigned int i)
{
	struct rgate_consumer c;
	struct rgate_dstate st;
	int err;

	/* finds the oldest batch that was not returned */
	err = rgate_consumer_init(&c, r->ring, NULL);
	if (err)
		return rgate_gpu_fail(gpu, err, "cannot become a consumer of the ring");
	r->start = c.done;
	err = set_finished(gpu, r, r->start);
	if (err)
		return err;
	memset(&st, 0, sizeof(st));
	st.next = st.done = r->start;
	st.check_end = c.check_end;
	st.packets = gpu->stat[i].packets;
	st.bytes = gpu->stat[i].bytes;
	st.work_ns = gpu->stat[i].work_ns;
	st.finished = r->finished;
	gpu->stat[i].next = gpu->stat[i].done = r->start;
	gpu->stat[i].ended = 0;
	return rgate_gpu_cuda(gpu, cudaMemcpy(&gpu->dstate[i], &st, sizeof(st),
					      cudaMemcpyHostToDevice), "cudaMemcpy");
}

/* Memory and state of ring @i, whose handle is there */
static int set_up(struct rgate_gpu *gpu, unsigned int i)
{
	struct rgate_gpu_ring *r = &gpu->ring[i];
	struct rgate_dring dring;
	int err;

	rgate_ring_view(r->ring, &r->view);
	err = rgate_gpu_areas_map(gpu, r->ring, &r->view, &r->areas, &dring);
	if (err)
		return err;
	host_view(r, &dring);
	err = rgate_gpu_cuda(gpu, cudaMalloc((void **)&r->finished,
					     r->view.nslots / RGATE_BATCH * sizeof(uint32_t)),
			     "cudaMalloc");
	if (err)
		goto unmap;
	err = set_state(gpu, r, i);
	if (err)
		goto free;
	gpu->ctx.ring[i] = dring;
	return 0;
free:
	cudaFree(r->finished);
	r->finished = NULL;
unmap:
	rgate_gpu_areas_unmap(&r->areas);
	return err;
}

static void tear_down(struct rgate_gpu_ring *r)
{
	cudaFree(r->finished);
	r->finished = NULL;
	rgate_gpu_areas_unmap(&r->areas);
}

static int bind(struct rgate_gpu *gpu, struct rgate_ring *ring, unsigned int *index)
{
	struct rgate_view view;
	int err;

	rgate_ring_view(ring, &view);
	if (rgate_gpu_busy(gpu))
		return rgate_gpu_fail(gpu, -EBUSY, "a kernel runs");
	if (gpu->nrings == RGATE_GPU_RINGS_MAX)
		return rgate_gpu_fail(gpu, -ENOSPC, "%u rings are bound", gpu->nrings);
	if (view.prod->policy == RGATE_POLICY_OVERWRITE)
		return rgate_gpu_fail(gpu, -EOPNOTSUPP,
				      "a GPU cannot consume a ring that overwrites");
	memset(&gpu->stat[gpu->nrings], 0, sizeof(gpu->stat[0]));
	gpu->ring[gpu->nrings].ring = ring;
	err = set_up(gpu, gpu->nrings);
	if (err)
		return err;
	if (index)
		*index = gpu->nrings;
	gpu->nrings++;
	return 0;
}

int rgate_gpu_bind(struct rgate_gpu *gpu, struct rgate_ring *ring, unsigned int *index)
{
	int err, was;

	pthread_mutex_lock(&gpu->lock);
	rgate_gpu_settle(gpu);
	err = rgate_gpu_enter(gpu, &was);
	if (!err) {
		err = bind(gpu, ring, index);
		rgate_gpu_leave(was);
	}
	pthread_mutex_unlock(&gpu->lock);
	return err;
}

void rgate_gpu_unbind_all(struct rgate_gpu *gpu)
{
	while (gpu->nrings)
		tear_down(&gpu->ring[--gpu->nrings]);
}

/*
 * The old memory is given back first, as its mapping may go with the remap. A ring whose
 * new memory is still on its way (from another process) has none until the next call.
 */
int rgate_gpu_follow(struct rgate_gpu *gpu, unsigned int i)
{
	struct rgate_gpu_ring *r = &gpu->ring[i];
	int err;

	if (r->finished)
		tear_down(r);
	err = rgate_ring_remap(r->ring);
	if (err == -ESTALE || !err)
		return 0;
	if (err < 0)
		return rgate_gpu_fail(gpu, err, "cannot map the resized ring %u", i);
	err = set_up(gpu, i);
	return err ? err : 1;
}

uint64_t rgate_gpu_published(const struct rgate_gpu_ring *r, uint64_t from)
{
	uint64_t head = __atomic_load_n(&r->view.prod->head, __ATOMIC_ACQUIRE);
	uint64_t pos = head > from ? head : from;

	while (pos < head + r->view.nslots && rgate_dring_ready(&r->host, pos))
		pos++;
	return from + rgate_dring_whole(&r->host, from, (uint32_t)(pos - from));
}

int rgate_gpu_ring_view(struct rgate_gpu *gpu, unsigned int index, void *dring, size_t len,
			uint64_t *start)
{
	int err = 0;

	pthread_mutex_lock(&gpu->lock);
	if (index >= gpu->nrings || len != sizeof(struct rgate_dring)) {
		err = rgate_gpu_fail(gpu, -EINVAL, "no ring %u, or another structure", index);
	} else {
		memcpy(dring, &gpu->ctx.ring[index], len);
		if (start)
			*start = __atomic_load_n(&gpu->stat[index].next, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&gpu->lock);
	return err;
}
