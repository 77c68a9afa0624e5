// SPDX-License-Identifier: MIT OR GPL-2.0
/* Rings that a gateway fills: in this process, and handed over by the one that has them. */
#include "verify.cuh"

#include <string.h>

#include "gremote.h"

RGATE_GPU_LANES(lanes_kernel, v_lane, 64, 0)
RGATE_GPU_WARPS(warps_kernel, v_warp, 256, 0)

static struct g_remote handed, inside;

static void consume(struct g_remote *r, const struct rgate_gpu_kernel *kernel)
{
	struct rgate_gpu_stats st;
	struct rgate_gpu_start_opts o;
	struct rgate_gpu *gpu;
	struct v_seen *seen;

	memset(&o, 0, sizeof(o));
	memset(&st, 0, sizeof(st));
	g_remote_open(r);
	g_require(!rgate_ring_slots_rw(r->feed.ring) == !r->here);
	g_ok(NULL, rgate_gpu_open(&gpu, NULL));
	g_ok(gpu, rgate_gpu_bind(gpu, r->feed.ring, NULL));
	o.sz = sizeof(o);
	o.arg = seen = v_new(&r->feed, 1);
	g_ok(gpu, rgate_gpu_start(gpu, kernel, &o));
	g_remote_join(r);
	g_ok(gpu, rgate_gpu_drain(gpu, 20000));
	v_check(seen, &r->feed, 1);
	st.sz = sizeof(st);
	g_require(!rgate_gpu_ring_stats(gpu, 0, &st));
	g_require(st.packets == r->feed.total && st.bytes == r->feed.bytes && !st.ended);
	g_remote_end(r);
	/* the gateway has left the ring: the kernel returns by itself */
	g_ok(gpu, rgate_gpu_wait(gpu, 5000));
	g_require(!rgate_gpu_ring_stats(gpu, 0, &st));
	g_require(st.ended);
	v_check(seen, &r->feed, 1);
	v_free(seen, &r->feed, 1);
	rgate_gpu_close(gpu);
	g_remote_free(r);
}

static void of_a_daemon(void)
{
	consume(&handed, &lanes_kernel);
}

static void of_this_process(void)
{
	consume(&inside, &warps_kernel);
}

static const struct g_test tests[] = {
	{ "of_a_daemon", of_a_daemon },
	{ "of_this_process", of_this_process },
};

static void prepare(struct g_remote *r, bool here, uint32_t frames, uint32_t max)
{
	memset(r, 0, sizeof(*r));
	r->here = here;
	r->slots = 256;
	r->slot_size = 512;
	r->feed.total = (uint32_t)(frames / g_slow());
	r->feed.min = 16;
	r->feed.max = max;
	g_remote_fork(r);
}

int main(int argc, char **argv)
{
	prepare(&handed, false, 60000, 440);
	prepare(&inside, true, 30000, 3000);
	return g_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
