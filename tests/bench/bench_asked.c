// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Processes that a program without a node asks its daemon for, as bench_spawn has them of one
 * that is a node: one after the other or some at a time, from the request to the moment in which
 * its end is known. tests/bench/spawn.sh starts the daemons, and takes turns.
 *
 *	bench_asked [-k IN_FLIGHT] [-n TIMES] SOCKET NODE COMMAND ARGUMENT...
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include <ringgate/ringgate.h>

#include "bench.h"

#define IN_FLIGHT_MAX	64U
#define WARM		32U
#define WAIT_MS		60000
#define RECORD		65536U	/* bytes, then a status for each */
#define STATUS		512U

enum { START, WAIT, CLOSE, STEPS };	/* in a cookie, behind the place */

static struct rgate_session *session;
static uint8_t *mem;
static uint64_t began[IN_FLIGHT_MAX];
static uint32_t handle[IN_FLIGHT_MAX];
static uint32_t record_len;
static uint64_t node;

static void submit(struct rgate_request q, unsigned int place, unsigned int step)
{
	int err;

	q.cookie = place * STEPS + step;
	err = rgate_session_submit(session, &q);
	if (err)
		bench_die(-err, "a request");
}

static void begin(unsigned int place)
{
	const struct rgate_request q = {
		.op = RGATE_REQ_SPAWN_START, .a0 = node, .len = record_len,
	};

	began[place] = bench_now_ns();
	submit(q, place, START);
}

static struct rgate_completion next(void)
{
	struct rgate_completion c;

	while (!rgate_session_poll(session, &c, 1))
		if (rgate_session_wait(session, WAIT_MS) <= 0)
			bench_die(0, "nothing ends");
	if (c.result)
		bench_die(-c.result, "request %u", (unsigned int)(c.cookie % STEPS));
	return c;
}

/* The place of one that has ended, which is closed by then */
static unsigned int next_end(void)
{
	for (;;) {
		const struct rgate_completion c = next();
		const unsigned int place = (unsigned int)(c.cookie / STEPS);
		const uint64_t off = RECORD + place * STATUS;
		const struct rgate_spawn_status *st = (const void *)(mem + off);

		if (c.cookie % STEPS == START) {
			handle[place] = (uint32_t)c.value;
			submit((struct rgate_request){
				.op = RGATE_REQ_SPAWN_WAIT, .handle = handle[place], .off = off,
				.len = sizeof(*st) }, place, WAIT);
			continue;
		}
		if (st->exit_code || st->signal)
			bench_die(0, "it does not end well");
		submit((struct rgate_request){
			.op = RGATE_REQ_SPAWN_CLOSE, .flags = RGATE_REQ_NO_COMPLETION,
			.handle = handle[place] }, place, CLOSE);
		return place;
	}
}

static void run(unsigned int in_flight, unsigned int times)
{
	double *us = calloc(times, sizeof(*us));
	unsigned int begun = 0, ended = 0, place;
	uint64_t first = 0;

	if (!us)
		bench_die(ENOMEM, "results");
	for (; begun < in_flight; begun++)
		begin(begun);
	while (ended < times + WARM) {
		place = next_end();
		if (ended >= WARM)
			us[ended - WARM] = (double)(bench_now_ns() - began[place]) / 1000;
		if (++ended == WARM)
			first = bench_now_ns();
		if (begun < times + WARM) {
			begin(place);
			begun++;
		}
	}
	printf("{\"in_flight\": %u, \"times\": %u, \"per_s\": %.1f, \"p50_us\": %.1f, "
	       "\"p99_us\": %.1f}\n", in_flight, times,
	       times * 1e9 / (double)(bench_now_ns() - first),
	       bench_quantile(us, times, 0.5), bench_quantile(us, times, 0.99));
	free(us);
}

int main(int argc, char **argv)
{
	struct rgate_session_opts so = RGATE_OPTS(rgate_session_opts, .where = RGATE_SESSION_DAEMON,
						  .memory = RECORD + IN_FLIGHT_MAX * STATUS);
	struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .cwd = "/");
	unsigned int in_flight = 1, times = 1000;
	int64_t len;
	int c, err;

	while ((c = getopt(argc, argv, "+k:n:")) != -1) {
		if (c == 'k')
			in_flight = (unsigned int)atoi(optarg);
		else if (c == 'n')
			times = (unsigned int)atoi(optarg);
		else
			return 2;
	}
	if (argc - optind < 3 || !in_flight || in_flight > IN_FLIGHT_MAX || !times ||
	    times > 1000000)
		bench_die(0, "-k 1 to %u, -n 1 to 1000000, SOCKET NODE COMMAND", IN_FLIGHT_MAX);
	so.path = argv[optind];
	node = (uint64_t)atoi(argv[optind + 1]);
	req.argv = (const char *const *)argv + optind + 2;
	err = rgate_session_open(&session, &so);
	if (err)
		bench_die(-err, "%s", so.path);
	mem = rgate_session_memory(session, NULL);
	len = rgate_spawn_record_encode(&req, mem, RECORD);
	if (len < 0)
		bench_die((int)-len, "the request");
	record_len = (uint32_t)len;
	run(in_flight, times);
	rgate_session_close(session);
	return 0;
}
