// SPDX-License-Identifier: MIT OR GPL-2.0
/* The process that starts others: it waits for orders and for exits. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "fds.h"
#include "filehash.h"
#include "log.h"
#include "spawner_work.h"

#define LAST_MS		5000	/* for killed processes to end */
#define EVENTS		16

void spawner_tell(struct spawner *s, const struct rgate_spawner_packet *p)
{
	/* The server always reads on; if it is gone there is nobody to tell. */
	while (send(s->sock, p, sizeof(*p), MSG_NOSIGNAL) < 0) {
		if (errno != EINTR) {
			s->end = true;
			return;
		}
	}
}

/* On a malformed file the policy that there was holds. Its text is there in any case. */
static int reload(struct spawner *s)
{
	struct rgate_spawner_policy *text = s->policy_text;
	struct rgate_spawn_policy *policy;
	char *buf = NULL;
	size_t len = 0;
	int err;

	/* Not parsed where the server could write meanwhile */
	err = rgate_policy_read(s->policy_path, &buf, &len);
	if (!err) {
		memcpy(text->text, buf, len);
		text->len = (uint32_t)len;
		err = rgate_policy_parse(&policy, s->cluster, s->policy_path, buf, len);
	} else if (err == -ENOENT && rgate_policy_nothing(&policy)) {
		err = -ENOMEM;
	}
	free(buf);
	if (err && err != -ENOENT)
		return err;
	rgate_policy_free(s->policy);
	s->policy = policy;
	return err;
}

void spawner_finished(struct spawner *s, uint64_t id, bool leftovers)
{
	const struct rgate_spawner_packet p = {
		.type = RGATE_SPAWNER_FINISHED, .id = id,
		.flags = leftovers ? RGATE_SPAWN_LEFTOVERS : 0,
	};

	spawner_tell(s, &p);
}

static void on_packet(struct spawner *s, const struct rgate_spawner_packet *p, const int fds[3],
		      unsigned int nfds)
{
	struct rgate_spawner_packet out = { .type = RGATE_SPAWNER_RELOADED, .id = p->id };
	struct work *w;

	if (p->type == RGATE_SPAWNER_START) {
		if (p->slot < RGATE_ORDERS)
			spawner_order(s, p->slot, nfds == 3 ? fds : NULL);
		return;
	}
	if (p->type == RGATE_SPAWNER_RELOAD) {
		out.a = reload(s);
		spawner_tell(s, &out);
		return;
	}
	w = spawner_find(s, p->id);
	if (w && w->step == WORK_FAILED)
		w = NULL;
	if (p->type == RGATE_SPAWNER_SIGNAL && w)
		spawner_signal(s, w, p->a, p->b);
	if (p->type != RGATE_SPAWNER_FINISH)
		return;
	if (w && w->step == WORK_EXITED)
		spawner_clear_up(s, w, p->a, true);
	else
		spawner_finished(s, p->id, false);
}

/* One packet */
static void take_packet(struct spawner *s)
{
	struct rgate_spawner_packet p;
	struct iovec iov = { &p, sizeof(p) };
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(3 * sizeof(int))];
	} control;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
			      .msg_controllen = sizeof(control.buf) };
	int fds[3] = { -1, -1, -1 };
	unsigned int nfds, i;
	ssize_t n;

	n = recvmsg(s->sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(p)) {
		s->end = true;
		return;
	}
	nfds = rgate_take_fds(&msg, fds, 3);
	on_packet(s, &p, fds, nfds);
	for (i = 0; i < nfds; i++)
		close(fds[i]);
}

static void on_event(struct spawner *s, uint64_t what)
{
	struct signalfd_siginfo info;
	struct work *w;

	if (what == SPAWNER_SIGNALS) {
		(void)!read(s->signal_fd, &info, sizeof(info));
		spawner_reap(s);
	} else if (what != SPAWNER_SOCKET) {
		w = spawner_find(s, what);
		if (w)
			(void)spawner_started(s, w, false);
	}
}

/* Of two times to wait; -1: for ever */
static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static void loop(struct spawner *s)
{
	struct epoll_event ev[EVENTS];
	int n, i, ms = -1;
	bool packet, chores;

	while (!s->end) {
		/* A start is somebody's who waits. */
		chores = !s->starting && !rgate_cgroups_idle(&s->cg);
		n = epoll_wait(s->epoll_fd, ev, EVENTS, chores ? 0 : ms);
		if (n < 0 && errno != EINTR)
			break;
		if (!n && chores)
			rgate_cgroups_chore(&s->cg);
		for (i = 0, packet = false; i < n; i++) {
			packet |= ev[i].data.u64 == SPAWNER_SOCKET;
			on_event(s, ev[i].data.u64);
		}
		/* Exits go before further orders, which may wait for their turn. */
		if (packet)
			take_packet(s);
		ms = sooner(spawner_overdue(s), spawner_ending(s));
	}
}

