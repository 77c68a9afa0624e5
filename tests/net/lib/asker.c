// SPDX-License-Identifier: MIT OR GPL-2.0
#include "asker.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nodes.h"

#define COOKIE	1000000U

struct rgate_session *session;
uint8_t *mem;

int asker_open(const char *path, uint64_t memory)
{
	const struct rgate_session_opts o = RGATE_OPTS(rgate_session_opts, .path = path,
						       .where = RGATE_SESSION_DAEMON,
						       .memory = memory, .timeout_ms = MS);
	int err = rgate_session_open(&session, &o);

	mem = err ? NULL : rgate_session_memory(session, NULL);
	return err;
}

int next_completion(struct rgate_completion *c)
{
	int n;

	while (!(n = rgate_session_poll(session, c, 1))) {
		n = rgate_session_wait(session, (int)MS);
		if (n <= 0)
			return n ? n : -ETIMEDOUT;
	}
	return n < 0 ? n : 0;
}

int ask(struct rgate_request q, uint64_t *value)
{
	struct rgate_completion c;
	int err;

	q.cookie = COOKIE;
	err = rgate_session_submit(session, &q);
	if (!err)
		err = next_completion(&c);
	if (err)
		return err;
	if (value)
		*value = c.value;
	return c.cookie == q.cookie ? c.result : -EBADMSG;
}

pid_t begin_as(int (*fn)(void), uid_t uid)
{
	const pid_t test = getpid();
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	if (!geteuid() && (setgroups(0, NULL) || setgid(uid) || setuid(uid)))
		_exit(99);
	/* After that, which takes it away: it ends with the test, also one that is stopped. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != test)
		_exit(98);
	_exit(fn());
}

void ends_well(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}
