/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The whole way by the runtime: a producer of this process, the kernel that stays, the
 * output ring, a consumer of this process. For litmus_variant.cuh, in a namespace.
 */

#define LIT_FRAME	128U

/* Each word of a packet is its number, one more; so is each of its answer */
static __device__ uint32_t lit_packet(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	struct lit_seen *s = (struct lit_seen *)arg;
	const uint64_t want = pkt->pos + 1;
	uint64_t *to = (uint64_t *)result, is[3];
	uint32_t i;

	is[0] = *(const uint64_t *)pkt->near;
	is[1] = *(const uint64_t *)(pkt->near + 56);
	is[2] = *(const uint64_t *)(pkt->data + LIT_FRAME - 8);
	for (i = 0; i < 3; i++)
		atomicAdd(is[i] == want ? &s->good : is[i] < want ? &s->stale : &s->early, 1);
	if (pkt->len != LIT_FRAME)
		atomicAdd(&s->lost, 1);
	if (pkt->hdr->hash != (uint32_t)want)
		atomicAdd(&s->stale, 1);
	for (i = 0; i < 8; i++)
		to[i] = want;
	return 64;
}

static __device__ uint32_t lit_packet_result(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	*(uint64_t *)result = pkt->pos + 1;
	return 0;
}

RGATE_GPU_LANES(LIT_CAT(lit_lanes_, LIT_NAME), lit_packet, 64, 64)
RGATE_GPU_ORDERED(LIT_CAT(lit_ordered_, LIT_NAME), lit_packet, 64, 64)
RGATE_GPU_LANES(LIT_CAT(lit_results_, LIT_NAME), lit_packet_result, 64, 0)

struct lit_chain {
	struct rgate_gpu *gpu;
	struct rgate_ring *in, *out;
	struct rgate_consumer c;
	struct rgate_producer p;
	unsigned char *seen;
	uint64_t total, published, taken;
	struct lit_seen host;
};

static inline bool lit_chain_put(struct lit_chain *x)
{
	struct rgate_slot *s = rgate_producer_reserve(&x->p);
	uint64_t *to;
	uint32_t i;

	if (!s)
		return false;
	to = (uint64_t *)rgate_producer_data(s);
	for (i = 0; i < LIT_FRAME / 8; i++)
		to[i] = x->published + 1;
	rgate_producer_fill(&x->p, s, LIT_FRAME, LIT_FRAME);
	s->flags |= RGATE_SLOT_HASH;
	s->hash = (uint32_t)x->published + 1;
	rgate_producer_publish(&x->p);
	x->published++;
	return true;
}

static inline bool lit_chain_take(struct lit_chain *x)
{
	const struct rgate_slot *s = rgate_consumer_next(&x->c);
	const uint64_t *is;
	uint32_t i, bad = 0;

	if (!s)
		return false;
	is = (const uint64_t *)rgate_slot_data(s);
	for (i = 1; i < 8; i++)
		bad += is[i] != is[0];
	if (s->len != 64 || is[0] > x->total || !is[0])
		x->host.lost++;
	else if (bad || x->seen[is[0] - 1]++)
		x->host.stale++;
	else
		x->host.good++;
	rgate_consumer_release(&x->c);
	x->taken++;
	return true;
}

static inline void lit_chain_new(struct lit_chain *x, uint64_t total, bool answers)
{
	memset(x, 0, sizeof(*x));
	x->total = total;
	x->seen = (unsigned char *)calloc(total, 1);
	x->in = g_ring(64, 256, 0);
	g_require(x->seen && !rgate_producer_init(&x->p, x->in));
	g_ok(NULL, rgate_gpu_open(&x->gpu, NULL));
	g_ok(x->gpu, rgate_gpu_bind(x->gpu, x->in, NULL));
	if (!answers)
		return;
	x->out = g_ring(64, 256, 0);
	g_require(!rgate_consumer_init(&x->c, x->out, NULL));
	g_ok(x->gpu, rgate_gpu_bind_output(x->gpu, x->out, RGATE_GPU_FULL_WAIT));
}

static inline void lit_chain_free(struct lit_chain *x)
{
	g_ok(x->gpu, rgate_gpu_stop(x->gpu, 5000));
	rgate_gpu_close(x->gpu);
	rgate_producer_fini(&x->p);
	rgate_ring_close(x->in);
	rgate_ring_close(x->out);
	free(x->seen);
}

static inline void lit_chain_run(const struct rgate_gpu_kernel *kernel, uint64_t total,
				 struct lit_seen *out)
{
	struct lit_seen *s = lit_seen_new();
	struct rgate_gpu_start_opts o;
	struct lit_chain x;
	uint64_t since;

	memset(&o, 0, sizeof(o));
	o.sz = sizeof(o);
	o.arg = s;
	lit_chain_new(&x, total, true);
	g_ok(x.gpu, rgate_gpu_start(x.gpu, kernel, &o));
	since = g_now_ns();
	while (x.taken < total && g_now_ns() - since < 4 * LIT_WAIT_NS) {
		if (x.published < total && !lit_chain_put(&x))
			rgate_producer_flush(&x.p);
		lit_chain_take(&x);
		if (x.published == total)
			rgate_producer_flush(&x.p);
	}
	x.host.hung = total - x.taken;
	lit_chain_free(&x);
	lit_collect(s, out);
	out->good += x.host.good;
	out->stale += x.host.stale;
	out->lost += x.host.lost;
	out->hung += x.host.hung;
}

static inline void lit_run_chain(const struct lit_how *h, struct lit_seen *out)
{
	lit_chain_run(&LIT_CAT(lit_lanes_, LIT_NAME), 8ULL * h->rounds, out);
}

static inline void lit_run_ordered(const struct lit_how *h, struct lit_seen *out)
{
	lit_chain_run(&LIT_CAT(lit_ordered_, LIT_NAME), 8ULL * h->rounds, out);
}

/* What the function wrote is there once rgate_gpu_drain() says that it is finished */
static inline void lit_run_done(const struct lit_how *h, struct lit_seen *out)
{
	const uint32_t turns = h->rounds / 100 + 1;
	struct rgate_gpu_start_opts o;
	volatile uint64_t *results;
	struct lit_chain x;
	uint64_t pos;
	uint32_t i, k;

	memset(&o, 0, sizeof(o));
	memset(out, 0, sizeof(*out));
	o.sz = sizeof(o);
	o.results_len = 64;
	o.result_size = 64;
	g_require(!cudaHostAlloc(&o.results, 64 * 64, cudaHostAllocMapped));
	results = (volatile uint64_t *)o.results;
	lit_chain_new(&x, 1, false);
	g_ok(x.gpu, rgate_gpu_start(x.gpu, &LIT_CAT(lit_results_, LIT_NAME), &o));
	for (i = 0; i < turns; i++) {
		pos = x.published;
		for (k = 0; k < 32;)
			k += lit_chain_put(&x);
		rgate_producer_flush(&x.p);
		g_ok(x.gpu, rgate_gpu_drain(x.gpu, 2000));
		for (k = 0; k < 32; k++, pos++) {
			if (results[pos % 64 * 8] == pos + 1)
				out->good++;
			else
				out->stale++;
		}
	}
	lit_chain_free(&x);
	cudaFreeHost(o.results);
}
