// SPDX-License-Identifier: MIT OR GPL-2.0
/* The spawner's own process, told by a server that lies: it decides by its own policy. */
#include "unit.h"
#include "own_spawner.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup.h"
#include "events.h"
#include "spawner.h"

#define MS	(20000 * (int)unit_patience())
#define TEMPLATE	"/tmp/ringgate-test-XXXXXX"
#define SLOW_US	400000

static struct rgate_cluster *cluster;
static struct rgate_spawner sp;
static char path[sizeof(TEMPLATE)];
static uint64_t last_id = 1000;
static const char *groups = "";		/* as the spawner is told */

/* Shared with the spawner, whose calls come here */
static struct {
	bool hold;		/* a group does not go, */
	unsigned int turn;	/* in this turn of the loop it was to so often, */
	unsigned int most;	/* and at most in any, */
	unsigned int gone;	/* and then it went */
	bool strange;		/* it is of another version */
	bool no_clone;		/* there can be no more processes */
	bool slow;		/* one that is made takes its time to begin */
	unsigned int looks;	/* for events, that found some */
} *shared;

static bool in_test;		/* not the spawner */

static void own_spawner_take(void *memory)
{
	shared = memory;
}

int __real_rgate_cgroup_remove(const struct rgate_cgroups *cg, uint64_t n);
int __wrap_rgate_cgroup_remove(const struct rgate_cgroups *cg, uint64_t n);

int __wrap_rgate_cgroup_remove(const struct rgate_cgroups *cg, uint64_t n)
{
	int err;

	if (++shared->turn > shared->most)
		shared->most = shared->turn;
	if (__atomic_load_n(&shared->hold, __ATOMIC_ACQUIRE))
		return -EBUSY;
	err = __real_rgate_cgroup_remove(cg, n);
	if (!err)
		__atomic_add_fetch(&shared->gone, 1, __ATOMIC_RELEASE);
	return err;
}

int __real_events_wait(const struct events *e, struct epoll_event *ev, int n, int64_t ns);
int __wrap_events_wait(const struct events *e, struct epoll_event *ev, int n, int64_t ns);

int __wrap_events_wait(const struct events *e, struct epoll_event *ev, int n, int64_t ns)
{
	shared->turn = 0;
	n = __real_events_wait(e, ev, n, ns);
	if (n > 0)
		__atomic_add_fetch(&shared->looks, 1, __ATOMIC_RELAXED);
	return n;
}

void __real_rgate_spawner_hello(struct rgate_spawner_hello *hello);
void __wrap_rgate_spawner_hello(struct rgate_spawner_hello *hello);

void __wrap_rgate_spawner_hello(struct rgate_spawner_hello *hello)
{
	__real_rgate_spawner_hello(hello);
	if (shared->strange && !in_test)
		strcpy(hello->version, "99.0");
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
	long a[5];	/* as many as the spawner has at most */
	va_list ap;
	long ret;
	int i;

	if (number == SYS_clone3 && __atomic_load_n(&shared->no_clone, __ATOMIC_ACQUIRE)) {
		errno = EAGAIN;
		return -1;
	}
	va_start(ap, number);
	for (i = 0; i < 5; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	ret = __real_syscall(number, a[0], a[1], a[2], a[3], a[4]);
	if (number == SYS_clone3 && !ret && __atomic_load_n(&shared->slow, __ATOMIC_ACQUIRE))
		usleep(SLOW_US);
	return ret;
}

static void write_policy(const char *rest)
{
	const struct passwd *pw = getpwuid(geteuid());
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_non_null(pw);
	fprintf(f, "node 1 user %s\n%s", pw->pw_name, rest);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0600), 0);
}

static int up(void **state)
{
	static const char text[] = "provider local\n"
				   "node 0 gateway /tmp/g gate\nnode 1 compute /tmp/a one\n"
				   "node 2 compute /tmp/b two\n"
				   UNIT_KEY_LINE(0) UNIT_KEY_LINE(1) UNIT_KEY_LINE(2);
	struct rgate_spawner_opts o = { .cgroup = groups, .start_ms = 10000,
					.policy_path = path };
	int fd;

	(void)state;
	in_test = true;
	memset(shared, 0, sizeof(*shared));
	strcpy(path, TEMPLATE);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	write_policy("allow 1 /bin/true\nmax-running 3\n");
	assert_int_equal(rgate_cluster_parse(&cluster, "test", text, strlen(text)), 0);
	o.cluster = cluster;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &o.files), 0);
	memset(&sp, 0, sizeof(sp));
	assert_int_equal(rgate_spawner_create(&sp, &o), 0);
	return 0;
}

