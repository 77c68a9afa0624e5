// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child.h"
#include "filehash.h"

#define BASE_ENV	7		/* entries of a login, with the mark */

/* All that the child needs, ready before it is made: it has a copy of the spawner's memory. */
struct plan {
	const struct rgate_request *request;
	const struct rgate_child_env *env;
	const char *mark;		/* NULL: a control group has it */
	int fds[3];
	int result_fd;
	int group_fd;			/* directory of its control group; -1: none */
	int procs_fd;			/* -1: it is made in the group, or there is none */
	bool memory_by_group, pids_by_group;
	pid_t spawner;
};

/* What a child says that will not execute anything. One write(2) to a pipe, whole or not */
struct result {
	int32_t err;
	uint32_t stage;
	char why[RGATE_POLICY_WHY];
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
	const struct rgate_spawn_parsed *req = &plan->request->req;
	int err = 0;

	if (req->cpu_s)
		err = limit(RLIMIT_CPU, req->cpu_s);
	if (!err && req->processes && !plan->pids_by_group)
		err = limit(RLIMIT_NPROC, req->processes);
	if (!err && req->nice != plan->env->nice && setpriority(PRIO_PROCESS, 0, req->nice))
		err = -errno;
	umask(req->umask == RGATE_SPAWN_UMASK_DEFAULT ? 022 : req->umask);
	return err;
}

/* Those that a copy of the spawner may be above already: after it has opened its last file */
static int set_last_limits(const struct plan *plan)
{
	const struct rgate_spawn_parsed *req = &plan->request->req;
	int err = 0;

	if (setrlimit(RLIMIT_NOFILE, &plan->env->files))
		return -errno;
	if (req->files)
		err = limit(RLIMIT_NOFILE, req->files);
	if (!err && req->memory && !plan->memory_by_group)
		err = limit(RLIMIT_AS, req->memory);
	return err;
}

/* The daemon's keys are not for what it runs. Still as the spawner, whose quota it is; where
 * there are no keys at all, or they may not be used, there is nothing to be kept from it. */
static int set_keyring(void)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0) < 0 &&
	    errno != ENOSYS && errno != EPERM && errno != EACCES)
		return -errno;
	return 0;
}

/* Straight to the kernel: the C library's would tell other threads. A spawner without
 * privilege can only run what is its own user's. */
static int set_user(const struct rgate_policy_user *u)
{
	if (geteuid() && u->uid == geteuid())
		return 0;
	if (syscall(SYS_setgroups, (size_t)u->ngroups, u->groups) ||
	    syscall(SYS_setresgid, u->gid, u->gid, u->gid) ||
	    syscall(SYS_setresuid, u->uid, u->uid, u->uid))
		return -errno;
	return 0;
}

static int drop_capabilities(const struct rgate_policy_user *u)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };

	if (!u->uid)
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
	if (plan->request->req.cwd)
		return chdir(plan->request->req.cwd) ? -errno : 0;
	return chdir(plan->request->who->user.home) && chdir("/") ? -errno : 0;
}

