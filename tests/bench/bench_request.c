// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Requests beside what they are made of, in turns of the same run: a nop's round trip and a
 * hand-over each way by two bare words; nops in batches of 32; a client that sleeps and is
 * woken, and a thread that is by eventfd and epoll. The engine is the process' own.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "bench.h"

#define BATCH	32U
#define SPIN_US	100000U		/* longer than any turn of the other side */

enum what {
	BARE_TRIP,		/* ns there and back */
	NOP_TRIP,
	NOP_BATCHED,		/* ns a nop */
	BARE_WAKE,		/* ns there and back, the asking side asleep */
	NOP_WAKE,
	CASES
};

static const char *const name[] = {
	"bare, round trip", "nop, round trip", "nop, by 32", "eventfd + epoll, round trip",
	"nop, round trip, woken",
};

/* ---- Two words ---- */

static struct {
	uint64_t there __attribute__((aligned(128)));
	uint64_t back __attribute__((aligned(128)));
	uint32_t stop __attribute__((aligned(128)));
} word;

static int to_fd, back_fd;

static void *answer(void *arg)
{
	uint64_t n = 0;

	bench_pin(*(int *)arg);
	while (!__atomic_load_n(&word.stop, __ATOMIC_RELAXED)) {
		if (__atomic_load_n(&word.there, __ATOMIC_ACQUIRE) == n) {
			bench_relax();
			continue;
		}
		n++;
		__atomic_store_n(&word.back, n, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Polls, as the engine does for a client that is about; the other side sleeps. */
static void *answer_asleep(void *arg)
{
	const uint64_t one = 1;
	uint64_t n = 0;

	bench_pin(*(int *)arg);
	while (!__atomic_load_n(&word.stop, __ATOMIC_RELAXED)) {
		if (__atomic_load_n(&word.there, __ATOMIC_ACQUIRE) == n) {
			bench_relax();
			continue;
		}
		n++;
		if (write(back_fd, &one, sizeof(one)) != sizeof(one))
			bench_die(errno, "eventfd");
	}
	return NULL;
}

static double bare(unsigned int ms, bool asleep)
{
	struct epoll_event ev = { .events = EPOLLIN };
	uint64_t n = 0, got, from, until;
	int cpu = bench_cpu(1), err;
	pthread_t t;

	memset(&word, 0, sizeof(word));
	back_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	to_fd = epoll_create1(EPOLL_CLOEXEC);
	if (back_fd < 0 || to_fd < 0 || epoll_ctl(to_fd, EPOLL_CTL_ADD, back_fd, &ev))
		bench_die(errno, "epoll");
	err = pthread_create(&t, NULL, asleep ? answer_asleep : answer, &cpu);
	if (err)
		bench_die(err, "thread");
	from = bench_now_ns();
	until = from + ms * 1000000ULL;
	do {
		__atomic_store_n(&word.there, ++n, __ATOMIC_RELEASE);
		if (!asleep) {
			while (__atomic_load_n(&word.back, __ATOMIC_ACQUIRE) != n)
				bench_relax();
			continue;
		}
		if (epoll_wait(to_fd, &ev, 1, -1) != 1 || read(back_fd, &got, sizeof(got)) < 0)
			bench_die(errno, "epoll");
	} while (n % 64 || bench_now_ns() < until);
	until = bench_now_ns();
	__atomic_store_n(&word.stop, 1, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	close(back_fd);
	close(to_fd);
	return (double)(until - from) / (double)n;
}

/* ---- Requests ---- */

/* The engine's thread inherits where this one may run when it opens the session. */
static struct rgate_session *session(uint32_t spin_us)
{
	const struct rgate_session_opts o = RGATE_OPTS(rgate_session_opts, .spin_us = spin_us,
						       .where = RGATE_SESSION_PROCESS);
	struct rgate_session *s;
	int err;

	bench_pin(bench_cpu(1));
	err = rgate_session_open(&s, &o);
	bench_pin(bench_cpu(0));
	if (err)
		bench_die(-err, "session");
	return s;
}

static void take(struct rgate_session *s, struct rgate_completion *c, unsigned int n)
{
	int got;

	while (n) {
		got = rgate_session_poll(s, c, n);
		if (got < 0)
			bench_die(-got, "poll");
		if (!got)
			bench_relax();
		n -= (unsigned int)got;
	}
}

static double trips(unsigned int ms, bool asleep)
{
	struct rgate_request q = { .op = RGATE_REQ_NOP };
	/* The engine polls as the first session says; who sleeps is the client. */
	struct rgate_session *first = session(SPIN_US);
	struct rgate_session *s = session(asleep ? RGATE_SPIN_NONE : SPIN_US);
	struct rgate_completion c;
	uint64_t n = 0, from = bench_now_ns(), until = from + ms * 1000000ULL;
	int err;

	do {
		q.cookie = q.a0 = ++n;
		err = rgate_session_submit(s, &q);
		if (err)
			bench_die(-err, "submit");
		if (asleep && rgate_session_wait(s, -1) != 1)
			bench_die(0, "wait");
		take(s, &c, 1);
		if (c.cookie != n || c.value != n)
			bench_die(0, "a wrong answer");
	} while (n % 64 || bench_now_ns() < until);
	until = bench_now_ns();
	rgate_session_close(s);
	rgate_session_close(first);
	return (double)(until - from) / (double)n;
}

static double batched(unsigned int ms)
{
	struct rgate_session *s = session(SPIN_US);
	struct rgate_completion c[BATCH];
	struct rgate_request q[BATCH];
	uint64_t sent = 0, got = 0, from, until;
	unsigned int i;
	int n;

	memset(q, 0, sizeof(q));
	from = bench_now_ns();
	until = from + ms * 1000000ULL;
	do {
		for (i = 0; i < BATCH; i++)
			q[i].cookie = sent + i;
		n = rgate_session_submit_many(s, q, BATCH);
		if (n < 0 && n != -EAGAIN)
			bench_die(-n, "submit");
		sent += n < 0 ? 0 : (unsigned int)n;
		n = rgate_session_poll(s, c, BATCH);
		if (n < 0)
			bench_die(-n, "poll");
		for (i = 0; i < (unsigned int)n; i++)
			if (c[i].cookie != got + i)
				bench_die(0, "a wrong answer");
		got += (unsigned int)n;
	} while (bench_now_ns() < until);
	until = bench_now_ns();
	rgate_session_close(s);
	return (double)(until - from) / (double)got;
}

static double measure(enum what what, unsigned int ms)
{
	switch (what) {
	case BARE_TRIP:
	case BARE_WAKE:
		return bare(ms, what == BARE_WAKE);
	case NOP_BATCHED:
		return batched(ms);
	default:
		return trips(ms, what == NOP_WAKE);
	}
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .rounds = 9, .ms = 100 };
	double v[CASES][BENCH_ROUNDS_MAX], load, med[CASES];
	unsigned int r, i;

	bench_start(argc, argv, 0, &o);
	load = bench_load();
	for (r = 0; r < o.rounds; r++)
		for (i = 0; i < CASES; i++)
			v[i][r] = measure(i, o.ms);
	bench_json_begin(&o, load);
	for (i = 0; i < CASES; i++) {
		med[i] = bench_median(v[i], o.rounds);
		printf("%-30s %10.1f ns\n", name[i], med[i]);
		if (o.json)
			fprintf(o.json, "%s{\"name\": \"%s\", \"ns\": %.1f}", i ? ",\n" : "",
				name[i], med[i]);
	}
	if (o.json)
		fprintf(o.json, "]");
	printf("a nop each way %.2f x the bare hand-over; by 32 %.1f M/s; woken %.2f x\n",
	       med[NOP_TRIP] / med[BARE_TRIP], 1000 / med[NOP_BATCHED],
	       med[NOP_WAKE] / med[BARE_WAKE]);
	bench_finish(&o);
	return 0;
}
