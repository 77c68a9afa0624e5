// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe_child.h"
#include "util.h"

#define KILL_WAIT_NS	(5 * NSEC)

void *probe_shared(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void probe_unshare(void *mem, size_t len)
{
	if (mem)
		munmap(mem, len);
}

/* Libraries of devices and drivers say much, and once for each child. */
static void silence(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		dup2(fd, STDERR_FILENO);
		close(fd);
	}
}

static void __attribute__((noreturn)) child(void (*fn)(void *), void *arg,
					    pid_t parent)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	struct rlimit no_core = { 0 };
	size_t i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	for (i = 0; i < ARRAY_SIZE(signals); i++)
		signal(signals[i], SIG_DFL);
	setrlimit(RLIMIT_CORE, &no_core);
	if (!getenv("RGATE_DEBUG"))
		silence();
	fn(arg);
	_exit(EXIT_SUCCESS);
}

/* Until the child ended, or the time is over, or (if it may) a signal. True: it
 * ended. */
static bool ended(int pidfd, uint64_t until, bool signals)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	sigset_t old;
	int n = 0;

	util_block_signals(&old);
	while (!n && !(signals && util_stop)) {
		uint64_t now = util_now();
		struct timespec ts;

		if (now >= until)
			break;
		ts.tv_sec = (until - now) / NSEC;
		ts.tv_nsec = (until - now) % NSEC;
		n = ppoll(&p, 1, &ts, signals ? &old : NULL);
		if (n < 0 && errno == EINTR)
			n = 0;
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	return n > 0;
}

int probe_child(void (*fn)(void *arg), void *arg, unsigned int seconds,
		enum probe_end *end, int *value)
{
	pid_t parent = getpid(), pid;
	int pidfd, status;

	*value = 0;
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid)
		child(fn, arg, parent);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		int err = -errno;

		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return err;
	}
	*end = END_DONE;
	if (!ended(pidfd, util_now() + seconds * NSEC, true)) {
		*end = util_stop ? END_STOPPED : END_TIMEOUT;
		kill(pid, SIGKILL);
		if (!ended(pidfd, util_now() + KILL_WAIT_NS, false))
			*end = END_STUCK;
	}
	close(pidfd);
	if (*end == END_STUCK || waitpid(pid, &status, 0) != pid)
		return 0;
	if (*end != END_DONE)
		return 0;
	if (WIFSIGNALED(status)) {
		*end = END_SIGNAL;
		*value = WTERMSIG(status);
	} else if (WEXITSTATUS(status)) {
		*end = END_EXIT;
		*value = WEXITSTATUS(status);
	}
	return 0;
}