static int down(void **state)
{
	(void)state;
	rgate_spawner_destroy(&sp);
	rgate_cluster_destroy(cluster);
	unlink(path);
	return 0;
}

static int up_grouped(void **state)
{
	groups = NULL;
	return up(state);
}

static int down_grouped(void **state)
{
	groups = "";
	return down(state);
}

static struct rgate_spawner_packet answer(uint32_t type)
{
	struct pollfd p = { .fd = sp.sock, .events = POLLIN };
	struct rgate_spawner_packet packet;

	do {
		assert_int_equal(poll(&p, 1, MS), 1);
		assert_int_equal(rgate_spawner_recv(&sp, &packet), 1);
	} while (packet.type != type);
	return packet;
}

/* An order of @node for @exe, with one argument */
static struct rgate_order *order(uint32_t node, const char *exe, const char *arg)
{
	struct rgate_order *o = rgate_spawner_order(&sp);
	struct rgate_spawn_record r = {
		.magic = htole32(RGATE_SPAWN_MAGIC), .version = htole16(RGATE_SPAWN_RECORD_VERSION),
		.header = htole16(sizeof(r)), .umask = htole32(RGATE_SPAWN_UMASK_DEFAULT),
	};
	const uint32_t exe_len = (uint32_t)strlen(exe) + 1, arg_len = (uint32_t)strlen(arg) + 1;

	assert_non_null(o);
	r.exe = (struct rgate_spawn_area){ htole32(sizeof(r)), htole32(exe_len), htole32(1) };
	r.argv = (struct rgate_spawn_area){ htole32(sizeof(r)), htole32(exe_len + arg_len),
					    htole32(2) };
	o->record_len = sizeof(r) + exe_len + arg_len;
	r.length = htole32(o->record_len);
	memcpy(o->record, &r, sizeof(r));
	memcpy(o->record + sizeof(r), exe, exe_len);
	memcpy(o->record + sizeof(r) + exe_len, arg, arg_len);
	o->id = ++last_id;
	o->node = node;
	return o;
}

static int sent(struct rgate_order *o)
{
	const int fds[3] = { sp.null_fd, sp.null_fd, sp.null_fd };

	assert_int_equal(rgate_spawner_start(&sp, o, fds), 0);
	return answer(RGATE_SPAWNER_STARTED).a;
}

static void decides_itself(void **state)
{
	struct rgate_order *o;

	(void)state;
	assert_true(sent(order(1, "/bin/true", "x")) > 0);
	assert_int_equal(answer(RGATE_SPAWNER_EXITED).a, 0);
	assert_int_equal(sent(order(1, "/bin/sleep", "0")), -EACCES);
	assert_int_equal(sent(order(2, "/bin/true", "x")), -EACCES);
	/* What is no record, no node, no length, no new job */
	assert_true(sent(order(99, "/bin/true", "x")) < 0);
	assert_true(sent(order(UINT32_MAX, "/bin/true", "x")) < 0);
	o = order(1, "/bin/true", "x");
	o->record_len = UINT32_MAX;
	assert_true(sent(o) < 0);
	o->record_len = 0;
	o = order(1, "/bin/true", "x");
	o->record[0] ^= 1;
	assert_true(sent(o) < 0);
	o = order(1, "/bin/true", "x");
	o->id = 1;
	assert_true(sent(o) < 0);
}

