// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The userspace source beside plain recvmmsg(2): the same stream of datagrams
 * over loopback, sent by a process on one core and received on the other, either
 * by recvmmsg into a buffer or by the source into a ring. Every byte received is
 * checked in all cases. The source and its consumer share the receiving core, so
 * the ring pays for both. The consumer is measured in two ways: it looks every
 * half millisecond, or it sleeps and is woken.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "mem.h"
#include "udp.h"

#define RCVBUF		(8U << 20)
#define IDLE_MS		50	/* after the last datagram */
#define LOOK_NS		500000

enum way {
	WAY_RECVMMSG,
	WAY_LOOK,
	WAY_WAKE,
	WAYS
};

struct result {
	double pps;
	double cpu_ns;		/* of the receiving process, a datagram */
	double lost;		/* share of what was sent */
};

struct counted {
	struct mem_sum sum;
	uint64_t first, last;	/* ns */
};

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = port,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

/* A datagram's number says what must follow; lost ones leave gaps in them */
static inline void count(struct counted *c, const void *data, uint32_t len)
{
	uint64_t i;

	memcpy(&i, data, sizeof(i));
	mem_check(data, i, len, &c->sum);
}

static void count_time(struct counted *c)
{
	c->last = bench_now_ns();
	if (!c->first)
		c->first = c->last;
}

static struct result finish(const struct counted *c, uint64_t sent,
			    uint64_t cpu_ns, const char *who)
{
	double n = (double)c->sum.good;

	if (c->sum.bad || !c->sum.good || c->sum.good > sent)
		bench_die(0, "%s: %llu good, %llu bad of %llu datagrams", who,
			  (unsigned long long)c->sum.good,
			  (unsigned long long)c->sum.bad,
			  (unsigned long long)sent);
	return (struct result){
		.pps = n * 1e9 / (double)(c->last - c->first + 1),
		.cpu_ns = (double)cpu_ns / n,
		.lost = 1.0 - n / (double)sent,
	};
}

static int receiver_socket(struct sockaddr_in *at)
{
	struct timeval tv = { .tv_usec = IDLE_MS * 1000 };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), sz = RCVBUF;
	socklen_t len = sizeof(*at);

	*at = loopback(0);
	if (s < 0 || bind(s, (struct sockaddr *)at, sizeof(*at)) ||
	    getsockname(s, (struct sockaddr *)at, &len))
		bench_die(errno, "receiver's socket");
	if (setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &sz, sizeof(sz)))
		setsockopt(s, SOL_SOCKET, SO_RCVBUF, &sz, sizeof(sz));
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	return s;
}

static struct result turn_recvmmsg(uint32_t len, unsigned int ms)
{
	static unsigned char buf[UDP_BATCH][2048];
	struct mmsghdr m[UDP_BATCH];
	struct iovec io[UDP_BATCH];
	struct counted c = { .first = 0 };
	struct udp_sender tx;
	struct sockaddr_in at;
	uint64_t cpu, sent;
	int i, r, s = receiver_socket(&at);

