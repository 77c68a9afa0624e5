// SPDX-License-Identifier: MIT OR GPL-2.0
/* Who is signalled in a control group: whoever is in it, and not who has the number by now. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cgroup.h"

#define LINES	20000	/* more than 64 KiB of them */

/* A directory that says what a group with number 1 would */
static char dir[32];

static void add(const char *file, const char *text)
{
	char path[80];
	FILE *f;

	snprintf(path, sizeof(path), "%s/1/%s", dir, file);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static struct rgate_cgroups pretend(const char *file, const char *text)
{
	struct rgate_cgroups cg = { .parent_fd = -1, .name = "ringgate-spawn.1" };
	char path[80];

	strcpy(dir, "/tmp/ringgate-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/1", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	add(file, text);
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

/* What a file of the pretended group says now */
static void says(const char *file, const char *text)
{
	char path[80], is[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/1/%s", dir, file);
	f = fopen(path, "r");
	assert_non_null(f);
	(void)!fread(is, 1, sizeof(is) - 1, f);
	fclose(f);
	assert_string_equal(is, text);
}

static void take_away(const char *file)
{
	char path[80];

	snprintf(path, sizeof(path), "%s/1/%s", dir, file);
	assert_int_equal(unlink(path), 0);
}

/* The group that is ready; limits are written where there is a controller for them */
static int created(struct rgate_cgroups *cg, bool memory, bool pids, uint64_t bytes,
		   uint32_t processes)
{
	uint64_t n = 0;
	int fd;

	cg->memory = memory;
	cg->pids = pids;
	cg->spare = 1;
	cg->spare_fd = openat(cg->fd, "1", O_RDONLY | O_DIRECTORY);
	assert_true(cg->spare_fd >= 0);
	fd = rgate_cgroup_create(cg, bytes, processes, &n);
	assert_int_equal(n, 1);
	assert_int_equal(cg->spare, 0);
	if (fd >= 0)
		close(fd);
	return fd;
}

static void limits(void **state)
{
	struct rgate_cgroups cg = pretend("memory.max", "");
	const unsigned int before = unit_entries("/proc/self/fd");

	(void)state;
	add("memory.swap.max", "");
	add("pids.max", "");
	assert_true(created(&cg, true, true, 0, 0) >= 0);
	assert_true(created(&cg, false, false, 1 << 20, 7) >= 0);
	says("memory.max", "");
	says("memory.swap.max", "");
	says("pids.max", "");
	assert_true(created(&cg, true, true, 5000000000, 4294967295) >= 0);
	says("memory.max", "5000000000");
	says("memory.swap.max", "0");
	says("pids.max", "4294967295");
	add("memory.max", "");
	add("pids.max", "");
	assert_true(created(&cg, false, true, 1 << 20, 7) >= 0);
	says("memory.max", "");
	says("pids.max", "7");
	/* A limit that cannot be set is an error, and nothing is left open. */
	take_away("pids.max");
	assert_int_equal(created(&cg, true, true, 1 << 20, 7), -ENOENT);
	assert_true(created(&cg, true, true, 1 << 20, 0) >= 0);
	add("pids.max", "");
	take_away("memory.max");
	assert_int_equal(created(&cg, true, true, 1 << 20, 7), -ENOENT);
	says("pids.max", "");
	assert_int_equal(unit_entries("/proc/self/fd"), before);
	end(&cg);
}

/* Was a process of it killed for want of memory? */
static void out_of_memory(void **state)
{
	static const char before[] = "low 0\nhigh 0\nmax 7\noom 1\n";
	struct rgate_cgroups cg = pretend("memory.events", before);
	const unsigned int fds = unit_entries("/proc/self/fd");
	char text[80];

	(void)state;
	cg.memory = true;
	assert_false(rgate_cgroup_oom(&cg, 1));
	snprintf(text, sizeof(text), "%soom_kill 0\n", before);
	add("memory.events", text);
	assert_false(rgate_cgroup_oom(&cg, 1));
	snprintf(text, sizeof(text), "%soom_kill 20\noom_group_kill 0\n", before);
	add("memory.events", text);
	assert_true(rgate_cgroup_oom(&cg, 1));
	assert_false(rgate_cgroup_oom(&cg, 2));
	cg.memory = false;
	assert_false(rgate_cgroup_oom(&cg, 1));
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
	end(&cg);
}

/* Groups that are empty are kept to be removed later, as many as there is room for. */
static void ended(void **state)
{
	struct rgate_cgroups cg = pretend("cgroup.events", "populated 1\nfrozen 0\n");

	(void)state;
	cg.failed = true;
	assert_true(rgate_cgroups_idle(&cg));
	assert_int_equal(rgate_cgroup_end(&cg, 1), -ENOTEMPTY);
	assert_int_equal(cg.nempty, 0);
	assert_int_equal(rgate_cgroup_end(&cg, 2), -ENOENT);
	add("cgroup.events", "populated 0\nfrozen 0\n");
	assert_int_equal(rgate_cgroup_end(&cg, 1), 0);
	assert_int_equal(cg.nempty, 1);
	assert_int_equal(cg.empty[0], 1);
	assert_false(rgate_cgroups_idle(&cg));
	rgate_cgroups_chore(&cg);
	assert_true(rgate_cgroups_idle(&cg));
	cg.nempty = RGATE_CGROUPS_EMPTY - 1;
	assert_int_equal(rgate_cgroup_end(&cg, 1), 0);
	assert_int_equal(cg.nempty, RGATE_CGROUPS_EMPTY);
	assert_int_equal(rgate_cgroup_end(&cg, 1), -ENOTEMPTY);
	assert_int_equal(cg.nempty, RGATE_CGROUPS_EMPTY);
	end(&cg);
}

/* All at once, by one word to the kernel */
static void killed(void **state)
{
	struct rgate_cgroups cg = pretend("cgroup.kill", "");

	(void)state;
	assert_int_equal(rgate_cgroup_signal(&cg, 1, SIGKILL), 1);
	says("cgroup.kill", "1");
	assert_int_equal(rgate_cgroup_signal(&cg, 2, SIGKILL), 0);
	assert_int_equal(rgate_cgroup_signal(&cg, 2, SIGTERM), 0);
	end(&cg);
}

/* There are none: nothing to be done, nothing to be had. */
static void none(void **state)
{
	const unsigned int fds = unit_entries("/proc/self/fd");
	struct rgate_cgroups cg;
	uint64_t n;

	(void)state;
	rgate_cgroups_open(&cg, "");
	assert_int_equal(cg.fd, -1);
	assert_int_equal(cg.parent_fd, -1);
	assert_true(rgate_cgroups_idle(&cg));
	rgate_cgroups_chore(&cg);
	assert_int_equal(rgate_cgroup_create(&cg, 0, 0, &n), -EOPNOTSUPP);
	rgate_cgroups_close(&cg);
	rgate_cgroups_open(&cg, "/nonexistent");
	assert_int_equal(cg.fd, -1);
	/* a directory that is none of groups is left as it was */
	strcpy(dir, "/tmp/ringgate-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	rgate_cgroups_open(&cg, dir);
	assert_int_equal(cg.fd, -1);
	assert_int_equal(cg.parent_fd, -1);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
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
		snprintf(path, cap, "%s%s/ringgate-test-XXXXXX", mounts[i], at);
		return mkdtemp(path);
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

/* A group of the test's own, for groups to be made in */
static char top[400];

static bool exists(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	return !access(path, F_OK);
}

static int real_up(void **state)
{
	(void)state;
	*top = '\0';
	if (!geteuid() && !make_group(top, sizeof(top)))
		*top = '\0';
	return 0;
}

static int real_down(void **state)
{
	(void)state;
	return *top ? rmdir(top) : 0;
}

static void open_real(struct rgate_cgroups *cg)
{
	if (!*top)
		unit_skip("needs root, and control groups");
	rgate_cgroups_open(cg, top);
	if (cg->fd < 0)
		unit_skip("the kernel cannot kill a control group");
}

/* A child in the group whose directory is @fd */
static pid_t child_in(int fd)
{
	const int procs = rgate_cgroup_procs(fd);
	pid_t pid;

	assert_true(procs >= 0);
	assert_int_equal(fcntl(procs, F_GETFD), FD_CLOEXEC);
	pid = fork();
	if (!pid) {
		unit_require(write(procs, "0", 1) == 1);
		close(procs);
		raise(SIGSTOP);
		_exit(1);
	}
	close(procs);
	/* stopped: it is in there */
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	return pid;
}

static int how_it_died(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	return WTERMSIG(status);
}

/* One is made ahead, by a chore; a group with a process in it stays. */
static void lives(void **state)
{
	const unsigned int fds = unit_entries("/proc/self/fd");
	struct rgate_cgroups cg;
	char name[64];
	uint64_t n = 0;
	pid_t pid;
	int fd;

	(void)state;
	open_real(&cg);
	assert_true(exists(cg.name));
	assert_false(rgate_cgroups_idle(&cg));
	rgate_cgroups_chore(&cg);
	assert_true(rgate_cgroups_idle(&cg));
	snprintf(name, sizeof(name), "%s/1", cg.name);
	assert_true(exists(name));
	fd = rgate_cgroup_create(&cg, 0, 0, &n);
	assert_true(fd >= 0);
	assert_int_equal(n, 1);
	assert_false(rgate_cgroups_idle(&cg));
	pid = child_in(fd);
	close(fd);
	assert_int_equal(rgate_cgroup_end(&cg, 1), -EBUSY);
	assert_int_equal(rgate_cgroup_signal(&cg, 1, SIGTERM), 1);
	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_int_equal(how_it_died(pid), SIGTERM);
	assert_int_equal(rgate_cgroup_end(&cg, 1), 0);
	/* without one that is ready it is made at once */
	fd = rgate_cgroup_create(&cg, 0, 0, &n);
	assert_true(fd >= 0);
	assert_int_equal(n, 2);
	pid = child_in(fd);
	assert_int_equal(rgate_cgroup_signal(&cg, 2, SIGKILL), 1);
	assert_int_equal(how_it_died(pid), SIGKILL);
	close(fd);
	assert_int_equal(rgate_cgroup_end(&cg, 2), 0);
	/* First one that is ready, then what is to be removed */
	rgate_cgroups_chore(&cg);
	assert_int_equal(cg.spare, 3);
	while (!rgate_cgroups_idle(&cg))
		rgate_cgroups_chore(&cg);
	assert_false(exists(name));
	assert_int_equal(cg.nempty, 0);
	snprintf(name, sizeof(name), "%s", cg.name);
	rgate_cgroups_close(&cg);
	assert_int_equal(cg.fd, -1);
	assert_false(exists(name));
	rgate_cgroups_close(&cg);
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
}

/* What is left when it closes goes with it. */
static void closed(void **state)
{
	struct rgate_cgroups cg;
	uint64_t n = 0;
	int fd, i;

	(void)state;
	open_real(&cg);
	for (i = 0; i < 3; i++) {
		fd = rgate_cgroup_create(&cg, 0, 0, &n);
		assert_true(fd >= 0);
		close(fd);
		assert_int_equal(rgate_cgroup_end(&cg, n), 0);
	}
	fd = rgate_cgroup_create(&cg, 0, 0, &n);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(rgate_cgroup_remove(&cg, n), 0);
	assert_int_equal(rgate_cgroup_remove(&cg, n), -ENOENT);
	rgate_cgroups_chore(&cg);
	assert_int_equal(cg.nempty, 3);
	rgate_cgroups_close(&cg);
	assert_false(exists(cg.name));
}

/* What is in a file below the top group */
static void read_top(const char *name, char *text, size_t cap)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", top, name);
	f = fopen(path, "r");
	assert_non_null(f);
	text[fread(text, 1, cap - 1, f)] = '\0';
	fclose(f);
}

/* Gives the top group's children a controller, whichever there is: then it has no processes */
static bool divide_top(void)
{
	char path[512], text[128], what[140];
	FILE *f;

	read_top("cgroup.controllers", text, sizeof(text));
	text[strcspn(text, " \n")] = '\0';
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", top);
	snprintf(what, sizeof(what), "+%s", text);
	f = *text ? fopen(path, "w") : NULL;
	if (!f)
		return false;
	fputs(what, f);
	return !fclose(f);
}

/* Lets a child go: it is in the group @where then, below the top one, and in no other. */
static void assert_let_go(struct rgate_cgroups *cg, const char *where)
{
	char text[64], want[16], name[64];
	uint64_t n = 0;
	pid_t pid;
	int fd;

	fd = rgate_cgroup_create(cg, 0, 0, &n);
	assert_true(fd >= 0);
	pid = child_in(fd);
	close(fd);
	rgate_cgroup_let_go(cg, n);
	snprintf(name, sizeof(name), "%s/%d", cg->name, (int)n);
	assert_false(exists(name));
	snprintf(name, sizeof(name), "%scgroup.procs", where);
	read_top(name, text, sizeof(text));
	snprintf(want, sizeof(want), "%d\n", (int)pid);
	assert_string_equal(text, want);
	/* It outlives the groups, and is not swept with them. */
	rgate_cgroups_close(cg);
	assert_false(exists(cg->name));
	rgate_cgroups_open(cg, top);
	assert_int_equal(kill(pid, 0), 0);
	read_top(name, text, sizeof(text));
	assert_string_equal(text, want);
	kill(pid, SIGKILL);
	assert_int_equal(how_it_died(pid), SIGKILL);
}

/* Who was let go lives on, above. */
static void let_go(void **state)
{
	struct rgate_cgroups cg;

	(void)state;
	open_real(&cg);
	if (!cg.memory && !cg.pids)
		assert_let_go(&cg, "");
	if (divide_top()) {
		assert_let_go(&cg, "ringgate-left/");
		assert_true(exists("ringgate-left"));
	}
	rgate_cgroups_close(&cg);
	assert_false(exists("ringgate-left"));
}

/* What spawners left that are gone is killed and removed; not what one has that lives. */
static void swept(void **state)
{
	static const char dead[] = "ringgate-spawn.4000000", living[] = "ringgate-spawn.4000001";
	static const char other[] = "ringgate-other";
	const char *const names[] = { dead, living, other };
	struct rgate_cgroups cg;
	char path[512];
	int fd[3], lock, i;
	pid_t pid[3];

	(void)state;
	open_real(&cg);
	rgate_cgroups_close(&cg);
	for (i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", top, names[i]);
		assert_int_equal(mkdir(path, 0755), 0);
		lock = open(path, O_RDONLY | O_DIRECTORY);
		snprintf(path, sizeof(path), "%s/%s/7", top, names[i]);
		assert_int_equal(mkdir(path, 0755), 0);
		fd[i] = open(path, O_RDONLY | O_DIRECTORY);
		assert_true(fd[i] >= 0);
		pid[i] = child_in(fd[i]);
		close(fd[i]);
		fd[i] = lock;
	}
	close(fd[0]);
	assert_int_equal(flock(fd[1], LOCK_EX | LOCK_NB), 0);
	rgate_cgroups_open(&cg, top);
	assert_true(cg.fd >= 0);
	assert_int_equal(how_it_died(pid[0]), SIGKILL);
	assert_false(exists(dead));
	/* It holds such a lock itself. */
	snprintf(path, sizeof(path), "%s/%s", top, cg.name);
	fd[0] = open(path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(flock(fd[0], LOCK_EX | LOCK_NB), -1);
	close(fd[0]);
	rgate_cgroups_close(&cg);
	for (i = 1; i < 3; i++) {
		close(fd[i]);
		assert_int_equal(waitpid(pid[i], NULL, WNOHANG), 0);
		kill(pid[i], SIGKILL);
		assert_int_equal(how_it_died(pid[i]), SIGKILL);
		snprintf(path, sizeof(path), "%s/%s/7", top, names[i]);
		assert_int_equal(rmdir(path), 0);
		snprintf(path, sizeof(path), "%s/%s", top, names[i]);
		assert_int_equal(rmdir(path), 0);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(stranger),
	cmocka_unit_test(whole_lines),
	cmocka_unit_test(delegated),
	cmocka_unit_test(limits),
	cmocka_unit_test(out_of_memory),
	cmocka_unit_test(ended),
	cmocka_unit_test(killed),
	cmocka_unit_test(none),
	cmocka_unit_test_setup_teardown(lives, real_up, real_down),
	cmocka_unit_test_setup_teardown(closed, real_up, real_down),
	cmocka_unit_test_setup_teardown(let_go, real_up, real_down),
	cmocka_unit_test_setup_teardown(swept, real_up, real_down),
};

UNIT_MAIN_ALONE(tests)