static void reads_itself(void **state)
{
	(void)state;
	write_policy("allow 1 /bin/sleep\n");
	assert_int_equal(sent(order(1, "/bin/sleep", "0")), -EACCES);
	assert_int_equal(rgate_spawner_tell(&sp, RGATE_SPAWNER_RELOAD, 0, 0, 0), 0);
	assert_int_equal(answer(RGATE_SPAWNER_RELOADED).a, 0);
	assert_int_equal(sent(order(1, "/bin/true", "x")), -EACCES);
	assert_true(sent(order(1, "/bin/sleep", "0")) > 0);
	/* What the server makes of the text that it may read is nothing to the spawner. */
	memset(&sp.shared->policy, 'x', 100);
	assert_true(sent(order(1, "/bin/sleep", "0")) > 0);
	write_policy("nonsense\n");
	assert_int_equal(rgate_spawner_tell(&sp, RGATE_SPAWNER_RELOAD, 0, 0, 0), 0);
	assert_int_equal(answer(RGATE_SPAWNER_RELOADED).a, -EINVAL);
	assert_true(sent(order(1, "/bin/sleep", "0")) > 0);
	unlink(path);
	assert_int_equal(rgate_spawner_tell(&sp, RGATE_SPAWNER_RELOAD, 0, 0, 0), 0);
	assert_int_equal(answer(RGATE_SPAWNER_RELOADED).a, -ENOENT);
	assert_int_equal(sent(order(1, "/bin/sleep", "0")), -EACCES);
}

static void counts_itself(void **state)
{
	int i, ret;

	(void)state;
	write_policy("allow 1 any\nmax-running 3\n");
	assert_int_equal(rgate_spawner_tell(&sp, RGATE_SPAWNER_RELOAD, 0, 0, 0), 0);
	assert_int_equal(answer(RGATE_SPAWNER_RELOADED).a, 0);
	for (i = 0; i < 3; i++)
		assert_true(sent(order(1, "/bin/sleep", "1000")) > 0);
	assert_int_equal(sent(order(1, "/bin/sleep", "1000")), -EAGAIN);
	assert_int_equal(rgate_spawner_tell(&sp, RGATE_SPAWNER_SIGNAL, last_id - 1, 9,
					    RGATE_SPAWN_TO_LEADER), 0);
	assert_int_equal(answer(RGATE_SPAWNER_EXITED).a, 9);
	ret = sent(order(1, "/bin/sleep", "1000"));
	assert_true(ret > 0);
}

/* Of a daemon that was started without standard streams: sockets are where those would be. */
static int without_streams(int sock, void *arg)
{
	struct rgate_spawner_opts *o = arg;
	struct rgate_spawner own = { .pid = 0 };
	struct pollfd p = { .events = POLLIN };
	struct rgate_spawner_packet packet;
	int i;

	(void)sock;
	for (i = 0; i < 3; i++)
		close(i);
	unit_require(!rgate_spawner_create(&own, o) && own.sock < 3);
	unit_require(!rgate_spawner_tell(&own, RGATE_SPAWNER_RELOAD, 0, 0, 0));
	p.fd = own.sock;
	unit_require(poll(&p, 1, MS) == 1 && rgate_spawner_recv(&own, &packet) == 1);
	unit_require(packet.type == RGATE_SPAWNER_RELOADED && !packet.a);
	rgate_spawner_destroy(&own);
	return 0;
}

static void low_descriptors(void **state)
{
	struct rgate_spawner_opts o = { .cgroup = "", .start_ms = 10000, .policy_path = path,
					.cluster = cluster };
	int sock, pid;

	(void)state;
	pid = unit_fork(without_streams, &o, &sock);
	unit_reap(pid, 0);
	close(sock);
}

