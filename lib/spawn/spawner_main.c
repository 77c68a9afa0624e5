// SPDX-License-Identifier: MIT OR GPL-2.0
/* The process that starts others: it waits for orders and for exits. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "cluster_copy.h"
#include "fds.h"
#include "filehash.h"
#include "spawner_work.h"

#define LAST_MS		5000	/* for killed processes to end */
#define EVENTS		16
#define QUIET_MS	2	/* without events: nobody waits for anything */

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
	struct rgate_spawner_policy *text = &s->shared->policy;
	struct rgate_spawn_policy *policy;
	char *buf = NULL;
	size_t len = 0;
	int err;

	/* Not parsed where the server could write meanwhile */
	err = rgate_policy_read(s->birth.policy_path, &buf, &len);
	if (!err) {
		memcpy(text->text, buf, len);
		text->len = (uint32_t)len;
		err = rgate_policy_parse(&policy, s->cluster, s->birth.policy_path, buf, len);
	} else if (err == -ENOENT && rgate_policy_nothing(&policy)) {
		err = -ENOMEM;
	}
	free(buf);
	if (err && err != -ENOENT)
		return err;
	rgate_policy_free(s->policy);
	s->policy = policy;
	rgate_ahead_drop(&s->ahead);
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

/* What makes the next start shorter, a step at a time. False: there is nothing of it */
static bool has_chores(const struct spawner *s)
{
	return !(rgate_ahead_idle(&s->ahead) && rgate_cgroups_idle(&s->cg));
}

static void do_chore(struct spawner *s)
{
	if (!rgate_ahead_idle(&s->ahead))
		rgate_ahead_make(&s->ahead, s->policy, &s->env);
	else
		rgate_cgroups_chore(&s->cg);
}

/* For events, or for the time for chores, which are done then. -errno */
static int wait_for_events(struct spawner *s, struct epoll_event *ev, int ms)
{
	bool chores = has_chores(s);
	int n;

	/* A start is somebody's who waits. */
	if (chores && spawner_hurries(s)) {
		chores = false;
		ms = sooner(ms, SPAWNER_HURRY_MS);
	}

	/* Where something was started they are done while it runs. Where something has ended,
	 * whoever hears of that needs the CPU, and may ask for the next. */
	n = events_wait(&s->ev, ev, EVENTS, events_ms(!chores ? ms : s->started ? 0 : QUIET_MS));
	if (n < 0)
		return n == -EINTR ? 0 : n;
	if (!n && chores)
		do_chore(s);
	return n;
}

static void loop(struct spawner *s)
{
	struct epoll_event ev[EVENTS];
	int n, i, ms = -1;
	bool packet;

	while (!s->end) {
		n = wait_for_events(s, ev, ms);
		if (n < 0)
			break;
		for (i = 0, packet = false; i < n; i++) {
			packet |= ev[i].data.u64 == SPAWNER_SOCKET;
			on_event(s, ev[i].data.u64);
		}
		/* Exits go before further orders, which may wait for their turn. */
		if (packet)
			take_packet(s);
		ms = sooner(spawner_overdue(s), spawner_ending(s));
		if (!spawner_hurries(s))
			ms = sooner(ms, rgate_ahead_due(&s->ahead));
	}
}

/* Kills all there is, and waits until it is gone */
static void kill_all(struct spawner *s)
{
	const uint64_t end = rgate_clock_now(CLOCK_MONOTONIC) + LAST_MS * 1000000ULL;
	struct link *l, *next;
	struct work *w;

	s->end = true;
	rgate_ahead_drop(&s->ahead);
	for (l = s->all.next; l != &s->all; l = l->next)
		(void)spawner_signal_tree(s, container_of(l, struct work, all), SIGKILL);
	while ((s->live || s->ahead.pid) && rgate_clock_now(CLOCK_MONOTONIC) < end) {
		spawner_reap(s);
		usleep(1000);
	}
	/* What those left who had ended before was killed above, too. */
	for (l = s->all.next; l != &s->all; l = next) {
		next = l->next;
		w = container_of(l, struct work, all);
		rgate_child_let_go(&w->child);
		if (w->step != WORK_ENDING)
			spawner_clear_up(s, w, false, false);
	}
	while (spawner_ending(s) >= 0 && rgate_clock_now(CLOCK_MONOTONIC) < end)
		usleep(1000);
	while (!list_empty(&s->all))
		spawner_forget(s, container_of(s->all.next, struct work, all));
}

/* 0 to 2 are open, to nothing, and else what it was given. */
static int become_clean_fds(void)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int i;

	if (null < 0)
		return -errno;
	for (i = 0; i < 3; i++)
		if (null != i && dup2(null, i) < 0)
			return -errno;
	if (fcntl(RGATE_SPAWNER_SOCK, F_SETFD, FD_CLOEXEC) ||
	    fcntl(RGATE_SPAWNER_MEM, F_SETFD, FD_CLOEXEC))
		return -errno;
	return close_range(RGATE_SPAWNER_MEM + 1, ~0U, 0) ? -errno : 0;
}

