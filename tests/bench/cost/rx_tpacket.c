// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * TPACKET_V3. The tap leaves the frame to the stack; the benchmark's nfdrop
 * module then drops it at once, the cheapest that can become of it.
 */
#include "rx.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#define BLOCK	(1U << 18)
#define BLOCKS	(RX_SLOTS * RX_BUF / BLOCK)

struct tp_rx {
	int sock;
	unsigned int block;
	unsigned char *map;
};

static void *tp_open(const char *ifname)
{
	struct tpacket_req3 req = {
		.tp_block_size = BLOCK,
		.tp_block_nr = BLOCKS,
		.tp_frame_size = RX_BUF,
		.tp_frame_nr = RX_SLOTS,
		.tp_retire_blk_tov = 10,
	};
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(ifname),
	};
	struct tp_rx *r = calloc(1, sizeof(*r));
	int ver = TPACKET_V3;

	if (!r)
		bench_die(ENOMEM, "tpacket");
	/* protocol 0: nothing arrives before bind() */
	r->sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (r->sock < 0 ||
	    setsockopt(r->sock, SOL_PACKET, PACKET_VERSION, &ver, sizeof(ver)) ||
	    setsockopt(r->sock, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)))
		bench_die(errno, "TPACKET_V3");
	r->map = mmap(NULL, (size_t)BLOCK * BLOCKS, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_POPULATE, r->sock, 0);
	if (r->map == MAP_FAILED)
		bench_die(errno, "mmap of the packet ring");
	if (bind(r->sock, (struct sockaddr *)&at, sizeof(at)))
		bench_die(errno, "bind to %s", ifname);
	return r;
}

static unsigned int block_drain(const struct tpacket_hdr_v1 *b,
				struct rx_seen *seen)
{
	const unsigned char *p = (const unsigned char *)b -
		offsetof(struct tpacket_block_desc, hdr.bh1);
	unsigned int i;

	p += b->offset_to_first_pkt;
	for (i = 0; i < b->num_pkts; i++) {
		const struct tpacket3_hdr *h = (const void *)p;

		rx_look(seen, p + h->tp_mac + RX_PAYLOAD);
		p += h->tp_next_offset;
	}
	return b->num_pkts;
}

static unsigned int tp_drain(void *ctx, struct rx_seen *seen)
{
	struct tp_rx *r = ctx;
	unsigned int all = 0;

	for (;;) {
		struct tpacket_block_desc *d =
			(void *)(r->map + (size_t)r->block * BLOCK);
		struct tpacket_hdr_v1 *b = &d->hdr.bh1;

		if (!(__atomic_load_n(&b->block_status, __ATOMIC_ACQUIRE) &
		      TP_STATUS_USER))
			return all;
		all += block_drain(b, seen);
		__atomic_store_n(&b->block_status, TP_STATUS_KERNEL,
				 __ATOMIC_RELEASE);
		r->block = (r->block + 1) % BLOCKS;
	}
}

static void tp_close(void *ctx)
{
	struct tp_rx *r = ctx;

	munmap(r->map, (size_t)BLOCK * BLOCKS);
	close(r->sock);
	free(r);
}

const struct rx_ops rx_tpacket = {
	.name = "tpacket_v3",
	.open = tp_open,
	.drain = tp_drain,
	.close = tp_close,
};