/* Four descriptors where there is room for three: the one too many is closed. */
static void four_descriptors(void **state)
{
	char buf[CMSG_SPACE(4 * sizeof(int))] __attribute__((aligned(8))) = "";
	struct rgate_order *o = order(1, "/bin/true", "x");
	const int fds[4] = { sp.null_fd, sp.null_fd, sp.null_fd, sp.null_fd };
	struct rgate_spawner_packet p = { .type = RGATE_SPAWNER_START,
					  .slot = (uint32_t)(o - sp.shared->orders), .id = o->id };
	struct iovec iov = { &p, sizeof(p) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = buf,
			      .msg_controllen = sizeof(buf) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	(void)state;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	assert_int_equal(sendmsg(sp.sock, &msg, 0), sizeof(p));
	assert_true(answer(RGATE_SPAWNER_STARTED).a > 0);
	/* and none at all, as where the spawner can have no more */
	o = order(1, "/bin/true", "x");
	p.slot = (uint32_t)(o - sp.shared->orders);
	p.id = o->id;
	msg.msg_controllen = 0;
	assert_int_equal(sendmsg(sp.sock, &msg, 0), sizeof(p));
	assert_int_equal(answer(RGATE_SPAWNER_STARTED).a, -EMFILE);
	assert_true(sent(order(1, "/bin/true", "x")) > 0);
}

/* A job that leaves something behind; false: it has no group of its own */
static bool leaves(void)
{
	struct rgate_order *o = order(1, "/bin/sh", "-c");
	static const char script[] = "sleep 1000 &";
	const int fds[3] = { sp.null_fd, sp.null_fd, sp.null_fd };
	struct rgate_spawn_record r;
	struct rgate_spawner_packet p;

	memcpy(&r, o->record, sizeof(r));
	memcpy(o->record + o->record_len, script, sizeof(script));
	o->record_len += sizeof(script);
	r.length = htole32(o->record_len);
	r.argv.length = htole32(le32toh(r.argv.length) + sizeof(script));
	r.argv.count = htole32(3);
	memcpy(o->record, &r, sizeof(r));
	assert_int_equal(rgate_spawner_start(&sp, o, fds), 0);
	p = answer(RGATE_SPAWNER_STARTED);
	assert_true(p.a > 0);
	if (p.flags & RGATE_SPAWN_NO_CGROUP)
		return false;
	p = answer(RGATE_SPAWNER_EXITED);
	assert_int_equal(p.a, 0);
	assert_true(p.b);
	return true;
}

/*
 * What was killed may take its time to go: its server is told that it is over all the same, the
 * group goes when it can, and nobody waits for it meanwhile.
 */
static void slow_to_go(void **state)
{
	struct rgate_spawner_packet p;
	unsigned int gone;
	int i;

	(void)state;
	write_policy("allow 1 any\n");
	assert_int_equal(rgate_spawner_tell(&sp, RGATE_SPAWNER_RELOAD, 0, 0, 0), 0);
	assert_int_equal(answer(RGATE_SPAWNER_RELOADED).a, 0);
	if (!leaves())
		unit_skip("needs control groups");
	gone = __atomic_load_n(&shared->gone, __ATOMIC_ACQUIRE);
	__atomic_store_n(&shared->hold, true, __ATOMIC_RELEASE);
	shared->most = 0;
	assert_int_equal(rgate_spawner_tell(&sp, RGATE_SPAWNER_FINISH, last_id, 0, 0), 0);
	p = answer(RGATE_SPAWNER_FINISHED);
	assert_true(p.flags & RGATE_SPAWN_LEFTOVERS);
	assert_int_equal(p.id, last_id);
	/* Once when it was told, and once in each turn after that */
	assert_true(shared->most && shared->most <= 3);
	assert_true(sent(order(1, "/bin/true", "x")) > 0);
	assert_int_equal(answer(RGATE_SPAWNER_EXITED).a, 0);
	__atomic_store_n(&shared->hold, false, __ATOMIC_RELEASE);
	for (i = 0; i < MS && __atomic_load_n(&shared->gone, __ATOMIC_ACQUIRE) == gone; i++)
		usleep(1000);
	assert_true(i < MS);
}

static char state_of(pid_t pid)
{
	char name[48], text[256] = "", *at;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	f = fopen(name, "re");
	if (!f)
		return '\0';
	if (!fgets(text, sizeof(text), f))
		*text = '\0';
	fclose(f);
	at = strrchr(text, ')');
	return at && at[1] ? at[2] : '\0';
}

/* Which of the spawner's children has this name; 0: none */
static pid_t find_child(const char *is)
{
	char name[64], comm[32] = "";
	pid_t found = 0;
	FILE *f, *c;
	int pid;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/children", (int)sp.pid, (int)sp.pid);
	f = fopen(name, "re");
	assert_non_null(f);
	while (!found && fscanf(f, "%d", &pid) == 1) {
		snprintf(name, sizeof(name), "/proc/%d/comm", pid);
		c = fopen(name, "re");
		if (!c)
			continue;
		if (fgets(comm, sizeof(comm), c) && !strncmp(comm, is, strlen(is)))
			found = pid;
		fclose(c);
	}
	fclose(f);
	return found;
}

/* The spawner's child of this name that is another one than @not, once it waits */
static pid_t waiting(const char *is, pid_t not)
{
	pid_t pid = 0;
	int i;

	for (i = 0; i < MS; i++) {
		pid = find_child(is);
		if (pid && pid != not && state_of(pid) == 'S')
			return pid;
		usleep(1000);
	}
	fail_msg("there is no %s", is);
	return pid;
}

/* The process that is made ahead */
static pid_t ahead(pid_t not)
{
	return waiting("ringgate-ahead", not);
}

static pid_t keeper(pid_t not)
{
	return waiting("ringgate-keeper", not);
}

static void reload(const char *rest)
{
	write_policy(rest);
	assert_int_equal(rgate_spawner_tell(&sp, RGATE_SPAWNER_RELOAD, 0, 0, 0), 0);
	assert_int_equal(answer(RGATE_SPAWNER_RELOADED).a, 0);
}

/* What waits becomes the job, and then another one waits. */
static void made_ahead(void **state)
{
	pid_t pid = 0;
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		pid = ahead(pid);
		assert_int_equal(sent(order(1, "/bin/true", "x")), pid);
		assert_int_equal(answer(RGATE_SPAWNER_EXITED).a, 0);
	}
}

