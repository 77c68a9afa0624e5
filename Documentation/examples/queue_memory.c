// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A task of more bytes than a task has room for: they lie in memory that a session exports, and the
 * task says where. Here its worker is a thread of this process, which serves itself; with a daemon
 * it is any process, at any node.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#define NAME	"frames/7"
#define FROM	4096		/* of the session's memory; what is before it is for names */
#define LEN	1000000

static const struct rgate_queue_opts opts = {
	.sz = sizeof(opts), .where = RGATE_SESSION_PROCESS, .flags = RGATE_QUEUE_CREATE,
};

static uint64_t sum_of(const uint8_t *bytes, size_t len)
{
	uint64_t sum = 0;

	while (len--)
		sum += *bytes++;
	return sum;
}

/* Of a task that was claimed */
static int work_on(struct rgate_queue *queue, const struct rgate_queue_got *got)
{
	struct rgate_queue_memory job;
	uint8_t *buf = NULL;
	uint64_t sum;
	int err = -EINVAL;

	/* Who has submitted it may say anything. */
	if (!rgate_queue_memory_of(got->data, got->task.len, &job) && job.len <= LEN)
		buf = malloc(job.len);
	if (buf)
		err = rgate_queue_fetch(queue, &job, 0, buf, job.len, 10000);
	if (!err) {
		sum = sum_of(buf, job.len);
		err = rgate_queue_complete(queue, &got->task, &sum, sizeof(sum));
	} else {
		err = rgate_queue_bury(queue, &got->task, "its bytes are not there");
	}
	free(buf);
	return err;
}

static void *work(void *arg)
{
	struct rgate_queue *queue;
	struct rgate_queue_got got;

	(void)arg;
	if (rgate_queue_open(&queue, "example/frames", &opts))
		return NULL;
	if (rgate_queue_claim(queue, 0, 1, RGATE_CLAIM_BEGIN, 10000, &got) == 1)
		(void)work_on(queue, &got);
	rgate_queue_close(queue);
	return NULL;
}

/* Until the session ends, for whoever is this user */
static int export(struct rgate_session *s)
{
	const uint32_t mode = RGATE_MEMORY_MODE(RGATE_MEMORY_READ, 0);
	struct rgate_completion c;
	int n;

	memcpy(rgate_session_memory(s, NULL), NAME, sizeof(NAME) - 1);
	n = rgate_session_submit(s, &(struct rgate_request){
		.op = RGATE_REQ_MEMORY_EXPORT, .off = FROM, .len = LEN,
		.a1 = RGATE_MEMORY_EXPORT_A1(mode, sizeof(NAME) - 1) });
	if (!n)
		n = rgate_session_wait(s, 10000);
	if (n == 1)
		n = rgate_session_poll(s, &c, 1);
	return n == 1 ? c.result : n ? n : -ETIMEDOUT;
}

static int submit(struct rgate_queue *queue, uint64_t *id)
{
	struct rgate_queue_memory job;
	int err;

	err = rgate_queue_memory(&job, RGATE_QUEUE_MEMORY_HERE, geteuid(), NAME, 0, LEN);
	if (!err)
		err = rgate_queue_submit(queue, &(struct rgate_queue_job){
			.data = &job, .len = sizeof(job), .flags = RGATE_TASK_RESULT }, 1, -1, id);
	return err < 0 ? err : 0;
}

static int ask_for_sum(struct rgate_queue *queue, struct rgate_session *s)
{
	uint8_t *frame = (uint8_t *)rgate_session_memory(s, NULL) + FROM;
	uint32_t i, state;
	uint64_t id, sum;
	int n;

	for (i = 0; i < LEN; i++)
		frame[i] = (uint8_t)i;
	n = export(s);
	if (!n)
		n = submit(queue, &id);
	/* Its bytes stay as they are until then. */
	if (!n)
		n = rgate_queue_wait(queue, id, RGATE_WAIT_TAKE, 10000, &sum, sizeof(sum), &state);
	if (n < 0)
		return n;
	if (n != sizeof(sum) || state != RGATE_TASK_DONE || sum != sum_of(frame, LEN))
		return -EIO;
	printf("the sum of %d bytes: %llu\n", LEN, (unsigned long long)sum);
	return 0;
}

int main(void)
{
	const struct rgate_session_opts so = RGATE_OPTS(rgate_session_opts,
		.where = RGATE_SESSION_PROCESS, .memory = FROM + LEN);
	struct rgate_session *s;
	struct rgate_queue *queue;
	pthread_t worker;
	int err;

	err = rgate_session_open(&s, &so);
	if (err)
		goto out;
	err = rgate_queue_open(&queue, "example/frames", &opts);
	if (err)
		goto close_session;
	err = -pthread_create(&worker, NULL, work, NULL);
	if (!err) {
		err = ask_for_sum(queue, s);
		pthread_join(worker, NULL);
	}
	rgate_queue_close(queue);
close_session:
	rgate_session_close(s);
out:
	if (err)
		fprintf(stderr, "%s\n", rgate_strerror(NULL, err));
	return err != 0;
}
