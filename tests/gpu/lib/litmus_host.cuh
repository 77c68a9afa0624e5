/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What starts the litmus kernels, and the CPU's part in them; for litmus_variant.cuh */

/* Runs a kernel that is told to add to @s; the device's counts into @out */
static inline void lit_collect(struct lit_seen *s, struct lit_seen *out)
{
	g_require(!cudaGetLastError());
	g_require(!cudaDeviceSynchronize());
	g_require(!cudaMemcpy(out, s, sizeof(*out), cudaMemcpyDeviceToHost));
	cudaFree(s);
}

static inline struct lit_seen *lit_seen_new(void)
{
	struct lit_seen *s;

	g_require(!cudaMalloc((void **)&s, sizeof(*s)) && !cudaMemset(s, 0, sizeof(*s)));
	return s;
}

static inline void lit_ring_init(struct rgate_dring *r, unsigned char *slots, uint64_t *credits)
{
	memset(r, 0, sizeof(*r));
	r->slots = slots;
	r->credits = credits;
	r->mask = LIT_SLOTS - 1;
	r->lap_shift = 7;	/* LIT_SLOTS */
	r->size_shift = LIT_SLOT_SHIFT;
}

struct lit_pairs {
	struct lit_pair *dev;
	struct rgate_dshare *share;
	unsigned char *far_slots;
	uint32_t n;
};

static inline void lit_pairs_new(struct lit_pairs *ps, uint32_t n, enum lit_place place)
{
	struct lit_pair *host = (struct lit_pair *)calloc(n, sizeof(*host));
	const size_t bytes = (size_t)n * sizeof(host->slots);
	uint32_t i, k;

	ps->n = n;
	ps->far_slots = NULL;
	g_require(host && !cudaMalloc((void **)&ps->dev, n * sizeof(*host)));
	g_require(!cudaMalloc((void **)&ps->share, n * sizeof(*ps->share)) &&
		  !cudaMemset(ps->share, 0, n * sizeof(*ps->share)));
	if (place == LIT_OTHER_FAR) {
		g_require(!cudaHostAlloc((void **)&ps->far_slots, bytes, cudaHostAllocMapped));
		memset(ps->far_slots, 0, bytes);
	}
	for (i = 0; i < n; i++) {
		struct lit_pair *p = &host[i], *d = &ps->dev[i];

		p->ctx.state = &d->state;
		p->ctx.queue = &d->queue;
		p->ctx.share = &ps->share[i];
		p->ctx.nrings = p->ctx.npollers = 1;
		p->ctx.grain = RGATE_BATCH;
		p->queue.cell = d->cell;
		p->queue.mask = 7;
		p->state.finished = d->finished;
		for (k = 0; k < 8; k++)
			p->cell[k].v[1] = RGATE_DCELL_WORD(k, 0, 0);
		lit_ring_init(&p->ctx.ring[0], ps->far_slots ?
			      ps->far_slots + i * sizeof(host->slots) : d->slots, d->credits);
	}
	g_require(!cudaMemcpy(ps->dev, host, n * sizeof(*host), cudaMemcpyHostToDevice));
	free(host);
}

static inline void lit_pairs_free(struct lit_pairs *ps)
{
	cudaFree(ps->dev);
	cudaFree(ps->share);
	cudaFreeHost(ps->far_slots);
}

static inline void lit_run_queue(const struct lit_how *h, struct lit_seen *out)
{
	struct lit_seen *s = lit_seen_new();
	struct lit_pairs ps;

	lit_pairs_new(&ps, h->blocks, h->place);
	lit_queue_kernel<<<h->blocks, h->threads>>>(ps.dev, h->place, h->rounds, h->noise, s);
	lit_collect(s, out);
	lit_pairs_free(&ps);
}

static inline void lit_run_mail(const struct lit_how *h, struct lit_seen *out)
{
	struct lit_seen *s = lit_seen_new();
	struct lit_pairs ps;

	lit_pairs_new(&ps, h->blocks, h->place);
	lit_mail_kernel<<<h->blocks, h->threads>>>(ps.dev, h->place, h->rounds, h->noise, s);
	lit_collect(s, out);
	lit_pairs_free(&ps);
}