/* It has nothing that is of the spawner or of other jobs: /dev/null, its socket, its pipe, and what
 * its keeper waits for. */
static void holds_nothing(void **state)
{
	const pid_t pid = ahead(0);
	char name[48], line[512];
	FILE *f;

	(void)state;
	snprintf(name, sizeof(name), "/proc/%d/fd", (int)pid);
	/* with . and .. */
	assert_int_equal(unit_entries(name), 2 + 6);
	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	f = fopen(name, "re");
	if (!f)
		unit_skip("who is not root may not look");
	while (fgets(line, sizeof(line), f))
		assert_null(strstr(line, "memfd"));
	fclose(f);
}

/* By a policy that does not hold any more nothing is run, and nothing stays of who would have. */
static void ahead_of_policy(void **state)
{
	unsigned int i, open = 0;
	char fds[48];
	pid_t pid = 0;

	(void)state;
	snprintf(fds, sizeof(fds), "/proc/%d/fd", (int)sp.pid);
	for (i = 0; i < 3; i++) {
		reload("allow 1 any\n");
		pid = ahead(pid);
		assert_true(!i || unit_entries(fds) == open);
		open = unit_entries(fds);
	}
	reload("allow 1 /bin/sleep\n");
	assert_int_equal(sent(order(1, "/bin/true", "x")), -EACCES);
	assert_true(ahead(pid) != pid);
	assert_int_equal(sent(order(1, "/bin/true", "x")), -EACCES);
	assert_true(sent(order(1, "/bin/sleep", "0")) > 0);
}

static void becomes(pid_t pid, const char *states)
{
	int i;

	for (i = 0; i < MS && !strchr(states, state_of(pid)); i++)
		usleep(1000);
	assert_true(i < MS);
}

static void harm_ahead(int sig, const char *states)
{
	const pid_t pid = ahead(0);
	int ran;

	assert_int_equal(kill(pid, sig), 0);
	becomes(pid, states);
	ran = sent(order(1, "/bin/true", "x"));
	assert_true(ran > 0);
	assert_int_not_equal(ran, pid);
	assert_int_equal(answer(RGATE_SPAWNER_EXITED).a, 0);
	assert_int_equal(sent(order(1, "/bin/true", "x")) > 0, 1);
	assert_int_equal(answer(RGATE_SPAWNER_EXITED).a, 0);
	(void)ahead(pid);
}

/* Whoever kills or stops it (its state is empty once it was reaped) keeps no job from running. */
static void ahead_killed(void **state)
{
	(void)state;
	harm_ahead(SIGKILL, "Z\0");
}

static void ahead_stopped(void **state)
{
	(void)state;
	harm_ahead(SIGSTOP, "T");
}

