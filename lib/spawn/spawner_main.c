// SPDX-License-Identifier: MIT OR GPL-2.0
/* The process that starts others: it waits for orders and for exits. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "clock.h"

#define BUCKETS		1024
#define LAST_MS		5000	/* for killed processes to end */

struct work {			/* a process, from its start to the end of what it left */
	struct work *next_id, *next_pid;
	uint64_t id;
	pid_t pid;
	bool exited;
	uint64_t group;		/* control group; 0: none */
	char mark[64];
};

struct spawner {
	int sock;
	int signal_fd;
	struct rgate_order *orders;
	struct rgate_cgroups cg;
	struct rgate_child_env env;
	struct work *by_id[BUCKETS];
	struct work *by_pid[BUCKETS];
	unsigned int live;	/* leaders that were not reaped */
	bool end;
};

static struct work **id_bucket(struct spawner *s, uint64_t id)
{
	return &s->by_id[id % BUCKETS];
}

static struct work **pid_bucket(struct spawner *s, pid_t pid)
{
	return &s->by_pid[(unsigned int)pid % BUCKETS];
}

static struct work *find_id(struct spawner *s, uint64_t id)
{
	struct work *w;

	for (w = *id_bucket(s, id); w && w->id != id; w = w->next_id)
		;
	return w;
}

static struct work *take_pid(struct spawner *s, pid_t pid)
{
	struct work **at, *w;

	for (at = pid_bucket(s, pid); (w = *at); at = &w->next_pid) {
		if (w->pid != pid)
			continue;
		*at = w->next_pid;
		return w;
	}
	return NULL;
}

static void forget(struct spawner *s, struct work *w)
{
	struct work **at;

	for (at = id_bucket(s, w->id); *at != w; at = &(*at)->next_id)
		;
	*at = w->next_id;
	free(w);
}

static void tell(struct spawner *s, const struct rgate_spawner_packet *p)
{
	/* The server always reads on; if it is gone there is nobody to tell. */
	while (send(s->sock, p, sizeof(*p), MSG_NOSIGNAL) < 0) {
		if (errno != EINTR) {
			s->end = true;
			return;
		}
	}
}

static struct rgate_tree tree_of(const struct work *w)
{
	return (struct rgate_tree){ .leader = w->pid, .reaped = w->exited, .mark = w->mark };
}

static int signal_tree(struct spawner *s, const struct work *w, int sig)
{
	const struct rgate_tree tree = tree_of(w);
	int n;

	n = w->group ? rgate_cgroup_signal(&s->cg, w->group, sig) : rgate_tree_signal(&tree, sig);
	/* Who is stopped would not notice. */
	if (sig == SIGTERM || sig == SIGHUP || sig == SIGINT)
		(void)(w->group ? rgate_cgroup_signal(&s->cg, w->group, SIGCONT) :
				    rgate_tree_signal(&tree, SIGCONT));
	return n;
}

/* Does anything live that came of it? Takes the group away if not. */
static bool is_left(struct spawner *s, const struct work *w)
{
	const struct rgate_tree tree = tree_of(w);
	int children;

	if (w->group)
		return rgate_cgroup_end(&s->cg, w->group) == -EBUSY;
	/* Orphans are children of this process; usually there are none. */
	children = rgate_tree_children();
	if (children >= 0 && (unsigned int)children <= s->live)
		return false;
	return rgate_tree_signal(&tree, 0) > 0;
}

/* What it left is killed, or left alone; true: there was something */
static bool clear_up(struct spawner *s, struct work *w, bool leave)
{
	const struct rgate_tree tree = tree_of(w);
	int i;

	if (!is_left(s, w))
		return false;
	if (leave) {
		if (w->group)
			rgate_cgroup_let_go(&s->cg, w->group);
		return false;
	}
	if (!w->group)
		return rgate_tree_signal(&tree, SIGKILL) > 0;
	for (i = 0; i < 1000 && rgate_cgroup_remove(&s->cg, w->group) == -EBUSY; i++) {
		(void)rgate_cgroup_signal(&s->cg, w->group, SIGKILL);
		usleep(200);
	}
	return true;
}

static void on_exit_of(struct spawner *s, struct work *w, int status, const struct rusage *usage)
{
	struct rgate_spawner_packet p = {
		.type = RGATE_SPAWNER_EXITED, .id = w->id, .a = status, .usage = *usage,
		.when_ns = rgate_clock_now(CLOCK_REALTIME),
	};

	w->exited = true;
	s->live--;
	/* Of one that ended well nobody asks. */
	if (status && w->group && rgate_cgroup_oom(&s->cg, w->group))
		p.flags |= RGATE_SPAWN_KILLED_OOM;
	p.b = is_left(s, w);
	tell(s, &p);
	if (!p.b)
		forget(s, w);
}

static void reap(struct spawner *s)
{
	struct rusage usage;
	struct work *w;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
		w = take_pid(s, pid);
		/* Else an orphan of somebody's */
		if (w)
			on_exit_of(s, w, status, &usage);
	}
}

static void start(struct spawner *s, const struct rgate_spawner_packet *in, const int fds[3])
{
	struct rgate_spawner_packet out = {
		.type = RGATE_SPAWNER_STARTED, .slot = in->slot, .id = in->id,
	};
	struct work *w = calloc(1, sizeof(*w));
	struct rgate_child child = { .err = -ENOMEM, .stage = RGATE_SPAWN_AT_SETUP };

	out.when_ns = rgate_clock_now(CLOCK_REALTIME);
	if (w)
		rgate_child_start(&child, &s->orders[in->slot], fds, &s->env);
	out.a = child.err ? child.err : (int32_t)child.pid;
	out.b = (int32_t)child.stage;
	out.flags = child.group ? 0 : RGATE_SPAWN_NO_CGROUP;
	if (child.err) {
		free(w);
		tell(s, &out);
		return;
	}
	w->id = in->id;
	w->pid = child.pid;
	w->group = child.group;
	memcpy(w->mark, child.mark, sizeof(w->mark));
	w->next_id = *id_bucket(s, w->id);
	*id_bucket(s, w->id) = w;
	w->next_pid = *pid_bucket(s, w->pid);
	*pid_bucket(s, w->pid) = w;
	s->live++;
	tell(s, &out);
}