/* An instance is one hand-over: so many launches */
static inline void lit_run_last(const struct lit_how *h, struct lit_seen *out)
{
	struct lit_seen *s = lit_seen_new();
	struct lit_pair *fresh;
	struct lit_pairs ps;
	uint32_t i;

	lit_pairs_new(&ps, h->blocks, h->place);
	g_require(!cudaMalloc((void **)&fresh, ps.n * sizeof(*fresh)));
	g_require(!cudaMemcpy(fresh, ps.dev, ps.n * sizeof(*fresh), cudaMemcpyDeviceToDevice));
	for (i = 0; i < h->rounds / 100 + 1; i++) {
		g_require(!cudaMemset(&s->done, 0, sizeof(s->done)));
		lit_last_kernel<<<h->blocks, h->threads>>>(ps.dev, h->place, h->noise, s);
		g_require(!cudaGetLastError());
		g_require(!cudaMemcpyAsync(ps.dev, fresh, ps.n * sizeof(*fresh),
					   cudaMemcpyDeviceToDevice));
		g_require(!cudaMemsetAsync(ps.share, 0, ps.n * sizeof(*ps.share)));
	}
	lit_collect(s, out);
	lit_pairs_free(&ps);
	cudaFree(fresh);
}

static inline void lit_run_out(const struct lit_how *h, struct lit_seen *out)
{
	const uint32_t n = h->blocks, rounds = (h->rounds + 31) / 32 * 32;
	struct lit_out *host = (struct lit_out *)calloc(n, sizeof(*host)), *dev;
	struct lit_seen *s = lit_seen_new();
	uint32_t i;

	g_require(host && !cudaMalloc((void **)&dev, n * sizeof(*dev)));
	for (i = 0; i < n; i++) {
		struct rgate_dout *o = &host[i].ctx.out;

		o->slots = dev[i].slots;
		o->credits = dev[i].credits;
		o->prod = &dev[i].prod;
		o->state = &dev[i].state;
		o->filled = dev[i].filled;
		o->mask = LIT_SLOTS - 1;
		o->lap_shift = 7;
		o->size_shift = LIT_SLOT_SHIFT;
		o->wait = 1;
		host[i].ctx.ctl = &dev[i].ctl;
		lit_ring_init(&host[i].back, dev[i].slots, dev[i].credits);
	}
	g_require(!cudaMemcpy(dev, host, n * sizeof(*dev), cudaMemcpyHostToDevice));
	lit_out_kernel<<<n, h->threads>>>(dev, h->place, rounds, h->noise, s);
	lit_collect(s, out);
	cudaFree(dev);
	free(host);
}

static inline void lit_run_lock_how(const struct lit_how *h, uint32_t how, struct lit_seen *out)
{
	const uint32_t nlocks = h->place < LIT_OTHER_BLOCK ? h->blocks : (h->blocks + 7) / 8;
	struct lit_lock *host = (struct lit_lock *)calloc(nlocks, sizeof(*host)), *dev;
	struct lit_seen *s = lit_seen_new(), got;
	uint64_t sum = 0;
	uint32_t i;

	g_require(host && !cudaMalloc((void **)&dev, nlocks * sizeof(*dev)));
	for (i = 0; i < nlocks; i++)
		host[i].bit = 1;
	g_require(!cudaMemcpy(dev, host, nlocks * sizeof(*dev), cudaMemcpyHostToDevice));
	lit_lock_kernel<<<h->blocks, h->threads>>>(dev, nlocks, h->place, h->rounds, how, h->noise, s);
	lit_collect(s, &got);
	g_require(!cudaMemcpy(host, dev, nlocks * sizeof(*dev), cudaMemcpyDeviceToHost));
	for (i = 0; i < nlocks; i++)
		sum += host[i].word[0][0];
	out->good += got.good;
	out->stale += got.stale;
	out->early += got.early;
	out->hung += got.hung;
	out->lost += 2ULL * h->blocks * h->rounds - sum;
	cudaFree(dev);
	free(host);
}

static inline void lit_run_lock(const struct lit_how *h, struct lit_seen *out)
{
	uint32_t how;

	memset(out, 0, sizeof(*out));
	for (how = 0; how < 3; how++)
		lit_run_lock_how(h, how, out);
}

/*
 * Requests: the engine is a thread of the CPU here, which stores in the engine's order
 */

#define LIT_ASKS	8U		/* log2(places), for requests and completions */
#define LIT_ASKERS	(64U * 8U)	/* lanes: 8 warps */
#define LIT_VALUE	0x5a5a5a5a5aULL

struct lit_ask_host {
	struct rgate_request requests[1 << LIT_ASKS];
	struct rgate_completion completions[1 << LIT_ASKS];
	uint64_t request_credits[8], completion_credits[8];
	struct rgate_daskwords words;
	uint64_t memory[LIT_ASKERS][2][16];	/* of each lane: there, and back; lines */
};

struct lit_ask_dev {
	struct rgate_daskstate state;
	struct rgate_dcell cells[1024];
	uint32_t free[32];
};

