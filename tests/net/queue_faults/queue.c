// SPDX-License-Identifier: MIT OR GPL-2.0
#include "client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_queue.h>

#define MOST		4U		/* tasks at once */
#define TASKS		48U		/* of the queue: it is full now and then */
#define BYTES		(256U << 10)
#define SHORT		2048U		/* bytes of most tasks, and results */

static uint8_t scratch[RGATE_QUEUE_DATA_MAX + 1];

/* What tasks and results have: a number, and bytes that follow from it */
static size_t fill(uint8_t *at, uint64_t number, size_t len)
{
	size_t i;

	memcpy(at, &number, sizeof(number));
	for (i = sizeof(number); i < len; i++)
		at[i] = (uint8_t)(number * 31 + i * 7);
	return len;
}

static bool filled(const uint8_t *at, size_t len, uint64_t *number)
{
	size_t i;

	if (len < sizeof(*number))
		return false;
	memcpy(number, at, sizeof(*number));
	for (i = sizeof(*number); i < len; i++)
		if (at[i] != (uint8_t)(*number * 31 + i * 7))
			return false;
	return true;
}

static uint32_t some_length(void)
{
	return sizeof(uint64_t) + (uint32_t)some(some(30) ? SHORT : RGATE_QUEUE_DATA_MAX - 8);
}

/* NULL: it is told to end */
static struct rgate_queue *opened(const struct client *c)
{
	const struct rgate_queue_opts opts = {
		.sz = sizeof(opts), .path = c->path, .where = RGATE_SESSION_DAEMON,
		.flags = RGATE_QUEUE_CREATE | RGATE_QUEUE_AT, .home = c->home,
		.bytes = BYTES, .tasks = TASKS, .attempts = RGATE_QUEUE_ATTEMPTS_MAX,
		.run_ms = 1000, .result_ms = 60000, .timeout_ms = 5000,
	};
	struct rgate_queue *q = NULL;
	int err;

	do {
		err = rgate_queue_open(&q, c->name, &opts);
		note('O', "%d", err);
	} while (again(err));
	return err ? NULL : q;
}

/* Is there anything to be had of that queue still? Else another one, in its place */
static bool lost(struct rgate_queue **q, const struct client *c, int err)
{
	if (err != -ECONNRESET && err != -ENOTCONN && err != -EPIPE && err != -EOWNERDEAD &&
	    err != -ESTALE && err != -ETIMEDOUT)
		return false;
	rgate_queue_close(*q);
	*q = opened(c);
	return true;
}

/* ---- Who submits, and waits for results ---- */

static void wait_for(struct rgate_queue *q, uint64_t key, uint64_t id, int *err)
{
	uint64_t result = 0;
	uint32_t state = 0;
	int n;

	note('I', "wait %" PRIu64, key);
	n = rgate_queue_wait(q, id, some(2) ? RGATE_WAIT_TAKE : 0, (int)some(4000), scratch,
			     sizeof(scratch), &state);
	if (n >= 0 && (state != RGATE_TASK_DONE || !filled(scratch, (size_t)n, &result)))
		n = -EBADMSG;
	note('R', "%d %" PRIu64, n, result);
	*err = n < 0 ? n : 0;
}

static int submit(struct rgate_queue *q, uint64_t key, unsigned int n, uint8_t flags,
		  uint64_t *first)
{
	static uint8_t data[MOST][RGATE_QUEUE_DATA_MAX];
	struct rgate_queue_job jobs[MOST];
	unsigned int i;
	int got;

	for (i = 0; i < n; i++)
		jobs[i] = (struct rgate_queue_job){
			.data = data[i], .len = (uint32_t)fill(data[i], key + i, some_length()),
			.flags = flags, .priority = (uint8_t)some(RGATE_QUEUE_PRIORITIES),
			.type = (uint8_t)some(RGATE_QUEUE_TYPES),
			.delay_ms = some(8) ? 0 : (uint32_t)some(300),
		};
	note('I', "submit %" PRIu64 " %u", key, n);
	got = rgate_queue_submit(q, jobs, n, (int)some(3000), first);
	note('R', "%d", got);
	return got;
}

int submitter(const struct client *c)
{
	uint64_t key = c->number << 32, first;
	struct rgate_queue *q = opened(c);

	while (q && !told) {
		const unsigned int n = 1 + (unsigned int)some(MOST);
		const uint8_t flags = some(3) ? RGATE_TASK_RESULT : 0;
		int i, got, err = 0;

		got = submit(q, key, n, flags, &first);
		/* or it goes on, and more are there than workers */
		for (i = 0; i < got && flags && !err && !told && some(2); i++)
			wait_for(q, key + (uint64_t)i, first + (uint64_t)i, &err);
		if (got < 0)
			err = got;
		(void)lost(&q, c, err);
		key += n;
		nap_ms(some(40));
	}
	rgate_queue_close(q);
	return 0;
}

/* ---- Who does them ---- */

static uint64_t key_of(const struct rgate_queue_got *got)
{
	uint64_t key;

	if (filled(got->data, got->task.len, &key))
		return key;
	note('X', "a task's bytes are not those that were submitted");
	return 0;
}

static int complete(struct rgate_queue *q, const struct rgate_queue_task *task, uint64_t key,
		    uint64_t result)
{
	size_t len = fill(scratch, result, some(20) ? some_length() : sizeof(scratch));
	int err;

	if (len == sizeof(scratch)) {
		err = rgate_queue_complete(q, task, scratch, len);
		if (err != -EMSGSIZE)
			note('X', "a result that is too large: %d", err);
		len = sizeof(result);
	}
	do {
		note('I', "complete %" PRIu64 " %" PRIu64, key, result);
		err = rgate_queue_complete(q, task, scratch, len);
		note('R', "%d", err);
		/* Results that nobody takes: there is no room for theirs. */
	} while (again(err == -EAGAIN));
	return err;
}

static int release(struct rgate_queue *q, const struct rgate_queue_task *task, uint64_t key)
{
	int err;

	note('I', "release %" PRIu64, key);
	err = rgate_queue_release(q, task, (uint32_t)some(100));
	note('R', "%d", err);
	return err;
}

/* -ETIMEDOUT: there is none */
static int claim(struct rgate_queue *q, struct rgate_queue_task *tasks, uint64_t *keys)
{
	struct rgate_queue_got got[MOST];
	char line[256] = "";
	int i, n, at = 0;

	note('I', "claim");
	n = rgate_queue_claim(q, 0, 1 + (unsigned int)some(MOST), RGATE_CLAIM_BEGIN,
			      (int)some(400), got);
	for (i = 0; i < n; i++) {
		tasks[i] = got[i].task;
		keys[i] = key_of(&got[i]);
		at += snprintf(line + at, sizeof(line) - (size_t)at, " %" PRIu64, keys[i]);
	}
	note('R', "%d%s", n, line);
	return n;
}

int worker(const struct client *c)
{
	struct rgate_queue_task tasks[MOST];
	struct rgate_queue *q = opened(c);
	uint64_t keys[MOST], results = c->number << 32;

	while (q && !told) {
		int i, err = 0, n = claim(q, tasks, keys);

		for (i = 0; i < n && !err; i++) {
			nap_ms(some(160));
			err = some(10) ? complete(q, &tasks[i], keys[i], ++results) :
					 release(q, &tasks[i], keys[i]);
			/* The claim alone is over: what else it has goes on. */
			if (err == -ESTALE || err == -ENOENT)
				err = 0;
		}
		if (n < 0)
			err = n == -ETIMEDOUT ? 0 : n;
		(void)lost(&q, c, err);
	}
	rgate_queue_close(q);
	return 0;
}
