// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * load submit|work SOCKET NAME MS: asks a daemon that is killed now and then, for so long, and
 * writes what it saw, line by line: "NS WHAT TASK [RESULT]"
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <ringgate/rgate_queue.h>

#define BATCH	8U
#define TEXT	64U

struct seen {
	char text[TEXT];
	uint64_t id;
};

static const char *at;
static struct rgate_queue *queue;
static uint64_t end_ns;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void see(const char *what, const char *text, const char *more)
{
	printf("%" PRIu64 " %s %s %s\n", now_ns(), what, text, more);
	fflush(stdout);
}

/* False: the time is over */
static bool have_queue(void)
{
	struct rgate_queue_opts o = {
		.sz = sizeof(o), .path = at, .where = RGATE_SESSION_DAEMON, .attempts = 100000,
		.result_ms = 3600000,
		.flags = RGATE_QUEUE_CREATE | RGATE_QUEUE_KEEP,
	};

	while (!queue && now_ns() < end_ns)
		if (rgate_queue_open(&queue, "load", &o)) {
			queue = NULL;
			usleep(20000);
		}
	return queue && now_ns() < end_ns;
}

static void lost(void)
{
	rgate_queue_close(queue);
	queue = NULL;
}

/* The result of one of those that were taken, of which it is told once */
static void take(struct seen *all, unsigned int n)
{
	struct seen *s = &all[(unsigned int)rand() % n];
	char result[TEXT + 1];
	int got;

	if (!s->id)
		return;
	got = rgate_queue_wait(queue, s->id, RGATE_WAIT_TAKE, 200, result, TEXT, NULL);
	if (got >= 0) {
		result[got] = '\0';
		see("result", s->text, result);
		s->id = 0;
	} else if (got != -ETIMEDOUT) {
		if (got == -ENOENT)
			see("gone", s->text, "");
		s->id = 0;
	}
}

static void submit(const char *name)
{
	static struct seen all[256];
	struct rgate_queue_job jobs[BATCH];
	unsigned int i, n = 0, some;
	uint64_t first;
	int took;

	while (have_queue()) {
		some = 1 + (unsigned int)rand() % BATCH;
		for (i = 0; i < some; i++) {
			struct seen *s = &all[(n + i) % 256];

			s->id = 0;
			snprintf(s->text, TEXT, "%s-%u", name, n + i);
			jobs[i] = (struct rgate_queue_job){
				.data = s->text, .len = (uint32_t)strlen(s->text),
				.flags = (n + i) % 3 ? RGATE_TASK_RESULT : 0,
			};
		}
		took = rgate_queue_submit(queue, jobs, some, 1000, &first);
		for (i = 0; took > 0 && i < (unsigned int)took; i++) {
			all[(n + i) % 256].id = (n + i) % 3 ? first + i : 0;
			see("submitted", all[(n + i) % 256].text, "");
		}
		n += some;
		if (took < 0)
			lost();
		else
			take(all, n < 256 ? n : 256);
	}
}

static void work(const char *name)
{
	struct rgate_queue_got got[BATCH];
	char text[TEXT], result[TEXT];
	unsigned int n = 0;
	int i, some, err;

	while (have_queue()) {
		some = rgate_queue_claim(queue, 0, BATCH, RGATE_CLAIM_BEGIN, 200, got);
		if (some < 0 && some != -ETIMEDOUT)
			lost();
		for (i = 0; queue && i < some; i++) {
			snprintf(text, TEXT, "%.*s", (int)got[i].task.len,
				 (const char *)got[i].data);
			snprintf(result, TEXT, "%s.%u", name, n++);
			see("ran", text, result);
			err = rgate_queue_complete(queue, &got[i].task, result, strlen(result));
			if (!err)
				see("completed", text, result);
			else if (err != -ESTALE)
				break;
		}
		if (i < some)
			lost();
	}
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	at = argv[2];
	end_ns = now_ns() + strtoull(argv[4], NULL, 0) * 1000000;
	srand((unsigned int)getpid());
	if (!strcmp(argv[1], "submit"))
		submit(argv[3]);
	else
		work(argv[3]);
	if (queue)
		rgate_queue_close(queue);
	return 0;
}
