// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A program that has connections to one at another place: how fast bytes, questions and connections
 * go, and for how much CPU. A line of JSON. sockets.sh has the ways there.
 *
 *	bench_sockets serve ADDRESS
 *	bench_sockets [-s SOCKET] [-n NAME] [-p PID,...] [-b BYTES] plain|ringgate ADDRESS
 *		WHAT NUMBER NUMBER
 *
 * WHAT: push, pull STREAMS BYTES; check STREAMS BYTES; trip BYTES TIMES; meet THREADS TIMES;
 * idle CONNECTIONS TIMES
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "sockets/way.h"

#define ANSWER	1024U	/* bytes that a connection of meet() asks for */
#define STREAMS	64U

struct way_at way_at = { .piece = 64U << 10 };
static const struct way *way;
static const char *name, *pids = "";

uint64_t hash_of(uint64_t hash, const unsigned char *bytes, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * 1099511628211ULL;
	return hash;
}

static unsigned char byte_at(uint64_t stream, uint64_t off)
{
	const uint64_t x = (off / 8 + (stream << 48) + 1) * 0x9e3779b97f4a7c15ULL;

	return (unsigned char)((x ^ x >> 29) >> off % 8 * 8);
}

void fill(unsigned char *bytes, size_t len, uint64_t stream, uint64_t off)
{
	size_t i;

	for (i = 0; i < len; i++)
		bytes[i] = byte_at(stream, off + i);
}

static void *meet(void *user, enum wish wish, uint64_t len)
{
	const struct hello h = { .wish = wish, .len = len };
	void *conn = way->connect(user);

	way->send(conn, &h, sizeof(h));
	return conn;
}

static void print(const char *what, uint64_t n, const char *more)
{
	printf("{\"way\":\"%s\",\"what\":\"%s\",\"n\":%llu,%s}\n", name, what,
	       (unsigned long long)n, more);
}

/* ---- Streams ---- */

static uint64_t hashes[STREAMS];

static void fill_piece(void *ctx, unsigned char *bytes, size_t len, uint32_t stream, uint64_t off)
{
	(void)ctx;
	fill(bytes, len, stream, off);
	hashes[stream] = hash_of(hashes[stream], bytes, len);
}

static void hear(void *conn, uint32_t stream, uint64_t len, bool check)
{
	struct report r;

	way->recv(conn, &r, sizeof(r));
	if (r.len != len || (check && r.hash != hashes[stream]))
		bench_die(EBADMSG, "%s: what came is not what was sent", name);
}

static void push(uint32_t n, uint64_t len, bool check)
{
	void *conns[STREAMS], *user = way->begin(n);
	struct spent before, after;
	uint64_t began, ns;
	char more[200];
	uint32_t i;

	for (i = 0; i < n; i++) {
		hashes[i] = HASH_BEGIN;
		conns[i] = meet(user, check ? WISH_CHECK : WISH_TAKE, len);
	}
	spent_by(pids, &before);
	began = bench_now_ns();
	way->push(user, conns, n, len, check ? fill_piece : NULL, NULL);
	for (i = 0; i < n; i++)
		hear(conns[i], i, len, check);
	ns = bench_now_ns() - began;
	spent_by(pids, &after);
	snprintf(more, sizeof(more), "\"bytes_per_s\":%.0f,\"cpu_ns_per_kib\":%.3f",
		 (double)(n * len) * 1e9 / (double)ns,
		 (double)(after.cpu_ns - before.cpu_ns) * 1024 / (double)(n * len));
	print(check ? "check" : "push", n, more);
	for (i = 0; i < n; i++)
		way->close(conns[i]);
	way->end(user);
}

static void pull(uint32_t n, uint64_t len)
{
	void *conns[STREAMS], *user = way->begin(n);
	struct spent before, after;
	uint64_t began, ns;
	char more[200];
	uint32_t i;

	spent_by(pids, &before);
	began = bench_now_ns();
	for (i = 0; i < n; i++)
		conns[i] = meet(user, WISH_GIVE, len);
	way->pull(user, conns, n, len, NULL, NULL);
	ns = bench_now_ns() - began;
	spent_by(pids, &after);
	snprintf(more, sizeof(more), "\"bytes_per_s\":%.0f,\"cpu_ns_per_kib\":%.3f",
		 (double)(n * len) * 1e9 / (double)ns,
		 (double)(after.cpu_ns - before.cpu_ns) * 1024 / (double)(n * len));
	print("pull", n, more);
	for (i = 0; i < n; i++)
		way->close(conns[i]);
	way->end(user);
}

/* What a stream brings back is what it has sent, piece by piece: for either direction. */
static void echo(uint64_t len)
{
	unsigned char there[4096], back[4096];
	void *user = way->begin(1), *conn = meet(user, WISH_ECHO, 0);
	uint64_t off;

	for (off = 0; off < len; off += sizeof(there)) {
		fill(there, sizeof(there), 0, off);
		memcpy(back, there, sizeof(back));
		way->trip(conn, back, sizeof(back));
		if (memcmp(there, back, sizeof(back)))
			bench_die(EBADMSG, "%s: what came back is not what was sent", name);
	}
	way->close(conn);
	way->end(user);
}

/* ---- Questions ---- */

static void trips(void *conn, uint32_t len, uint32_t n, double us[2])
{
	double *each = malloc(n * sizeof(*each));
	unsigned char bytes[4096];
	uint64_t began;
	uint32_t i;

	if (!each || len > sizeof(bytes))
		bench_die(ENOMEM, "round trips");
	fill(bytes, len, 0, 0);
	for (i = 0; i < n; i++) {
		began = bench_now_ns();
		way->trip(conn, bytes, len);
		each[i] = (double)(bench_now_ns() - began) / 1e3;
	}
	us[0] = bench_quantile(each, n, 0.5);
	us[1] = bench_quantile(each, n, 0.99);
	free(each);
}

