// SPDX-License-Identifier: MIT OR GPL-2.0
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tree.h"

#define ROUNDS	20	/* of killing, a quarter of a second in all */
#define NAP_US	500
#define NAP_MAX	16000
#define ENVIRON_MAX	(1U << 21)

struct proc {
	pid_t pid, parent, group, session;
	unsigned long long began;	/* with the number: this process and no other */
	bool headless;		/* its first thread has ended, and not its last */
	bool zombie;
	bool in;
};

struct table {
	struct proc *p;
	size_t n, room;
};

/* A whole file of /proc; NULL: gone, or not ours to read. To be freed */
static char *slurp(const char *path, size_t cap, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t room = 4096, at = 0;
	char *buf = NULL, *more;
	ssize_t n = 1;

	if (fd < 0)
		return NULL;
	while (n > 0) {
		if (!buf || at + 1 == room) {
			room = buf ? room * 2 : room;
			more = room > cap ? NULL : realloc(buf, room);
			if (!more)
				break;
			buf = more;
		}
		n = read(fd, buf + at, room - at - 1);
		if (n > 0)
			at += (size_t)n;
	}
	close(fd);
	if (buf) {
		buf[at] = '\0';
		*len = at;
	}
	return buf;
}

static bool read_stat(pid_t pid, struct proc *p)
{
	char path[32], text[512], *at, state;
	int fd, parent, group, session, threads;
	unsigned long long began;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	/* The name is in parentheses, and may have some itself. */
	at = strrchr(text, ')');
	/* From the third field on: proc(5). Thirteen that are of no use here lie in between. */
	if (!at || sscanf(at + 1, " %c %d %d %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			  "%*s %d %*s %llu",
			  &state, &parent, &group, &session, &threads, &began) != 6)
		return false;
	*p = (struct proc){ .pid = pid, .parent = parent, .group = group, .session = session,
			    .began = began };
	/* A process whose first thread has ended looks dead, whatever its others do. */
	if (state == 'Z' || state == 'X') {
		p->headless = threads > 1;
		p->zombie = !p->headless;
	}
	return true;
}

static int scan(struct table *t)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	struct proc *more;

	if (!dir)
		return -errno;
	t->n = 0;
	while ((e = readdir(dir))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		if (t->n == t->room) {
			more = reallocarray(t->p, t->room + 256, sizeof(*t->p));
			if (!more)
				break;
			t->p = more;
			t->room += 256;
		}
		if (read_stat((pid_t)atoi(e->d_name), &t->p[t->n]))
			t->n++;
	}
	closedir(dir);
	return 0;
}

static bool has_mark(const char *path, const char *mark)
{
	char *env, *at;
	bool found = false;
	size_t len = 0;

	env = slurp(path, ENVIRON_MAX, &len);
	for (at = env; at && at < env + len && !found; at += strlen(at) + 1)
		found = !strcmp(at, mark);
	free(env);
	return found;
}

/* A process without its first thread has no environment but that of its others. */
static bool is_marked(const struct proc *p, const char *mark)
{
	char path[64];
	bool found = false;
	struct dirent *e;
	DIR *dir;

	if (!p->headless) {
		snprintf(path, sizeof(path), "/proc/%d/environ", (int)p->pid);
		return has_mark(path, mark);
	}
	snprintf(path, sizeof(path), "/proc/%d/task", (int)p->pid);
	dir = opendir(path);
	while (dir && !found && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/environ", (int)p->pid,
			 atoi(e->d_name));
		found = has_mark(path, mark);
	}
	if (dir)
		closedir(dir);
	return found;
}

static bool is_root(const struct rgate_tree *tree, const struct proc *p, bool numbers)
{
	if (numbers && (p->session == tree->leader || p->group == tree->leader ||
			p->pid == tree->leader))
		return true;
	/* An orphan, in a session of its own: what it was started with tells. */
	return p->parent == getpid() && p->pid != tree->leader && is_marked(p, tree->mark);
}

static void add_children(struct table *t)
{
	bool more = true;
	size_t i, k;

	while (more) {
		more = false;
		for (i = 0; i < t->n; i++) {
			if (t->p[i].in)
				continue;
			for (k = 0; k < t->n; k++)
				if (t->p[k].in && t->p[k].pid == t->p[i].parent)
					break;
			if (k < t->n)
				t->p[i].in = more = true;
		}
	}
}

/* A session's number is not given to anybody else while the session has members. So if
 * there is a process of that number after the leader was reaped, it is a stranger. */
static bool numbers_hold(const struct rgate_tree *tree, const struct table *t)
{
	size_t i;

	for (i = 0; tree->reaped && i < t->n; i++)
		if (t->p[i].pid == tree->leader)
			return false;
	return true;
}

static int find(const struct rgate_tree *tree, struct table *t)
{
	bool numbers;
	size_t i;
	int n = 0;

	if (scan(t))
		return 0;
	numbers = numbers_hold(tree, t);
	for (i = 0; i < t->n; i++)
		t->p[i].in = is_root(tree, &t->p[i], numbers);
	add_children(t);
	for (i = 0; i < t->n; i++) {
		if (t->p[i].zombie || t->p[i].pid == getpid())
			t->p[i].in = false;
		n += t->p[i].in;
	}
	return n;
}

/* Its number may be somebody else's since the table was made. Who has it now is held, and
 * if it is the one of the table still, it was all the time. */
static void send_to(const struct proc *p, int sig)
{
	const int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	struct proc now;

	if (fd < 0)
		return;
	if (read_stat(p->pid, &now) && now.began == p->began)
		(void)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
	close(fd);
}

int rgate_tree_signal(const struct rgate_tree *tree, int sig)
{
	struct table t = { 0 };
	int n, first = -1, round;
	unsigned int nap = NAP_US;
	size_t i;

	for (round = 0; round < ROUNDS; round++) {
		n = find(tree, &t);
		if (first < 0)
			first = n;
		if (!n || !sig)
			break;
		for (i = 0; i < t.n; i++)
			if (t.p[i].in)
				send_to(&t.p[i], sig);
		/* Only of those that must die nobody may have slipped away. */
		if (sig != SIGKILL)
			break;
		usleep(nap);
		nap = nap * 2 < NAP_MAX ? nap * 2 : NAP_MAX;
	}
	free(t.p);
	return first;
}

int rgate_tree_children(void)
{
	char path[48], *text, *at;
	size_t len = 0;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	text = slurp(path, 1U << 22, &len);
	if (!text)
		return -ENOENT;
	for (at = text; *at; at++)
		n += *at == ' ';
	free(text);
	return n;
}