/* Kills all there is, and waits until it is gone */
static void kill_all(struct spawner *s)
{
	const uint64_t end = rgate_clock_now(CLOCK_MONOTONIC) + LAST_MS * 1000000ULL;
	struct work *w, *next;
	unsigned int i;

	s->end = true;
	for (i = 0; i < SPAWNER_BUCKETS; i++)
		for (w = s->by_id[i]; w; w = w->next_id)
			(void)spawner_signal_tree(s, w, SIGKILL);
	while (s->live && rgate_clock_now(CLOCK_MONOTONIC) < end) {
		spawner_reap(s);
		usleep(1000);
	}
	/* What those left who had ended before was killed above, too. */
	for (i = 0; i < SPAWNER_BUCKETS; i++)
		for (w = s->by_id[i]; w; w = next) {
			next = w->next_id;
			rgate_child_let_go(&w->child);
			if (w->step != WORK_ENDING)
				spawner_clear_up(s, w, false, false);
		}
	while (spawner_ending(s) >= 0 && rgate_clock_now(CLOCK_MONOTONIC) < end)
		usleep(1000);
	for (i = 0; i < SPAWNER_BUCKETS; i++)
		while (s->by_id[i])
			spawner_forget(s, s->by_id[i]);
}

/* 0 to 2 are open, to nothing, 3 is the socket, and nothing else is open. */
static int become_clean_fds(struct spawner *s)
{
	/* It may be one of those itself, in a process that was started without them. */
	const int sock = fcntl(s->sock, F_DUPFD_CLOEXEC, 3);
	int null = open("/dev/null", O_RDWR), i;

	if (sock < 0 || null < 0)
		return -errno;
	for (i = 0; i < 3; i++)
		if (null != i && dup2(null, i) < 0)
			return -errno;
	if (sock != 3 && dup3(sock, 3, O_CLOEXEC) < 0)
		return -errno;
	s->sock = 3;
	return close_range(4, ~0U, 0) ? -errno : 0;
}

static int watch(struct spawner *s, int fd, uint64_t what)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = what };

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* Nothing of the process that this was forked from */
static int become_clean(struct spawner *s)
{
	/* struct sigaction of the kernel, which begins with SIG_DFL: the C library's function
	 * refuses those that it uses itself, which may be ignored as any other. */
	static const unsigned long dfl[8];
	sigset_t set;
	int sig, err;

	err = become_clean_fds(s);
	if (err)
		return err;
	for (sig = 1; sig < NSIG; sig++)
		(void)syscall(SYS_rt_sigaction, sig, dfl, NULL, (size_t)NSIG / 8);
	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->signal_fd < 0 || s->epoll_fd < 0)
		return -errno;
	err = watch(s, s->sock, SPAWNER_SOCKET);
	if (!err)
		err = watch(s, s->signal_fd, SPAWNER_SIGNALS);
	if (err)
		return err;
	(void)setsid();
	(void)!chdir("/");
	(void)prctl(PR_SET_NAME, "ringgate-spawn");
	return prctl(PR_SET_CHILD_SUBREAPER, 1) ? -errno : 0;
}

/* The daemon may be one that the kernel spares; what it runs is not. */
static void be_mortal(void)
{
	int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16] = "";

	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text) - 1) > 0 && text[0] == '-')
		(void)!pwrite(fd, "0", 1, 0);
	close(fd);
}

int rgate_spawner_main(int sock, const struct rgate_spawner *shared,
		       const struct rgate_spawner_opts *opts)
{
	struct spawner *s = calloc(1, sizeof(*s));
	int ret = 1;

	if (!s)
		return 1;
	s->sock = sock;
	s->orders = shared->orders;
	s->policy_text = shared->policy;
	s->cluster = opts->cluster;
	s->policy_path = opts->policy_path;
	s->policy = opts->policy;
	s->start_ms = opts->start_ms;
	s->starting_last = &s->starting;
	/* Where the log goes is the server's. */
	rgate_log_set(NULL, NULL);
	if (become_clean(s))
		goto free_s;
	be_mortal();
	rgate_filehash_prepare();
	rgate_cgroups_open(&s->cg, opts->cgroup);
	s->env = (struct rgate_child_env){
		.cg = &s->cg, .files = opts->files, .nice = getpriority(PRIO_PROCESS, 0),
	};
	loop(s);
	kill_all(s);
	rgate_cgroups_close(&s->cg);
	ret = 0;
free_s:
	rgate_policy_free(s->policy);
	free(s);
	return ret;
}
