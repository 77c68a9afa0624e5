// SPDX-License-Identifier: MIT OR GPL-2.0
/* A packet socket that bypasses the queueing layer. */
#include "tx.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"
#include "rx.h"

#define VLEN 64

static int sock;
static struct mmsghdr msgs[VLEN];
static struct iovec iov[VLEN];
static unsigned char frames[VLEN][1536];

static uint16_t ip_sum(const void *header)
{
	const unsigned char *p = header;
	uint32_t sum = 0;
	int i;

	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)(p[i] << 8 | p[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static void frame_build(unsigned char *p, const struct tx_flow *f)
{
	const struct ether_addr *mac = ether_aton(f->dst_mac);
	struct ethhdr eth = { .h_proto = htons(ETH_P_IP) };
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.ttl = 32,
		.protocol = IPPROTO_UDP,
		.tot_len = htons((uint16_t)(f->len - sizeof(eth))),
		.saddr = inet_addr(f->src_ip),
		.daddr = inet_addr(f->dst_ip),
	};
	struct udphdr udp = {
		.source = htons(4000),
		.dest = htons(RX_PORT),
		.len = htons((uint16_t)(f->len - sizeof(eth) - sizeof(ip))),
	};

	if (!mac)
		bench_die(EINVAL, "%s", f->dst_mac);
	memcpy(eth.h_dest, mac, ETH_ALEN);
	eth.h_source[0] = 2;
	ip.check = ip_sum(&ip);
	memcpy(p, &eth, sizeof(eth));
	memcpy(p + 14, &ip, sizeof(ip));
	memcpy(p + 34, &udp, sizeof(udp));
}

static void packet_setup(const struct tx_flow *f)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_ifindex = (int)if_nametoindex(f->dev),
	};
	int one = 1, sz = 64 << 20, i;

	/* protocol 0: the socket receives nothing */
	sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (sock < 0 ||
	    setsockopt(sock, SOL_SOCKET, SO_SNDBUFFORCE, &sz, sizeof(sz)) ||
	    setsockopt(sock, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)) ||
	    bind(sock, (struct sockaddr *)&to, sizeof(to)))
		bench_die(errno, "packet socket on %s", f->dev);
	for (i = 0; i < VLEN; i++) {
		frame_build(frames[i], f);
		iov[i].iov_base = frames[i];
		iov[i].iov_len = f->len;
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
}

static uint64_t packet_run(const struct tx_flow *f)
{
	uint64_t t = bench_now_ns();
	uint32_t i, n, number = 1;
	uint32_t h[2];

	for (i = 0; i < f->count; i += n) {
		uint32_t k;

		n = f->count - i < VLEN ? f->count - i : VLEN;
		for (k = 0; k < n; k++) {
			h[0] = htonl(RX_PKTGEN_MAGIC);
			h[1] = htonl(number++);
			memcpy(frames[k] + RX_PAYLOAD, h, sizeof(h));
		}
		if (sendmmsg(sock, msgs, n, 0) != (int)n)
			bench_die(errno, "sendmmsg");
	}
	return bench_now_ns() - t;
}

const struct tx_ops tx_packet = {
	.name = "packet",
	.setup = packet_setup,
	.run = packet_run,
};