	memset(m, 0, sizeof(m));
	for (i = 0; i < (int)UDP_BATCH; i++) {
		io[i].iov_base = buf[i];
		io[i].iov_len = sizeof(buf[i]);
		m[i].msg_hdr.msg_iov = &io[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	cpu = bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	udp_sender_start(&tx, &at, len, ms, bench_cpu(0));
	for (;;) {
		r = recvmmsg(s, m, UDP_BATCH, MSG_WAITFORONE, NULL);
		if (r <= 0) {
			if (c.first || udp_sender_ended(&tx))
				break;
			continue;
		}
		count_time(&c);
		for (i = 0; i < r; i++)
			count(&c, buf[i], m[i].msg_len);
	}
	cpu = bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	sent = udp_sender_wait(&tx);
	close(s);
	return finish(&c, sent, cpu, "recvmmsg");
}

static void drain(struct rgate_consumer *rc, struct counted *c)
{
	const struct rgate_slot *v[RGATE_BATCH];
	unsigned int i, n;

	while ((n = rgate_consumer_peek(rc, v, RGATE_BATCH))) {
		for (i = 0; i < n; i++) {
			if (v[i]->flags & RGATE_SLOT_PAD)
				continue;
			count(c, (const unsigned char *)rgate_slot_data(v[i]) +
			      v[i]->payload_off, v[i]->len - v[i]->payload_off);
		}
		rgate_consumer_release_n(rc, n);
	}
	count_time(c);
}

/* 1: there is something; 0: nothing came for a while */
static int await(struct rgate_consumer *rc, enum way way)
{
	const struct timespec t = { .tv_nsec = LOOK_NS };
	const struct rgate_slot *v;
	unsigned int i;

	if (way == WAY_WAKE)
		return rgate_consumer_wait(rc, IDLE_MS);
	for (i = 0; i < IDLE_MS * 1000000U / LOOK_NS; i++) {
		if (rgate_consumer_peek(rc, &v, 1))
			return 1;
		nanosleep(&t, NULL);
	}
	return 0;
}

static struct result turn_source(uint32_t len, unsigned int ms, enum way way)
{
	struct rgate_source_opts so = RGATE_OPTS(rgate_source_opts,
						 .batch = UDP_BATCH,
						 .rcvbuf = RCVBUF,
						 .cpu_plus1 = bench_cpu(1) + 1);
	struct sockaddr_in at = loopback(0);
	socklen_t atlen = sizeof(at);
	struct counted c = { .first = 0 };
	struct rgate_consumer rc;
	struct rgate_source *src;
	struct rgate_ring *ring;
	struct udp_sender tx;
	uint64_t cpu, sent;
	struct rgate_source_stats st;
	int err;

	err = rgate_ring_open_memfd(&ring, NULL);
	if (err)
		bench_die(err, "rgate_ring_open_memfd");
	err = rgate_source_start_udp(&src, &ring, 1, (struct sockaddr *)&at,
				     sizeof(at), &so);
	if (err)
		bench_die(err, "rgate_source_start_udp");
	err = rgate_source_addr(src, (struct sockaddr *)&at, &atlen);
	if (!err)
		err = rgate_consumer_init(&rc, ring, NULL);
	if (err)
		bench_die(err, "consumer");
	cpu = bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	udp_sender_start(&tx, &at, len, ms, bench_cpu(0));
	for (;;) {
		err = await(&rc, way);
		if (err == 1)
			drain(&rc, &c);
		else if (err == 0 && (c.first || udp_sender_ended(&tx)))
			break;
		else if (err < 0 && err != -EINTR)
			bench_die(err, "waiting");
	}
	cpu = bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	sent = udp_sender_wait(&tx);
	(void)rgate_source_stats(src, &st);
	if (st.error)
		bench_die((int)st.error, "the source ended early");
	rgate_source_stop(src);
	rgate_ring_close(ring);
	return finish(&c, sent, cpu, "source");
}

static struct result turn(enum way kind, uint32_t len, unsigned int ms)
{
	return kind == WAY_RECVMMSG ? turn_recvmmsg(len, ms) :
				      turn_source(len, ms, kind);
}

struct series {
	double pps[BENCH_ROUNDS_MAX], cpu[BENCH_ROUNDS_MAX], lost[BENCH_ROUNDS_MAX];
	double ratio[BENCH_ROUNDS_MAX];	/* of the rates, to recvmmsg's */
};

static void print_json(FILE *f, struct series *s, unsigned int n, const char *way)
{
	fprintf(f, "\"%s\":{\"pps\":%.0f,\"cpu_ns\":%.0f,\"lost\":%.4f,"
		"\"ratio\":%.3f,\"ratio_q1\":%.3f,\"ratio_q3\":%.3f}", way,
		bench_median(s->pps, n), bench_median(s->cpu, n),
		bench_median(s->lost, n), bench_median(s->ratio, n),
		bench_quantile(s->ratio, n, 0.25), bench_quantile(s->ratio, n, 0.75));
}

static void measure(uint32_t len, const struct bench_opts *o, bool first)
{
	static const char *const names[WAYS] = {
		"recvmmsg", "source", "source_woken",
	};
	static struct series s[WAYS];
	unsigned int i, k, w, n = o->rounds;
	struct result r[WAYS];

	for (i = 0; i < n; i++) {
		/* the order turns from round to round */
		for (k = 0; k < WAYS; k++) {
			w = (i + k) % WAYS;
			r[w] = turn(w, len, o->ms);
		}
		for (w = 0; w < WAYS; w++) {
			s[w].pps[i] = r[w].pps;
			s[w].cpu[i] = r[w].cpu_ns;
			s[w].lost[i] = r[w].lost;
			s[w].ratio[i] = r[w].pps / r[WAY_RECVMMSG].pps;
		}
	}
	printf("%6u", len);
	for (w = 0; w < WAYS; w++)
		printf("  %8.0f", bench_median(s[w].pps, n) / 1e3);
	for (w = 1; w < WAYS; w++)
		printf("  %6.3f", bench_median(s[w].ratio, n));
	for (w = 0; w < WAYS; w++)
		printf("  %8.0f", bench_median(s[w].cpu, n));
	for (w = 0; w < WAYS; w++)
		printf("  %6.2f", bench_median(s[w].lost, n) * 100);
	printf("\n");
	fflush(stdout);
	if (!o->json)
		return;
	fprintf(o->json, "%s{\"bytes\":%u,", first ? "" : ",", len);
	for (w = 0; w < WAYS; w++) {
		print_json(o->json, &s[w], n, names[w]);
		fputc(w + 1 < WAYS ? ',' : '}', o->json);
	}
}

static void run(const struct bench_opts *o)
{
	static const uint32_t lens[] = { 64, 256, 1400 };
	double load = bench_load();
	unsigned int i;

	printf("UDP over loopback: %u CPUs, load %.2f, medians of %u rounds of %u ms a turn\n"
	       "ring: its consumer looks every 0.5 ms; woken: it sleeps until woken\n"
	       "             received, k/s         ratio to recvmmsg    CPU ns a datagram         lost, %%\n"
	       " bytes  recvmmsg      ring     woken    ring   woken  recvmmsg      ring     woken    recv    ring   woken\n",
	       bench_cpus(), load, o->rounds, o->ms);
	bench_json_begin(o, load);
	for (i = 0; i < 3; i++)
		measure(lens[i], o, i == 0);
	if (o->json)
		fprintf(o->json, "]");
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .rounds = 11, .ms = 300 };

	bench_start(argc, argv, 1, &o);
	mem_pool_init();
	run(&o);
	bench_finish(&o);
	return 0;
}