static void send_signal(struct spawner *s, struct work *w, int sig, int scope)
{
	if (sig < 1 || sig > SIGRTMAX)
		return;
	/* The leader's number may be somebody else's by now. */
	if (scope == RGATE_SPAWN_TO_TREE || w->exited)
		(void)signal_tree(s, w, sig);
	else
		(void)kill(scope == RGATE_SPAWN_TO_GROUP ? -w->pid : w->pid, sig);
}

static void on_packet(struct spawner *s, const struct rgate_spawner_packet *p, const int fds[3],
		      unsigned int nfds)
{
	struct rgate_spawner_packet out = { .type = RGATE_SPAWNER_FINISHED, .id = p->id };
	struct work *w;

	if (p->type == RGATE_SPAWNER_START) {
		if (nfds == 3 && p->slot < RGATE_ORDERS)
			start(s, p, fds);
		return;
	}
	w = find_id(s, p->id);
	if (p->type == RGATE_SPAWNER_SIGNAL && w)
		send_signal(s, w, p->a, p->b);
	if (p->type != RGATE_SPAWNER_FINISH)
		return;
	if (w && w->exited) {
		if (clear_up(s, w, p->a))
			out.flags |= RGATE_SPAWN_LEFTOVERS;
		forget(s, w);
	}
	tell(s, &out);
}

static unsigned int take_fds(struct msghdr *msg, int fds[3])
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	unsigned int n;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	n = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	return n;
}

/* One packet; false: none */
static bool take_packet(struct spawner *s)
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
		return false;
	if (n != sizeof(p)) {
		s->end = true;
		return false;
	}
	nfds = take_fds(&msg, fds);
	on_packet(s, &p, fds, nfds);
	for (i = 0; i < nfds; i++)
		close(fds[i]);
	return true;
}

static void loop(struct spawner *s)
{
	struct pollfd p[2] = { { .fd = s->sock, .events = POLLIN },
			       { .fd = s->signal_fd, .events = POLLIN } };
	struct signalfd_siginfo info;
	int n;

	while (!s->end) {
		n = poll(p, 2, rgate_cgroups_idle(&s->cg) ? -1 : 0);
		if (n < 0 && errno != EINTR)
			break;
		if (!n)
			rgate_cgroups_chore(&s->cg);
		if (p[1].revents) {
			(void)!read(s->signal_fd, &info, sizeof(info));
			reap(s);
		}
		/* Exits go before further orders, which may wait for their turn. */
		if (p[0].revents)
			(void)take_packet(s);
	}
}

/* Kills all there is, and waits until it is gone */
static void kill_all(struct spawner *s)
{
	const uint64_t end = rgate_clock_now(CLOCK_MONOTONIC) + LAST_MS * 1000000ULL;
	struct work *w;
	unsigned int i;

	s->end = true;
	for (i = 0; i < BUCKETS; i++)
		for (w = s->by_id[i]; w; w = w->next_id)
			(void)signal_tree(s, w, SIGKILL);
	while (s->live && rgate_clock_now(CLOCK_MONOTONIC) < end) {
		reap(s);
		usleep(1000);
	}
	/* What those left who had ended before was killed above, too. */
	for (i = 0; i < BUCKETS; i++)
		while ((w = s->by_id[i])) {
			(void)clear_up(s, w, false);
			forget(s, w);
		}
}

/* Nothing of the process that this was forked from; 0 to 2 must be open, to anything */
static int become_clean(struct spawner *s)
{
	/* struct sigaction of the kernel, which begins with SIG_DFL: the C library's function
	 * refuses those that it uses itself, which may be ignored as any other. */
	static const unsigned long dfl[8];
	int null = open("/dev/null", O_RDWR), sig, i;
	sigset_t set;

	for (i = 0; i < 3; i++)
		if (null != i && dup2(null, i) < 0)
			return -errno;
	/* The socket is 3. */
	if (s->sock != 3 && dup2(s->sock, 3) < 0)
		return -errno;
	s->sock = 3;
	(void)fcntl(3, F_SETFD, FD_CLOEXEC);
	(void)close_range(4, ~0U, 0);
	for (sig = 1; sig < NSIG; sig++)
		(void)syscall(SYS_rt_sigaction, sig, dfl, NULL, (size_t)NSIG / 8);
	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return -errno;
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

int rgate_spawner_main(int sock, struct rgate_order *orders,
		       const struct rgate_spawner_opts *opts)
{
	struct spawner *s = calloc(1, sizeof(*s));
	int ret = 1;

	if (!s)
		return 1;
	s->sock = sock;
	s->orders = orders;
	if (become_clean(s))
		goto free_s;
	be_mortal();
	rgate_cgroups_open(&s->cg, opts->cgroup);
	s->env = (struct rgate_child_env){
		.cg = &s->cg, .files = opts->files, .nice = getpriority(PRIO_PROCESS, 0),
	};
	loop(s);
	kill_all(s);
	rgate_cgroups_close(&s->cg);
	ret = 0;
free_s:
	free(s);
	return ret;
}
