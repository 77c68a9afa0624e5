/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A UDP echo answered by the GPU: udp_echo [port]
 * The library's thread puts datagrams into a ring, the GPU parses them and builds the
 * answers, another thread sends what it built.
 */
#include <ringgate/gpu/kernel.cuh>
#include <ringgate/rgate_responder.h>
#include <ringgate/rgate_source.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONGEST 192	/* bytes of a datagram with its headers */

static __device__ void swap(unsigned char *a, unsigned char *b, uint32_t n)
{
	while (n--) {
		unsigned char c = a[n];

		a[n] = b[n];
		b[n] = c;
	}
}

/* Bytes from the IP header's first to that behind the later address; 0: neither IPv4 nor IPv6 */
static __device__ uint32_t addresses_end(const struct rgate_dlayers *l)
{
	if (l->protocol == RGATE_DETH_IPV4)
		return 20;
	return l->protocol == RGATE_DETH_IPV6 ? 40 : 0;
}

/* The frame back, with addresses and ports exchanged: its checksums stay right */
static __device__ uint32_t echo(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	unsigned char *out = (unsigned char *)result;
	struct rgate_dlayers l;
	uint32_t ip;

	rgate_dpkt_layers(pkt, &l);
	ip = addresses_end(&l);
	/* the producer may have given the offsets: they are right, or this is no datagram */
	if (!ip || l.ip_proto != RGATE_DPROTO_UDP || l.l3 + ip > l.l4 || l.l4 + 8 > l.payload ||
	    l.payload > pkt->near_len || pkt->near_len != pkt->len)
		return 0;
	for (uint32_t i = 0; i < pkt->near_len; i++)
		out[i] = pkt->near[i];
	if (l.protocol == RGATE_DETH_IPV4)
		swap(out + l.l3 + 12, out + l.l3 + 16, 4);
	else
		swap(out + l.l3 + 8, out + l.l3 + 24, 16);
	swap(out + l.l4, out + l.l4 + 2, 2);
	return pkt->len;
}

RGATE_GPU_LANES(echo_kernel, echo, LONGEST, LONGEST)

static void check(struct rgate_gpu *gpu, long ret, const char *what)
{
	const char *why;

	if (ret >= 0)
		return;
	why = rgate_gpu_error(gpu);
	fprintf(stderr, "%s: %s\n", what, *why ? why : rgate_strerror("rgate_gpu_", (int)ret));
	exit(1);
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = {};
	struct rgate_responder_opts ro = {};
	struct rgate_responder *responder;
	struct rgate_ring *in, *out;
	struct rgate_source *src;
	struct rgate_gpu *gpu;

	addr.sin_family = AF_INET;
	addr.sin_port = htons(argc > 1 ? (uint16_t)atoi(argv[1]) : 7777);
	check(NULL, rgate_gpu_open(&gpu, NULL), "GPU");
	check(gpu, rgate_ring_open_memfd(&in, NULL), "ring");
	check(gpu, rgate_ring_open_memfd(&out, NULL), "ring");
	check(gpu, rgate_source_start_udp(&src, &in, 1, (struct sockaddr *)&addr, sizeof(addr),
					  NULL),
	      "socket");
	check(gpu, rgate_gpu_bind(gpu, in, NULL), "bind");
	check(gpu, rgate_gpu_bind_output(gpu, out, RGATE_GPU_FULL_DROP), "output");
	ro.sz = sizeof(ro);
	ro.udp_socket_plus1 = rgate_source_socket(src) + 1;
	check(gpu, rgate_responder_start(&responder, out, &ro), "responder");
	check(gpu, rgate_gpu_start(gpu, &echo_kernel, NULL), "start");
	for (;;) {
		struct rgate_gpu_status st = {};

		sleep(1);
		st.sz = sizeof(st);
		rgate_gpu_query(gpu, &st);
		printf("%llu answered, %llu dropped\n", (unsigned long long)st.replies,
		       (unsigned long long)st.replies_dropped);
		fflush(stdout);
		if (st.state != RGATE_GPU_RUNNING)
			check(gpu, -EIO, "kernel");
	}
}
