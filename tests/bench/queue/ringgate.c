// SPDX-License-Identifier: MIT OR GPL-2.0
#include <ringgate/rgate_queue.h>
#include <ringgate/rgate_session.h>

#include "bench.h"
#include "rival.h"

static struct rgate_queue *join(const char *address)
{
	const struct rgate_queue_opts o = {
		.sz = sizeof(o), .path = address, .where = RGATE_SESSION_DAEMON,
		.flags = RGATE_QUEUE_CREATE | RGATE_QUEUE_KEEP,
	};
	struct rgate_queue *q;
	int err = rgate_queue_open(&q, "bench", &o);

	if (err)
		bench_die(-err, "the queue at %s", address);
	return q;
}

static void prepare(const char *address)
{
	struct rgate_queue *q = join(address);
	int err = rgate_queue_remove(q);

	if (err)
		bench_die(-err, "removing the queue");
	rgate_queue_close(q);
}

static void submit(const char *address, uint32_t tasks)
{
	const struct rgate_queue_job jobs[BATCH_MOST] = { { .len = 0 } };
	struct rgate_queue *q = join(address);
	uint32_t n;

	while (tasks) {
		int got;

		n = tasks < batch ? tasks : batch;
		got = rgate_queue_submit(q, jobs, n, -1, NULL);
		if (got < 0)
			bench_die(-got, "submit");
		tasks -= (uint32_t)got;
	}
	rgate_queue_close(q);
}

static void check(const struct rgate_queue_result *r, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (r[i].error)
			bench_die(-r[i].error, "complete");
}

static void work(const char *address, uint32_t tasks)
{
	struct rgate_queue *q = join(address);
	struct rgate_queue_result r[BATCH_MOST];
	struct rgate_queue_got got[BATCH_MOST];
	int i, n = 0, done;

	for (; tasks; tasks -= (uint32_t)n) {
		done = n;
		n = rgate_queue_next(q, r, (unsigned int)done, 0, batch, RGATE_CLAIM_BEGIN, 10000,
				     got);
		if (n < 0)
			bench_die(-n, "claim");
		check(r, done);
		for (i = 0; i < n; i++)
			r[i] = (struct rgate_queue_result){ .task = &got[i].task };
	}
	if (rgate_queue_complete_many(q, r, (unsigned int)n) != n)
		bench_die(-r[0].error, "complete");
	rgate_queue_close(q);
}

const struct rival ringgate_queue = { "ringgate", prepare, submit, work };
