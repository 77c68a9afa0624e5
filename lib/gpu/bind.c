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

int rgate_gpu_set_up(struct rgate_gpu *gpu, unsigned int i)
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
	r->bound = RGATE_GPU_BOUND;
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

/* The device goes on with nothing at all where the ring was; its counters stay. */
int rgate_gpu_take_away(struct rgate_gpu *gpu, unsigned int i)
{
	const struct rgate_dstat *s = &gpu->stat[i];
	struct rgate_dring *d = &gpu->ctx.ring[i];
	struct rgate_dstate st;

	tear_down(&gpu->ring[i]);
	gpu->ring[i].taken++;
	memset(d, 0, sizeof(*d));
	d->prod = &gpu->nothing->prod;
	d->credits = gpu->nothing->credits;
	d->slots = gpu->nothing->slots;
	d->mask = RGATE_SLOTS_MIN - 1;
	d->lap_shift = (uint32_t)__builtin_ctz(RGATE_SLOTS_MIN);
	d->size_shift = (uint32_t)__builtin_ctz(RGATE_SLOT_SIZE_MIN);
	memset(&st, 0, sizeof(st));
	st.next = st.done = s->next;
	st.looks = s->looks;
	st.empty = s->empty;
	st.direct = s->direct;
	st.packets = s->packets;
	st.bytes = s->bytes;
	st.work_ns = s->work_ns;
	st.finished = gpu->dnothing;
	return rgate_gpu_cuda(gpu, cudaMemcpy(&gpu->dstate[i], &st, sizeof(st),
					      cudaMemcpyHostToDevice), "cudaMemcpy");
}

/* A number that nobody has: of a ring that was unbound, where that is known, or the next */
static unsigned int free_number(const struct rgate_gpu *gpu)
{
	unsigned int i;

	for (i = 0; i < gpu->nrings; i++)
		if (gpu->ring[i].bound == RGATE_GPU_UNBOUND && !gpu->ring[i].event)
			break;
	return i;
}

static int bind(struct rgate_gpu *gpu, struct rgate_ring *ring, unsigned int *index)
{
	unsigned int i = free_number(gpu);
	struct rgate_view view;
	int err;

	rgate_ring_view(ring, &view);
	if (rgate_gpu_busy(gpu))
		return rgate_gpu_fail(gpu, -EBUSY, "a kernel runs");
	if (i == RGATE_GPU_RINGS_MAX)
		return rgate_gpu_fail(gpu, -ENOSPC, "%u rings are bound", i);
	if (view.prod->policy == RGATE_POLICY_OVERWRITE)
		return rgate_gpu_fail(gpu, -EOPNOTSUPP,
				      "a GPU cannot consume a ring that overwrites");
	memset(&gpu->stat[i], 0, sizeof(gpu->stat[0]));
	gpu->ring[i].ring = ring;
	err = rgate_gpu_set_up(gpu, i);
	if (err)
		return err;
	if (index)
		*index = i;
	if (i == gpu->nrings)
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

static int unbind(struct rgate_gpu *gpu, unsigned int index)
{
	int err = 0;

	if (rgate_gpu_busy(gpu))
		return rgate_gpu_fail(gpu, -EBUSY, "a kernel runs");
	if (index >= gpu->nrings || gpu->ring[index].bound == RGATE_GPU_UNBOUND)
		return rgate_gpu_fail(gpu, -EINVAL, "no ring %u", index);
	if (gpu->ring[index].bound == RGATE_GPU_BOUND)
		err = rgate_gpu_take_away(gpu, index);
	gpu->ring[index].bound = RGATE_GPU_UNBOUND;
	return err;
}

int rgate_gpu_unbind(struct rgate_gpu *gpu, unsigned int index)
{
	int err, was;

	pthread_mutex_lock(&gpu->lock);
	rgate_gpu_settle(gpu);
	err = rgate_gpu_enter(gpu, &was);
	if (!err) {
		err = unbind(gpu, index);
		rgate_gpu_leave(was);
	}
	pthread_mutex_unlock(&gpu->lock);
	return err;
}

/* Returned already, before this consumer began or out of order? Then it may hold a later lap. */
static bool returned(const struct rgate_gpu_ring *r, uint64_t pos)
{
	uint64_t n = r->view.nslots / RGATE_BATCH;

	return __atomic_load_n(&r->view.credits[pos / RGATE_BATCH & (n - 1)], __ATOMIC_ACQUIRE) >=
	       rgate_dring_lap(&r->host, pos);
}

/*
 * Who sees a batch's last slot published sees all of it. One lap at most is there, whatever anybody
 * says, as the batch at @from was not returned when @from was told.
 */
uint64_t rgate_gpu_published(const struct rgate_gpu_ring *r, uint64_t from)
{
	const uint64_t end = from + r->view.nslots;
	uint64_t pos = from, last = 0;

	if (r->bound != RGATE_GPU_BOUND)
		return from;
	while (pos < end) {
		last = rgate_dring_last(pos);
		if (!rgate_dring_ready(&r->host, last) && !returned(r, pos))
			break;
		pos = last + 1;
	}
	while (pos < end && pos < last && rgate_dring_ready(&r->host, pos))
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
	} else if (gpu->ring[index].bound != RGATE_GPU_BOUND) {
		err = rgate_gpu_fail(gpu, -ESTALE, "ring %u has no memory", index);
	} else {
		memcpy(dring, &gpu->ctx.ring[index], len);
		if (start)
			*start = __atomic_load_n(&gpu->stat[index].next, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&gpu->lock);
	return err;
}
