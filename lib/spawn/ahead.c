// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ahead.h"
#include "child_priv.h"
#include "clock.h"
#include "fds.h"
#include "keeper.h"

/* After one that could not be made, or was killed by somebody */
#define AGAIN_NS	1000000000ULL
/*
 * A limit of memory is set on its group with the process in it: below what it has already, the
 * kernel would take its memory from it, and the spawner's write(2) would wait for that.
 */
#define AHEAD_MEMORY	(16ULL << 20)

/* What it is told; a record follows, and stdin, stdout and stderr come along */
struct job {
	uint64_t id, mark;
	uint32_t node;
	bool memory_by_group, pids_by_group;
};

/* Bytes of the record, once there is a job; -errno: there will be none */
static ssize_t receive(int sock, struct job *job, void *record, int fds[3])
{
	struct iovec iov[2] = { { job, sizeof(*job) }, { record, RGATE_AHEAD_RECORD } };
	union rgate_fds_room room;
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2, .msg_control = room.buf,
			      .msg_controllen = sizeof(room.buf) };
	ssize_t n;

	n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	if (n < (ssize_t)sizeof(*job))
		return -EPIPE;
	/* Where there could be no more of them, they are lost. */
	if (rgate_take_fds(&msg, fds, 3) != 3)
		return -EMFILE;
	return n - (ssize_t)sizeof(*job);
}

/* The spawner has decided this by the same policy, or would have dropped this process. */
static int decide(struct rgate_request *r, const void *record, size_t len)
{
	char why[RGATE_POLICY_WHY];
	const char *wrong;
	int err;

	err = rgate_spawn_decode(record, len, &r->req, &wrong);
	if (err)
		return err;
	r->who = rgate_policy_node(r->policy, r->node);
	return r->who ? rgate_policy_limits(r->policy, r->node, &r->req, why) : -EACCES;
}

/*
 * It goes through what a job would have it do, up to execve(2), while nobody waits: each page that
 * this touches, of its code and of its copy of the spawner's memory, costs some microseconds when
 * it is touched first. What comes of it is the same whether this goes right or not.
 */
static void rehearse(struct rgate_request *r, uint8_t *record)
{
	const char *const argv[] = { "/bin/true", NULL };
	const struct rgate_spawn_request any = { .sz = sizeof(any), .argv = argv };
	const int64_t len = rgate_spawn_encoded_size(&any);

	if (len < 0 || len > RGATE_AHEAD_RECORD)
		return;
	rgate_spawn_encode(&any, record, (size_t)len);
	for (r->node = 0; r->node < RGATE_NODES_MAX; r->node++)
		if (rgate_policy_node(r->policy, r->node))
			break;
	if (!decide(r, record, (size_t)len))
		child_rehearse(r);
	rgate_spawn_parsed_free(&r->req);
}

struct waiting {
	struct child_plan *plan;
	struct rgate_request *r;
	int sock;
};

static void wait_for_job(void *arg, int life)
{
	static uint8_t record[RGATE_AHEAD_RECORD];
	const struct waiting *w = arg;
	const int kept[3] = { w->sock, w->plan->result_fd, life };
	const pid_t self = (pid_t)syscall(SYS_getpid);
	struct child_plan *plan = w->plan;
	struct rgate_request *r = w->r;
	char mark[RGATE_CHILD_MARK];
	struct job job;
	ssize_t len;
	int wrong, err;

	child_keep(kept, 3);
	plan->life_fd = life;
	(void)prctl(PR_SET_NAME, "ringgate-ahead");
	(void)!write(w->sock, &self, sizeof(self));
	wrong = child_prepare(plan);
	rehearse(r, record);
	len = receive(w->sock, &job, record, plan->fds);
	if (len == -EPIPE)
		_exit(0);
	err = wrong ? wrong : len < 0 ? (int)len : 0;
	if (!err) {
		r->id = job.id;
		r->mark = job.mark;
		r->node = job.node;
		plan->memory_by_group = job.memory_by_group;
		plan->pids_by_group = job.pids_by_group;
		child_mark(mark, r->mark, r->id);
		plan->mark = plan->group_fd < 0 ? mark : NULL;
		err = decide(r, record, (size_t)len);
	}
	child_run(plan, err);
}

int rgate_ahead_due(const struct rgate_ahead *a)
{
	uint64_t now;

	if (a->pid || !a->again_ns)
		return -1;
	now = rgate_clock_now(CLOCK_MONOTONIC);
	return now < a->again_ns ? (int)((a->again_ns - now) / 1000000) + 1 : 0;
}

bool rgate_ahead_idle(const struct rgate_ahead *a)
{
	return a->pid || rgate_ahead_due(a) > 0;
}

/* It has said its number, which is not given again before it was reaped. */
static bool has_begun(struct rgate_ahead *a)
{
	pid_t pid;

	if (!a->runner && a->sock >= 0 &&
	    recv(a->sock, &pid, sizeof(pid), MSG_DONTWAIT) == (ssize_t)sizeof(pid))
		a->runner = pid;
	return a->runner;
}

