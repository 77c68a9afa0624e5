// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Claims of tasks from a queue whose home is another node: a session of the daemon at HOME
 * submits them, one of the daemon at SOCKET claims one, or 32, at a time, and completes them. What
 * claims and what completions take is told apart. tests/bench/claims.sh starts the daemons.
 *
 *	bench_claim HOME SOCKET NODE TIMES
 */
#include <stdlib.h>

#include <ringgate/rgate_queue.h>

#include "bench.h"

#define MANY	32U
#define WARM	50U

static struct rgate_queue *queue_at(const char *path, uint32_t flags, uint32_t home)
{
	const struct rgate_queue_opts o = {
		.sz = sizeof(o), .path = path, .where = RGATE_SESSION_DAEMON, .flags = flags,
		.home = home,
	};
	struct rgate_queue *q;
	int err = rgate_queue_open(&q, "bench/claim", &o);

	if (err)
		bench_die(-err, "the queue at %s", path);
	return q;
}

static void submit(struct rgate_queue *q, unsigned int n)
{
	const struct rgate_queue_job jobs[MANY] = { { .len = 0 } };
	int got = rgate_queue_submit(q, jobs, n, 10000, NULL);

	if (got != (int)n)
		bench_die(got < 0 ? -got : 0, "submit");
}

static void one(struct rgate_queue *q, unsigned int n, double *claim, double *done)
{
	struct rgate_queue_got got[MANY];
	struct rgate_queue_result r[MANY];
	uint64_t t = bench_now_ns();
	unsigned int i;
	int err = rgate_queue_claim(q, 0, n, RGATE_CLAIM_BEGIN, 10000, got);

	*claim = (double)(bench_now_ns() - t) / 1e3;
	if (err != (int)n)
		bench_die(err < 0 ? -err : 0, "claim of %u", n);
	for (i = 0; i < n; i++)
		r[i] = (struct rgate_queue_result){ .task = &got[i].task };
	t = bench_now_ns();
	err = rgate_queue_complete_many(q, r, n);
	*done = (double)(bench_now_ns() - t) / 1e3;
	if (err != (int)n)
		bench_die(err < 0 ? -err : 0, "complete");
}

static void run(struct rgate_queue *home, struct rgate_queue *q, unsigned int n, unsigned int times)
{
	double *claim = calloc(times, sizeof(*claim)), *done = calloc(times, sizeof(*done)), c, d;
	unsigned int i;

	if (!claim || !done)
		bench_die(0, "no memory");
	for (i = 0; i < times + WARM; i++) {
		submit(home, n);
		one(q, n, &c, &d);
		if (i < WARM)
			continue;
		claim[i - WARM] = c;
		done[i - WARM] = d;
	}
	printf("{\"op\":\"request\",\"batch\":%u,\"n\":%u,", n, times);
	printf("\"median_us\":%.3f,\"complete_us\":%.3f}\n", bench_median(claim, times),
	       bench_median(done, times));
	free(claim);
	free(done);
}

int main(int argc, char **argv)
{
	const unsigned int times = argc == 5 ? (unsigned int)atoi(argv[4]) : 0;
	struct rgate_queue *home, *q;

	if (!times || times > 1000000)
		bench_die(0, "usage: bench_claim HOME SOCKET NODE TIMES, at most 1000000");
	home = queue_at(argv[1], RGATE_QUEUE_CREATE, 0);
	q = queue_at(argv[2], RGATE_QUEUE_AT, (uint32_t)atoi(argv[3]));
	run(home, q, 1, times);
	run(home, q, MANY, times);
	rgate_queue_close(q);
	rgate_queue_close(home);
	return 0;
}
