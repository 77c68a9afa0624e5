// SPDX-License-Identifier: MIT OR GPL-2.0
/* Sends datagrams that can be verified, of several flows in turn, at a steady rate. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "demo.h"
#include "stream.h"

static volatile sig_atomic_t stop;

struct options {
	struct sockaddr_in to;
	unsigned long flows, count, rate, max, first;
};

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

/* One socket a flow, always from the same port */
static void open_flows(int *sock, const struct options *o)
{
	struct sockaddr_in from = { .sin_family = AF_INET };
	unsigned long i;
	int one = 1;

	for (i = 0; i < o->flows; i++) {
		from.sin_port = htons((uint16_t)(STREAM_PORT + i));
		sock[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (sock[i] < 0 ||
		    setsockopt(sock[i], SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
		    bind(sock[i], (struct sockaddr *)&from, sizeof(from)) ||
		    connect(sock[i], (const struct sockaddr *)&o->to, sizeof(o->to)))
			demo_die(errno, "flow %lu", i);
	}
}

static void pace(uint64_t begun, unsigned long i, unsigned long rate)
{
	const uint64_t due = begun + i * 1000000000ULL / rate;
	const struct timespec t = {
		.tv_sec = (time_t)(due / 1000000000ULL),
		.tv_nsec = (long)(due % 1000000000ULL),
	};

	if (demo_now_ns() < due)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static unsigned long send_all(const int *sock, const struct options *o)
{
	unsigned char buf[STREAM_MAX];
	const uint64_t begun = demo_now_ns();
	unsigned long i;
	size_t len;

	for (i = 0; i < o->count && !stop; i++) {
		uint32_t number = (uint32_t)(o->first + i / o->flows);

		pace(begun, i, o->rate);
		len = stream_fill(buf, (uint32_t)(i % o->flows), number, o->max);
		/* A port without a socket behind it is told by ICMP: the ring has it. */
		while (send(sock[i % o->flows], buf, len, 0) != (ssize_t)len)
			if (errno != ENOBUFS && errno != ECONNREFUSED)
				demo_die(errno, "send");
	}
	return i;
}

int main(int argc, char **argv)
{
	struct options o = {
		.to = { .sin_family = AF_INET },
		.flows = 8, .count = 1000, .rate = 1000, .max = STREAM_MAX,
	};
	struct sigaction sa = { .sa_handler = on_signal };
	int sock[STREAM_FLOWS], c;

	while ((c = getopt(argc, argv, "f:n:r:l:b:")) != -1) {
		switch (c) {
		case 'f':
			o.flows = demo_number(optarg, 1, STREAM_FLOWS);
			break;
		case 'n':
			o.count = demo_number(optarg, 1, 1UL << 31);
			break;
		case 'r':
			o.rate = demo_number(optarg, 1, 10000000);
			break;
		case 'l':
			o.max = demo_number(optarg, STREAM_MIN, STREAM_MAX);
			break;
		case 'b':
			o.first = demo_number(optarg, 0, 1UL << 31);
			break;
		default:
			goto usage;
		}
	}
	if (optind + 2 != argc || !inet_aton(argv[optind], &o.to.sin_addr))
		goto usage;
	o.to.sin_port = htons((uint16_t)demo_number(argv[optind + 1], 1, 65535));
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	open_flows(sock, &o);
	printf("%lu\n", send_all(sock, &o));
	return 0;
usage:
	fprintf(stderr, "usage: cluster_send [-f FLOWS] [-n DATAGRAMS] [-r PER_SECOND] [-l BYTES]\n"
		"                    [-b FIRST_NUMBER] IPV4 PORT\nPrints how many were sent.\n");
	return 2;
}
