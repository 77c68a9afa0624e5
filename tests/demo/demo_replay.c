// SPDX-License-Identifier: MIT OR GPL-2.0
/* Sends the frames of a pcapng file out of a device, as they are. */
#include <errno.h>
#include <getopt.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "demo.h"

#define FRAMES_MAX	4096
#define BATCH		32

struct replay {
	struct mmsghdr m[FRAMES_MAX];
	struct iovec io[FRAMES_MAX];
	unsigned int n;
};

static void load(struct replay *r, const char *path)
{
	char err[PCAP_ERRBUF_SIZE];
	pcap_t *p = pcap_open_offline(path, err);
	struct pcap_pkthdr *h;
	const u_char *data;
	int got;

	if (!p)
		demo_die(0, "%s", err);
	while ((got = pcap_next_ex(p, &h, &data)) == 1) {
		struct iovec *io = &r->io[r->n];

		if (r->n == FRAMES_MAX || h->caplen != h->len)
			demo_die(0, "%s: more than %d frames, or a cut one", path, FRAMES_MAX);
		io->iov_base = malloc(h->caplen);
		if (!io->iov_base)
			demo_die(ENOMEM, "frames");
		memcpy(io->iov_base, data, h->caplen);
		io->iov_len = h->caplen;
		r->m[r->n].msg_hdr.msg_iov = io;
		r->m[r->n].msg_hdr.msg_iovlen = 1;
		r->n++;
	}
	if (got != PCAP_ERROR_BREAK || !r->n)
		demo_die(0, "%s: %s", path, r->n ? pcap_geterr(p) : "no frames");
	pcap_close(p);
}

static int open_socket(const char *dev)
{
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_ifindex = (int)if_nametoindex(dev),
	};
	int sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), sz = 16 << 20;

	if (sock < 0 || bind(sock, (struct sockaddr *)&to, sizeof(to)))
		demo_die(errno, "packet socket on %s", dev);
	setsockopt(sock, SOL_SOCKET, SO_SNDBUFFORCE, &sz, sizeof(sz));
	return sock;
}

static void send_all(int sock, struct replay *r, struct demo_sum *sum)
{
	unsigned int i, k;

	for (i = 0; i < r->n;) {
		unsigned int n = r->n - i < BATCH ? r->n - i : BATCH;
		int sent = sendmmsg(sock, r->m + i, n, 0);

		if (sent < 0 && errno != ENOBUFS)
			demo_die(errno, "frame %u of %zu bytes", i, r->io[i].iov_len);
		for (k = 0; sent > 0 && k < (unsigned int)sent; k++)
			demo_sum_add(sum, r->io[i + k].iov_base, r->io[i + k].iov_len);
		i += sent > 0 ? (unsigned int)sent : 0;
	}
}

int main(int argc, char **argv)
{
	static struct replay r;
	char text[DEMO_SUM_TEXT];
	unsigned long i, times = 1;
	struct demo_sum sum;
	bool sha = false;
	uint64_t start, cpu, t;
	int c, sock;

	while ((c = getopt(argc, argv, "n:s")) != -1) {
		switch (c) {
		case 'n':
			times = demo_number(optarg, 1, 1000000);
			break;
		case 's':
			sha = true;
			break;
		default:
			goto usage;
		}
	}
	if (optind + 2 != argc)
		goto usage;
	load(&r, argv[optind + 1]);
	sock = open_socket(argv[optind]);
	demo_sum_init(&sum, sha);
	demo_stay();
	cpu = demo_cpu_us();
	start = demo_now_ns();
	for (i = 0; i < times; i++)
		send_all(sock, &r, &sum);
	t = demo_now_ns() - start;
	cpu = demo_cpu_us() - cpu;
	demo_sum_text(&sum, text);
	printf("{\"test\":\"%s\",\"who\":\"sender\",\"frames\":%lu,\"bytes\":%llu,"
	       "\"hash\":\"%s\",\"start_ns\":%llu,\"cpu_us\":%llu,\"seconds\":%.6f}\n",
	       demo_test(), times * r.n,
	       (unsigned long long)sum.bytes, text,
	       (unsigned long long)start, (unsigned long long)cpu, (double)t / 1e9);
	return 0;
usage:
	fprintf(stderr, "usage: demo_replay [-n TIMES] [-s] DEVICE FILE.pcapng\n");
	return 2;
}
