// SPDX-License-Identifier: MIT OR GPL-2.0
#include "queue_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd.h"
#include "util.h"

#define LOOK_MS	200	/* between looks whether all is over */
#define REAP_MS	20	/* and whether a worker, or this one, is to end */
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

static void exec_command(char **command, const char *task)
{
	char *argv[WORDS + 1] = { NULL };
	unsigned int i = 0;

	/* What is ignored stays so over exec(2), unlike what is caught. */
	signal(SIGPIPE, SIG_DFL);
	/* It has a word at least. */
	do {
		argv[i] = fill_in(command[i], task);
		if (!argv[i])
			_exit(126);
	} while (command[++i]);
	execvp(argv[0], argv);
	say("%s: %s", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* As waitpid() has it; -errno */
static int run_command(const struct queue_run *run, const char *task)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid)
		exec_command(run->command, task);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status;
}

enum end { DONE, FAILED, NO_WORD };

static int say_once(struct rgate_queue *q, const struct queue_run *run,
		    const struct rgate_queue_task *task, enum end end)
{
	switch (end) {
	case DONE:
		return rgate_queue_complete(q, task, NULL, 0);
	case FAILED:
		return rgate_queue_release(q, task, run->retry_ms);
	default:
		return rgate_queue_bury(q, task, "a zero byte in it: not for a command's word");
	}
}

/*
 * Says what came of it, until that was heard: what is cancelled by a signal, or came too late, is
 * still claimed, and nobody would do it. -ESTALE: the claim was taken away, it is another one's
 */
static int say_end(struct rgate_queue *q, const struct queue_run *run,
		   const struct rgate_queue_task *task, enum end end)
{
	int err;

	do {
		err = say_once(q, run, task, end);
	} while (err == -EINTR || err == -ETIMEDOUT);
	return err == -ESTALE ? 0 : err;
}

static int do_task(struct rgate_queue *q, const struct queue_run *run,
		   const struct rgate_queue_got *got)
{
	const struct rgate_queue_task task = got->task;
	char *text = strndup(got->data, task.len);
	int status;

	if (!text)
		return -ENOMEM;
	if (strlen(text) != task.len) {
		free(text);
		return say_end(q, run, &task, NO_WORD);
	}
	status = run_command(run, text);
	free(text);
	if (status < 0)
		return status;
	return say_end(q, run, &task, WIFEXITED(status) && !WEXITSTATUS(status) ? DONE : FAILED);
}

static bool all_over(struct rgate_queue *q)
{
	struct rgate_queue_info info;

	if (rgate_queue_info(q, &info))
		return false;
	return !(info.now[RGATE_TASK_READY] + info.now[RGATE_TASK_DELAYED] +
		 info.now[RGATE_TASK_CLAIMED] + info.now[RGATE_TASK_RUNNING]);
}

static int serve(struct rgate_queue *q, const struct queue_run *run)
{
	struct rgate_queue_got got;
	int ret = 0;

	while (!util_stop) {
		ret = rgate_queue_claim(q, 0, 1, RGATE_CLAIM_BEGIN, LOOK_MS, &got);
		if (ret == 1)
			ret = do_task(q, run, &got);
		else if (ret == -ETIMEDOUT && !run->follow && all_over(q))
			return 0;
		/* -ESTALE: the queue was removed. */
		if (ret < 0 && ret != -ETIMEDOUT && ret != -EINTR)
			return ret;
	}
	return 0;
}

static int worker(const struct queue_run *run)
{
	struct rgate_queue *q;
	int err;

	err = rgate_queue_open(&q, run->name, run->opts);
	if (err)
		return fail_in("rgate_queue_open", err, "%s", run->name);
	err = serve(q, run);
	rgate_queue_close(q);
	return err ? fail_in("rgate_queue_claim", err, "%s", run->name) : EXIT_OK;
}

static int start(const struct queue_run *run, pid_t *pids, uint32_t *n)
{
	const pid_t parent = getpid();

	for (*n = 0; *n < run->parallel; ++*n) {
		fflush(NULL);
		pids[*n] = fork();
		if (pids[*n] < 0)
			return -errno;
		if (pids[*n])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(EXIT_FAIL);
		_exit(worker(run));
	}
	return 0;
}

/*
 * The worst of what they end with. It looks now and then: a signal that comes before a wait does
 * not end that.
 */
static int reap(const pid_t *pids, uint32_t n)
{
	int status = 0, ret = EXIT_OK;
	bool told = false;
	uint32_t i, k;
	pid_t got;

	for (i = 0; i < n; i++) {
		while (!(got = waitpid(pids[i], &status, told ? 0 : WNOHANG)) ||
		       (got < 0 && errno == EINTR)) {
			if (!util_stop) {
				util_sleep(util_now() + REAP_MS * 1000000ULL);
				continue;
			}
			for (k = i; !told && k < n; k++)
				kill(pids[k], SIGTERM);
			told = true;
		}
		if (got < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
			ret = EXIT_FAIL;
	}
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
	uint32_t n, i;
	pid_t *pids;
	int err, ret;

	if (words(run->command) > WORDS)
		return fail(-E2BIG, "the command");
	pids = calloc(run->parallel, sizeof(*pids));
	if (!pids)
		return fail(-ENOMEM, "workers");
	util_catch_signals();
	err = start(run, pids, &n);
	/* Those that there are wait for tasks, perhaps for ever. */
	for (i = 0; err && i < n; i++)
		kill(pids[i], SIGTERM);
	ret = reap(pids, n);
	free(pids);
	if (err)
		return fail(err, "cannot start worker %u", n);
	/* There are tasks left; who waits for more is ended so. */
	return util_stop && !run->follow ? EXIT_FAIL : ret;
}
