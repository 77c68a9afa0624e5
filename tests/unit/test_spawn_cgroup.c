// SPDX-License-Identifier: MIT OR GPL-2.0
/* Who is signalled in a control group: whoever is in it, and not who has the number by now. */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cgroup.h"

#define LINES	20000	/* more than 64 KiB of them */

/* A directory that says what a group with number 1 would */
static char dir[32];

static struct rgate_cgroups pretend(const char *file, const char *text)
{
	struct rgate_cgroups cg = { .parent_fd = -1, .name = "ringgate-spawn.1" };
	char path[80];
	FILE *f;

	strcpy(dir, "/tmp/ringgate-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/1", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/1/%s", dir, file);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	cg.fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_true(cg.fd >= 0);
	return cg;
}

static void end(struct rgate_cgroups *cg)
{
	char text[80];

	close(cg->fd);
	snprintf(text, sizeof(text), "rm -r %s", dir);
	assert_int_equal(system(text), 0);
}

/* One that left the group, or that has the number of one that did, is let alone. */
static void stranger(void **state)
{
	struct rgate_cgroups cg;
	sigset_t set;
	char text[32];
	int status, which;
	pid_t pid;

	(void)state;
	/* It takes them in the order of their numbers: SIGTERM is 15, SIGCHLD 17. */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pid = fork();
	if (!pid) {
		while (sigwait(&set, &which))
			;
		_exit(which);
	}
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	snprintf(text, sizeof(text), "%d\n", (int)pid);
	cg = pretend("cgroup.procs", text);
	assert_int_equal(rgate_cgroup_signal(&cg, 1, SIGTERM), 1);
	kill(pid, SIGCHLD);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), SIGCHLD);
	end(&cg);
}

/* All of them are looked at, and none that was cut. */
static void whole_lines(void **state)
{
	char *text = malloc((size_t)LINES * 8 + 1), *at = text;
	struct rgate_cgroups cg;
	int i;

	(void)state;
	assert_non_null(text);
	/* Numbers that no process has */
	for (i = 0; i < LINES; i++)
		at += sprintf(at, "%d\n", 5000000 + i % 10);
	cg = pretend("cgroup.procs", text);
	assert_int_equal(rgate_cgroup_signal(&cg, 1, SIGTERM), LINES);
	end(&cg);
	/* half a number */
	cg = pretend("cgroup.procs", "5000001\n500");
	assert_int_equal(rgate_cgroup_signal(&cg, 1, SIGTERM), 1);
	end(&cg);
	free(text);
}

static void own(char *path, size_t cap)
{
	char line[512];
	FILE *f = fopen("/proc/self/cgroup", "r");

	unit_require(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "0::", 3))
			snprintf(path, cap, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
	fclose(f);
}

static void put(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY);

	unit_require(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* In a child, which is in the group @arg: what becomes of it */
static int in_delegated(int sock, void *arg)
{
	const char *path = arg;
	struct rgate_cgroups cg;
	char file[256], at[256] = "";
	pid_t pid;
	int status;

	(void)sock;
	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	put(file, "0");
	pid = fork();
	if (!pid) {
		/* as the spawner, whose parent is the daemon */
		rgate_cgroups_open(&cg, NULL);
		unit_require(cg.fd >= 0);
		own(at, sizeof(at));
		unit_require(strstr(at, "/ringgate-daemon"));
		snprintf(file, sizeof(file), "%s/%s", path, cg.name);
		unit_require(!access(file, F_OK));
		/* Another one, in the same place, finds the same group. */
		rgate_cgroups_close(&cg);
		rgate_cgroups_open(&cg, NULL);
		unit_require(cg.fd >= 0 && !access(file, F_OK));
		rgate_cgroups_close(&cg);
		_exit(0);
	}
	unit_require(waitpid(pid, &status, 0) == pid && !status);
	own(at, sizeof(at));
	unit_require(strstr(at, "/ringgate-daemon"));
	return 0;
}

static bool make_group(char *path, size_t cap)
{
	static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	char at[256] = "", procs[512];
	unsigned int i;

	own(at, sizeof(at));
	for (i = 0; i < 2; i++) {
		snprintf(procs, sizeof(procs), "%s/cgroup.procs", mounts[i]);
		if (access(procs, F_OK))
			continue;
		snprintf(path, cap, "%s%s/ringgate-test-%d", mounts[i], at, (int)getpid());
		return !mkdir(path, 0755);
	}
	return false;
}

/* Where a group was delegated no process stays in it: controllers would not be to be had. */
static void delegated(void **state)
{
	char path[400], leaf[440];
	int sock, pid;

	(void)state;
	if (geteuid() || !make_group(path, sizeof(path)))
		unit_skip("needs root, and control groups");
	if (setxattr(path, "trusted.delegate", "1", 1, 0)) {
		rmdir(path);
		unit_skip("needs control groups with attributes");
	}
	pid = unit_fork(in_delegated, path, &sock);
	unit_reap(pid, 0);
	close(sock);
	snprintf(leaf, sizeof(leaf), "%s/ringgate-daemon", path);
	assert_int_equal(rmdir(leaf), 0);
	assert_int_equal(rmdir(path), 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(stranger),
	cmocka_unit_test(whole_lines),
	cmocka_unit_test(delegated),
};

UNIT_MAIN(tests)
