// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE	/* environ */
#include "queue_run.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ringgate/rgate_queue_worker.h>

#include "cmd.h"
#include "util.h"

#define LOOK_MS	100	/* between looks whether a signal came */
#define WORDS	1024

/* The word with what stands for the task in it; NULL: no memory */
static char *fill_in(const char *word, const char *task)
{
	const size_t len = strlen(task);
	const char *from = word, *at;
	char *out = malloc(strlen(word) * (len + 1) + 1), *to = out;

	if (!out)
		return NULL;
	while ((at = strstr(from, "{}"))) {
		memcpy(to, from, (size_t)(at - from));
		to += at - from;
		memcpy(to, task, len);
		to += len;
		from = at + 2;
	}
	memcpy(to, from, strlen(from) + 1);
	return out;
}

static void free_words(char **argv)
{
	size_t i;

	for (i = 0; argv[i]; i++)
		free(argv[i]);
}

/* A worker's thread blocks all signals, and this process ignores some: none is inherited. */
static int spawn(char **argv, pid_t *pid)
{
	posix_spawnattr_t attr;
	sigset_t none, usual;
	int err;

	err = -posix_spawnattr_init(&attr);
	if (err)
		return err;
	sigemptyset(&none);
	sigemptyset(&usual);
	sigaddset(&usual, SIGPIPE);
	(void)posix_spawnattr_setsigmask(&attr, &none);
	(void)posix_spawnattr_setsigdefault(&attr, &usual);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	err = -posix_spawnp(pid, argv[0], NULL, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	return err;
}

/* Did it exit with 0? */
static bool does_well(char **argv)
{
	int status, err;
	pid_t pid;

	err = spawn(argv, &pid);
	if (err) {
		say("%s: %s", argv[0], strerror(-err));
		return false;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* What fails, or cannot be run, is tried again later. */
static int do_task(void *ctx, struct rgate_queue_work *work)
{
	const struct queue_run *run = ctx;
	char *argv[WORDS + 1] = { NULL };
	char *task = strndup(work->data, work->task->len);
	int ret = -EAGAIN;
	size_t i;

	if (!task)
		return ret;
	if (strlen(task) != work->task->len) {
		work->reason = "a zero byte in it: not for a command's word";
		ret = -EINVAL;
		goto free_task;
	}
	for (i = 0; run->command[i]; i++) {
		argv[i] = fill_in(run->command[i], task);
		if (!argv[i])
			goto free_words;
	}
	if (does_well(argv))
		ret = 0;
free_words:
	free_words(argv);
free_task:
	free(task);
	return ret;
}

static size_t words(char *const *command)
{
	size_t n = 0;

	while (command[n])
		n++;
	return n;
}

int queue_run(const struct queue_run *run)
{
	const struct rgate_queue_handler handler = { .run = do_task, .ctx = (void *)run };
	const struct rgate_queue_worker_opts o = RGATE_OPTS(rgate_queue_worker_opts,
		.queue = run->opts, .handlers = &handler, .nhandlers = 1, .threads = run->parallel,
		.flags = run->follow ? 0 : RGATE_WORKER_DRAIN, .retry_ms = run->retry_ms);
	struct rgate_queue_worker *worker;
	int err;

	if (words(run->command) > WORDS)
		return fail(-E2BIG, "the command");
	util_catch_signals();
	err = rgate_queue_worker_start(&worker, run->name, &o);
	if (err)
		return fail_in("rgate_queue_open", err, "%s", run->name);
	do {
		err = rgate_queue_worker_join(worker, LOOK_MS);
	} while (err == -ETIMEDOUT && !util_stop);
	if (util_stop) {
		rgate_queue_worker_stop(worker);
		err = rgate_queue_worker_join(worker, -1);
	}
	rgate_queue_worker_close(worker);
	if (err)
		return fail_in("rgate_queue_claim", err, "%s", run->name);
	/* There are tasks left; who waits for more is ended so. */
	return util_stop && !run->follow ? EXIT_FAIL : EXIT_OK;
}
