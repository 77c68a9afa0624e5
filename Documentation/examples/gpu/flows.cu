/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Packets and bytes by flow, in a hash table of the GPU's memory; prints the largest:
 * flows eth0 (CAP_NET_RAW, for the packet socket)
 */
#include <ringgate/gpu/kernel.cuh>
#include <ringgate/rgate_source.h>

#include <algorithm>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <vector>

#define BUCKETS	65536U
#define PROBES	16U

struct flow {
	uint32_t key;		/* 0: free */
	uint32_t saddr, daddr;	/* IPv4; of the first packet */
	uint32_t ports;
	unsigned long long packets, bytes;
};

static __device__ uint32_t count(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	uint32_t key = rgate_dpkt_flow(pkt), i, was;
	struct flow *table = (struct flow *)arg;
	struct rgate_dlayers l;

	if (!key)
		return 0;
	for (i = 0; i < PROBES; i++) {
		struct flow *f = &table[(key + i) % BUCKETS];

		was = atomicCAS(&f->key, 0, key);
		if (was && was != key)
			continue;
		if (!was) {
			rgate_dpkt_layers(pkt, &l);
			f->saddr = rgate_dpkt_be32(pkt, l.l3 + 12);
			f->daddr = rgate_dpkt_be32(pkt, l.l3 + 16);
			f->ports = rgate_dpkt_sport(pkt, &l) << 16 | rgate_dpkt_dport(pkt, &l);
		}
		atomicAdd(&f->packets, 1ULL);
		atomicAdd(&f->bytes, (unsigned long long)pkt->hdr->wire_len);
		break;
	}
	return 0;
}

RGATE_GPU_LANES(count_kernel, count, 64, 0)

static void check(struct rgate_gpu *gpu, long ret, const char *what)
{
	const char *why;

	if (ret >= 0)
		return;
	why = rgate_gpu_error(gpu);
	fprintf(stderr, "%s: %s\n", what, *why ? why : rgate_strerror("rgate_gpu_", (int)ret));
	exit(1);
}

static void print(std::vector<struct flow> &f)
{
	std::sort(f.begin(), f.end(), [](const struct flow &a, const struct flow &b) {
		return a.bytes > b.bytes;
	});
	for (int i = 0; i < 10 && f[i].packets; i++)
		printf("%08x:%u -> %08x:%u  %llu packets, %llu bytes\n", f[i].saddr,
		       f[i].ports >> 16, f[i].daddr, f[i].ports & 0xffff, f[i].packets, f[i].bytes);
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	std::vector<struct flow> copy(BUCKETS);
	struct rgate_gpu_start_opts o = {};
	struct rgate_source *src;
	struct rgate_ring *ring;
	struct rgate_gpu *gpu;

	check(NULL, rgate_gpu_open(&gpu, NULL), "GPU");
	check(gpu, rgate_ring_open_memfd(&ring, NULL), "ring");
	check(gpu, rgate_source_start_packet(&src, &ring, 1, argc > 1 ? argv[1] : NULL, NULL),
	      "socket");
	check(gpu, rgate_gpu_bind(gpu, ring, NULL), "bind");
	o.sz = sizeof(o);
	if (cudaMalloc(&o.arg, BUCKETS * sizeof(struct flow)) ||
	    cudaMemset(o.arg, 0, BUCKETS * sizeof(struct flow)))
		return 1;
	check(gpu, rgate_gpu_start(gpu, &count_kernel, &o), "start");
	for (;;) {
		sleep(1);
		cudaMemcpy(copy.data(), o.arg, BUCKETS * sizeof(struct flow),
			   cudaMemcpyDeviceToHost);
		print(copy);
	}
}
