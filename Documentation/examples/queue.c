// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A queue of tasks: sums that a worker computes. Here it is a thread of this process, which serves
 * itself, or, if its socket is named, asks the daemon; then workers are any processes.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <ringgate/rgate_queue.h>
#include <ringgate/rgate_session.h>

#define TASKS	100

static struct rgate_queue_opts opts = {
	.sz = sizeof(opts), .where = RGATE_SESSION_PROCESS, .flags = RGATE_QUEUE_CREATE,
};

static atomic_int over;

/* 1 + 2 + ... + n */
static unsigned long long sum_to(unsigned int n)
{
	unsigned long long sum = 0;

	while (n)
		sum += n--;
	return sum;
}

static int work_once(struct rgate_queue *queue)
{
	struct rgate_queue_got got;
	unsigned long long sum;
	int err;

	err = rgate_queue_claim(queue, 0, 1, RGATE_CLAIM_BEGIN, 100, &got);
	if (err < 0)
		return err;
	if (got.task.len == sizeof(unsigned int)) {
		sum = sum_to(*(const unsigned int *)got.data);
		/* Who dies here has not completed it: another one claims it then. */
		err = rgate_queue_complete(queue, &got.task, &sum, sizeof(sum));
	} else {
		err = rgate_queue_bury(queue, &got.task, "no number");
	}
	return err;
}

static void *work(void *arg)
{
	struct rgate_queue *queue;
	int err;

	(void)arg;
	err = rgate_queue_open(&queue, "example/sums", &opts);
	if (err)
		return NULL;
	while (!atomic_load(&over) && (!err || err == -ETIMEDOUT))
		err = work_once(queue);
	rgate_queue_close(queue);
	return NULL;
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
	struct rgate_queue *queue;
	pthread_t worker;
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
	if (pthread_create(&worker, NULL, work, NULL)) {
		rgate_queue_close(queue);
		return 1;
	}
	for (i = 0; !err && i < TASKS; i++)
		err = want_sum(queue, i);
	atomic_store(&over, 1);
	pthread_join(worker, NULL);
	rgate_queue_close(queue);
	if (err)
		fprintf(stderr, "queue: %s\n", rgate_strerror("rgate_queue_wait", err));
	else
		printf("%d sums\n", TASKS);
	return err != 0;
}
