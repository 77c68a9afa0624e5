// SPDX-License-Identifier: MIT OR GPL-2.0
/* A UDP socket read by recvmmsg(2). */
#include "rx.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#define VLEN	64

struct mmsg_rx {
	int sock;
	struct mmsghdr m[VLEN];
	struct iovec io[VLEN];
	unsigned char buf[VLEN][RX_BUF];
};

static void *mmsg_open(const char *ifname)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons(RX_PORT),
	};
	struct mmsg_rx *r = calloc(1, sizeof(*r));
	int sz = 64 << 20, i;

	(void)ifname;
	if (!r)
		bench_die(ENOMEM, "recvmmsg");
	r->sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (r->sock < 0 ||
	    setsockopt(r->sock, SOL_SOCKET, SO_RCVBUFFORCE, &sz, sizeof(sz)) ||
	    bind(r->sock, (struct sockaddr *)&at, sizeof(at)))
		bench_die(errno, "UDP socket");
	for (i = 0; i < VLEN; i++) {
		r->io[i].iov_base = r->buf[i];
		r->io[i].iov_len = RX_BUF;
		r->m[i].msg_hdr.msg_iov = &r->io[i];
		r->m[i].msg_hdr.msg_iovlen = 1;
	}
	return r;
}

static unsigned int mmsg_drain(void *ctx, struct rx_seen *seen)
{
	struct mmsg_rx *r = ctx;
	unsigned int all = 0;
	int i, n;

	while ((n = recvmmsg(r->sock, r->m, VLEN, MSG_DONTWAIT, NULL)) > 0) {
		for (i = 0; i < n; i++)
			rx_look(seen, r->buf[i]);
		all += (unsigned int)n;
	}
	return all;
}

static void mmsg_close(void *ctx)
{
	struct mmsg_rx *r = ctx;

	close(r->sock);
	free(r);
}

const struct rx_ops rx_recvmmsg = {
	.name = "recvmmsg",
	.open = mmsg_open,
	.drain = mmsg_drain,
	.close = mmsg_close,
};