/* One thread of each even warp, and all of each odd one */
static __global__ void lit_ask_kernel(struct rgate_dask ask, uint32_t rounds, struct lit_seen *s)
{
	const uint32_t id = blockIdx.x * blockDim.x + threadIdx.x, whole = threadIdx.x / 32 & 1;
	uint64_t (*mem)[16] = ((struct lit_ask_host *)ask.memory)->memory[id];
	struct lit_tally t = { 0 };
	struct rgate_request q = { 0 };
	struct rgate_danswer a = { 0, 0, 0 };
	struct rgate_dasker me;
	uint64_t ticket, since;
	uint32_t i, late;
	int got;

	if (!whole && rgate_dlane())
		return;
	rgate_dasker_init(&me, &ask, id % 3 == 0);
	for (i = 0; i < rounds; i++) {
		q.a0 = ((uint64_t)id << 32 | i) + 1;
		q.a1 = ~q.a0;
		q.off = (unsigned char *)mem - ask.memory;
		lit_put(&mem[0][0], q.a0);
		since = rgate_dnow();
		do {
			got = whole ? rgate_dask_submit_warp(&me, &q, 1, &ticket) :
				      rgate_dask_submit(&me, &q, &ticket);
			late = rgate_dnow() - since > LIT_WAIT_NS;
			if (whole)
				late = (uint32_t)rgate_dwarp_first(late);
		} while (got == -EAGAIN && !late);
		if (!got)
			got = whole ? rgate_dask_wait_warp(&me, ticket, &a, LIT_WAIT_NS) :
				      rgate_dask_wait(&me, ticket, &a, LIT_WAIT_NS);
		t.hung += got != 1;
		t.lost += got == 1 && (a.value != (q.a0 ^ LIT_VALUE) || a.result);
		if (got == 1)
			lit_compare(&t, lit_weak(&mem[1][0]), q.a0);
		/* one lane's answer that does not come ends it for all */
		if (whole ? rgate_dwarp_or(got != 1) : got != 1)
			break;
	}
	rgate_dasker_fini(&me);
	lit_end(s, &t);
}

struct lit_engine {
	struct lit_ask_host *h;
	struct lit_seen seen;
	uint32_t stop;		/* atomic */
	pthread_t thread;
};

static inline void lit_engine_answer(struct lit_ask_host *h, uint64_t pos,
				     const struct rgate_request *q)
{
	struct rgate_completion *c = &h->completions[pos % (1 << LIT_ASKS)];

	__atomic_store_n(&c->result, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&c->flags, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&c->cookie, q->cookie, __ATOMIC_RELEASE);
	__atomic_store_n(&c->value, q->a0 ^ LIT_VALUE, __ATOMIC_RELAXED);
	__atomic_store_n(&c->seq, (pos >> LIT_ASKS) + 1, __ATOMIC_RELEASE);
}

static inline bool lit_engine_may(struct lit_ask_host *h, uint64_t pos)
{
	return pos < 1 << LIT_ASKS || pos % RGATE_REQ_BATCH ||
	       __atomic_load_n(&h->completion_credits[pos % (1 << LIT_ASKS) / RGATE_REQ_BATCH],
			       __ATOMIC_ACQUIRE) == pos >> LIT_ASKS;
}

static inline void *lit_engine_main(void *arg)
{
	struct lit_engine *e = (struct lit_engine *)arg;
	struct lit_ask_host *h = e->h;
	struct rgate_request q;
	uint64_t pos = 0, lap, word;

	while (!__atomic_load_n(&e->stop, __ATOMIC_RELAXED)) {
		const struct rgate_request *r = &h->requests[pos % (1 << LIT_ASKS)];

		lap = (pos >> LIT_ASKS) + 1;
		if (__atomic_load_n(&r->seq, __ATOMIC_ACQUIRE) != lap || !lit_engine_may(h, pos))
			continue;
		memcpy(&q, r, sizeof(q));
		if (q.a1 != ~q.a0 || q.off > sizeof(*h) - 256) {
			e->seen.lost++;
			q.off = 0;
		}
		word = *(volatile uint64_t *)((unsigned char *)h + q.off);
		if (word == q.a0)
			e->seen.good++;
		else
			e->seen.stale++;
		*(volatile uint64_t *)((unsigned char *)h + q.off + 128) = q.a0;
		if ((pos + 1) % RGATE_REQ_BATCH == 0)
			__atomic_store_n(&h->request_credits[pos % (1 << LIT_ASKS) /
							     RGATE_REQ_BATCH], lap, __ATOMIC_RELEASE);
		lit_engine_answer(h, pos++, &q);
	}
	return NULL;
}

