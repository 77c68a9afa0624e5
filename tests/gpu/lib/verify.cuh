/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Kernels that digest each frame and note how often and in which order they saw it. */
#ifndef VERIFY_CUH
#define VERIFY_CUH

#include <ringgate/gpu/kernel.cuh>

#include "gtest.h"

#define V_RINGS 16
#define V_FLOWS 1024

/* Device memory; handed to the kernels as their argument */
struct v_seen {
	uint64_t *digest[V_RINGS];	/* by number of the frame */
	uint32_t *count[V_RINGS];
	uint32_t total[V_RINGS];
	uint32_t last[V_RINGS][V_FLOWS + 1];	/* number + 1, by flow */
	uint32_t disorder;
	uint32_t strange;		/* frames with an impossible head */
};

/* 32 bits at @off, zero-padded behind the frame */
static __device__ __forceinline__ uint32_t v_word(const struct rgate_dpkt *pkt, uint32_t off,
						  uint32_t total)
{
	uint32_t w = 0, i;

	if (off + 4 <= pkt->near_len)
		return *(const uint32_t *)(pkt->near + off);
	if (off + 4 <= pkt->len)
		return *(const uint32_t *)(pkt->data + off);
	for (i = 0; i < 4 && off + i < total; i++)
		w |= rgate_dpkt_u8(pkt, off + i) << 8 * i;
	return w;
}

static __device__ __forceinline__ struct g_head v_head(const struct rgate_dpkt *pkt)
{
	struct g_head h;

	h.ring = v_word(pkt, 0, pkt->len);
	h.number = v_word(pkt, 4, pkt->len);
	h.seed = (uint64_t)v_word(pkt, 12, pkt->len) << 32 | v_word(pkt, 8, pkt->len);
	return h;
}

static __device__ __forceinline__ void v_note(struct v_seen *v, const struct rgate_dpkt *pkt,
					      uint64_t digest)
{
	struct g_head h = v_head(pkt);

	if (h.ring >= V_RINGS || h.number >= v->total[h.ring]) {
		atomicAdd(&v->strange, 1);
		return;
	}
	v->digest[h.ring][h.number] = digest;
	atomicAdd(&v->count[h.ring][h.number], 1);
}

/* A packet is a lane's */
static __device__ uint32_t v_lane(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	uint32_t total = pkt->parts > 1 ? rgate_dpkt_total(pkt) : pkt->len, i;
	uint64_t sum = total;

	for (i = 0; i < total; i += 4)
		sum += g_digest_word(v_word(pkt, i, total), i / 4);
	v_note((struct v_seen *)arg, pkt, sum);
	return 0;
}

/* A packet is a warp's */
static __device__ uint32_t v_warp(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	uint32_t total = pkt->parts > 1 ? rgate_dpkt_total(pkt) : pkt->len, i;
	uint64_t sum = 0;

	for (i = rgate_dlane() * 4; i < total; i += 128)
		sum += g_digest_word(v_word(pkt, i, total), i / 4);
	for (i = 16; i; i /= 2)
		sum += __shfl_xor_sync(~0U, sum, i);
	if (rgate_dlane() == 0)
		v_note((struct v_seen *)arg, pkt, sum + total);
	return 0;
}

/* A packet is a lane's, and those of a flow come in order: else it is noted */
static __device__ uint32_t v_order(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	struct v_seen *v = (struct v_seen *)arg;
	struct g_head h = v_head(pkt);
	uint32_t flow = pkt->hdr->hash, was;

	if (h.ring < V_RINGS && flow <= V_FLOWS) {
		was = atomicExch(&v->last[h.ring][flow], h.number + 1);
		if (was > h.number)
			atomicAdd(&v->disorder, 1);
	}
	return v_lane(pkt, result, arg);
}

static inline struct v_seen *v_new(const struct g_feed *f, unsigned int n)
{
	struct v_seen host, *dev;
	unsigned int i;

	memset(&host, 0, sizeof(host));
	g_require(n <= V_RINGS && !cudaMalloc((void **)&dev, sizeof(*dev)));
	for (i = 0; i < n; i++) {
		uint32_t id = f[i].id;

		host.total[id] = f[i].total;
		g_require(!cudaMalloc((void **)&host.digest[id], f[i].total * 8ULL));
		g_require(!cudaMalloc((void **)&host.count[id], f[i].total * 4ULL));
		g_require(!cudaMemset(host.digest[id], 0xa5, f[i].total * 8ULL));
		g_require(!cudaMemset(host.count[id], 0, f[i].total * 4ULL));
	}
	g_require(!cudaMemcpy(dev, &host, sizeof(host), cudaMemcpyHostToDevice));
	return dev;
}

/* Every frame published was seen once, as it was, nothing else was */
static inline void v_check(const struct v_seen *dev, const struct g_feed *f, unsigned int n)
{
	unsigned int lost = 0, twice = 0, wrong = 0, i, k;
	struct v_seen host;

	g_require(!cudaMemcpy(&host, dev, sizeof(host), cudaMemcpyDeviceToHost));
	for (i = 0; i < n; i++) {
		uint32_t id = f[i].id, total = f[i].total;
		uint64_t *digest = (uint64_t *)calloc(total, 8);
		uint32_t *count = (uint32_t *)calloc(total, 4);

		g_require(!cudaMemcpy(digest, host.digest[id], total * 8ULL,
				      cudaMemcpyDeviceToHost));
		g_require(!cudaMemcpy(count, host.count[id], total * 4ULL,
				      cudaMemcpyDeviceToHost));
		for (k = 0; k < total; k++) {
			if (k >= f[i].published) {
				twice += count[k];
				continue;
			}
			lost += !count[k];
			twice += count[k] > 1;
			wrong += count[k] && digest[k] != f[i].digest[k];
		}
		free(digest);
		free(count);
	}
	if (lost || twice || wrong || host.strange || host.disorder)
		g_note("lost %u, twice %u, wrong %u, strange %u, out of order %u", lost, twice,
		       wrong, host.strange, host.disorder);
	g_require(!lost && !twice && !wrong && !host.strange && !host.disorder);
}

static inline void v_free(struct v_seen *dev, const struct g_feed *f, unsigned int n)
{
	struct v_seen host;
	unsigned int i;

	g_require(!cudaMemcpy(&host, dev, sizeof(host), cudaMemcpyDeviceToHost));
	for (i = 0; i < n; i++) {
		cudaFree(host.digest[f[i].id]);
		cudaFree(host.count[f[i].id]);
	}
	cudaFree(dev);
}

#endif
