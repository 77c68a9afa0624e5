// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The usual way, for comparison: recvmmsg on a UDP socket or, for all kinds of
 * frames, on a packet socket. Runs the command that sends, as demo_ring does.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "report.h"

#define BATCH	64
#define LEN_MAX	65536
#define RCVBUF	(64 << 20)
#define IDLE_MS	1000
#define LOOKS	4096	/* without a frame, between two looks whether the sender has ended */

struct options {
	const char *dev;
	const char *filter;
	uint16_t port;
	bool polls;
	unsigned long want;
	char **cmd;
};

struct got {
	unsigned long frames;
	uint64_t first, last;
	struct demo_sum sum;
};

static int open_udp(const struct options *o)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons(o->port),
	};
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (sock < 0 || bind(sock, (struct sockaddr *)&at, sizeof(at)))
		demo_die(errno, "UDP socket");
	return sock;
}

static int open_packet(const struct options *o)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(o->dev),
	};
	int sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), one = 1;
	struct sock_fprog prog;
	char why[256];

	if (sock < 0)
		demo_die(errno, "packet socket");
	if (o->filter) {
		if (rgate_filter_compile(NULL, o->filter, &prog, why, sizeof(why)))
			demo_die(0, "%s: %s", o->filter, why);
		if (setsockopt(sock, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)))
			demo_die(errno, "SO_ATTACH_FILTER");
		rgate_filter_free(&prog);
	}
	setsockopt(sock, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one));
	if (bind(sock, (struct sockaddr *)&at, sizeof(at)))
		demo_die(errno, "bind to %s", o->dev);
	return sock;
}

static void settle(int sock)
{
	struct timeval tv = { .tv_sec = IDLE_MS / 1000 };
	int sz = RCVBUF;

	if (setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &sz, sizeof(sz)))
		setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &sz, sizeof(sz));
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
}

static void receive(int sock, const struct options *o, pid_t sender,
		    struct got *got)
{
	static unsigned char buf[BATCH][LEN_MAX];
	struct mmsghdr m[BATCH];
	struct iovec io[BATCH];
	unsigned long looks = 0;
	bool ended = false;
	int i, r;

	memset(m, 0, sizeof(m));
	for (i = 0; i < BATCH; i++) {
		io[i].iov_base = buf[i];
		io[i].iov_len = LEN_MAX;
		m[i].msg_hdr.msg_iov = &io[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	while (!o->want || got->frames < o->want) {
		r = recvmmsg(sock, m, BATCH, o->polls ? MSG_DONTWAIT : MSG_WAITFORONE, NULL);
		if (r <= 0 && o->polls && ++looks % LOOKS)
			continue;
		if (r <= 0) {
			if (ended)
				break;
			ended = demo_ended(sender);
			continue;
		}
		got->last = demo_now_ns();
		if (!got->frames)
			got->first = got->last;
		got->frames += (unsigned long)r;
		for (i = 0; i < r; i++)
			demo_sum_add(&got->sum, buf[i], m[i].msg_len);
	}
}

static void run(const struct options *o)
{
	int sock = o->dev ? open_packet(o) : open_udp(o);
	struct got got = { .frames = 0 };
	char text[DEMO_SUM_TEXT];
	struct report_cpu cpu;
	pid_t sender;

	settle(sock);
	demo_sum_init(&got.sum, false);
	cpu = (struct report_cpu){ { demo_cpu_us() }, { demo_cpu_all() } };
	sender = demo_spawn(o->cmd);
	receive(sock, o, sender, &got);
	cpu.own_us[1] = demo_cpu_us();
	cpu.all_us[1] = demo_cpu_all();
	demo_reap(sender, o->cmd[0]);
	demo_sum_text(&got.sum, text);
	printf("{\"test\":\"%s\",\"who\":\"recvmmsg\",\"frames\":%lu,\"bytes\":%llu,"
	       "\"hash\":\"%s\",\"last_ns\":%llu,\"seconds\":%.6f,\"polls\":%s",
	       demo_test(), got.frames,
	       (unsigned long long)got.sum.bytes, text,
	       (unsigned long long)got.last,
	       (double)(got.last - got.first) / 1e9, o->polls ? "true" : "false");
	report_cpu(&cpu);
	printf("}\n");
}

int main(int argc, char **argv)
{
	struct options o = { .want = 0 };
	int c;

	while ((c = getopt(argc, argv, "+i:f:u:n:p")) != -1) {
		switch (c) {
		case 'i':
			o.dev = optarg;
			break;
		case 'f':
			o.filter = optarg;
			break;
		case 'u':
			o.port = (uint16_t)demo_number(optarg, 1, 65535);
			break;
		case 'n':
			o.want = demo_number(optarg, 0, 100000000);
			break;
		case 'p':
			o.polls = true;
			break;
		default:
			goto usage;
		}
	}
	o.cmd = argv + optind;
	if (optind == argc || !o.dev == !o.port)
		goto usage;
	run(&o);
	return 0;
usage:
	fprintf(stderr, "usage: demo_recv (-i DEVICE [-f FILTER] | -u PORT) [-n FRAMES] [-p] -- COMMAND...\n");
	return 2;
}
