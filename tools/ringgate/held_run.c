// SPDX-License-Identifier: MIT OR GPL-2.0
#include "held_run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util.h"

#define LOOK_MS		20	/* between looks: much less than what is left at a loss */
#define EXIT_NO_RUN	126
#define EXIT_NO_COMMAND	127

static void become(char **command, pid_t parent)
{
	static const int caught[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	size_t i;
	int err;

	/* Without who holds it for this one nobody does. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_NO_RUN);
	for (i = 0; i < ARRAY_SIZE(caught); i++)
		signal(caught[i], SIG_DFL);
	execvp(command[0], command);
	err = errno;	/* what is said may change it */
	say("%s: %s", command[0], strerror(err));
	_exit(err == ENOENT ? EXIT_NO_COMMAND : EXIT_NO_RUN);
}

static int status_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* True: it has ended */
static bool ended(pid_t pid, int fd, int *status)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	(void)poll(&p, 1, LOOK_MS);
	return waitpid(pid, status, WNOHANG) == pid;
}

static int watch_it(const struct held_run *run, pid_t pid, int fd)
{
	uint64_t kill_at = 0;
	bool told = false, lost = false;
	int status;

	while (!ended(pid, fd, &status)) {
		if (util_stop && !told) {
			kill(pid, util_stop);
			told = true;
		}
		if (!lost && !run->valid(run->ctx)) {
			lost = true;
			kill_at = util_now() + run->kill_ns;
			kill(pid, SIGTERM);
			/* One that is stopped takes the signal only when it goes on. */
			kill(pid, SIGCONT);
		}
		if (kill_at && util_now() >= kill_at) {
			kill(pid, SIGKILL);
			kill_at = 0;
		}
	}
	return lost ? HELD_LOST : status_of(status);
}

int held_run(const struct held_run *run)
{
	const pid_t self = getpid();
	int fd, ret;
	pid_t pid;

	pid = fork();
	if (pid < 0)
		return fail(-errno, "%s", run->command[0]);
	if (!pid)
		become(run->command, self);
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	ret = watch_it(run, pid, fd);
	if (fd >= 0)
		close(fd);
	return ret;
}