static int watch(struct spawner *s, int fd, uint64_t what)
{
	return events_add(&s->ev, fd, EPOLLIN, what);
}

/* Nothing of the process that runs this one */
static int become_clean(struct spawner *s)
{
	/* struct sigaction of the kernel, which begins with SIG_DFL: the C library's function
	 * refuses those that it uses itself, which may be ignored as any other. */
	static const unsigned long dfl[8];
	sigset_t set;
	int sig, err;

	err = become_clean_fds();
	if (err)
		return err;
	s->sock = RGATE_SPAWNER_SOCK;
	for (sig = 1; sig < NSIG; sig++)
		(void)syscall(SYS_rt_sigaction, sig, dfl, NULL, (size_t)NSIG / 8);
	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return -errno;
	err = events_open_plain(&s->ev);
	if (!err)
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

/* Its end cannot be taken away any more: else whoever has it could end this process. */
static int map_shared(struct spawner *s)
{
	const int seals = fcntl(RGATE_SPAWNER_MEM, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(RGATE_SPAWNER_MEM, &st) ||
	    st.st_size != sizeof(*s->shared))
		return -EPROTO;
	s->shared = mmap(NULL, sizeof(*s->shared), PROT_READ | PROT_WRITE, MAP_SHARED,
			 RGATE_SPAWNER_MEM, 0);
	if (s->shared == MAP_FAILED)
		return -errno;
	close(RGATE_SPAWNER_MEM);
	/* Requests of others lie there. */
	return madvise(s->shared, sizeof(*s->shared), MADV_DONTFORK) ? -errno : 0;
}

static bool is_string(const char *s, size_t cap)
{
	return memchr(s, '\0', cap);
}

/* What it is to be is told by who runs it, if that is of its own version. */
static int be_born(struct spawner *s)
{
	struct rgate_spawner_birth *b = &s->birth;
	struct rgate_spawner_hello ours;
	ssize_t n;

	rgate_spawner_hello(&ours);
	if (send(s->sock, &ours, sizeof(ours), MSG_NOSIGNAL) < 0)
		return -errno;
	do
		n = recv(s->sock, b, sizeof(*b), 0);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(*b) || memcmp(&b->hello, &ours, sizeof(ours)) ||
	    !is_string(b->cgroup, sizeof(b->cgroup)) ||
	    !is_string(b->policy_path, sizeof(b->policy_path)))
		return -EPROTO;
	return rgate_cluster_copy(&s->cluster, b->provider, b->node, b->nodes);
}

/* And the policy, about which the server hears as if it had asked for it */
static int begin(struct spawner *s)
{
	struct rgate_spawner_packet p = { .type = RGATE_SPAWNER_RELOADED };
	int err = become_clean(s);

	if (!err)
		err = map_shared(s);
	if (!err)
		err = be_born(s);
	if (!err)
		err = rgate_policy_nothing(&s->policy);
	if (err)
		return err;
	be_mortal();
	/* No user's process, which is a copy of this one until it calls execve(2), is to be
	 * looked into. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return -errno;
	rgate_filehash_prepare();
	rgate_cgroups_open(&s->cg, s->birth.with_cgroup ? s->birth.cgroup : NULL);
	s->env = (struct rgate_child_env){
		.cg = &s->cg, .ahead = &s->ahead, .files = s->birth.files,
		.nice = getpriority(PRIO_PROCESS, 0),
	};
	p.a = reload(s);
	spawner_tell(s, &p);
	return 0;
}

/* Not to be run by hand: whatever is open there would be closed. */
static bool is_ours(void)
{
	socklen_t len = sizeof(int);
	int type = 0;

	return !getsockopt(RGATE_SPAWNER_SOCK, SOL_SOCKET, SO_TYPE, &type, &len) &&
	       type == SOCK_SEQPACKET && fcntl(RGATE_SPAWNER_MEM, F_GET_SEALS) >= 0;
}

int rgate_spawner_main(void)
{
	struct spawner *s;
	int ret = 1;

	if (!is_ours()) {
		fputs("ringgate-spawner: ringgated(8) runs this\n", stderr);
		return 2;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return 1;
	s->starting_last = &s->starting;
	list_init(&s->all);
	s->sock = RGATE_SPAWNER_SOCK;
	if (index_init(&s->by_id) || index_init(&s->by_pid) || begin(s))
		goto free_s;
	loop(s);
	kill_all(s);
	rgate_cgroups_close(&s->cg);
	ret = 0;
free_s:
	rgate_policy_free(s->policy);
	rgate_cluster_destroy(s->cluster);
	index_fini(&s->by_pid);
	index_fini(&s->by_id);
	free(s);
	return ret;
}
