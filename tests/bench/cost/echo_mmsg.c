// SPDX-License-Identifier: MIT OR GPL-2.0
/* recvmmsg(2), and sendmmsg(2) of the same buffers: a UDP socket, or a packet socket. */
#include "rx.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"
#include "echo.h"
#include "tx.h"

struct echo_mmsg {
	int sock;
	int raw;
	struct mmsghdr m[TX_BATCH];
	struct iovec io[TX_BATCH];
	struct sockaddr_in from[TX_BATCH];	/* UDP: whom it goes back to */
	unsigned char buf[TX_BATCH][RX_BUF];
};

static struct echo_mmsg *make(int sock, int raw)
{
	struct echo_mmsg *e = calloc(1, sizeof(*e));
	int sz = 64 << 20;
	unsigned int i;

	if (!e || sock < 0 ||
	    setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &sz, sizeof(sz)) ||
	    setsockopt(sock, SOL_SOCKET, SO_SNDBUFFORCE, &sz, sizeof(sz)))
		bench_die(errno, "echo");
	e->sock = sock;
	e->raw = raw;
	for (i = 0; i < TX_BATCH; i++) {
		e->io[i].iov_base = e->buf[i];
		e->m[i].msg_hdr.msg_iov = &e->io[i];
		e->m[i].msg_hdr.msg_iovlen = 1;
		if (!raw)
			e->m[i].msg_hdr.msg_name = &e->from[i];
	}
	return e;
}

static void *udp_open(const char *ifname)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(RX_PORT) };
	struct echo_mmsg *e = make(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), 0);

	(void)ifname;
	if (bind(e->sock, (struct sockaddr *)&at, sizeof(at)))
		bench_die(errno, "UDP socket");
	return e;
}

/* It would get what it sends as well. */
static void *packet_open(const char *ifname)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),	/* before nfdrop */
		.sll_ifindex = (int)if_nametoindex(ifname),
	};
	struct echo_mmsg *e = make(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), 1);
	int one = 1;

	if (setsockopt(e->sock, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) ||
	    bind(e->sock, (struct sockaddr *)&at, sizeof(at)))
		bench_die(errno, "packet socket on %s", ifname);
	return e;
}

static void prepare(struct echo_mmsg *e)
{
	unsigned int i;

	for (i = 0; i < TX_BATCH; i++) {
		e->io[i].iov_len = RX_BUF;
		if (!e->raw)
			e->m[i].msg_hdr.msg_namelen = sizeof(e->from[i]);
	}
}

static unsigned int mmsg_drain(void *ctx, struct rx_seen *seen)
{
	struct echo_mmsg *e = ctx;
	unsigned int all = 0;
	int i, n;

	for (;;) {
		prepare(e);
		n = recvmmsg(e->sock, e->m, TX_BATCH, MSG_DONTWAIT, NULL);
		if (n <= 0)
			return all;
		for (i = 0; i < n; i++) {
			e->io[i].iov_len = e->m[i].msg_len;
			if (e->raw)
				echo_turn(e->buf[i]);
			rx_look(seen, e->buf[i] + (e->raw ? RX_PAYLOAD : 0));
		}
		if (sendmmsg(e->sock, e->m, (unsigned int)n, 0) != n)
			bench_die(errno, "echo: sendmmsg");
		all += (unsigned int)n;
	}
}

static void mmsg_close(void *ctx)
{
	struct echo_mmsg *e = ctx;

	close(e->sock);
	free(e);
}

const struct rx_ops rx_echo_udp = {
	.name = "echo_udp",
	.open = udp_open,
	.drain = mmsg_drain,
	.close = mmsg_close,
};

const struct rx_ops rx_echo_packet = {
	.name = "echo_packet",
	.open = packet_open,
	.drain = mmsg_drain,
	.close = mmsg_close,
};