unsigned int rgate_ahead_count(struct rgate_ahead *a)
{
	return !!a->pid + (has_begun(a) && a->runner != a->pid);
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_all(struct rgate_ahead *a)
{
	close_one(&a->sock);
	close_one(&a->pidfd);
	close_one(&a->result_fd);
	close_one(&a->group_fd);
}

static void later(struct rgate_ahead *a)
{
	a->again_ns = rgate_clock_now(CLOCK_MONOTONIC) + AGAIN_NS;
}

static int make_group(struct rgate_ahead *a, struct rgate_cgroups *cg)
{
	if (cg->fd < 0)
		return 0;
	a->group_fd = rgate_cgroup_create(cg, 0, 0, &a->group);
	if (a->group_fd >= 0)
		return 0;
	a->group = 0;
	return a->group_fd;
}

static int make(struct rgate_ahead *a, const struct rgate_spawn_policy *policy,
		const struct rgate_child_env *env)
{
	struct rgate_request r = { .policy = policy };
	struct child_plan plan = { .request = &r, .env = env, .group_fd = a->group_fd,
				   .procs_fd = -1, .life_fd = -1, .spawner = getpid() };
	struct waiting w = { .plan = &plan, .r = &r };
	int result[2], socks[2], err;

	err = child_pipe(result);
	if (err)
		return err;
	a->result_fd = result[0];
	plan.result_fd = result[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks)) {
		err = -errno;
		goto close_result;
	}
	a->sock = socks[0];
	w.sock = socks[1];
	a->pid = child_clone(keeper_group(a->group_fd), &a->pidfd);
	if (!a->pid)
		keeper_begin(a->group_fd, wait_for_job, &w);
	err = a->pid < 0 ? a->pid : 0;
	close(socks[1]);
close_result:
	close(result[1]);
	return err;
}

void rgate_ahead_make(struct rgate_ahead *a, const struct rgate_spawn_policy *policy,
		      const struct rgate_child_env *env)
{
	int err;

	*a = (struct rgate_ahead){ .sock = -1, .pidfd = -1, .result_fd = -1, .group_fd = -1 };
	err = make_group(a, env->cg);
	if (!err)
		err = make(a, policy, env);
	if (!err)
		return;
	close_all(a);
	if (a->group)
		(void)rgate_cgroup_end(env->cg, a->group);
	*a = (struct rgate_ahead){ .pid = 0 };
	later(a);
}

void rgate_ahead_drop(struct rgate_ahead *a)
{
	if (!a->pid || a->dying)
		return;
	/* One that has not begun finds nobody at its socket, and ends. */
	if (has_begun(a)) {
		(void)kill(a->runner, SIGKILL);
		(void)syscall(SYS_pidfd_send_signal, a->pidfd, SIGKILL, NULL, 0);
	}
	close_all(a);
	a->dying = true;
}

/*
 * The keeper is gone, and nothing was heard of the other one: if it was made it is a child of this
 * process, in its group, ends by itself and is to be reaped before the group can go. Without groups
 * nothing waits for that.
 */
static pid_t find_runner(const struct rgate_ahead *a, const struct rgate_cgroups *cg)
{
	const pid_t pid = a->group ? rgate_cgroup_member(cg, a->group) : 0;
	siginfo_t info;

	/* One that was reaped is in it for a moment longer, with some kernels. */
	if (!pid || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT))
		return 0;
	return pid;
}

bool rgate_ahead_reaped(struct rgate_ahead *a, pid_t pid, const struct rgate_child_env *env)
{
	const bool keeper = pid == a->pid;

	if (!pid || !a->pid)
		return false;
	(void)has_begun(a);
	if (!keeper && pid != a->runner)
		return false;
	if (pid == a->runner)
		a->runner = 0;
	/* Unless it is the spawner's doing, somebody has killed one of them. */
	if (!a->dying)
		later(a);
	rgate_ahead_drop(a);
	if (!keeper)
		return true;
	/* The other one is waited for. */
	a->pid = a->runner ? a->runner : find_runner(a, env->cg);
	a->runner = 0;
	if (a->pid)
		return true;
	if (a->group)
		(void)rgate_cgroup_end(env->cg, a->group);
	*a = (struct rgate_ahead){ .again_ns = a->again_ns };
	return true;
}

/* Who is stopped would not answer, and who has ended neither. */
static bool is_well(const struct rgate_ahead *a)
{
	siginfo_t info = { .si_pid = 0 };

	return !waitid(P_PID, (id_t)a->runner, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) &&
	       !info.si_pid;
}

static bool send_job(const struct rgate_ahead *a, const struct rgate_request *r, const int fds[3],
		     const struct rgate_cgroups *cg)
{
	struct job job = { .id = r->id, .mark = r->mark, .node = r->node,
			   .memory_by_group = a->group && cg->memory,
			   .pids_by_group = a->group && cg->pids };
	struct iovec iov[2] = { { &job, sizeof(job) }, { (void *)r->record, r->record_len } };
	union rgate_fds_room room;
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	rgate_put_fds(&msg, &room, fds, 3);
	return sendmsg(a->sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

bool rgate_ahead_start(struct rgate_ahead *a, struct rgate_child *child,
		       const struct rgate_request *r, const int fds[3],
		       const struct rgate_child_env *env)
{
	bool own;
	int pidfd;

	if (!a->pid || a->dying || r->record_len > RGATE_AHEAD_RECORD ||
	    (r->req.memory && r->req.memory < AHEAD_MEMORY) || !has_begun(a))
		return false;
	own = a->runner == a->pid;
	pidfd = own ? a->pidfd : (int)syscall(SYS_pidfd_open, a->runner, 0);
	/* Where its limits cannot be set, whoever makes another one is told why. */
	if (pidfd < 0 || !is_well(a) ||
	    (a->group && rgate_cgroup_limit(env->cg, a->group_fd, r->req.memory,
					    r->req.processes)) ||
	    !send_job(a, r, fds, env->cg)) {
		if (!own)
			close_one(&pidfd);
		rgate_ahead_drop(a);
		return false;
	}
	child->pid = a->runner;
	child->pidfd = pidfd;
	child->result_fd = a->result_fd;
	child->group = a->group;
	if (!own)
		close(a->pidfd);
	close(a->sock);
	close_one(&a->group_fd);
	*a = (struct rgate_ahead){ .pid = 0 };
	return true;
}
