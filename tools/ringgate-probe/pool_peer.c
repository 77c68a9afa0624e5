// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fds.h"
#include "pool.h"
#include "util.h"

#define END_NS		(5 * NSEC)	/* for a process to end */
#define NAP_NS		(NSEC / 100)
#define LOOK_MS		500

static void __attribute__((noreturn)) child(int fd, const struct verify_opts *o,
					    pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	/* Ctrl-C is for the other one, which then ends this one. */
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	util_set_name("ringgate pool verify (peer)");
	peer_serve(fd, o);
	_exit(0);
}

int peer_start(struct peer *p, const struct verify_opts *o)
{
	pid_t parent = getpid();
	int fds[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	fflush(NULL);
	p->pid = fork();
	if (p->pid < 0) {
		err = -errno;
		p->pid = 0;
		close(fds[0]);
		close(fds[1]);
		return err;
	}
	if (!p->pid) {
		close(fds[0]);
		child(fds[1], o, parent);
	}
	close(fds[1]);
	p->fd = fds[0];
	p->time_ns = o->time_ns;
	return 0;
}

static bool reap(struct peer *p, uint64_t ns, int *status)
{
	uint64_t until = util_now() + ns;
	pid_t pid;

	for (;;) {
		struct timespec ts = { .tv_nsec = NAP_NS };

		pid = waitpid(p->pid, status, WNOHANG);
		if (pid || util_now() >= until)
			break;
		nanosleep(&ts, NULL);
	}
	if (pid)
		p->pid = 0;
	return pid;
}

/* Says how it ended. Always an error */
static int gone(struct peer *p)
{
	int status = 0;

	if (util_stop)
		return -EINTR;
	if (!p->pid || !reap(p, END_NS, &status))
		say("the peer process closed its socket");
	else if (WIFSIGNALED(status))
		say("the peer process died: signal %d (%s)", WTERMSIG(status),
		    sigabbrev_np(WTERMSIG(status)) ?: "?");
	else
		say("the peer process ended: status %d", WEXITSTATUS(status));
	return -EPIPE;
}

int peer_send(struct peer *p, const struct peer_msg *m, int fd)
{
	union rgate_fds_room room;
	struct iovec iov = { (void *)(uintptr_t)m, sizeof(*m) };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };

	rgate_put_fds(&h, &room, &fd, fd >= 0);
	/* There is one command at most, so that it always finds room. */
	if (sendmsg(p->fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(*m))
		return gone(p);
	return 0;
}

int peer_wait(struct peer *p, struct peer_msg *m)
{
	uint64_t until = util_now() + p->time_ns;
	struct pollfd pfd = { .fd = p->fd, .events = POLLIN };
	ssize_t n;
	int ready;

	for (;;) {
		uint64_t now = util_now(), ms;

		if (util_stop)
			return -EINTR;
		if (now >= until) {
			say("the peer process does not answer");
			return -ETIMEDOUT;
		}
		/* a signal just before it is seen a little later */
		ms = (until - now) / 1000000 + 1;
		ready = poll(&pfd, 1, ms < LOOK_MS ? (int)ms : LOOK_MS);
		if (ready > 0)
			break;
		if (ready < 0 && errno != EINTR)
			return -errno;
	}
	n = recv(p->fd, m, sizeof(*m), MSG_DONTWAIT);
	if (n != sizeof(*m))
		return gone(p);
	m->name[sizeof(m->name) - 1] = '\0';
	m->text[sizeof(m->text) - 1] = '\0';
	return 0;
}

int peer_call(struct peer *p, struct peer_msg *m)
{
	uint32_t cmd = m->cmd;
	int err = peer_send(p, m, -1);

	if (!err)
		err = peer_wait(p, m);
	if (!err && m->cmd != cmd) {
		say("the peer process answered something else");
		err = -EPROTO;
	}
	return err;
}

void peer_stop(struct peer *p)
{
	int status;

	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	if (!p->pid || reap(p, END_NS, &status))
		return;
	kill(p->pid, SIGKILL);
	if (!reap(p, END_NS, &status))
		say("process %d, the peer, cannot be ended: the kernel holds it",
		    (int)p->pid);
}
