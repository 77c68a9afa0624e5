// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "super.h"

#ifndef PIDFD_THREAD
#define PIDFD_THREAD	O_EXCL	/* Linux 6.9 */
#endif

/* ---- Its status, as the kernel writes it ---- */

struct status {
	pid_t tgid;
	char state;
	uint64_t own, shared, blocked;	/* signals: the thread's, the process's */
	uint64_t places;		/* for descriptors, with and without one */
};

/* The number behind that word; 0: it is not there */
static uint64_t number_of(const char *text, const char *word, int base)
{
	const char *at = strstr(text, word);

	return at ? strtoull(at + strlen(word), NULL, base) : 0;
}

static int get_status(pid_t tid, struct status *s)
{
	static const char word[] = "\nState:\t";
	char path[32], text[8192];
	const char *state;
	ssize_t n;
	int fd;

	*s = (struct status){ .tgid = 0 };
	(void)snprintf(path, sizeof(path), "/proc/%d/status", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	/* The name, in the first line, is the program's to choose, but has no line break. */
	state = strstr(text, word);
	*s = (struct status){
		.tgid = (pid_t)number_of(text, "\nTgid:", 10),
		.state = state ? state[sizeof(word) - 1] : '\0',
		.own = number_of(text, "\nSigPnd:", 16),
		.shared = number_of(text, "\nShdPnd:", 16),
		.blocked = number_of(text, "\nSigBlk:", 16),
		.places = number_of(text, "\nFDSize:", 10),
	};
	return 0;
}

/* A process stops all at once: where its first thread has, the others have been told to. */
static bool is_stopped(const struct status *s)
{
	struct status first;

	return !get_status(s->tgid, &first) && first.state == 'T';
}

enum task_signal task_signal(const struct task *t)
{
	struct status s;

	if (get_status(t->tid, &s))
		return TASK_QUIET;
	if (s.own & ~s.blocked)
		return TASK_SIGNALLED;
	if (s.tgid != t->tid && is_stopped(&s))
		return TASK_SIGNALLED;
	if (!(s.shared & ~s.blocked))
		return TASK_QUIET;
	/*
	 * Of those that do not block it the kernel chooses the first thread if it can, and tells
	 * that one in any case before it next leaves the kernel.
	 */
	return s.tgid == t->tid ? TASK_SIGNALLED : TASK_SIGNALLED_MAYBE;
}

/* ---- Its life ---- */

bool task_waits(const struct task *t)
{
	return !ioctl(t->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &t->id);
}

/* Before Linux 6.9 it is the process's, whose threads have mostly the same descriptors. */
static int open_pidfd(pid_t tid)
{
	struct status s;
	long fd = syscall(SYS_pidfd_open, tid, PIDFD_THREAD);

	if (fd < 0 && errno == EINVAL)
		fd = get_status(tid, &s) ? -1 : syscall(SYS_pidfd_open, s.tgid, 0);
	return fd < 0 ? -errno : (int)fd;
}

int task_open(struct task *t, int listener, const struct seccomp_notif *n)
{
	*t = (struct task){ .listener = listener, .id = n->id, .tid = (pid_t)n->pid, .mem = -1 };
	t->pidfd = open_pidfd(t->tid);
	/* As long as it waits the number is no other one's. */
	if (!task_waits(t))
		return -ESRCH;
	return t->pidfd < 0 ? t->pidfd : 0;
}

void task_close(struct task *t)
{
	if (t->pidfd >= 0)
		close(t->pidfd);
	if (t->mem >= 0)
		close(t->mem);
}

/* ---- Its descriptors ---- */

int task_fd(const struct task *t, int number)
{
	long fd = syscall(SYS_pidfd_getfd, t->pidfd, number, 0);

	return fd < 0 ? -errno : (int)fd;
}

/* Those below @most, which may be lower than some of them */
static uint64_t count_fds(const struct task *t, const char *path, uint64_t most)
{
	struct status s;
	struct dirent *e;
	uint64_t n = 0;
	DIR *d;

	/* Where there are not as many places there is no need to. */
	if (!get_status(t->tid, &s) && s.places < most)
		return 0;
	d = opendir(path);
	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.' && strtoull(e->d_name, NULL, 10) < most;
	if (d)
		closedir(d);
	return n;
}

bool task_has_room(const struct task *t)
{
	struct rlimit r;
	struct stat st;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", t->tid);
	if (prlimit(t->tid, RLIMIT_NOFILE, NULL, &r) || stat(path, &st))
		return true;
	/* It is what that folder's size says, as it has one; before Linux 6.2 they are counted. */
	if (st.st_size)
		return (uint64_t)st.st_size < r.rlim_cur;
	return count_fds(t, path, r.rlim_cur) < r.rlim_cur;
}

/* ---- Its memory ---- */

/* What is open stays its own, whoever has its number later. */
static int open_mem(struct task *t)
{
	char path[32];

	if (t->mem >= 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", t->tid);
	t->mem = open(path, O_RDWR | O_CLOEXEC);
	if (t->mem < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return task_waits(t) ? 0 : -ESRCH;
}

int task_read(struct task *t, uint64_t from, void *buf, size_t len)
{
	int err = open_mem(t);

	if (err || !len)
		return err;
	return pread(t->mem, buf, len, (off_t)from) == (ssize_t)len ? 0 : -EFAULT;
}

int task_write(struct task *t, uint64_t to, const void *buf, size_t len)
{
	int err = open_mem(t);

	if (err || !len)
		return err;
	return pwrite(t->mem, buf, len, (off_t)to) == (ssize_t)len ? 0 : -EFAULT;
}
