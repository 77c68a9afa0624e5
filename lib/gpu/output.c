// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The output ring: the device is its producer, this side keeps house for it. In a transmit ring of
 * the module the producer area is the module's: what the device tells of itself goes to host memory
 * of the runtime's, which stands for that area here, too (out_view.prod).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

/* The count of slots shown of each batch: all of the laps before, and what was begun */
static int set_filled(struct rgate_gpu *gpu, const struct rgate_dring *dring, uint64_t head)
{
	uint64_t n = (dring->mask + 1) / RGATE_BATCH;
	uint64_t first = head / RGATE_BATCH, b;
	uint32_t *count = calloc(n, sizeof(*count));
	int err;

	if (!count)
		return rgate_gpu_fail(gpu, -ENOMEM, "no memory");
	for (b = first; b < first + n; b++)
		count[b & (n - 1)] = (uint32_t)(rgate_dring_lap(dring, b * RGATE_BATCH) - 1) *
				     RGATE_BATCH;
	count[first & (n - 1)] += (uint32_t)(head & (RGATE_BATCH - 1));
	err = rgate_gpu_cuda(gpu, cudaMalloc((void **)&gpu->out.filled, n * sizeof(*count)),
			     "cudaMalloc");
	if (err)
		goto free;
	err = rgate_gpu_cuda(gpu, cudaMemcpy(gpu->out.filled, count, n * sizeof(*count),
					     cudaMemcpyHostToDevice), "cudaMemcpy");
	if (err)
		cudaFree(gpu->out.filled);
free:
	free(count);
	return err;
}

/* What the device needs, beginning where the last producer ended */
static int set_out(struct rgate_gpu *gpu, const struct rgate_dring *dring, bool wait)
{
	const struct rgate_prod *told = gpu->transmits ? gpu->own : dring->prod;
	const struct rgate_stats *had = &gpu->out_view.prod->stats;
	const uint64_t head = gpu->transmits ? gpu->sender.pos : gpu->producer.head;
	struct rgate_doutstate st;
	struct rgate_dout *o = &gpu->out;
	int err;

	err = set_filled(gpu, dring, head);
	if (err)
		return err;
	o->slots = (unsigned char *)(uintptr_t)dring->slots;
	o->credits = dring->credits;
	o->prod = (struct rgate_prod *)(uintptr_t)told;
	o->state = gpu->dout;
	o->mask = dring->mask;
	o->lap_shift = dring->lap_shift;
	o->size_shift = dring->size_shift;
	o->wait = wait;
	o->flags = gpu->transmits ? RGATE_DOUT_TX_FLAGS : RGATE_DOUT_FLAGS;
	memset(&st, 0, sizeof(st));
	st.head = st.tail = st.told = head;
	/* a batch begun is free to its end */
	st.limit = (head + RGATE_BATCH - 1) & ~(uint64_t)(RGATE_BATCH - 1);
	st.frames = had->delivered;
	st.bytes = had->bytes;
	st.dropped = had->dropped_full;
	err = rgate_gpu_cuda(gpu, cudaMemcpy(gpu->dout, &st, sizeof(st), cudaMemcpyHostToDevice),
			     "cudaMemcpy");
	if (err)
		cudaFree(o->filled);
	return err;
}

/* From who filled it until now; what of a transmit ring was sent is the module's to count */
static int take_over(struct rgate_gpu *gpu, struct rgate_ring *ring)
{
	const char *why = "not a transmit ring with RGATE_RING_RW_SLOTS";
	int err;

	gpu->module = gpu->out_view.prod;
	gpu->transmits = gpu->module->features & RGATE_FEAT_TRANSMIT;
	if (gpu->transmits) {
		err = rgate_sender_init(&gpu->sender, ring);
		memset(gpu->own, 0, sizeof(*gpu->own));
		gpu->own->head = gpu->sender.pos;
	} else {
		err = rgate_producer_init(&gpu->producer, ring);
		why = err == -EBUSY ? "the ring has a producer" :
		      "neither a memfd ring of this process nor a transmit ring";
	}
	return err ? rgate_gpu_fail(gpu, err, "%s", why) : 0;
}

static void give_back(struct rgate_gpu *gpu)
{
	if (!gpu->transmits)
		rgate_producer_fini(&gpu->producer);
	gpu->transmits = false;
}

static int bind_output(struct rgate_gpu *gpu, struct rgate_ring *ring, uint32_t full)
{
	struct rgate_dring dring;
	int err;

	if (full > RGATE_GPU_FULL_WAIT)
		return rgate_gpu_fail(gpu, -EINVAL, "bad options");
	if (rgate_gpu_busy(gpu))
		return rgate_gpu_fail(gpu, -EBUSY, "a kernel runs");
	if (gpu->out_ring)
		return rgate_gpu_fail(gpu, -EEXIST, "there is an output ring");
	rgate_ring_view(ring, &gpu->out_view);
	if (gpu->out_view.prod->policy == RGATE_POLICY_OVERWRITE)
		return rgate_gpu_fail(gpu, -EOPNOTSUPP, "the output ring may not overwrite");
	err = take_over(gpu, ring);
	if (err)
		return err;
	err = rgate_gpu_areas_map(gpu, ring, &gpu->out_view, &gpu->out_areas, &dring);
	if (err)
		goto give_back;
	if (gpu->transmits)
		gpu->out_view.prod = gpu->own;
	err = set_out(gpu, &dring, full == RGATE_GPU_FULL_WAIT);
	if (err)
		goto unmap;
	gpu->out_ring = ring;
	return 0;
unmap:
	rgate_gpu_areas_unmap(&gpu->out_areas);
give_back:
	give_back(gpu);
	return err;
}