static void trip(uint32_t len, uint32_t n)
{
	void *user = way->begin(0), *conn = meet(user, WISH_ECHO, 0);
	char more[200];
	double us[2];

	trips(conn, len, n / 10, us);
	trips(conn, len, n, us);
	snprintf(more, sizeof(more), "\"p50_us\":%.2f,\"p99_us\":%.2f", us[0], us[1]);
	print("trip", len, more);
	way->close(conn);
	way->end(user);
}

/* ---- Connections ---- */

static void *meet_many(void *times)
{
	unsigned char answer[ANSWER];
	void *conn, *user = way->begin(0);
	uint32_t i;

	for (i = *(uint32_t *)times; i; i--) {
		conn = meet(user, WISH_GIVE, ANSWER);
		way->recv(conn, answer, ANSWER);
		way->finish(conn);
		way->close(conn);
	}
	way->end(user);
	return NULL;
}

static void meetings(uint32_t nthreads, uint32_t times)
{
	uint32_t i, each = times / nthreads;
	pthread_t thread[STREAMS];
	struct spent before, after;
	uint64_t began, ns;
	char more[200];
	int err;

	spent_by(pids, &before);
	began = bench_now_ns();
	for (i = 0; i < nthreads; i++) {
		err = pthread_create(&thread[i], NULL, meet_many, &each);
		if (err)
			bench_die(err, "a thread");
	}
	for (i = 0; i < nthreads; i++)
		pthread_join(thread[i], NULL);
	ns = bench_now_ns() - began;
	spent_by(pids, &after);
	snprintf(more, sizeof(more), "\"per_s\":%.0f,\"cpu_us\":%.2f",
		 (double)nthreads * each * 1e9 / (double)ns,
		 (double)(after.cpu_ns - before.cpu_ns) / 1e3 / ((double)nthreads * each));
	print("meet", nthreads, more);
}

static void idle(uint32_t n, uint32_t times)
{
	void *user = way->begin(UINT32_MAX), *busy = meet(user, WISH_ECHO, 0);
	void **conns = calloc(n, sizeof(*conns));
	double alone[2], among[2];
	struct spent before, after;
	char more[400];
	uint32_t i;

	if (!conns)
		bench_die(ENOMEM, "connections");
	trips(busy, 64, times / 10, alone);
	trips(busy, 64, times, alone);
	spent_by(pids, &before);
	for (i = 0; i < n; i++)
		conns[i] = meet(user, WISH_ECHO, 0);
	/* The last hello may be on its way. */
	usleep(500000);
	spent_by(pids, &after);
	trips(busy, 64, times, among);
	snprintf(more, sizeof(more), "\"own_bytes\":%.0f,\"others_bytes\":%.0f,\"kernel_bytes\":%.0f,"
		 "\"alone_p50_us\":%.2f,\"alone_p99_us\":%.2f,\"p50_us\":%.2f,\"p99_us\":%.2f",
		 ((double)after.own_bytes - (double)before.own_bytes) / n,
		 ((double)(after.bytes - after.own_bytes) -
		  (double)(before.bytes - before.own_bytes)) / n,
		 ((double)after.kernel_bytes - (double)before.kernel_bytes) / n,
		 alone[0], alone[1], among[0], among[1]);
	print("idle", n, more);
	way->end(user);
}

static const char *options(int *argc, char ***argv)
{
	int c;

	while ((c = getopt(*argc, *argv, "+s:n:p:b:")) != -1) {
		switch (c) {
		case 's':
			way_at.socket = optarg;
			break;
		case 'n':
			name = optarg;
			break;
		case 'p':
			pids = optarg;
			break;
		case 'b':
			way_at.piece = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		default:
			return NULL;
		}
	}
	*argc -= optind;
	*argv += optind;
	return *argc ? (*argv)[0] : NULL;
}

int main(int argc, char **argv)
{
	const char *first = options(&argc, &argv), *what;
	uint32_t n;
	uint64_t m;

	if (first && argc == 2 && !strcmp(first, "serve"))
		serve(argv[1]);
	if (!first || argc != 5)
		bench_die(0, "usage: bench_sockets [OPTION]... plain|ringgate ADDRESS WHAT NUMBER NUMBER");
	way = strcmp(first, "ringgate") ? &plain_way : &ringgate_way;
	way_at.peer = argv[1];
	if (!name)
		name = way->name;
	what = argv[2];
	n = (uint32_t)strtoul(argv[3], NULL, 0);
	m = strtoull(argv[4], NULL, 0);
	if (way_at.piece < 8192 || way_at.piece > 1U << 20)
		bench_die(0, "-b: 8192 to 1048576");
	if (!n || n > (strcmp(what, "idle") && strcmp(what, "trip") ? STREAMS : 1000000))
		bench_die(0, "%s is no number of these", argv[3]);
	if (!strcmp(what, "push")) {
		push(n, m, false);
	} else if (!strcmp(what, "check")) {
		push(n, m, true);
		echo(m);
	} else if (!strcmp(what, "pull")) {
		pull(n, m);
	} else if (!strcmp(what, "trip")) {
		trip(n, (uint32_t)m);
	} else if (!strcmp(what, "meet")) {
		meetings(n, (uint32_t)m);
	} else if (!strcmp(what, "idle")) {
		idle(n, (uint32_t)m);
	} else {
		bench_die(0, "%s is none of push, pull, check, trip, meet, idle", what);
	}
	return 0;
}
