// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include "agent_run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent_wire.h"
#include "cmd.h"
#include "enclose.h"
#include "forward.h"
#include "super.h"
#include "util.h"

#define EXIT_NO_RUN	126
#define EXIT_NO_COMMAND	127
#define DRAIN_NS	(30 * NSEC)	/* that what was sent may make no way, when all has ended */
/* That who serves may stand still when all has ended; and when the program alone was told to */
#define STILL_NS	NSEC
#define TOLD_NS		(12 * NSEC)
/* What it was told is meant for who stands still then, or soon after: later it has not ended */
#define MEANT_NS	(60 * NSEC)

/* ---- The program ---- */

/* What has no library in it is supervised. */
static void be_supervised(int sock)
{
	int err = super_enter(sock);

	switch (err) {
	case 0:
		return;
	case -EPIPE:
		break;
	case -EBUSY:
		say("its calls are answered by another one already: no `ringgate run` of a static program within another");
		break;
	case -EINVAL:
	case -ENOSYS:
		say("calls of static programs cannot be answered on this kernel: Linux 5.19 and seccomp are needed, on x86_64 or aarch64");
		break;
	default:
		say("calls of static programs cannot be answered: %s", strerror(-err));
		break;
	}
	_exit(EXIT_NO_RUN);
}

static void show_names(void)
{
	const int err = enclose_names();

	if (err)
		say("/etc/resolv.conf is the machine's own for the program: %s", strerror(-err));
}

/* @sock: super_begin()'s, or -1 */
static void become(const struct agent_run *run, pid_t parent, int sock)
{
	int err = run->netns ? enclose_network() : 0;

	if (err) {
		say("no network namespace: %s: --no-netns does without, and then other protocols escape",
		    strerror(-err));
		_exit(EXIT_NO_RUN);
	}
	/* What is loaded into others asks for their names. */
	if (run->netns && sock >= 0)
		show_names();
	(void)setrlimit(RLIMIT_NOFILE, &run->files);
	/* Without its agent its sockets are dead. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_NO_RUN);
	if (sock >= 0)
		be_supervised(sock);
	forward_undo();
	execvp(run->command[0], run->command);
	err = errno;	/* what is said may change it */
	say("%s: %s", run->command[0], strerror(err));
	_exit(err == ENOENT ? EXIT_NO_COMMAND : EXIT_NO_RUN);
}

/* -ENOMEM */
static int set_environment(const struct home *home, const char *preload)
{
	const char *before = getenv("LD_PRELOAD");
	char *all;
	int ret;

	if (asprintf(&all, "%s%s%s", preload, before && *before ? ":" : "",
		     before ? before : "") < 0)
		return -ENOMEM;
	ret = setenv("LD_PRELOAD", all, 1) || setenv(AGENT_ENV, home->path, 1);
	free(all);
	return ret ? -ENOMEM : 0;
}

/* ---- Until it has ended ---- */

struct watch {
	struct home *home;
	pid_t pid;
	int fd;			/* of the program; -1: it has ended, or there is none */
	int status;
	bool ended;
	bool lost;		/* of what it sent not all is on its way */
	bool enough;		/* that is not waited for any more */
	uint64_t told;		/* the signals that it was given, a bit each */
	uint64_t told_ns;	/* when it was given the last one of those that mostly end one */
	uint64_t stop_ns;	/* since when nobody else is waited for; 0: they are */
	uint64_t moved, moved_ns;	/* bytes, and when there were other ones */
};

/* Connections that have something to do */
static uint32_t moving(const struct watch *w, uint64_t *sent)
{
	struct agent_info info;

	if (!home_is_open(w->home))
		return 0;
	home_info(w->home, &info);
	if (sent)
		*sent = info.sent;
	return info.moving;
}

static void step(struct watch *w, int most_ms)
{
	struct pollfd p[3] = {
		{ .fd = w->fd, .events = POLLIN }, { .fd = forward_fd(), .events = POLLIN },
		{ .fd = -1, .events = POLLIN },
	};
	int ms = most_ms, err;

	if (home_is_open(w->home)) {
		p[2].fd = home_fd(w->home);
		ms = home_timeout(w->home);
		ms = ms < most_ms ? ms : most_ms;
	}
	(void)poll(p, 3, ms);
	if (!home_is_open(w->home))
		return;
	err = home_step(w->home);
	if (!err)
		return;
	say("the program's sockets are gone, as who had them is: `ringgate cluster status` tells of the daemon");
	/* A program that is there is told by its sockets. */
	w->lost = w->ended && moving(w, NULL);
	home_close(w->home);
}

/* One more of those that end a program, and there is none */
static void stop(struct watch *w)
{
	const uint64_t now = util_now();

	if (!w->stop_ns)
		w->stop_ns = now;
	/* timeout(1) sends each one twice, to the process and to its group. */
	else if (now - w->stop_ns > NSEC)
		w->enough = true;
}

