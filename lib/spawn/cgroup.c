// SPDX-License-Identifier: MIT OR GPL-2.0
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cgroup.h"
#include "own_cgroup.h"

#define PREFIX	"ringgate-spawn."
#define LEAF	"ringgate-daemon"	/* for the daemon itself */
#define LEFT	"ringgate-left"		/* for what was let go */
#define ROUNDS	100	/* of taking a killed group away, a millisecond each */

static int write_at(int dir, const char *path, const char *text)
{
	int fd = openat(dir, path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

static ssize_t read_at(int dir, const char *path, char *buf, size_t cap)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
	while (len < cap - 1 && (n = read(fd, buf + len, cap - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	buf[len] = '\0';
	return (ssize_t)len;
}

static void pause_ms(void)
{
	usleep(1000);
}

static bool is_group(const struct dirent *e)
{
	return e->d_type == DT_DIR && e->d_name[0] != '.';
}

/* Those that are empty go; how many do not */
static unsigned int remove_groups(int fd, DIR *dir)
{
	unsigned int left = 0;
	struct dirent *e;

	rewinddir(dir);
	while ((e = readdir(dir)))
		left += is_group(e) && unlinkat(fd, e->d_name, AT_REMOVEDIR) && errno == EBUSY;
	return left;
}

/*
 * The groups of a spawner that is gone. All are told to die before any is waited for, and for all
 * together @rounds are waited: what its user keeps from dying is left there, so that no user
 * keeps a daemon from its start.
 */
static void sweep(int parent, const char *name, int *rounds)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char path[PATH_MAX];
	struct dirent *e;
	DIR *dir;

	if (fd < 0)
		return;
	/* Its spawner holds a lock as long as it lives. */
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		close(fd);
		return;
	}
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return;
	}
	while ((e = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/cgroup.kill", e->d_name);
		if (is_group(e))
			(void)write_at(fd, path, "1");
	}
	for (; remove_groups(fd, dir) && *rounds > 0; (*rounds)--)
		pause_ms();
	closedir(dir);
	(void)unlinkat(parent, name, AT_REMOVEDIR);
}

static void sweep_all(int parent)
{
	int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int rounds = ROUNDS;
	struct dirent *e;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((e = readdir(dir)))
		if (!strncmp(e->d_name, PREFIX, sizeof(PREFIX) - 1))
			sweep(parent, e->d_name, &rounds);
	closedir(dir);
}

static bool enable(const struct rgate_cgroups *cg, const char *what)
{
	char control[32];

	/* Of the parent only where nothing lives in it, or it is the root. */
	snprintf(control, sizeof(control), "+%s", what);
	(void)write_at(cg->parent_fd, "cgroup.subtree_control", control);
	return !write_at(cg->fd, "cgroup.subtree_control", control);
}

/* Is it ours to divide? A service manager says so where it was asked to (Delegate=yes). */
static bool is_delegated(const char *path)
{
	static const char *const names[] = { "trusted.delegate", "user.delegate" };
	char value[2] = "";
	unsigned int i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getxattr(path, names[i], value, sizeof(value)) == 1 && value[0] == '1')
			return true;
	return false;
}

/*
 * Controllers are to be had below a group in which no process is. So we, and who made us, go
 * into a leaf of a group that was delegated; anybody else who is in it keeps them from us.
 */
static void step_aside(const char *path)
{
	const pid_t self[2] = { getpid(), getppid() };
	char text[16];
	int fd, i;

	if (!is_delegated(path))
		return;
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!mkdirat(fd, LEAF, 0755) || errno == EEXIST)
		for (i = 0; i < 2; i++) {
			snprintf(text, sizeof(text), "%d", (int)self[i]);
			(void)write_at(fd, LEAF "/cgroup.procs", text);
		}
	close(fd);
}

/* The one that this process is in. Of a leaf of ours, into which an earlier one went: above */
static bool find_own(char *path, size_t cap)
{
	char *last;

	if (rgate_own_cgroup(path, cap, NULL))
		return false;
	last = strrchr(path, '/');
	if (last && !strcmp(last + 1, LEAF))
		*last = '\0';
	else
		step_aside(path);
	return true;
}

