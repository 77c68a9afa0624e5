// SPDX-License-Identifier: MIT OR GPL-2.0
/* Every byte of every frame arrives once: sizes, wraps, chains, several rings, orders. */
#include "verify.cuh"

#include <string.h>

RGATE_GPU_LANES(lanes_kernel, v_lane, 64, 0)
RGATE_GPU_WARPS(warps_kernel, v_warp, 0, 0)
RGATE_GPU_WARPS(warps_near_kernel, v_warp, 256, 0)
RGATE_GPU_ORDERED(ordered_kernel, v_order, 64, 0)
RGATE_GPU_BATCH(batch_kernel, v_lane, 64, 0)

struct plan {
	const struct rgate_gpu_kernel *kernel;
	uint32_t rings, slots, slot_size, flags;
	uint32_t frames, min, max;	/* frames of the last ring; fewer in the others */
	uint32_t flows, pause_ns;
	uint32_t uneven;		/* not 0: ring i has frames / 2^i */
	struct rgate_gpu_start_opts o;
};

static void feed_all(const struct plan *p, struct g_feed *f)
{
	uint32_t i;

	for (i = 0; i < p->rings; i++) {
		memset(&f[i], 0, sizeof(f[i]));
		f[i].ring = g_ring(p->slots, p->slot_size, p->flags);
		f[i].id = i;
		f[i].total = (uint32_t)(p->frames / g_slow()) >> (p->uneven ? i : 0);
		f[i].min = p->min;
		f[i].max = p->max;
		f[i].flows = p->flows;
		f[i].pause_ns = p->pause_ns;
		f[i].keep = true;
	}
}

static void check_stats(struct rgate_gpu *gpu, const struct g_feed *f, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		struct rgate_gpu_stats st = { sizeof(st) };

		g_require(!rgate_gpu_ring_stats(gpu, i, &st));
		g_require(st.packets == f[i].total && st.bytes == f[i].bytes);
		g_require(st.taken == st.finished && st.taken >= st.packets);
	}
}

static void consume(const struct plan *p)
{
	struct rgate_gpu_start_opts o = p->o;
	struct g_feed f[V_RINGS];
	struct rgate_gpu *gpu;
	struct v_seen *seen;
	uint32_t i;

	g_ok(NULL, rgate_gpu_open(&gpu, NULL));
	feed_all(p, f);
	seen = v_new(f, p->rings);
	for (i = 0; i < p->rings; i++)
		g_ok(gpu, rgate_gpu_bind(gpu, f[i].ring, NULL));
	o.sz = sizeof(o);
	o.arg = seen;
	if (p->kernel->kind != RGATE_GPU_KIND_BATCH)
		g_ok(gpu, rgate_gpu_start(gpu, p->kernel, &o));
	for (i = 0; i < p->rings; i++)
		g_feed_start(&f[i]);
	for (i = 0; p->kernel->kind == RGATE_GPU_KIND_BATCH && i < p->rings;) {
		if (__atomic_load_n(&f[i].published, __ATOMIC_ACQUIRE) == f[i].total)
			i++;
		g_ok(gpu, rgate_gpu_launch(gpu, p->kernel, &o));
		g_ok(gpu, rgate_gpu_wait(gpu, 10000));
	}
	for (i = 0; i < p->rings; i++)
		g_feed_join(&f[i]);
	if (p->kernel->kind == RGATE_GPU_KIND_BATCH) {
		g_ok(gpu, rgate_gpu_launch(gpu, p->kernel, &o));
		g_ok(gpu, rgate_gpu_wait(gpu, 10000));
	}
	g_ok(gpu, rgate_gpu_drain(gpu, 20000));
	v_check(seen, f, p->rings);
	check_stats(gpu, f, p->rings);
	g_ok(gpu, rgate_gpu_stop(gpu, 5000));
	v_check(seen, f, p->rings);
	v_free(seen, f, p->rings);
	rgate_gpu_close(gpu);
	for (i = 0; i < p->rings; i++) {
		g_feed_close(&f[i]);
		rgate_ring_close(f[i].ring);
		g_feed_free(&f[i]);
	}
}

static struct plan plan_of(const struct rgate_gpu_kernel *k, uint32_t rings, uint32_t slots,
			   uint32_t slot_size, uint32_t frames, uint32_t min, uint32_t max)
{
	struct plan p;

	memset(&p, 0, sizeof(p));
	p.kernel = k;
	p.rings = rings;
	p.slots = slots;
	p.slot_size = slot_size;
	p.frames = frames;
	p.min = min;
	p.max = max;
	return p;
}

