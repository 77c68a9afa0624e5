// SPDX-License-Identifier: MIT OR GPL-2.0
#include "tx_frame.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <netinet/ether.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <string.h>

#include "bench.h"
#include "rx.h"

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

void tx_frame_build(unsigned char *p, const struct tx_flow *f)
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