static inline void lit_run_ask(const struct lit_how *h, struct lit_seen *out)
{
	const uint64_t room = 1 << LIT_ASKS;
	struct lit_seen *s = lit_seen_new();
	struct lit_ask_dev *dev;
	struct lit_engine e;
	struct rgate_dask ask;

	memset(&e, 0, sizeof(e));
	memset(&ask, 0, sizeof(ask));
	g_require(!cudaHostAlloc((void **)&e.h, sizeof(*e.h), cudaHostAllocMapped));
	memset(e.h, 0, sizeof(*e.h));
	g_require(!cudaMalloc((void **)&dev, sizeof(*dev)) && !cudaMemset(dev, 0, sizeof(*dev)));
	g_require(!cudaMemset(dev->free, 0xff, sizeof(dev->free)));
	ask.requests = e.h->requests;
	ask.request_credits = e.h->request_credits;
	ask.completions = e.h->completions;
	ask.completion_credits = e.h->completion_credits;
	ask.words = &e.h->words;
	ask.state = &dev->state;
	ask.cells = dev->cells;
	ask.free = dev->free;
	ask.memory = (unsigned char *)e.h;
	ask.memory_len = sizeof(*e.h);
	ask.ncells = 1024;
	ask.req_shift = ask.comp_shift = LIT_ASKS;
	g_require(!cudaMemcpy(&dev->state.limit, &room, 8, cudaMemcpyHostToDevice));
	g_require(!pthread_create(&e.thread, NULL, lit_engine_main, &e));
	lit_ask_kernel<<<LIT_ASKERS / 64, 64>>>(ask, h->rounds, s);
	lit_collect(s, out);
	__atomic_store_n(&e.stop, 1, __ATOMIC_RELAXED);
	pthread_join(e.thread, NULL);
	out->good += e.seen.good;
	out->stale += e.seen.stale;
	out->lost += e.seen.lost;
	cudaFree(dev);
	cudaFreeHost(e.h);
}

/*
 * A producer's end: what it published last is there for who sees that it has ended
 */

struct lit_ender {
	struct rgate_prod prod;
	uint64_t credits[2];
	unsigned char slots[RGATE_BATCH << LIT_SLOT_SHIFT];
};

static __global__ void lit_end_kernel(struct lit_ender *enders, uint64_t *started,
				      struct lit_seen *s)
{
	struct lit_ender *e = &enders[blockIdx.x * blockDim.x + threadIdx.x];
	struct lit_tally t = { 0 };
	struct rgate_dring r;

	memset(&r, 0, sizeof(r));
	r.slots = e->slots;
	r.credits = e->credits;
	r.prod = &e->prod;
	r.mask = RGATE_BATCH - 1;
	r.lap_shift = 5;
	r.size_shift = LIT_SLOT_SHIFT;
	rgate_dsys_store(started, 1);
	for (;;) {
		if (rgate_dring_ended(&r, 0)) {
			t.stale++;
			break;
		}
		if (rgate_dring_ready(&r, 0)) {
			lit_compare(&t, lit_weak(e->slots + LIT_TAG), 1);
			break;
		}
	}
	lit_end(s, &t);
}

struct lit_producer {
	struct lit_ender *e;
	volatile uint64_t *started;
	uint32_t n;
	pthread_t thread;
};

/* A frame in each ring, its only one, once the kernel looks */
static inline void *lit_producer_main(void *arg)
{
	struct lit_producer *p = (struct lit_producer *)arg;
	uint32_t k;

	while (!*p->started)
		;
	for (k = 0; k < p->n; k++) {
		struct lit_ender *x = &p->e[k * 37 % p->n];

		*(volatile uint64_t *)(x->slots + LIT_TAG) = 1;
		__atomic_store_n(&((struct rgate_slot *)x->slots)->seq, 1, __ATOMIC_RELEASE);
		__atomic_store_n(&x->prod.state, k & 1 ? RGATE_STATE_CLOSED : RGATE_STATE_RETIRED,
				 __ATOMIC_RELEASE);
	}
	return NULL;
}

static inline void lit_run_end(const struct lit_how *h, struct lit_seen *out)
{
	const uint32_t blocks = 16, n = blocks * 32;
	struct lit_seen *s = lit_seen_new();
	struct lit_producer p;
	uint64_t *started;
	uint32_t i, k;

	p.n = n;
	g_require(!cudaHostAlloc((void **)&p.e, n * sizeof(*p.e), cudaHostAllocMapped));
	g_require(!cudaHostAlloc((void **)&started, 8, cudaHostAllocMapped));
	p.started = started;
	for (i = 0; i < h->rounds / 100 + 1; i++) {
		memset(p.e, 0, n * sizeof(*p.e));
		for (k = 0; k < n; k++)
			p.e[k].prod.state = RGATE_STATE_ACTIVE;
		*started = 0;
		/* before the launch, which a checker of memory lets return when the kernel has */
		g_require(!pthread_create(&p.thread, NULL, lit_producer_main, &p));
		lit_end_kernel<<<blocks, 32>>>(p.e, started, s);
		g_require(!cudaGetLastError());
		pthread_join(p.thread, NULL);
		g_require(!cudaDeviceSynchronize());
	}
	lit_collect(s, out);
	cudaFreeHost(p.e);
	cudaFreeHost(started);
}
