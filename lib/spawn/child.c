// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "filehash.h"

#define STACK		(256U << 10)
#define BASE_ENV	7		/* entries of a login, with the mark */

/* All that the child needs, ready before it is made: it shares the spawner's memory,
 * and the spawner waits until it has called execve() or ended. */
struct plan {
	const struct rgate_order *order;
	const struct rgate_spawn_parsed *req;
	const struct rgate_child_env *env;
	int fds[3];
	int group_fd;			/* directory of its control group; -1: none */
	int procs_fd;			/* -1: it is made in the group, or there is none */
	int exe_fd;			/* -1: by path */
	bool memory_by_group, pids_by_group;
	pid_t spawner;
	char **environ;
	/* out */
	int err;
	uint32_t stage;
};

static int limit(int what, rlim_t value)
{
	struct rlimit old, r = { value, value };

	if (getrlimit(what, &old))
		return -errno;
	/* Never more than there is. */
	if (old.rlim_max != RLIM_INFINITY && value > old.rlim_max)
		r = old;
	return setrlimit(what, &r) ? -errno : 0;
}

static int set_limits(const struct plan *plan)
{
	const struct rgate_order *o = plan->order;
	int err = 0;

	if (setrlimit(RLIMIT_NOFILE, &plan->env->files))
		return -errno;
	if (o->files)
		err = limit(RLIMIT_NOFILE, o->files);
	if (!err && o->cpu_s)
		err = limit(RLIMIT_CPU, o->cpu_s);
	if (!err && o->memory && !plan->memory_by_group)
		err = limit(RLIMIT_AS, o->memory);
	if (!err && o->processes && !plan->pids_by_group)
		err = limit(RLIMIT_NPROC, o->processes);
	if (!err && o->nice != plan->env->nice && setpriority(PRIO_PROCESS, 0, o->nice))
		err = -errno;
	umask(plan->req->umask == RGATE_SPAWN_UMASK_DEFAULT ? 022 : plan->req->umask);
	return err;
}

/* Straight to the kernel: the C library's would tell other threads. A spawner without
 * privilege can only run what is its own user's. */
static int set_user(const struct rgate_order *o)
{
	if (geteuid() && o->uid == geteuid())
		return 0;
	if (syscall(SYS_setgroups, (size_t)o->ngroups, o->groups) ||
	    syscall(SYS_setresgid, o->gid, o->gid, o->gid) ||
	    syscall(SYS_setresuid, o->uid, o->uid, o->uid))
		return -errno;
	return 0;
}

static int drop_capabilities(const struct rgate_order *o)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };

	if (!o->uid)
		return 0;
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &head, none) ? -errno : 0;
}

static int set_streams(struct plan *plan)
{
	int i;

	for (i = 0; i < 3; i++)
		if (dup2(plan->fds[i], i) < 0)
			return -errno;
	/* Whatever else is open, it ends with execve(). */
	return close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) ? -errno : 0;
}

static int set_directory(const struct plan *plan)
{
	if (plan->req->cwd)
		return chdir(plan->req->cwd) ? -errno : 0;
	return chdir(plan->order->home) && chdir("/") ? -errno : 0;
}

static int set_up(struct plan *plan)
{
	int err;

	if (setsid() < 0 ||
	    (plan->procs_fd >= 0 && write(plan->procs_fd, "0", 1) < 0))
		return -errno;
	err = set_streams(plan);
	if (!err)
		err = set_limits(plan);
	if (!err)
		err = set_user(plan->order);
	if (!err)
		err = drop_capabilities(plan->order);
	if (err)
		return err;
	/* Another user's process loses this, so not before. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != plan->spawner)
		return -ESRCH;
	return set_directory(plan);
}

static int in_child(void *arg)
{
	struct plan *plan = arg;
	char **argv = plan->req->argv;
	sigset_t none;

	plan->stage = RGATE_SPAWN_AT_SETUP;
	plan->err = set_up(plan);
	if (plan->err)
		_exit(127);
	plan->stage = RGATE_SPAWN_AT_EXEC;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (plan->exe_fd >= 0)
		(void)syscall(SYS_execveat, plan->exe_fd, "", argv, plan->environ, AT_EMPTY_PATH);
	else
		(void)execve(plan->order->path, argv, plan->environ);
	plan->err = -errno;
	_exit(127);
}

static bool same_name(const char *entry, const char *other)
{
	const size_t len = strcspn(entry, "=");

	return !strncmp(entry, other, len) && (other[len] == '=' || !other[len]);
}

/* Is @entry set or unset by the request? */
static bool is_changed(const struct rgate_spawn_parsed *req, const char *entry)
{
	uint32_t i;

	for (i = 0; i < req->envc; i++)
		if (same_name(entry, req->env[i]))
			return true;
	for (i = 0; i < req->unsetc; i++)
		if (same_name(entry, req->unset[i]))
			return true;
	return false;
}

struct base_env {
	char text[BASE_ENV][PATH_MAX + 16];
};

/* The environment; strings are those of the request, or in @base */
static char **make_environ(const struct rgate_order *o, const struct rgate_spawn_parsed *req,
			   const char *mark, struct base_env *base)
{
	char **env = calloc((size_t)req->envc + BASE_ENV + 1, sizeof(*env));
	unsigned int n = 0, i, count = 0;

	if (!env)
		return NULL;
	if (req->env_mode == RGATE_SPAWN_ENV_MERGE) {
		snprintf(base->text[count++], sizeof(base->text[0]), "HOME=%s", o->home);
		snprintf(base->text[count++], sizeof(base->text[0]), "USER=%s", o->user);
		snprintf(base->text[count++], sizeof(base->text[0]), "LOGNAME=%s", o->user);
		snprintf(base->text[count++], sizeof(base->text[0]), "SHELL=%s", o->shell);
		snprintf(base->text[count++], sizeof(base->text[0]), "PATH=%s", o->search);
	}
	for (i = 0; i < count; i++)
		if (!is_changed(req, base->text[i]))
			env[n++] = base->text[i];
	for (i = 0; i < req->envc; i++)
		env[n++] = req->env[i];
	if (mark) {
		snprintf(base->text[count], sizeof(base->text[0]), "%s", mark);
		env[n++] = base->text[count];
	}
	env[n] = NULL;
	return env;
}

#if defined(__x86_64__)
/* gcc 12's analyzer takes for lost what the assembler code below may change. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
/*
 * A process that is in its group from the beginning: for one that moves there the kernel
 * waits until no CPU is in the middle of a fork or an exit, which takes milliseconds. The C
 * library has no function for that.
 */
static pid_t clone_into(int group, void *stack, size_t size, int (*fn)(void *), void *arg)
{
	const struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK | CLONE_INTO_CGROUP, .exit_signal = SIGCHLD,
		.stack = (uintptr_t)stack, .stack_size = size, .cgroup = (unsigned int)group,
	};
	long ret;

	/* The child has all registers but those three, and does not return. */
	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "mov %[arg], %%rdi\n\t"
			 "call *%[fn]\n\t"
			 "ud2\n"
			 "1:"
			 : "=a" (ret)
			 : "0" (SYS_clone3), "D" (&args), "S" (sizeof(args)), [fn] "r" (fn),
			   [arg] "r" (arg)
			 : "rcx", "r11", "memory", "cc");
	return (pid_t)ret;
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif
#else
static pid_t clone_into(int group, void *stack, size_t size, int (*fn)(void *), void *arg)
{
	(void)group;
	(void)stack;
	(void)size;
	(void)fn;
	(void)arg;
	return -ENOSYS;
}
#endif