static void lanes_smallest_ring(void)
{
	struct plan p = plan_of(&lanes_kernel, 1, 64, 256, 300000, 16, 192);

	consume(&p);
}

static void lanes_eight_rings(void)
{
	struct plan p = plan_of(&lanes_kernel, 8, 1024, 256, 400000, 64, 64);

	consume(&p);
}

static void lanes_uneven_rings(void)
{
	struct plan p = plan_of(&lanes_kernel, 8, 512, 512, 600000, 16, 448);

	p.uneven = 1;
	consume(&p);
}

static void lanes_few_pollers(void)
{
	struct plan p = plan_of(&lanes_kernel, 8, 256, 256, 100000, 16, 192);

	p.o.pollers = 2;
	p.o.blocks = 4;
	consume(&p);
}

static void lanes_no_direct(void)
{
	struct plan p = plan_of(&lanes_kernel, 2, 128, 256, 200000, 16, 192);

	p.o.direct = RGATE_GPU_NO_DIRECT;
	p.o.grain = 4;
	consume(&p);
}

/* Frames come one by one, each is to be taken without 31 others */
static void lanes_low_rate(void)
{
	struct plan p = plan_of(&lanes_kernel, 2, 64, 256, 20000, 16, 192);

	p.pause_ns = 10000;
	consume(&p);
}

static void warps_long(void)
{
	struct plan p = plan_of(&warps_kernel, 4, 512, 2048, 150000, 16, 1984);

	consume(&p);
}

static void warps_near(void)
{
	struct plan p = plan_of(&warps_near_kernel, 4, 512, 2048, 150000, 16, 1500);

	consume(&p);
}

static void chains_lanes(void)
{
	struct plan p = plan_of(&lanes_kernel, 2, 128, 256, 30000, 16, 2500);

	p.flags = RGATE_RING_CHAIN;
	consume(&p);
}

static void chains_warps(void)
{
	struct plan p = plan_of(&warps_kernel, 2, 256, 512, 60000, 16, 9000);

	p.flags = RGATE_RING_CHAIN;
	p.o.direct = RGATE_GPU_NO_DIRECT;
	consume(&p);
}

static void chains_low_rate(void)
{
	struct plan p = plan_of(&warps_kernel, 1, 64, 256, 10000, 16, 3000);

	p.flags = RGATE_RING_CHAIN;
	p.pause_ns = 5000;
	consume(&p);
}

static void in_order(void)
{
	struct plan p = plan_of(&ordered_kernel, 4, 1024, 256, 300000, 16, 192);

	p.flows = 100;
	consume(&p);
}

static void in_order_one_flow(void)
{
	struct plan p = plan_of(&ordered_kernel, 1, 512, 256, 100000, 16, 64);

	p.flows = 1;
	consume(&p);
}

static void in_order_chains(void)
{
	struct plan p = plan_of(&ordered_kernel, 2, 128, 256, 20000, 16, 1500);

	p.flags = RGATE_RING_CHAIN;
	p.flows = 20;
	p.pause_ns = 1000;
	consume(&p);
}

static void batches(void)
{
	struct plan p = plan_of(&batch_kernel, 4, 1024, 256, 200000, 16, 192);

	consume(&p);
}

static void batches_chains(void)
{
	struct plan p = plan_of(&batch_kernel, 1, 128, 256, 20000, 16, 1500);

	p.flags = RGATE_RING_CHAIN;
	p.pause_ns = 500;
	consume(&p);
}

static const struct g_test tests[] = {
	{ "lanes_smallest_ring", lanes_smallest_ring },
	{ "lanes_eight_rings", lanes_eight_rings },
	{ "lanes_uneven_rings", lanes_uneven_rings },
	{ "lanes_few_pollers", lanes_few_pollers },
	{ "lanes_no_direct", lanes_no_direct },
	{ "lanes_low_rate", lanes_low_rate },
	{ "warps_long", warps_long },
	{ "warps_near", warps_near },
	{ "chains_lanes", chains_lanes },
	{ "chains_warps", chains_warps },
	{ "chains_low_rate", chains_low_rate },
	{ "in_order", in_order },
	{ "in_order_one_flow", in_order_one_flow },
	{ "in_order_chains", in_order_chains },
	{ "batches", batches },
	{ "batches_chains", batches_chains },
};

int main(int argc, char **argv)
{
	return g_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
