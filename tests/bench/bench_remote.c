// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Requests that another node carries out: a session of the daemon at HOME exports a word, and one
 * of the daemon at SOCKET adds to it, one request after the other, looking for each completion
 * without sleeping; beside requests that do nothing, of the same session. tests/bench/remote.sh
 * starts the daemons, and takes turns with the fabric's own round trip.
 *
 *	bench_remote HOME SOCKET NODE TIMES
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "bench.h"
#include "session.h"

#define NAME	"bench/word"
#define LEN	(sizeof(NAME) - 1)
#define WORD	2048U		/* where it is, in the memory of who exports it */
#define WARM	200U
#define LONG_NS	10000000000ULL

static uint64_t ask(struct rgate_session *s, const struct rgate_request *q)
{
	const uint64_t until = bench_now_ns() + LONG_NS;
	struct rgate_completion c;
	int err = rgate_session_submit(s, q);

	while (!err) {
		err = rgate_session_poll(s, &c, 1);
		if (err == 1)
			break;
		if (!err && bench_now_ns() > until)
			bench_die(0, "nothing ends");
		bench_relax();
	}
	if (err < 0 || c.result)
		bench_die(err < 0 ? -err : -c.result, "request %#x", q->op);
	return c.value;
}

static void run(struct rgate_session *s, const char *what, const struct rgate_request *q,
		unsigned int times)
{
	double *us = calloc(times, sizeof(*us));
	unsigned int i;
	uint64_t t;

	if (!us)
		bench_die(ENOMEM, "results");
	for (i = 0; i < times + WARM; i++) {
		t = bench_now_ns();
		(void)ask(s, q);
		if (i >= WARM)
			us[i - WARM] = (double)(bench_now_ns() - t) / 1000;
	}
	printf("{\"what\": \"%s\", \"times\": %u, \"p50_us\": %.2f, \"p99_us\": %.2f}\n", what,
	       times, bench_quantile(us, times, 0.5), bench_quantile(us, times, 0.99));
	free(us);
}

int main(int argc, char **argv)
{
	const struct rgate_request export = {
		.op = RGATE_REQ_MEMORY_EXPORT, .off = WORD, .len = 64,
		.a1 = RGATE_MEMORY_EXPORT_A1(RGATE_MEMORY_MODE(RGATE_MEMORY_RIGHTS, 0), LEN),
	};
	struct rgate_request open = {
		.op = RGATE_REQ_MEMORY_OPEN, .len = LEN,
		.a1 = RGATE_MEMORY_OPEN_A1(geteuid(), RGATE_MEMORY_ATOMIC),
	};
	struct rgate_request add = { .op = RGATE_REQ_MEMORY_FETCH_ADD, .a1 = 1 };
	const struct rgate_request nop = { .op = RGATE_REQ_NOP };
	struct rgate_session *home, *s;
	const unsigned int times = argc == 5 ? (unsigned int)atoi(argv[4]) : 0;

	if (!times || times > 1000000)
		bench_die(0, "usage: bench_remote HOME SOCKET NODE TIMES, at most 1000000");
	open.a0 = (uint64_t)atoi(argv[3]);
	home = bench_session(argv[1], NAME);
	s = bench_session(argv[2], NAME);
	(void)ask(home, &export);
	add.handle = RGATE_MEMORY_HANDLE(ask(s, &open));
	run(s, "nop", &nop, times);
	run(s, "add", &add, times);
	rgate_session_close(s);
	rgate_session_close(home);
	return 0;
}