static void line_of(pid_t pid, const char *file, const char *begins, char *line, size_t cap)
{
	char name[48];
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/%s", (int)pid, file);
	f = fopen(name, "re");
	assert_non_null(f);
	while (fgets(line, (int)cap, f) && strncmp(line, begins, strlen(begins)))
		;
	fclose(f);
	assert_int_equal(strncmp(line, begins, strlen(begins)), 0);
}

/*
 * What waits has its memory together with another process, which can do nothing, is in no job's
 * group, and ends when the program is executed.
 */
static void kept(void **state)
{
	char line[2][512], name[48];
	pid_t pid = ahead(0), other = keeper(0);

	(void)state;
	reload("allow 1 any\n");
	pid = ahead(pid);
	other = keeper(other);
	if (geteuid())
		unit_skip("who is not root may not look");
	assert_int_equal(syscall(SYS_kcmp, pid, other, KCMP_VM, 0, 0), 0);
	line_of(other, "status", "Seccomp:", line[0], sizeof(line[0]));
	assert_string_equal(line[0], "Seccomp:\t1\n");
	snprintf(name, sizeof(name), "/proc/%d/fd", (int)other);
	assert_int_equal(unit_entries(name), 2 + 1);
	if (!groups) {
		line_of(pid, "cgroup", "0::", line[0], sizeof(line[0]));
		line_of(other, "cgroup", "0::", line[1], sizeof(line[1]));
		assert_string_not_equal(line[0], line[1]);
	}
	assert_int_equal(sent(order(1, "/bin/sleep", "1000")), pid);
	becomes(other, "Z\0");
	assert_true(keeper(other) != other);
	becomes(pid, "S");
}

/* Whoever kills or stops that keeps no job from running either. */
static void keeper_killed(void **state)
{
	const pid_t pid = ahead(0), other = keeper(0);

	(void)state;
	assert_int_equal(kill(other, SIGKILL), 0);
	becomes(other, "Z\0");
	becomes(pid, "Z\0");
	assert_true(sent(order(1, "/bin/true", "x")) > 0);
	assert_int_equal(answer(RGATE_SPAWNER_EXITED).a, 0);
	assert_true(ahead(pid) != pid);
}

static void keeper_stopped(void **state)
{
	const pid_t pid = ahead(0), other = keeper(0);

	(void)state;
	assert_int_equal(kill(other, SIGSTOP), 0);
	becomes(other, "T");
	assert_int_equal(sent(order(1, "/bin/true", "x")), pid);
	assert_int_equal(answer(RGATE_SPAWNER_EXITED).a, 0);
	assert_int_equal(kill(other, SIGCONT), 0);
	becomes(other, "Z\0");
}

/* As many processes as there may be: jobs fail with that, and later run. */
static void no_more_processes(void **state)
{
	pid_t pid = ahead(0);

	(void)state;
	__atomic_store_n(&shared->no_clone, true, __ATOMIC_RELEASE);
	assert_int_equal(sent(order(1, "/bin/true", "x")), pid);
	assert_int_equal(answer(RGATE_SPAWNER_EXITED).a, 0);
	assert_int_equal(sent(order(1, "/bin/true", "x")), -EAGAIN);
	assert_int_equal(sent(order(1, "/bin/true", "x")), -EAGAIN);
	__atomic_store_n(&shared->no_clone, false, __ATOMIC_RELEASE);
	assert_true(sent(order(1, "/bin/true", "x")) > 0);
	assert_int_equal(answer(RGATE_SPAWNER_EXITED).a, 0);
	pid = ahead(0);
	assert_int_equal(sent(order(1, "/bin/true", "x")), pid);
	assert_int_equal(answer(RGATE_SPAWNER_EXITED).a, 0);
}

/*
 * The second one is made while the first has not begun, and has a copy of the pipe by which that
 * one tells of its start. From the first one's start until the second begins that pipe is no
 * event.
 */
