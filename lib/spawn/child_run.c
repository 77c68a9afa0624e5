// SPDX-License-Identifier: MIT OR GPL-2.0
/* In a process that is to run something. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "child_priv.h"
#include "filehash.h"

#define BASE_ENV	7		/* entries of a login, with the mark */

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

static int set_limits(const struct child_plan *plan)
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
static int set_last_limits(const struct child_plan *plan)
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

void child_keep(const int *fds, unsigned int n)
{
	int from = 3, next;
	unsigned int i;

	for (;; from = next + 1) {
		next = INT_MAX;
		for (i = 0; i < n; i++)
			if (fds[i] >= from && fds[i] < next)
				next = fds[i];
		if (next == INT_MAX)
			break;
		if (next > from)
			(void)close_range((unsigned int)from, (unsigned int)next - 1, 0);
	}
	(void)close_range((unsigned int)from, ~0U, 0);
}

static int set_streams(struct child_plan *plan)
{
	const int kept[2] = { plan->result_fd, plan->life_fd };
	int i;

	for (i = 0; i < 3; i++)
		if (dup2(plan->fds[i], i) < 0)
			return -errno;
	/* Not only when it calls execve(), which its user may keep it from: pipes of others whose
	 * ends are waited for, and the lock of all groups, would be open until then. */
	child_keep(kept, 2);
	return 0;
}

static int set_directory(const struct child_plan *plan)
{
	if (plan->request->req.cwd)
		return chdir(plan->request->req.cwd) ? -errno : 0;
	return chdir(plan->request->who->user.home) && chdir("/") ? -errno : 0;
}

/* It ends with the spawner. Another user's process loses this. */
static int set_parent(const struct child_plan *plan)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != plan->spawner ? -ESRCH : 0;
}

int child_prepare(const struct child_plan *plan)
{
	int err = set_parent(plan);

	if (err)
		return err;
	if (setsid() < 0 ||
	    (plan->procs_fd >= 0 && write(plan->procs_fd, "0", 1) < 0))
		return -errno;
	return set_keyring();
}

static int set_up(struct child_plan *plan)
{
	const struct rgate_policy_node *who = plan->request->who;
	int err;

	err = set_streams(plan);
	if (!err)
		err = set_limits(plan);
	if (!err)
		err = set_user(&who->user);
	/* Or else, by fs.suid_dumpable, it might be looked into as the user's. */
	if (!err && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		err = -errno;
	if (!err)
		err = drop_capabilities(&who->user);
	if (err)
		return err;
	if (who->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	err = set_parent(plan);
	return err ? err : set_directory(plan);
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

static struct rgate_policy_grant grant;
static struct base_env base;

void child_rehearse(const struct rgate_request *request)
{
	char mark[RGATE_CHILD_MARK], why[RGATE_POLICY_WHY], **env;
	sigset_t none;

	child_mark(mark, 0, 0);
	env = make_environ(request, mark, &base);
	(void)rgate_policy_path(request->policy, request->node, &request->req, &grant, why);
	sigemptyset(&none);
	free(env);
}

/* What the policy lets be run, as the user that runs it. Returns only with an error */
static int execute(struct child_plan *plan, struct child_result *r)
{
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

void child_run(struct child_plan *plan, int err)
{
	struct child_result r = { .err = err, .stage = RGATE_SPAWN_AT_SETUP };
	sigset_t none;

	if (!r.err)
		r.err = set_up(plan);
	if (!r.err) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		r.err = execute(plan, &r);
	}
	(void)!write(plan->result_fd, &r, sizeof(r));
	_exit(127);
}
