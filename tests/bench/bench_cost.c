// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What a frame costs from the device to the consumer, for one receiver. A sender
 * puts out a burst that fits the receiver's buffers, with the receive path running
 * behind each frame; then the receiver takes the whole burst in one go. Both
 * times are added. So nobody sleeps, polls in vain or loses a frame, and there
 * is no scheduling in the figures: on the one CPU of a VM that counts
 * instructions, they repeat.
 *
 * Prints one line of JSON.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "rx.h"
#include "tx.h"

#define BURST	2048U
#define WAIT_MS	2000

static const struct rx_ops *const receivers[] = {
	&rx_ring, &rx_ring_xdp, &rx_ring_coarse, &rx_ring_xdp_coarse, &rx_recvmmsg, &rx_tpacket,
	&rx_xdp, &rx_xdp_drop, &rx_echo_ring, &rx_echo_udp, &rx_echo_packet,
};

static const struct tx_ops *const senders[] = {
	&tx_pktgen, &tx_packet, &tx_packet_queue, &tx_tpacket, &tx_tpacket_direct, &tx_ring,
};

struct options {
	const struct rx_ops *rx;	/* NULL: frames are dropped elsewhere */
	const char *name;
	const char *label;	/* printed for the name */
	const char *ifname;
	unsigned int bursts;
	const struct tx_ops *tx;
	struct tx_flow flow;
};

struct cost {
	uint64_t send_ns;
	uint64_t take_ns;
};

static uint64_t take(const struct options *o, void *ctx, struct rx_seen *seen,
		     unsigned int *got)
{
	uint64_t t = bench_now_ns();

	*got += o->rx->drain(ctx, seen);
	return bench_now_ns() - t;
}

/* What a timer still has to hand over is waited for outside the measurement */
static uint64_t take_all(const struct options *o, void *ctx, struct rx_seen *seen)
{
	unsigned int got = 0, waited;
	uint64_t ns = take(o, ctx, seen, &got);

	for (waited = 0; got < BURST && waited < WAIT_MS; waited++) {
		usleep(1000);
		ns += take(o, ctx, seen, &got);
	}
	if (got != BURST || seen->bad)
		bench_die(0, "%s: %u of %u frames arrived, %llu of them wrong",
			  o->name, got, BURST, (unsigned long long)seen->bad);
	return ns;
}

static struct cost burst(const struct options *o, void *ctx)
{
	struct rx_seen seen = { .next = 1 };
	struct cost c = { .send_ns = o->tx->run(&o->flow) };

	if (o->rx && o->rx->drain)
		c.take_ns = take_all(o, ctx, &seen);
	return c;
}

static void run(const struct options *o)
{
	struct cost c, all = { 0, 0 };
	void *ctx = o->rx ? o->rx->open(o->ifname) : NULL;
	double n = (double)o->bursts * BURST;
	unsigned int i;

	burst(o, ctx);		/* caches, page tables and the like */
	for (i = 0; i < o->bursts; i++) {
		c = burst(o, ctx);
		all.send_ns += c.send_ns;
		all.take_ns += c.take_ns;
	}
	if (o->rx)
		o->rx->close(ctx);
	printf("{\"sender\":\"%s\",\"receiver\":\"%s\",\"bytes\":%u,\"frames\":%u,"
	       "\"send_ns\":%.2f,\"take_ns\":%.2f,\"total_ns\":%.2f}\n",
	       o->tx->name, o->label, o->flow.len, o->bursts * BURST,
	       (double)all.send_ns / n, (double)all.take_ns / n,
	       (double)(all.send_ns + all.take_ns) / n);
}

static void choose(struct options *o, const char *name)
{
	unsigned int i;

	o->name = name;
	if (!strcmp(name, "drop"))
		return;
	for (i = 0; i < sizeof(receivers) / sizeof(receivers[0]); i++)
		if (!strcmp(name, receivers[i]->name)) {
			o->rx = receivers[i];
			return;
		}
	bench_die(0, "no receiver '%s'", name);
}

static void choose_sender(struct options *o, const char *name)
{
	unsigned int i;

	for (i = 0; i < sizeof(senders) / sizeof(senders[0]); i++)
		if (!strcmp(name, senders[i]->name)) {
			o->tx = senders[i];
			return;
		}
	bench_die(0, "no sender '%s'", name);
}

int main(int argc, char **argv)
{
	struct options o = {
		.bursts = 8,
		.ifname = "veth1",
		.tx = &tx_pktgen,
		.flow = {
			.dev = "veth0",
			.dst_mac = "02:00:00:00:00:01",
			.src_ip = "10.9.0.2",
			.dst_ip = "10.9.0.1",
			.len = 64,
			.count = BURST,
		},
	};
	int c;

	while ((c = getopt(argc, argv, "i:p:m:l:n:s:N:")) != -1) {
		switch (c) {
		case 'i':
			o.ifname = optarg;
			break;
		case 'p':
			o.flow.dev = optarg;
			break;
		case 'm':
			o.flow.dst_mac = optarg;
			break;
		case 'l':
			o.flow.len = (uint32_t)atoi(optarg);
			break;
		case 'n':
			o.bursts = (unsigned int)atoi(optarg);
			break;
		case 's':
			choose_sender(&o, optarg);
			break;
		case 'N':
			o.label = optarg;
			break;
		default:
			goto usage;
		}
	}
	if (optind + 1 != argc || o.bursts < 1 || o.flow.len < 64 ||
	    o.flow.len > 1514)
		goto usage;
	choose(&o, argv[optind]);
	if (!o.label)
		o.label = o.name;
	o.tx->setup(&o.flow);
	run(&o);
	return 0;
usage:
	fprintf(stderr, "usage: bench_cost [-i IF] [-p SENDING_IF] [-m DESTINATION_MAC] [-l BYTES]\n"
		"                  [-n BURSTS] [-s SENDER] [-N LABEL]\n"
		"                  drop | ring[_coarse] | ring_xdp[_coarse] | recvmmsg | tpacket_v3 |\n"
		"                  af_xdp | xdp_drop | echo_ring | echo_udp | echo_packet\n");
	return 2;
}