static void copies_of_pipes(void **state)
{
	unsigned int looks;
	pid_t pid[2];
	int i;

	(void)state;
	__atomic_store_n(&shared->slow, true, __ATOMIC_RELEASE);
	reload("allow 1 any\n");
	usleep(SLOW_US / 2);
	looks = __atomic_load_n(&shared->looks, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		assert_int_equal(rgate_spawner_start(&sp, order(1, "/bin/true", "x"),
						     (int[]){ sp.null_fd, sp.null_fd,
							      sp.null_fd }), 0);
	for (i = 0; i < 2; i++) {
		pid[i] = answer(RGATE_SPAWNER_STARTED).a;
		assert_true(pid[i] > 0);
	}
	assert_int_not_equal(pid[0], pid[1]);
	__atomic_store_n(&shared->slow, false, __ATOMIC_RELEASE);
	assert_in_range(__atomic_load_n(&shared->looks, __ATOMIC_RELAXED) - looks, 2, 50);
}

static int create_other(const char *program)
{
	struct rgate_spawner_opts o = { .cgroup = "", .start_ms = 10000, .policy_path = path,
					.cluster = cluster };
	struct rgate_spawner other = { .pid = 0 };
	char *own = getenv("RGATE_SPAWNER");
	const unsigned int fds = unit_entries("/proc/self/fd");
	int err;

	own = own ? strdup(own) : NULL;
	assert_non_null(own);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &o.files), 0);
	if (program)
		assert_int_equal(setenv("RGATE_SPAWNER", program, 1), 0);
	err = rgate_spawner_create(&other, &o);
	assert_int_equal(setenv("RGATE_SPAWNER", own, 1), 0);
	free(own);
	assert_int_equal(other.pid, 0);
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
	/* and no process */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), 0);
	return err;
}

static char heard[512];

static void hear(void *ctx, enum rgate_log_level level, const char *line)
{
	(void)ctx;
	(void)level;
	snprintf(heard, sizeof(heard), "%s", line);
}

/* A program that is not there, is none, is another one, or of another version */
static void other_programs(void **state)
{
	(void)state;
	rgate_log_set(hear, NULL);
	assert_int_equal(create_other("/none/such"), -ENOENT);
	assert_non_null(strstr(heard, "/none/such: No such file"));
	assert_int_equal(create_other("/etc/passwd"), -EACCES);
	assert_int_equal(create_other("/bin/true"), -EPIPE);
	shared->strange = true;
	assert_int_equal(create_other(NULL), -EPROTONOSUPPORT);
	shared->strange = false;
	assert_non_null(strstr(heard, "99.0"));
	rgate_log_set(NULL, NULL);
	assert_true(sent(order(1, "/bin/true", "x")) > 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(decides_itself, up, down),
	cmocka_unit_test_setup_teardown(reads_itself, up, down),
	cmocka_unit_test_setup_teardown(counts_itself, up, down),
	cmocka_unit_test_setup_teardown(low_descriptors, up, down),
	cmocka_unit_test_setup_teardown(four_descriptors, up, down),
	cmocka_unit_test_setup_teardown(slow_to_go, up_grouped, down_grouped),
	cmocka_unit_test_setup_teardown(other_programs, up, down),
	cmocka_unit_test_setup_teardown(made_ahead, up, down),
	{ "made_ahead (control groups)", made_ahead, up_grouped, down_grouped, NULL },
	cmocka_unit_test_setup_teardown(holds_nothing, up, down),
	cmocka_unit_test_setup_teardown(kept, up, down),
	{ "kept (control groups)", kept, up_grouped, down_grouped, NULL },
	cmocka_unit_test_setup_teardown(keeper_killed, up, down),
	{ "keeper_killed (control groups)", keeper_killed, up_grouped, down_grouped, NULL },
	cmocka_unit_test_setup_teardown(keeper_stopped, up, down),
	cmocka_unit_test_setup_teardown(ahead_of_policy, up, down),
	cmocka_unit_test_setup_teardown(ahead_killed, up, down),
	cmocka_unit_test_setup_teardown(ahead_stopped, up, down),
	{ "ahead_stopped (control groups)", ahead_stopped, up_grouped, down_grouped, NULL },
	cmocka_unit_test_setup_teardown(no_more_processes, up, down),
	cmocka_unit_test_setup_teardown(copies_of_pipes, up, down),
};

OWN_SPAWNER_MAIN(tests)
