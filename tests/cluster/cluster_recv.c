// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Consumes a ring that the cluster's gateway fills, verifies each datagram, and keeps a
 * file up to date that says what came: a line of sums, then which numbers of which
 * flows, as ranges, in order of arrival.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "demo.h"
#include "stream.h"

#define RANGES_MAX	200000
#define REPORT_NS	250000000ULL
#define WAIT_MS		100

struct range {
	uint32_t flow, first, last;
};

struct receiver {
	struct rgate_ring *ring;
	const char *file;
	unsigned long delay_us;		/* a slow consumer: for each frame */
	uint64_t frames, bytes, bad, late;
	uint64_t reported_ns, reported;	/* when, and at how many frames */
	struct range *ranges;
	size_t nranges;
	int32_t current[STREAM_FLOWS];	/* the flow's newest range; -1: none */
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

/* Beside the file first: who reads it sees one or the other. */
static void report(struct receiver *r)
{
	struct rgate_stats st = { .delivered = 0 };
	char name[PATH_MAX];
	FILE *f;
	size_t i;

	rgate_ring_stats(r->ring, &st);
	snprintf(name, sizeof(name), "%s.new", r->file);
	f = fopen(name, "w");
	if (!f)
		demo_die(errno, "%s", name);
	fprintf(f, "frames %llu bytes %llu bad %llu late %llu delivered %llu dropped %llu\n",
		(unsigned long long)r->frames, (unsigned long long)r->bytes,
		(unsigned long long)r->bad, (unsigned long long)r->late,
		(unsigned long long)st.delivered, (unsigned long long)st.dropped_full);
	for (i = 0; i < r->nranges; i++)
		fprintf(f, "%u %u %u\n", r->ranges[i].flow, r->ranges[i].first, r->ranges[i].last);
	if (fclose(f) || rename(name, r->file))
		demo_die(errno, "%s", r->file);
	r->reported = r->frames;
	r->reported_ns = demo_now_ns();
}

static void note(struct receiver *r, uint32_t flow, uint32_t number)
{
	struct range *now = r->current[flow] < 0 ? NULL : &r->ranges[r->current[flow]];

	if (now && number == now->last + 1) {
		now->last = number;
		return;
	}
	if (now && number <= now->last)
		r->late++;
	if (r->nranges == RANGES_MAX)
		demo_die(0, "more gaps than can be noted");
	r->ranges[r->nranges] = (struct range){ flow, number, number };
	r->current[flow] = (int32_t)r->nranges++;
}

static void take(struct receiver *r, const struct rgate_slot *s)
{
	uint32_t flow = 0, number = 0;
	const unsigned char *p;
	size_t len = 0;

	r->frames++;
	r->bytes += s->len;
	p = stream_payload(rgate_slot_data(s), s->len, &len);
	if (s->chain_cnt > 1 || !p || !stream_check(p, len, &flow, &number)) {
		r->bad++;
		return;
	}
	note(r, flow, number);
}

static void receive(struct receiver *r)
{
	struct rgate_consumer c;
	int err;

	err = rgate_consumer_init(&c, r->ring, NULL);
	if (err)
		demo_die(err, "rgate_consumer_init");
	report(r);
	while (!stop) {
		const struct rgate_slot *s = rgate_consumer_next(&c);

		if (s) {
			take(r, s);
			rgate_consumer_release(&c);
			if (r->delay_us)
				usleep((useconds_t)r->delay_us);
		}
		if (r->reported != r->frames &&
		    (!s || r->delay_us) && demo_now_ns() - r->reported_ns > REPORT_NS)
			report(r);
		err = s ? 0 : rgate_consumer_wait(&c, WAIT_MS);
		if (err < 0 && err != -EINTR)
			break;
	}
	report(r);
	if (err == -EPIPE && !stop)
		fprintf(stderr, "cluster_recv: the ring was closed\n");
}

int main(int argc, char **argv)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 4096, .slot_size = 2048);
	struct sigaction sa = { .sa_handler = on_signal };
	struct receiver r = { .frames = 0 };
	int c, err;

	while ((c = getopt(argc, argv, "s:n:z:d:m:")) != -1) {
		switch (c) {
		case 's':
			o.device = optarg;
			break;
		case 'n':
			o.slots = (uint32_t)demo_number(optarg, 1, UINT_MAX);
			break;
		case 'z':
			o.slot_size = (uint32_t)demo_number(optarg, 1, UINT_MAX);
			break;
		case 'd':
			r.delay_us = demo_number(optarg, 0, 999999);
			break;
		case 'm':
			o.name = optarg;
			break;
		default:
			goto usage;
		}
	}
	if (optind + 1 != argc)
		goto usage;
	r.file = argv[optind];
	memset(r.current, 0xff, sizeof(r.current));
	r.ranges = calloc(RANGES_MAX, sizeof(*r.ranges));
	if (!r.ranges)
		demo_die(ENOMEM, "ranges");
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	err = rgate_ring_open_remote(&r.ring, &o);
	if (err)
		demo_die(err, "rgate_ring_open_remote");
	receive(&r);
	rgate_ring_close(r.ring);
	free(r.ranges);
	return 0;
usage:
	fprintf(stderr, "usage: cluster_recv [-s SOCKET] [-n SLOTS] [-z SLOT_SIZE] [-m NAME]\n"
		"                    [-d US_A_FRAME] FILE\n");
	return 2;
}
