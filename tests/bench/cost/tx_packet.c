// SPDX-License-Identifier: MIT OR GPL-2.0
/* A packet socket, past the queueing discipline or through it. */
#include "tx.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"
#include "tx_frame.h"

static int sock;
static struct mmsghdr msgs[TX_BATCH];
static struct iovec iov[TX_BATCH];
static unsigned char frames[TX_BATCH][1536];

static void setup(const struct tx_flow *f, int direct)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_ifindex = (int)if_nametoindex(f->dev),
	};
	int sz = 64 << 20;
	unsigned int i;

	/* protocol 0: the socket receives nothing */
	sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (sock < 0 ||
	    setsockopt(sock, SOL_SOCKET, SO_SNDBUFFORCE, &sz, sizeof(sz)) ||
	    setsockopt(sock, SOL_PACKET, PACKET_QDISC_BYPASS, &direct, sizeof(direct)) ||
	    bind(sock, (struct sockaddr *)&to, sizeof(to)))
		bench_die(errno, "packet socket on %s", f->dev);
	for (i = 0; i < TX_BATCH; i++) {
		tx_frame_build(frames[i], f);
		iov[i].iov_base = frames[i];
		iov[i].iov_len = f->len;
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
}

static void packet_setup(const struct tx_flow *f)
{
	setup(f, 1);
}

static void packet_queue_setup(const struct tx_flow *f)
{
	setup(f, 0);
}

static uint64_t packet_run(const struct tx_flow *f)
{
	uint64_t t = bench_now_ns();
	uint32_t i, n, number = 1;

	for (i = 0; i < f->count; i += n) {
		uint32_t k;

		n = f->count - i < TX_BATCH ? f->count - i : TX_BATCH;
		for (k = 0; k < n; k++)
			tx_frame_number(frames[k], number++);
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

const struct tx_ops tx_packet_queue = {
	.name = "packet_queue",
	.setup = packet_queue_setup,
	.run = packet_run,
};
