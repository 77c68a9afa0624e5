// SPDX-License-Identifier: MIT OR GPL-2.0
/* Several runtimes: side by side on two devices, one after the other on one. */
#include "verify.cuh"

#include <string.h>

RGATE_GPU_LANES(lanes_kernel, v_lane, 64, 0)
RGATE_GPU_ORDERED(ordered_kernel, v_order, 64, 0)

#define SIDES 2U
#define RINGS 3U

struct side {
	struct rgate_gpu *gpu;
	struct v_seen *seen;
	struct g_feed f[RINGS];
	uint32_t device;
	uint32_t rings;
};

static void side_open(struct side *s, uint32_t device, uint32_t rings)
{
	struct rgate_gpu_opts go;
	uint32_t i;

	memset(&go, 0, sizeof(go));
	memset(s, 0, sizeof(*s));
	go.sz = sizeof(go);
	go.device = s->device = device;
	s->rings = rings;
	g_ok(NULL, rgate_gpu_open(&s->gpu, &go));
	for (i = 0; i < rings; i++) {
		s->f[i].ring = g_ring(256, 256, 0);
		s->f[i].id = i;
		s->f[i].total = 200000 / (uint32_t)g_slow();
		s->f[i].min = 16;
		s->f[i].max = 192;
		s->f[i].flows = 40;
		s->f[i].keep = true;
		g_ok(s->gpu, rgate_gpu_bind(s->gpu, s->f[i].ring, NULL));
	}
	g_require(!cudaSetDevice((int)device));
	s->seen = v_new(s->f, rings);
}

static void side_start(struct side *s, const struct rgate_gpu_kernel *kernel)
{
	struct rgate_gpu_start_opts o;

	memset(&o, 0, sizeof(o));
	o.sz = sizeof(o);
	o.arg = s->seen;
	o.blocks = kernel->kind == RGATE_GPU_KIND_ORDERED ? 0 : 8;
	g_ok(s->gpu, rgate_gpu_start(s->gpu, kernel, &o));
}

static void side_close(struct side *s)
{
	uint32_t i;

	g_require(!cudaSetDevice((int)s->device));
	v_check(s->seen, s->f, s->rings);
	v_free(s->seen, s->f, s->rings);
	rgate_gpu_close(s->gpu);
	for (i = 0; i < s->rings; i++) {
		g_feed_close(&s->f[i]);
		rgate_ring_close(s->f[i].ring);
		g_feed_free(&s->f[i]);
	}
}

static int devices(void)
{
	int n = 0;

	g_require(!cudaGetDeviceCount(&n) && n > 0);
	return n;
}

static void side_by_side(void)
{
	static struct side s[SIDES];
	uint32_t i, k;

	if (devices() < 2)
		g_skip("one device; two kernels that stay are for two");
	for (i = 0; i < SIDES; i++)
		side_open(&s[i], i, RINGS);
	for (i = 0; i < SIDES; i++)
		side_start(&s[i], i ? &ordered_kernel : &lanes_kernel);
	for (i = 0; i < SIDES; i++)
		for (k = 0; k < RINGS; k++)
			g_feed_start(&s[i].f[k]);
	for (i = 0; i < SIDES; i++)
		for (k = 0; k < RINGS; k++)
			g_feed_join(&s[i].f[k]);
	for (i = 0; i < SIDES; i++) {
		g_ok(s[i].gpu, rgate_gpu_drain(s[i].gpu, 20000));
		g_ok(s[i].gpu, rgate_gpu_stop(s[i].gpu, 5000));
	}
	for (i = 0; i < SIDES; i++)
		side_close(&s[i]);
}

/* Two runtimes of one device know the same memory; a ring goes from the one to the other */
static void handed_over(void)
{
	struct rgate_gpu_stats st;
	struct rgate_gpu *other;
	static struct side s;
	uint64_t end;

	memset(&st, 0, sizeof(st));
	side_open(&s, 0, 1);
	g_feed_start(&s.f[0]);
	end = g_now_ns() + 30000000000ULL;
	/* at a batch's end: another consumer sees a batch begun again */
	do {
		g_require(g_now_ns() < end);
		side_start(&s, &lanes_kernel);
		g_ok(s.gpu, rgate_gpu_stop(s.gpu, 5000));
		st.sz = sizeof(st);
		g_require(!rgate_gpu_ring_stats(s.gpu, 0, &st));
	} while (!st.finished || st.finished % RGATE_BATCH);
	g_note("%llu frames by the first", (unsigned long long)st.packets);
	g_ok(NULL, rgate_gpu_open(&other, NULL));
	g_ok(other, rgate_gpu_bind(other, s.f[0].ring, NULL));
	rgate_gpu_close(s.gpu);
	s.gpu = other;
	side_start(&s, &lanes_kernel);
	g_feed_join(&s.f[0]);
	g_ok(other, rgate_gpu_drain(other, 20000));
	g_ok(other, rgate_gpu_stop(other, 5000));
	side_close(&s);
}

static const struct g_test tests[] = {
	{ "side_by_side", side_by_side },
	{ "handed_over", handed_over },
};

int main(int argc, char **argv)
{
	return g_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