int rgate_gpu_bind_output(struct rgate_gpu *gpu, struct rgate_ring *ring, uint32_t full)
{
	int err, was;

	pthread_mutex_lock(&gpu->lock);
	rgate_gpu_settle(gpu);
	err = rgate_gpu_enter(gpu, &was);
	if (!err) {
		err = bind_output(gpu, ring, full);
		rgate_gpu_leave(was);
	}
	pthread_mutex_unlock(&gpu->lock);
	return err;
}

static uint64_t slot_off(const struct rgate_view *v, uint64_t pos)
{
	return (pos & (v->nslots - 1)) * v->slot_size;
}

/* Is it this lap's? */
static bool is_shown(const struct rgate_view *v, uint64_t pos)
{
	const struct rgate_slot *s = (const void *)(v->slots + slot_off(v, pos));

	return __atomic_load_n(&s->seq, __ATOMIC_ACQUIRE) == pos / v->nslots + 1;
}

/*
 * The device cannot ask the module: this side does, where no thread of the module's looks; a ring
 * full at most. What the device publishes after this look is seen in one of the next. What keeps
 * the module from sending now, as a device that is down, is met again then.
 */
static void send_on(struct rgate_gpu *gpu)
{
	const uint64_t head = __atomic_load_n(&gpu->module->head, __ATOMIC_ACQUIRE);

	if (is_shown(&gpu->out_view, head))
		(void)rgate_sender_flush(&gpu->sender);
}

/* The device stores head and counters; this side only rings the bell for sleepers. */
void rgate_gpu_output_wake(struct rgate_gpu *gpu)
{
	struct rgate_producer *p = &gpu->producer;

	if (!gpu->out_ring)
		return;
	if (gpu->transmits) {
		send_on(gpu);
		return;
	}
	/*
	 * The consumer arms its wait word, then looks at the slot again. A slot published
	 * after that look is seen here in this round or in one of the next.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!rgate_producer_sleepers(p))
		return;
	p->head = __atomic_load_n(&gpu->out_view.prod->head, __ATOMIC_ACQUIRE);
	rgate_producer_wake(p);
}

/*
 * The answers of a piece of work are 32 at most: is the batch free that the last of them would
 * lie in? Who waits for room tells head first.
 */
bool rgate_gpu_output_full(const struct rgate_gpu *gpu)
{
	const struct rgate_view *v = &gpu->out_view;
	uint64_t head, b, batches;

	if (!gpu->out_ring || !gpu->out.wait || !gpu->kernel->reply)
		return false;
	head = __atomic_load_n(&v->prod->head, __ATOMIC_ACQUIRE);
	batches = v->nslots / RGATE_BATCH;
	b = (head + RGATE_BATCH - 1) / RGATE_BATCH;
	return __atomic_load_n(&v->credits[b % batches], __ATOMIC_ACQUIRE) != b / batches;
}

/* A kernel that failed has not told of its last frames: they are seen by their slots */
static uint64_t published(const struct rgate_view *v, uint64_t head)
{
	const uint64_t end = head + v->nslots;

	while (head < end && is_shown(v, head))
		head++;
	return head;
}

/*
 * It may have shown slots behind one that it has not: consumers have not come by there. The next
 * producer writes to them, and nobody is to see them before that.
 */
static void take_back(struct rgate_ring *ring, const struct rgate_view *v, uint64_t head)
{
	unsigned char *slots = rgate_ring_slots_rw(ring);
	struct rgate_slot *s;
	uint64_t pos;

	for (pos = head; pos < head + v->nslots; pos++) {
		s = (struct rgate_slot *)(slots + slot_off(v, pos));
		if (is_shown(v, pos))
			__atomic_store_n(&s->seq, pos / v->nslots, __ATOMIC_RELEASE);
	}
}

void rgate_gpu_output_close(struct rgate_gpu *gpu)
{
	struct rgate_producer *p = &gpu->producer;
	uint64_t head;

	if (!gpu->out_ring)
		return;
	/* the device has returned: head and counters are this side's again */
	head = published(&gpu->out_view, __atomic_load_n(&gpu->out_view.prod->head,
							 __ATOMIC_ACQUIRE));
	take_back(gpu->out_ring, &gpu->out_view, head);
	if (!gpu->transmits) {
		p->head = p->limit = head;
		memcpy(&p->stats, &gpu->out_view.prod->stats, sizeof(p->stats));
		p->no_frames = p->head - p->stats.delivered;
	} else {
		send_on(gpu);
	}
	cudaFree(gpu->out.filled);
	rgate_gpu_areas_unmap(&gpu->out_areas);
	give_back(gpu);
	gpu->out_ring = NULL;
}
