// SPDX-License-Identifier: MIT OR GPL-2.0
/* A ring whose producer means harm, beside one whose producer does not. */
#include "verify.cuh"

#include <string.h>

#define LEAST	5000U	/* packets of the other ring */

/* All that a packet says is there is looked at, and more */
static __device__ uint32_t suspect(const struct rgate_dpkt *pkt, void *result)
{
	struct rgate_dlayers l;
	struct rgate_dpkt far;
	uint32_t i, sum = 0;

	rgate_dpkt_layers(pkt, &l);
	sum += rgate_dpkt_flow(pkt) + rgate_dpkt_l4_ok(pkt, &l) + rgate_dpkt_ipv4_ok(pkt, &l);
	for (i = 0; i < rgate_dpkt_total(pkt) + 300; i += 13)
		sum += rgate_dpkt_u8(pkt, i);
	rgate_dpkt_view(&far, pkt->r, pkt->pos, pkt->parts);
	for (i = 0; i < far.len; i += 29)
		sum += far.data[i];
	*(uint32_t *)result = sum;
	return pkt->hdr->hash % 90;	/* none, or one that does not fit, too */
}

static __device__ uint32_t any_lane(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	return pkt->ring ? suspect(pkt, result) : v_lane(pkt, result, arg);
}

static __device__ uint32_t in_order(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	return pkt->ring ? suspect(pkt, result) : v_order(pkt, result, arg);
}

RGATE_GPU_LANES(lanes_kernel, any_lane, 64, 64)
RGATE_GPU_ORDERED(ordered_kernel, in_order, 64, 64)

/* A producer that writes what it likes, where it likes, and waits for nobody */
struct villain {
	struct rgate_ring *ring;
	bool stop;		/* atomic */
	pthread_t thread;
};

static void spoil(const struct rgate_view *v, uint64_t *state)
{
	uint64_t r = g_random(state), batch = r % (v->nslots / RGATE_BATCH), k;
	uint64_t done = __atomic_load_n(&v->credits[batch], __ATOMIC_RELAXED);
	const unsigned char *base = v->slots + batch * RGATE_BATCH * v->slot_size;

	for (k = 0; k < RGATE_BATCH; k++) {
		struct rgate_slot *s = (struct rgate_slot *)(uintptr_t)(base + k * v->slot_size);

		r = g_random(state);
		s->len = r & 1 ? (uint32_t)(r >> 1) : r >> 32 & 255;
		s->flags = r & 2 ? (uint32_t)(r >> 20) : RGATE_SLOT_HASH;
		s->hash = (uint32_t)(r >> 13);
		s->l3_off = (uint16_t)(r >> 5);
		s->l4_off = (uint16_t)(r >> 17);
		s->chain_idx = r & 4 ? (unsigned char)(r >> 40) : 0;
		s->chain_cnt = r & 8 ? (unsigned char)(r >> 48) : 1;
		/* the lap that is due, that after it, or none */
		if (r & 0x30)
			__atomic_store_n(&s->seq, done + 1 + (r >> 6 & 1), __ATOMIC_RELEASE);
	}
	__atomic_store_n((uint64_t *)(uintptr_t)&v->prod->head, r, __ATOMIC_RELEASE);
}

static void *villain_main(void *arg)
{
	struct villain *x = (struct villain *)arg;
	uint64_t state = g_seed();
	struct rgate_view v;

	rgate_ring_view(x->ring, &v);
	while (!__atomic_load_n(&x->stop, __ATOMIC_ACQUIRE))
		spoil(&v, &state);
	return NULL;
}

static uint64_t packets_of(struct rgate_gpu *gpu, unsigned int ring)
{
	struct rgate_gpu_stats st;

	memset(&st, 0, sizeof(st));
	st.sz = sizeof(st);
	g_require(!rgate_gpu_ring_stats(gpu, ring, &st));
	return st.packets;
}

/* Beside such a one the other ring's frames are processed all the same, and the kernel stops */
static void beside_a_villain(const struct rgate_gpu_kernel *kernel)
{
	uint64_t end = g_now_ns() + 60000000000ULL;
	struct rgate_gpu_start_opts o;
	struct rgate_consumer c;
	struct rgate_ring *out;
	struct rgate_gpu *gpu;
	struct v_seen *seen;
	struct villain x;
	struct g_feed f;

	memset(&o, 0, sizeof(o));
	memset(&x, 0, sizeof(x));
	memset(&f, 0, sizeof(f));
	f.ring = g_ring(256, 256, 0);
	f.total = (uint32_t)(200000 / g_slow());
	f.min = 16;
	f.max = 190;
	f.flows = 50;
	f.keep = true;
	x.ring = g_ring(64, 256, RGATE_RING_CHAIN);
	out = g_ring(1024, 256, 0);
	g_require(!rgate_consumer_init(&c, out, NULL));
	g_ok(NULL, rgate_gpu_open(&gpu, NULL));
	g_ok(gpu, rgate_gpu_bind(gpu, f.ring, NULL));
	g_ok(gpu, rgate_gpu_bind(gpu, x.ring, NULL));
	g_ok(gpu, rgate_gpu_bind_output(gpu, out, RGATE_GPU_FULL_DROP));
	o.sz = sizeof(o);
	o.arg = seen = v_new(&f, 1);
	g_ok(gpu, rgate_gpu_start(gpu, kernel, &o));
	g_require(!pthread_create(&x.thread, NULL, villain_main, &x));
	g_feed_start(&f);
	while (packets_of(gpu, 0) < f.total || packets_of(gpu, 1) < LEAST) {
		if (rgate_consumer_next(&c))
			rgate_consumer_release(&c);
		if (g_now_ns() > end)
			break;
	}
	g_feed_join(&f);
	g_note("%llu packets of the other ring", (unsigned long long)packets_of(gpu, 1));
	g_ok(gpu, rgate_gpu_stop(gpu, 5000));
	__atomic_store_n(&x.stop, true, __ATOMIC_RELEASE);
	g_require(!pthread_join(x.thread, NULL));
	g_require(packets_of(gpu, 1) >= LEAST);
	v_check(seen, &f, 1);
	v_free(seen, &f, 1);
	rgate_gpu_close(gpu);
	g_feed_close(&f);
	rgate_ring_close(f.ring);
	g_feed_free(&f);
	rgate_ring_close(x.ring);
	rgate_ring_close(out);
}

static void lanes(void)
{
	beside_a_villain(&lanes_kernel);
}

static void ordered(void)
{
	beside_a_villain(&ordered_kernel);
}

static const struct g_test tests[] = {
	{ "lanes", lanes },
	{ "ordered", ordered },
};

int main(int argc, char **argv)
{
	return g_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