static int set_up(struct plan *plan)
{
	const struct rgate_policy_node *who = plan->request->who;
	int err;

	if (setsid() < 0 ||
	    (plan->procs_fd >= 0 && write(plan->procs_fd, "0", 1) < 0))
		return -errno;
	err = set_streams(plan);
	if (!err)
		err = set_limits(plan);
	if (!err)
		err = set_keyring();
	if (!err)
		err = set_user(&who->user);
	if (!err)
		err = drop_capabilities(&who->user);
	if (err)
		return err;
	if (who->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	/* Another user's process loses this, so not before. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != plan->spawner)
		return -ESRCH;
	return set_directory(plan);
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

/* Side by side: each page that a copy of the spawner writes to is copied. */
struct base_env {
	char text[BASE_ENV * PATH_MAX];
	size_t len;
};

static char *add_base(struct base_env *base, const char *name, const char *value)
{
	char *at = base->text + base->len;
	const size_t room = sizeof(base->text) - base->len;
	const int n = snprintf(at, room, "%s=%.*s", name, PATH_MAX - 32, value);

	base->len += (size_t)n + 1;
	return at;
}

/* The environment; strings are those of the request, or in @base */
static char **make_environ(const struct rgate_request *request, const char *mark,
			   struct base_env *base)
{
	const struct rgate_spawn_parsed *req = &request->req;
	const struct rgate_policy_user *u = &request->who->user;
	const char *const login[][2] = {
		{ "HOME", u->home }, { "USER", u->name }, { "LOGNAME", u->name },
		{ "SHELL", u->shell }, { "PATH", rgate_policy_search(request->policy) },
	};
	char **env = calloc((size_t)req->envc + BASE_ENV + 1, sizeof(*env)), *entry;
	unsigned int n = 0, i;

	if (!env)
		return NULL;
	base->len = 0;
	for (i = 0; i < sizeof(login) / sizeof(login[0]); i++) {
		if (req->env_mode != RGATE_SPAWN_ENV_MERGE)
			break;
		entry = add_base(base, login[i][0], login[i][1]);
		if (!is_changed(req, entry))
			env[n++] = entry;
	}
	for (i = 0; i < req->envc; i++)
		env[n++] = req->env[i];
	if (mark)
		env[n++] = (char *)mark;
	env[n] = NULL;
	return env;
}

/* What the policy lets be run, as the user that runs it. Returns only with an error */
static int execute(struct plan *plan, struct result *r)
{
	static struct rgate_policy_grant grant;
	static struct base_env base;
	const struct rgate_request *request = plan->request;
	char **argv = request->req.argv, **env;
	int err, fd = -1;

	env = make_environ(request, plan->mark, &base);
	if (!env)
		return -ENOMEM;
	err = rgate_policy_path(request->policy, request->node, &request->req, &grant, r->why);
	r->stage = err && err != -ENOENT ? RGATE_SPAWN_AT_REQUEST : RGATE_SPAWN_AT_EXEC;
	if (!err && grant.with_hash) {
		fd = rgate_filehash_open(grant.path, grant.sha256);
		err = fd < 0 ? fd : 0;
	}
	if (!err)
		err = set_last_limits(plan);
	if (!err) {
		if (fd >= 0)
			(void)syscall(SYS_execveat, fd, "", argv, env, AT_EMPTY_PATH);
		else
			(void)execve(grant.path, argv, env);
		err = -errno;
	}
	free(env);
	return err;
}

__attribute__((noreturn))
static void in_child(struct plan *plan)
{
	struct result r = { .stage = RGATE_SPAWN_AT_SETUP };
	sigset_t none;

	r.err = set_up(plan);
	if (!r.err) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		r.err = execute(plan, &r);
	}
	(void)!write(plan->result_fd, &r, sizeof(r));
	_exit(127);
}

/*
 * A process that is in its group from the beginning: for one that moves there the kernel
 * waits until no CPU is in the middle of a fork or an exit, which takes milliseconds. Its
 * memory is a copy: where it was shared, whoever stops the process, which soon belongs to
 * another user, or has it dump its memory, would do so to the spawner.
 */
static pid_t clone_into(int group, int *pidfd)
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
static pid_t make_process(struct plan *plan, int *pidfd)
{
	pid_t pid = clone_into(plan->group_fd, pidfd);

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

static int make_group(struct rgate_child *child, struct plan *plan)
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

static int make_child(struct rgate_child *child, struct plan *plan)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	plan->result_fd = fds[1];
	child->pid = make_process(plan, &child->pidfd);
	if (!child->pid)
		in_child(plan);
	close(fds[1]);
	if (child->pid < 0) {
		close(fds[0]);
		return child->pid;
	}
	child->result_fd = fds[0];
	return 0;
}

void rgate_child_start(struct rgate_child *child, const struct rgate_request *request,
		       const int fds[3], const struct rgate_child_env *env)
{
	struct plan plan = { .request = request, .env = env, .group_fd = -1, .procs_fd = -1,
			     .spawner = getpid() };

	*child = (struct rgate_child){ .stage = RGATE_SPAWN_AT_SETUP, .pidfd = -1,
				       .result_fd = -1 };
	memcpy(plan.fds, fds, sizeof(plan.fds));
	snprintf(child->mark, sizeof(child->mark), RGATE_TREE_MARK "%llx-%llx",
		 (unsigned long long)request->mark, (unsigned long long)request->id);
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

bool rgate_child_result(struct rgate_child *child, bool ended)
{
	struct result r;
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
