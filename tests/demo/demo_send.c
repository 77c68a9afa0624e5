// SPDX-License-Identifier: MIT OR GPL-2.0
/* Sends numbered UDP datagrams that carry the time they were sent at. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "demo.h"

#define BATCH	32
#define LEN_MAX	1472

struct options {
	struct sockaddr_in to;
	unsigned long count, len, rate;
	bool sha;
};

static void fill(unsigned char *buf, uint32_t seq, size_t len)
{
	struct demo_payload p = { .magic = DEMO_MAGIC, .seq = seq };
	uint64_t x = 0x9e3779b97f4a7c15ULL * (seq + 1);
	size_t i;

	for (i = sizeof(p); i < len; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		buf[i] = (unsigned char)(x >> 40);
	}
	memcpy(buf, &p, sizeof(p));
}

static void stamp(unsigned char *buf)
{
	uint64_t now = demo_now_ns();

	memcpy(buf + offsetof(struct demo_payload, sent_ns), &now, sizeof(now));
}

/* Datagram @seq shall not go before its time */
static void pace(uint64_t begun, unsigned long seq, unsigned long rate)
{
	uint64_t due = begun + seq * 1000000000ULL / rate;
	struct timespec t = {
		.tv_sec = (time_t)(due / 1000000000ULL),
		.tv_nsec = (long)(due % 1000000000ULL),
	};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void send_paced(int sock, const struct options *o, struct demo_sum *sum)
{
	unsigned char buf[LEN_MAX];
	uint64_t begun = demo_now_ns();
	unsigned long i;

	for (i = 0; i < o->count; i++) {
		fill(buf, (uint32_t)i, o->len);
		pace(begun, i, o->rate);
		stamp(buf);
		if (send(sock, buf, o->len, 0) != (ssize_t)o->len)
			demo_die(errno, "send");
		demo_sum_add(sum, buf, o->len);
	}
}

static void send_fast(int sock, const struct options *o, struct demo_sum *sum)
{
	static unsigned char buf[BATCH][LEN_MAX];
	struct mmsghdr m[BATCH];
	struct iovec io[BATCH];
	unsigned long i, k, n;

	memset(m, 0, sizeof(m));
	for (k = 0; k < BATCH; k++) {
		io[k].iov_base = buf[k];
		io[k].iov_len = o->len;
		m[k].msg_hdr.msg_iov = &io[k];
		m[k].msg_hdr.msg_iovlen = 1;
	}
	for (i = 0; i < o->count; i += n) {
		n = o->count - i < BATCH ? o->count - i : BATCH;
		for (k = 0; k < n; k++) {
			fill(buf[k], (uint32_t)(i + k), o->len);
			stamp(buf[k]);
			demo_sum_add(sum, buf[k], o->len);
		}
		for (k = 0; k < n;) {
			int r = sendmmsg(sock, m + k, (unsigned int)(n - k), 0);

			if (r < 0 && errno != ENOBUFS)
				demo_die(errno, "sendmmsg");
			k += r > 0 ? (unsigned long)r : 0;
		}
	}
}

int main(int argc, char **argv)
{
	struct options o = {
		.to = { .sin_family = AF_INET },
		.count = 10000,
		.len = 256,
	};
	char text[DEMO_SUM_TEXT];
	struct demo_sum sum;
	uint64_t start, cpu, t;
	int c, sock;

	while ((c = getopt(argc, argv, "n:l:r:s")) != -1) {
		switch (c) {
		case 'n':
			o.count = demo_number(optarg, 1, 10000000);
			break;
		case 'l':
			o.len = demo_number(optarg, sizeof(struct demo_payload), LEN_MAX);
			break;
		case 'r':
			o.rate = demo_number(optarg, 1, 10000000);
			break;
		case 's':
			o.sha = true;
			break;
		default:
			goto usage;
		}
	}
	if (optind + 2 != argc || !inet_aton(argv[optind], &o.to.sin_addr))
		goto usage;
	o.to.sin_port = htons((uint16_t)demo_number(argv[optind + 1], 1, 65535));
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0 || connect(sock, (struct sockaddr *)&o.to, sizeof(o.to)))
		demo_die(errno, "UDP socket");
	demo_sum_init(&sum, o.sha);
	demo_stay();
	cpu = demo_cpu_us();
	start = demo_now_ns();
	if (o.rate)
		send_paced(sock, &o, &sum);
	else
		send_fast(sock, &o, &sum);
	t = demo_now_ns() - start;
	cpu = demo_cpu_us() - cpu;
	demo_sum_text(&sum, text);
	printf("{\"test\":\"%s\",\"who\":\"sender\",\"frames\":%lu,\"bytes\":%llu,"
	       "\"hash\":\"%s\",\"start_ns\":%llu,\"cpu_us\":%llu,\"seconds\":%.6f}\n",
	       demo_test(), o.count,
	       (unsigned long long)sum.bytes, text,
	       (unsigned long long)start, (unsigned long long)cpu, (double)t / 1e9);
	return 0;
usage:
	fprintf(stderr, "usage: demo_send [-n COUNT] [-l BYTES] [-r PER_SECOND] [-s] IPV4 PORT\n"
		"       -s: SHA-256 of what is sent rather than a sum\n");
	return 2;
}
