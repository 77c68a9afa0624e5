// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A queue of tasks: sums that a worker computes. Here it is two threads of this process, which serves
 * itself, or, if its socket is named, asks the daemon; then workers are any processes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <ringgate/rgate_queue_worker.h>

#define TASKS	100

static struct rgate_queue_opts opts = {
	.sz = sizeof(opts), .where = RGATE_SESSION_PROCESS, .flags = RGATE_QUEUE_CREATE,
};

/* 1 + 2 + ... + n */
static unsigned long long sum_to(unsigned int n)
{
	unsigned long long sum = 0;

	while (n)
		sum += n--;
	return sum;
}

/* Who dies here has not completed it: another one claims it then. */
static int add_up(void *ctx, struct rgate_queue_work *work)
{
	unsigned long long sum;

	(void)ctx;
	if (work->task->len != sizeof(unsigned int)) {
		work->reason = "no number";
		return -EINVAL;
	}
	sum = sum_to(*(const unsigned int *)work->data);
	memcpy(work->result, &sum, sizeof(sum));
	work->len = sizeof(sum);
	return 0;
}

static int start_worker(struct rgate_queue_worker **worker)
{
	const struct rgate_queue_handler handler = { .run = add_up };
	const struct rgate_queue_worker_opts o = RGATE_OPTS(rgate_queue_worker_opts,
		.queue = &opts, .handlers = &handler, .nhandlers = 1, .threads = 2);

	return rgate_queue_worker_start(worker, "example/sums", &o);
}

static int want_sum(struct rgate_queue *queue, unsigned int i)
{
	const struct rgate_queue_job job = { .data = &i, .len = sizeof(i),
					     .flags = RGATE_TASK_RESULT };
	unsigned long long sum;
	uint32_t state;
	uint64_t id;
	int err, n;

	err = rgate_queue_submit(queue, &job, 1, 1000, &id);
	if (err == 1) {
		n = rgate_queue_wait(queue, id, RGATE_WAIT_TAKE, -1, &sum, sizeof(sum), &state);
		if (n < 0)
			return n;
		return state == RGATE_TASK_DONE && sum == sum_to(i) ? 0 : -EIO;
	}
	return err;
}

int main(int argc, char **argv)
{
	struct rgate_queue_worker *worker;
	struct rgate_queue *queue;
	unsigned int i;
	int err;

	if (argc > 1) {
		opts.path = argv[1];
		opts.where = RGATE_SESSION_DAEMON;
	}
	err = rgate_queue_open(&queue, "example/sums", &opts);
	if (err) {
		fprintf(stderr, "queue: %s\n", rgate_strerror("rgate_queue_open", err));
		return 1;
	}
	err = start_worker(&worker);
	if (!err) {
		for (i = 0; !err && i < TASKS; i++)
			err = want_sum(queue, i);
		rgate_queue_worker_stop(worker);
		rgate_queue_worker_join(worker, -1);
		rgate_queue_worker_close(worker);
	}
	rgate_queue_close(queue);
	if (err)
		fprintf(stderr, "queue: %s\n", rgate_strerror("rgate_queue_wait", err));
	else
		printf("%d sums\n", TASKS);
	return err != 0;
}
