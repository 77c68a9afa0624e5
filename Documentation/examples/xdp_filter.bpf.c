// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A filter in C: UDP to one port goes into rings, out of the driver's buffer, before
 * the kernel makes a packet of it. xdp_filter.c loads this.
 *
 * clang -O2 -g -target bpf -c xdp_filter.bpf.c
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "xdp_filter.h"

/* The module's: an XDP verdict, or negative if there is no such attachment any more */
extern int bpf_ringgate_push(struct xdp_md *ctx, __u32 attachment, __u64 cookie,
			     __u32 snap) __ksym;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xdp_filter);
} config SEC(".maps");

static int is_ours(const struct xdp_md *ctx, __u32 port)
{
	const void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct ethhdr *eth = data;
	const struct iphdr *ip = (const void *)(eth + 1);
	const struct udphdr *udp = (const void *)(ip + 1);

	return (const void *)(udp + 1) <= end && eth->h_proto == bpf_htons(ETH_P_IP) &&
	       ip->ihl == 5 && ip->protocol == IPPROTO_UDP && udp->dest == bpf_htons(port);
}

SEC("xdp.frags")
int xdp_filter(struct xdp_md *ctx)
{
	const struct xdp_filter *c;
	__u32 zero = 0;
	int verdict;

	c = bpf_map_lookup_elem(&config, &zero);
	if (!c || !is_ours(ctx, c->port))
		return XDP_PASS;
	/* all of the frame; what becomes of it then is the attachment's action */
	verdict = bpf_ringgate_push(ctx, c->attachment, c->cookie, 0xffffffff);
	return verdict < 0 ? XDP_PASS : verdict;
}

char _license[] SEC("license") = "GPL";