void rgate_cgroups_open(struct rgate_cgroups *cg, const char *dir)
{
	char path[PATH_MAX];

	*cg = (struct rgate_cgroups){ .fd = -1, .parent_fd = -1, .spare_fd = -1 };
	if (dir && !*dir)
		return;
	if (!dir && !find_own(path, sizeof(path)))
		return;
	cg->parent_fd = open(dir ? dir : path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (cg->parent_fd < 0)
		return;
	sweep_all(cg->parent_fd);
	snprintf(cg->name, sizeof(cg->name), PREFIX "%d", (int)getpid());
	if (mkdirat(cg->parent_fd, cg->name, 0755))
		goto close_parent;
	cg->fd = openat(cg->parent_fd, cg->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cg->fd < 0 || flock(cg->fd, LOCK_EX | LOCK_NB) ||
	    faccessat(cg->fd, "cgroup.procs", W_OK, 0) ||
	    faccessat(cg->fd, "cgroup.kill", W_OK, 0))
		goto remove;
	cg->memory = enable(cg, "memory");
	cg->pids = enable(cg, "pids");
	return;

remove:
	if (cg->fd >= 0)
		close(cg->fd);
	cg->fd = -1;
	(void)unlinkat(cg->parent_fd, cg->name, AT_REMOVEDIR);
close_parent:
	close(cg->parent_fd);
	cg->parent_fd = -1;
}

static const char *file_of(uint64_t n, const char *file, char *buf, size_t cap)
{
	snprintf(buf, cap, "%llu%s%s", (unsigned long long)n, *file ? "/" : "", file);
	return buf;
}

void rgate_cgroups_close(struct rgate_cgroups *cg)
{
	if (cg->fd < 0)
		return;
	while (cg->nempty)
		(void)rgate_cgroup_remove(cg, cg->empty[--cg->nempty]);
	if (cg->spare) {
		close(cg->spare_fd);
		(void)rgate_cgroup_remove(cg, cg->spare);
	}
	close(cg->fd);
	(void)unlinkat(cg->parent_fd, cg->name, AT_REMOVEDIR);
	/* Unless something of it lives there */
	(void)unlinkat(cg->parent_fd, LEFT, AT_REMOVEDIR);
	close(cg->parent_fd);
	cg->fd = -1;
}

/* A new one: a descriptor of its directory */
static int make(struct rgate_cgroups *cg)
{
	char path[64];
	int fd, err;

	if (mkdirat(cg->fd, file_of(++cg->last, "", path, sizeof(path)), 0755))
		return -errno;
	fd = openat(cg->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	err = -errno;
	(void)unlinkat(cg->fd, path, AT_REMOVEDIR);
	return err;
}

bool rgate_cgroups_idle(const struct rgate_cgroups *cg)
{
	return cg->fd < 0 || ((cg->spare || cg->failed) && !cg->nempty);
}

void rgate_cgroups_chore(struct rgate_cgroups *cg)
{
	if (rgate_cgroups_idle(cg))
		return;
	if (cg->spare || cg->failed) {
		(void)rgate_cgroup_remove(cg, cg->empty[--cg->nempty]);
		return;
	}
	cg->spare_fd = make(cg);
	cg->spare = cg->spare_fd < 0 ? 0 : cg->last;
	/* It is tried again, and told, when one is needed. */
	cg->failed = !cg->spare;
}

int rgate_cgroup_limit(const struct rgate_cgroups *cg, int fd, uint64_t memory,
		       uint32_t processes)
{
	char value[32];
	int err = 0;

	if (memory && cg->memory) {
		snprintf(value, sizeof(value), "%llu", (unsigned long long)memory);
		err = write_at(fd, "memory.max", value);
		/* Without swap there is no such file. */
		(void)write_at(fd, "memory.swap.max", "0");
	}
	if (!err && processes && cg->pids) {
		snprintf(value, sizeof(value), "%u", processes);
		err = write_at(fd, "pids.max", value);
	}
	return err;
}

int rgate_cgroup_create(struct rgate_cgroups *cg, uint64_t memory, uint32_t processes,
			uint64_t *n)
{
	int fd, err;

	if (cg->fd < 0)
		return -EOPNOTSUPP;
	cg->failed = false;
	if (cg->spare) {
		*n = cg->spare;
		fd = cg->spare_fd;
		cg->spare = 0;
	} else {
		fd = make(cg);
		*n = cg->last;
	}
	if (fd < 0)
		return fd;
	err = rgate_cgroup_limit(cg, fd, memory, processes);
	if (!err)
		return fd;
	close(fd);
	(void)rgate_cgroup_remove(cg, *n);
	return err;
}

int rgate_cgroup_procs(int fd)
{
	int procs = openat(fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	return procs < 0 ? -errno : procs;
}

int rgate_cgroup_remove(const struct rgate_cgroups *cg, uint64_t n)
{
	char path[64];

	return unlinkat(cg->fd, file_of(n, "", path, sizeof(path)), AT_REMOVEDIR) ? -errno : 0;
}

bool rgate_cgroup_oom(const struct rgate_cgroups *cg, uint64_t n)
{
	char path[64], text[512], *at;

	if (!cg->memory ||
	    read_at(cg->fd, file_of(n, "memory.events", path, sizeof(path)), text,
		    sizeof(text)) <= 0)
		return false;
	at = strstr(text, "oom_kill ");
	return at && strtoul(at + sizeof("oom_kill ") - 1, NULL, 10);
}

/* Is @pid in the group? By the end of its path: mounts and name spaces differ. */
static bool is_member(const struct rgate_cgroups *cg, uint64_t n, pid_t pid)
{
	char path[48], own[80], *line = NULL;
	size_t room = 0, len;
	bool is = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	snprintf(own, sizeof(own), "/%s/%llu\n", cg->name, (unsigned long long)n);
	f = fopen(path, "re");
	while (f && !is && getline(&line, &room, f) > 0) {
		len = strlen(line);
		is = !strncmp(line, "0::/", 4) && len >= strlen(own) &&
		     !strcmp(line + len - strlen(own), own);
	}
	free(line);
	if (f)
		fclose(f);
	return is;
}

struct group {
	const struct rgate_cgroups *cg;
	uint64_t n;
};

/* Calls @fn for each process in the group; how many there were. Line by line: a number that
 * is cut is another one. */
static int each(const struct group *g, void (*fn)(const struct group *g, pid_t pid, int arg),
		int arg)
{
	char path[64], *line = NULL, *end;
	size_t room = 0;
	int count = 0, fd;
	FILE *f;
	long pid;

	fd = openat(g->cg->fd, file_of(g->n, "cgroup.procs", path, sizeof(path)),
		    O_RDONLY | O_CLOEXEC);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while (getline(&line, &room, f) > 0) {
		pid = strtol(line, &end, 10);
		if (pid <= 0 || pid > INT_MAX || *end != '\n')
			continue;
		count++;
		if (fn)
			fn(g, (pid_t)pid, arg);
	}
	free(line);
	fclose(f);
	return count;
}

/* Nothing is in it, nor below it */
static bool is_empty(const struct rgate_cgroups *cg, uint64_t n)
{
	char path[64], text[128];

	return read_at(cg->fd, file_of(n, "cgroup.events", path, sizeof(path)), text,
		       sizeof(text)) > 0 && strstr(text, "populated 0");
}

int rgate_cgroup_end(struct rgate_cgroups *cg, uint64_t n)
{
	const struct group g = { cg, n };
	int i, err;

	if (cg->nempty < RGATE_CGROUPS_EMPTY && is_empty(cg, n)) {
		cg->empty[cg->nempty++] = n;
		return 0;
	}
	err = rgate_cgroup_remove(cg, n);
	/* Some kernels let a task that was reaped leave its group only later. */
	for (i = 0; err == -EBUSY && i < ROUNDS && !each(&g, NULL, 0); i++) {
		usleep(50);
		err = rgate_cgroup_remove(cg, n);
	}
	return err;
}

pid_t rgate_cgroup_member(const struct rgate_cgroups *cg, uint64_t n)
{
	char path[64], text[32];
	long pid;

	if (read_at(cg->fd, file_of(n, "cgroup.procs", path, sizeof(path)), text,
		    sizeof(text)) <= 0)
		return 0;
	pid = strtol(text, NULL, 10);
	return pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

/* The number may have become another process's since it was read: what has it now is held,
 * and looked at again. */
static void send_one(const struct group *g, pid_t pid, int sig)
{
	const int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return;
	if (is_member(g->cg, g->n, pid))
		(void)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
	close(fd);
}

int rgate_cgroup_signal(const struct rgate_cgroups *cg, uint64_t n, int sig)
{
	const struct group g = { cg, n };
	char path[64];

	/* All at once, below it, too, and nobody gets away */
	if (sig == SIGKILL)
		return !write_at(cg->fd, file_of(n, "cgroup.kill", path, sizeof(path)), "1");
	return each(&g, send_one, sig);
}

static void move_one(const struct group *g, pid_t pid, int to)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", (int)pid);
	if (is_member(g->cg, g->n, pid))
		(void)write_at(to, "cgroup.procs", text);
}

/* A group with controllers has no processes of its own: theirs is beside ours. Nobody sweeps it,
 * and its limits are those of the groups above. */
static int open_left(const struct rgate_cgroups *cg)
{
	if (mkdirat(cg->parent_fd, LEFT, 0755) && errno != EEXIST)
		return -errno;
	return openat(cg->parent_fd, LEFT, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

void rgate_cgroup_let_go(const struct rgate_cgroups *cg, uint64_t n)
{
	const struct group g = { cg, n };
	int to, i;

	if (each(&g, move_one, cg->parent_fd) && each(&g, NULL, 0)) {
		to = open_left(cg);
		/* More may be born meanwhile. */
		for (i = 0; to >= 0 && i < ROUNDS && each(&g, move_one, to); i++)
			;
		if (to >= 0)
			close(to);
	}
	(void)rgate_cgroup_remove(cg, n);
}