/* Makes it in its group, or has it go there. Its number, or -errno */
static pid_t make_process(struct plan *plan)
{
	static char stack[STACK] __attribute__((aligned(16)));
	pid_t pid;

	if (plan->group_fd >= 0) {
		pid = clone_into(plan->group_fd, stack, sizeof(stack), in_child, plan);
		/* Else there is no such call, or somebody does not let it through. */
		if (pid >= 0 || pid == -EAGAIN || pid == -ENOMEM)
			return pid;
		plan->procs_fd = rgate_cgroup_procs(plan->group_fd);
		if (plan->procs_fd < 0)
			return plan->procs_fd;
	}
	pid = clone(in_child, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, plan);
	if (pid < 0)
		pid = -errno;
	if (plan->procs_fd >= 0)
		close(plan->procs_fd);
	return pid;
}

static int make_group(struct rgate_child *child, struct plan *plan)
{
	struct rgate_cgroups *cg = plan->env->cg;
	const struct rgate_order *o = plan->order;
	int fd;

	if (cg->fd < 0)
		return 0;
	fd = rgate_cgroup_create(cg, o->memory, o->processes, &child->group);
	if (fd < 0) {
		child->group = 0;
		return fd;
	}
	plan->group_fd = fd;
	plan->memory_by_group = cg->memory;
	plan->pids_by_group = cg->pids;
	return 0;
}

static void run(struct rgate_child *child, struct plan *plan)
{
	static struct base_env base;

	child->stage = RGATE_SPAWN_AT_SETUP;
	child->err = make_group(child, plan);
	if (child->err)
		return;
	plan->environ = make_environ(plan->order, plan->req, child->group ? NULL : child->mark,
				     &base);
	child->pid = plan->environ ? make_process(plan) : -ENOMEM;
	if (child->pid < 0) {
		child->err = child->pid;
	} else {
		/* It has executed the program, or told why not and ended. */
		child->err = plan->err;
		child->stage = plan->stage;
		/* It leaves its group only after it let the spawner go on. */
		if (child->err)
			(void)waitpid(child->pid, NULL, 0);
	}
	free(plan->environ);
	if (plan->group_fd >= 0)
		close(plan->group_fd);
}

void rgate_child_start(struct rgate_child *child, const struct rgate_order *order,
		       const int fds[3], const struct rgate_child_env *env)
{
	struct rgate_spawn_parsed req;
	struct plan plan = { .order = order, .req = &req, .env = env, .group_fd = -1,
			     .procs_fd = -1, .exe_fd = -1, .spawner = getpid() };
	const char *why;

	*child = (struct rgate_child){ .stage = RGATE_SPAWN_AT_EXEC };
	memcpy(plan.fds, fds, sizeof(plan.fds));
	snprintf(child->mark, sizeof(child->mark), RGATE_TREE_MARK "%llx-%llx",
		 (unsigned long long)order->mark, (unsigned long long)order->id);
	child->err = rgate_spawn_decode(order->record, order->record_len, &req, &why);
	if (child->err)
		return;
	if (order->with_hash) {
		plan.exe_fd = rgate_filehash_open(order->path, order->sha256);
		child->err = plan.exe_fd < 0 ? plan.exe_fd : 0;
	}
	if (!child->err)
		run(child, &plan);
	if (plan.exe_fd >= 0)
		close(plan.exe_fd);
	if (child->err && child->group)
		(void)rgate_cgroup_end(env->cg, child->group);
	rgate_spawn_parsed_free(&req);
}