/* A signal is the program's, and if that has ended it is this one's. */
static void hand_on(struct watch *w)
{
	bool has_group;
	int sig;

	while ((sig = forward_next(&has_group)) > 0) {
		if (w->ended) {
			if (sig != SIGUSR1 && sig != SIGUSR2 && sig != SIGWINCH)
				stop(w);
			continue;
		}
		/* ^C came to both. */
		if (has_group && getpgid(w->pid) == getpgrp())
			continue;
		kill(w->pid, sig);
		w->told |= 1ULL << sig;
		if (sig == SIGINT || sig == SIGQUIT || sig == SIGTERM)
			w->told_ns = util_now();
	}
}

static void look_if_ended(struct watch *w)
{
	pid_t pid = w->ended ? 0 : waitpid(w->pid, &w->status, WNOHANG);

	if (!pid || (pid < 0 && errno == EINTR))
		return;
	if (pid < 0) {
		say("how the program ended is not known: %s", strerror(errno));
		w->status = EXIT_FAIL << 8;	/* as wait(2) has it */
	}
	w->ended = true;
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	/* Who ended it means what it started, too. */
	if (WIFSIGNALED(w->status) && w->told & 1ULL << WTERMSIG(w->status))
		stop(w);
}

/* Nobody is left who could send, and what was sent went, or goes no further. */
static bool all_over(struct watch *w)
{
	uint64_t sent = 0;
	uint32_t n;
	int ret;

	while ((ret = waitpid(-1, NULL, WNOHANG)) > 0)
		;
	if (!ret && !w->stop_ns)
		return false;
	n = moving(w, &sent);
	if (!n)
		return true;
	if (sent != w->moved || !w->moved_ns) {
		w->moved = sent;
		w->moved_ns = util_now();
	}
	if (!w->enough && util_now() - w->moved_ns < (w->stop_ns ? NSEC : DRAIN_NS))
		return false;
	say("%u connections did not take all that was sent: the rest is lost", n);
	w->lost = true;
	return true;
}

static void watch_it(struct watch *w)
{
	do {
		step(w, w->ended || w->fd < 0 ? 20 : 1000);
		look_if_ended(w);
		hand_on(w);
	} while (!w->ended || !all_over(w));
}

/* @ns: since when somebody stands still. A program that did something else about it lives on. */
static bool is_told(const struct watch *w, uint64_t ns)
{
	return w->told_ns && util_now() - ns < w->told_ns + MEANT_NS;
}

bool agent_run_enough(void *ctx, uint64_t ns)
{
	const struct agent_run *run = ctx;
	struct watch *w = run->watch;

	if (!w)
		return forward_ends() || (run->ended && ns >= STILL_NS);
	hand_on(w);
	look_if_ended(w);
	if (w->stop_ns)
		return w->enough || ns >= STILL_NS;
	return is_told(w, ns) && ns >= TOLD_NS;
}

static int exit_status(const struct watch *w)
{
	if (WIFSIGNALED(w->status))
		return 128 + WTERMSIG(w->status);
	if (w->lost && !WEXITSTATUS(w->status))
		return EXIT_FAIL;
	return WEXITSTATUS(w->status);
}

/* The program's process; -errno */
static pid_t start(const struct agent_run *run)
{
	const pid_t self = getpid(), pid = fork();

	if (!pid)
		become(run, self, -1);
	return pid < 0 ? -errno : pid;
}

/* ... that is supervised. It ends if it cannot be. */
static pid_t start_supervised(const struct home *home, const struct agent_run *run)
{
	const pid_t self = getpid();
	int pair[2], err;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid = fork();
	if (!pid) {
		close(pair[0]);
		become(run, self, pair[1]);
	}
	err = pid < 0 ? -errno : pid;
	close(pair[1]);
	if (pid > 0) {
		const int ret = super_begin(pid, pair[0], home->path);

		if (ret && ret != -ECHILD)
			say("calls of %s cannot be answered: %s", run->command[0], strerror(-ret));
	}
	close(pair[0]);
	return err;
}

void agent_run_prepare(struct agent_run *run)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &run->files))
		run->files = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
	r = run->files;
	r.rlim_cur = r.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &r);
}

int agent_run(struct home *home, struct agent_run *run)
{
	struct watch w = { .home = home, .fd = -1 };

	if (run->preload && set_environment(home, run->preload))
		return fail(-ENOMEM, "%s", run->command[0]);
	/* What the program leaves behind is this one's to wait for. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	w.pid = run->preload ? start(run) : start_supervised(home, run);
	if (w.pid < 0)
		return fail(w.pid, "%s", run->command[0]);
	w.fd = (int)syscall(SYS_pidfd_open, w.pid, 0);
	run->watch = &w;
	watch_it(&w);
	run->watch = NULL;
	run->ended = w.stop_ns || is_told(&w, 0);
	return exit_status(&w);
}
