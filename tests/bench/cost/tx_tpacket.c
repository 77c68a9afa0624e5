// SPDX-License-Identifier: MIT OR GPL-2.0
/* PACKET_TX_RING, version 2, past the queueing discipline or through it. */
#include "tx.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "bench.h"
#include "rx.h"
#include "tx_frame.h"

#define BLOCK	(1U << 16)
/* Where the kernel looks for the frame */
#define DATA	(TPACKET2_HDRLEN - sizeof(struct sockaddr_ll))

static int sock;
static unsigned char *map;
static uint32_t next;

static struct tpacket2_hdr *header(uint32_t i)
{
	return (struct tpacket2_hdr *)(map + (size_t)(i % RX_SLOTS) * RX_BUF);
}

static void map_ring(const struct tx_flow *f)
{
	unsigned int i;

	map = mmap(NULL, (size_t)RX_SLOTS * RX_BUF, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_POPULATE, sock, 0);
	if (map == MAP_FAILED)
		bench_die(errno, "mmap of the packet ring");
	for (i = 0; i < RX_SLOTS; i++)
		tx_frame_build((unsigned char *)header(i) + DATA, f);
}

static void setup(const struct tx_flow *f, int direct)
{
	struct tpacket_req req = {
		.tp_block_size = BLOCK,
		.tp_block_nr = RX_SLOTS * RX_BUF / BLOCK,
		.tp_frame_size = RX_BUF,
		.tp_frame_nr = RX_SLOTS,
	};
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_ifindex = (int)if_nametoindex(f->dev),
	};
	int ver = TPACKET_V2, sz = 64 << 20;

	/* protocol 0: the socket receives nothing */
	sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (sock < 0 ||
	    setsockopt(sock, SOL_PACKET, PACKET_VERSION, &ver, sizeof(ver)) ||
	    setsockopt(sock, SOL_SOCKET, SO_SNDBUFFORCE, &sz, sizeof(sz)) ||
	    setsockopt(sock, SOL_PACKET, PACKET_QDISC_BYPASS, &direct, sizeof(direct)) ||
	    setsockopt(sock, SOL_PACKET, PACKET_TX_RING, &req, sizeof(req)) ||
	    bind(sock, (struct sockaddr *)&at, sizeof(at)))
		bench_die(errno, "PACKET_TX_RING on %s", f->dev);
	map_ring(f);
}

static void tpacket_setup(const struct tx_flow *f)
{
	setup(f, 0);
}

static void tpacket_direct_setup(const struct tx_flow *f)
{
	setup(f, 1);
}

static uint64_t tpacket_run(const struct tx_flow *f)
{
	uint64_t t = bench_now_ns();
	uint32_t i, k, n, number = 1;

	for (i = 0; i < f->count; i += n) {
		n = f->count - i < TX_BATCH ? f->count - i : TX_BATCH;
		for (k = 0; k < n; k++, next++) {
			struct tpacket2_hdr *h = header(next);

			if (__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) !=
			    TP_STATUS_AVAILABLE)
				bench_die(0, "PACKET_TX_RING: full");
			tx_frame_number((unsigned char *)h + DATA, number++);
			h->tp_len = f->len;
			__atomic_store_n(&h->tp_status, TP_STATUS_SEND_REQUEST,
					 __ATOMIC_RELEASE);
		}
		if (send(sock, NULL, 0, MSG_DONTWAIT) < 0)
			bench_die(errno, "PACKET_TX_RING: send");
	}
	return bench_now_ns() - t;
}

const struct tx_ops tx_tpacket = {
	.name = "tx_ring",
	.setup = tpacket_setup,
	.run = tpacket_run,
};

const struct tx_ops tx_tpacket_direct = {
	.name = "tx_ring_direct",
	.setup = tpacket_direct_setup,
	.run = tpacket_run,
};
