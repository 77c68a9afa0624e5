// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include "forward.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "util.h"

static const int handed_on[] = {
	SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH,
};

static int fd = -1;
static sigset_t mask_before;
static struct sigaction pipe_before, child_before;

/* Those that are ignored do not get into the descriptor: blocked they would, ignored or not. */
static void those_of(sigset_t *set)
{
	struct sigaction sa = { .sa_handler = SIG_DFL };
	size_t i;

	sigemptyset(set);
	for (i = 0; i < ARRAY_SIZE(handed_on); i++)
		if (!sigaction(handed_on[i], NULL, &sa) && sa.sa_handler != SIG_IGN)
			sigaddset(set, handed_on[i]);
}

int forward_begin(void)
{
	const struct sigaction ignored = { .sa_handler = SIG_IGN };
	const struct sigaction as_ever = { .sa_handler = SIG_DFL };
	sigset_t set;

	those_of(&set);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	sigprocmask(SIG_BLOCK, &set, &mask_before);
	sigaction(SIGPIPE, &ignored, &pipe_before);
	/* Of children of who ignores it nothing is left to be waited for. */
	sigaction(SIGCHLD, &as_ever, &child_before);
	return 0;
}

int forward_fd(void)
{
	return fd;
}

int forward_next(bool *has_group)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	/* A hangup is told to one process of a session, and to none of the others. */
	*has_group = info.ssi_code == SI_KERNEL && info.ssi_signo != SIGHUP;
	return (int)info.ssi_signo;
}

bool forward_ends(void)
{
	sigset_t come;

	return !sigpending(&come) &&
	       (sigismember(&come, SIGHUP) || sigismember(&come, SIGINT) ||
		sigismember(&come, SIGQUIT) || sigismember(&come, SIGTERM));
}

void forward_undo(void)
{
	sigaction(SIGPIPE, &pipe_before, NULL);
	sigaction(SIGCHLD, &child_before, NULL);
	/* What came meanwhile is the program's. */
	sigprocmask(SIG_SETMASK, &mask_before, NULL);
}
