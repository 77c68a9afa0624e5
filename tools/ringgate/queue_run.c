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
	strcpy(to, from);
	return out;
}

static void exec_command(char **command, const char *task)
{
	char *argv[WORDS + 1] = { NULL };
	unsigned int i;

	for (i = 0; command[i] && i < WORDS; i++) {
		argv[i] = fill_in(command[i], task);
		if (!argv[i])
			_exit(126);
	}
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

static int do_task(struct rgate_queue *q, const struct queue_run *run,
		   const struct rgate_queue_got *got)
{
	const struct rgate_queue_task task = got->task;
	char *text = strndup(got->data, task.len);
	int status;

	if (!text || strlen(text) != task.len) {
		free(text);
		return rgate_queue_bury(q, &task, "a zero byte in it: not for a command's word");
	}
	status = run_command(run, text);
	free(text);
	if (status < 0)
		return status;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return rgate_queue_complete(q, &task, NULL, 0);
	return rgate_queue_release(q, &task, run->retry_ms);
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
		/* A claim that was taken away is another one's. */
		if (ret < 0 && ret != -ETIMEDOUT && ret != -EINTR && ret != -ESTALE)
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

/* The worst of what they end with */
static int reap(const pid_t *pids, uint32_t n)
{
	int status, ret = EXIT_OK;
	bool told = false;
	uint32_t i, k;

	for (i = 0; i < n; i++) {
		while (waitpid(pids[i], &status, 0) < 0) {
			if (errno != EINTR)
				break;
			for (k = i; util_stop && !told && k < n; k++)
				kill(pids[k], SIGTERM);
			told = util_stop;
		}
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			ret = EXIT_FAIL;
	}
	return ret;
}

int queue_run(const struct queue_run *run)
{
	pid_t *pids = calloc(run->parallel, sizeof(*pids));
	uint32_t n;
	int err, ret;

	if (!pids)
		return fail(-ENOMEM, "workers");
	util_catch_signals();
	err = start(run, pids, &n);
	ret = reap(pids, n);
	free(pids);
	return err ? fail(err, "cannot start worker %u", n) : ret;
}
