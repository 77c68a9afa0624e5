// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate's ring in a memfd, through the public inline functions only. */
#include "mem.h"

#include <errno.h>
#include <stdlib.h>

#include <ringgate/ringgate.h>

struct pipe {
	struct rgate_ring *ring;
	struct rgate_producer prod;
};

struct both {
	struct pipe there;
	struct pipe back;
};

static void pipe_open(struct pipe *p)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts,
					      .slots = MEM_SLOTS,
					      .slot_size = MEM_STRIDE);
	int err;

	err = rgate_ring_open_memfd(&p->ring, &o);
	if (err)
		bench_die(err, "rgate_ring_open_memfd");
	err = rgate_producer_init(&p->prod, p->ring);
	if (err)
		bench_die(err, "rgate_producer_init");
}

static void pipe_close(struct pipe *p)
{
	rgate_producer_fini(&p->prod);
	rgate_ring_close(p->ring);
}

/* Touches every page in both mappings, as MAP_POPULATE does for the bare loop */
static void pipe_populate(struct pipe *p)
{
	unsigned char *rw = rgate_ring_slots_rw(p->ring);
	struct rgate_view v;
	size_t i;

	rgate_ring_view(p->ring, &v);
	for (i = 0; i < (size_t)MEM_SLOTS * MEM_STRIDE; i += 4096) {
		__atomic_fetch_or(rw + i, 0, __ATOMIC_RELAXED);
		__atomic_load_n(v.slots + i, __ATOMIC_RELAXED);
	}
}

static void *ring_make(const struct mem_job *job)
{
	struct both *b = calloc(1, sizeof(*b));

	(void)job;
	if (!b)
		bench_die(ENOMEM, "rings");
	pipe_open(&b->there);
	pipe_open(&b->back);
	pipe_populate(&b->there);
	pipe_populate(&b->back);
	return b;
}

static void ring_drop(void *ctx)
{
	struct both *b = ctx;

	pipe_close(&b->there);
	pipe_close(&b->back);
	free(b);
}

static inline void put(struct rgate_producer *p, uint64_t i,
		       const struct mem_job *job)
{
	struct rgate_slot *s;

	while (!(s = rgate_producer_reserve(p)))
		mem_idle(job);
	mem_put(rgate_producer_data(s), i, job->len);
	rgate_producer_fill(p, s, job->len, job->len);
	rgate_producer_publish(p);
}

static inline void take(struct rgate_consumer *c, uint64_t i,
			const struct mem_job *job, struct mem_sum *sum)
{
	const struct rgate_slot *s;

	while (!(s = rgate_consumer_next(c)))
		mem_idle(job);
	if (s->len == job->len)
		mem_check(rgate_slot_data(s), i, job->len, sum);
	else
		sum->bad++;
	rgate_consumer_release(c);
}

static void consumer_init(struct rgate_consumer *c, struct rgate_ring *ring,
			  const struct mem_job *job, uint32_t id)
{
	struct rgate_consumer_opts o = RGATE_OPTS(rgate_consumer_opts,
						  .take = RGATE_TAKE_STRIDE,
						  .index = id,
						  .count = job->consumers);
	int err;

	err = rgate_consumer_init(c, ring, job->consumers > 1 ? &o : NULL);
	if (err)
		bench_die(err, "rgate_consumer_init");
}

static void ring_produce(void *ctx, const struct mem_job *job)
{
	struct both *b = ctx;
	uint64_t i;

	for (i = 0; i < job->n; i++)
		put(&b->there.prod, i, job);
}

static void ring_consume(void *ctx, const struct mem_job *job, uint32_t id,
			 struct mem_sum *sum)
{
	uint64_t i = (uint64_t)id * MEM_BATCH, end;
	struct both *b = ctx;
	struct rgate_consumer c;

	consumer_init(&c, b->there.ring, job, id);
	for (; i < job->n; i += (uint64_t)(job->consumers - 1) * MEM_BATCH)
		for (end = i + MEM_BATCH; i < end; i++)
			take(&c, i, job, sum);
}

static void ring_ping(void *ctx, const struct mem_job *job, uint64_t *ticks,
		      struct mem_sum *sum)
{
	struct both *b = ctx;
	struct rgate_consumer c;
	uint64_t i, t;

	consumer_init(&c, b->back.ring, job, 0);
	for (i = 0; i < job->n; i++) {
		t = bench_ticks();
		put(&b->there.prod, i, job);
		take(&c, i, job, sum);
		ticks[i] = bench_ticks() - t;
	}
}

static void ring_pong(void *ctx, const struct mem_job *job,
		      struct mem_sum *sum)
{
	struct both *b = ctx;
	struct rgate_consumer c;
	uint64_t i;

	consumer_init(&c, b->there.ring, job, 0);
	for (i = 0; i < job->n; i++) {
		take(&c, i, job, sum);
		put(&b->back.prod, i, job);
	}
}

const struct mem_ops mem_ring = {
	.name = "ringgate",
	.make = ring_make,
	.produce = ring_produce,
	.consume = ring_consume,
	.ping = ring_ping,
	.pong = ring_pong,
	.drop = ring_drop,
};
