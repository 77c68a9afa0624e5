// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ahead.h"
#include "child_priv.h"

/*
 * A process that is in its group from the beginning: for one that moves there the kernel
 * waits until no CPU is in the middle of a fork or an exit, which takes milliseconds. Its
 * memory is a copy: where it was shared, whoever stops the process, which soon belongs to
 * another user, or has it dump its memory, would do so to the spawner.
 */
pid_t child_clone(int group, int *pidfd)
{
	const struct clone_args args = {
		.flags = CLONE_PIDFD | (group >= 0 ? CLONE_INTO_CGROUP : 0),
		.pidfd = (uintptr_t)pidfd, .exit_signal = SIGCHLD,
		.cgroup = group >= 0 ? (unsigned int)group : 0,
	};
	const long ret = syscall(SYS_clone3, &args, sizeof(args));

	return ret < 0 ? -errno : (pid_t)ret;
}

/* Makes it in its group, or has it go there. Its number, or -errno */
static pid_t make_process(struct child_plan *plan, int *pidfd)
{
	pid_t pid = child_clone(plan->group_fd, pidfd);

	if (pid >= 0 || pid == -EAGAIN || pid == -ENOMEM || pid == -EMFILE || pid == -ENFILE)
		return pid;
	/* Else there is no such call, or somebody does not let it through. */
	if (plan->group_fd >= 0) {
		plan->procs_fd = rgate_cgroup_procs(plan->group_fd);
		if (plan->procs_fd < 0)
			return plan->procs_fd;
	}
	pid = fork();
	if (pid < 0)
		pid = -errno;
	/* It cannot be anybody else's number: nobody has reaped it. */
	if (pid > 0)
		*pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pid && plan->procs_fd >= 0)
		close(plan->procs_fd);
	return pid;
}

static int make_group(struct rgate_child *child, struct child_plan *plan)
{
	struct rgate_cgroups *cg = plan->env->cg;
	const struct rgate_spawn_parsed *req = &plan->request->req;
	int fd;

	if (cg->fd < 0)
		return 0;
	fd = rgate_cgroup_create(cg, req->memory, req->processes, &child->group);
	if (fd < 0) {
		child->group = 0;
		return fd;
	}
	plan->group_fd = fd;
	plan->memory_by_group = cg->memory;
	plan->pids_by_group = cg->pids;
	return 0;
}

int child_pipe(int fds[2])
{
	return pipe2(fds, O_CLOEXEC | O_NONBLOCK) ? -errno : 0;
}

static int make_child(struct rgate_child *child, struct child_plan *plan)
{
	int fds[2], err;

	err = child_pipe(fds);
	if (err)
		return err;
	plan->result_fd = fds[1];
	child->pid = make_process(plan, &child->pidfd);
	if (!child->pid)
		child_run(plan, child_prepare(plan));
	close(fds[1]);
	if (child->pid < 0) {
		close(fds[0]);
		return child->pid;
	}
	child->result_fd = fds[0];
	return 0;
}

void child_mark(char mark[RGATE_CHILD_MARK], uint64_t mark_of_all, uint64_t id)
{
	snprintf(mark, RGATE_CHILD_MARK, RGATE_TREE_MARK "%llx-%llx",
		 (unsigned long long)mark_of_all, (unsigned long long)id);
}

static void make_now(struct rgate_child *child, const struct rgate_request *request,
		     const int fds[3], const struct rgate_child_env *env)
{
	struct child_plan plan = { .request = request, .env = env, .group_fd = -1,
				   .procs_fd = -1, .life_fd = -1, .spawner = getpid() };

	memcpy(plan.fds, fds, sizeof(plan.fds));
	child->err = make_group(child, &plan);
	if (!child->err) {
		plan.mark = child->group ? NULL : child->mark;
		child->err = make_child(child, &plan);
	}
	if (plan.group_fd >= 0)
		close(plan.group_fd);
	if (child->err && child->group)
		(void)rgate_cgroup_end(env->cg, child->group);
}

void rgate_child_start(struct rgate_child *child, const struct rgate_request *request,
		       const int fds[3], const struct rgate_child_env *env)
{
	*child = (struct rgate_child){ .stage = RGATE_SPAWN_AT_SETUP, .pidfd = -1,
				       .result_fd = -1 };
	child_mark(child->mark, request->mark, request->id);
	if (!rgate_ahead_start(env->ahead, child, request, fds, env))
		make_now(child, request, fds, env);
}

bool rgate_child_result(struct rgate_child *child, bool ended)
{
	struct child_result r;
	ssize_t n;

	if (child->result_fd < 0)
		return true;
	n = read(child->result_fd, &r, sizeof(r));
	if (n < 0 && !ended && (errno == EAGAIN || errno == EINTR))
		return false;
	/* The end: it has no such descriptor any more, which ends with execve(). */
	if (n == (ssize_t)sizeof(r)) {
		child->err = r.err < 0 ? r.err : -EIO;
		child->stage = r.stage;
		memcpy(child->why, r.why, sizeof(child->why));
		child->why[sizeof(child->why) - 1] = '\0';
	}
	rgate_child_let_go(child);
	return true;
}

void rgate_child_let_go(struct rgate_child *child)
{
	if (child->result_fd >= 0)
		close(child->result_fd);
	if (child->pidfd >= 0)
		close(child->pidfd);
	child->result_fd = child->pidfd = -1;
}
