// SPDX-License-Identifier: MIT OR GPL-2.0
/* Who came of a process, where there are no control groups, and who did not. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tree.h"

#define MARK	RGATE_TREE_MARK "77"

static int pipes[2];

static void tell_pid(void)
{
	const pid_t pid = getpid();

	unit_require(write(pipes[1], &pid, sizeof(pid)) == sizeof(pid));
}

static pid_t told_pid(void)
{
	pid_t pid = 0;

	unit_require(read(pipes[0], &pid, sizeof(pid)) == sizeof(pid));
	return pid;
}

/* Becomes a program with that environment, which says that it is there and waits */
static _Noreturn void become(char *const env[])
{
	char *const argv[] = { "sh", "-c", "read x", NULL };
	int fds[2];

	unit_require(!pipe(fds) && dup2(fds[0], 0) == 0);
	/* nothing comes, as this end stays open */
	execve("/bin/sh", argv, env);
	unit_die(__FILE__, __LINE__, "execve");
}

/* A child in a session of its own, with @env where that is not NULL */
static pid_t child(char *const env[])
{
	pid_t pid = fork();

	unit_require(pid >= 0);
	if (!pid) {
		setsid();
		if (!env) {
			tell_pid();
			for (;;)
				pause();
		}
		become(env);
	}
	if (!env)
		unit_require(told_pid() == pid);
	return pid;
}

static bool has_begun(pid_t pid)
{
	char path[48], text[32] = "";
	FILE *f;
	int c;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "r");
	unit_require(f && fgets(text, sizeof(text), f));
	fclose(f);
	if (strcmp(text, "sh\n"))
		return false;
	/* It has that name before it has its environment. */
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	f = fopen(path, "r");
	unit_require(f);
	c = fgetc(f);
	fclose(f);
	return c != EOF;
}

static pid_t program(char *const env[])
{
	const pid_t pid = child(env);

	while (!has_begun(pid))
		usleep(100);
	return pid;
}

static bool is_dead(pid_t pid)
{
	siginfo_t info = { 0 };

	unit_require(!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT));
	return info.si_pid == pid;
}

/* It is dead already; how it died */
static int died(pid_t pid)
{
	int status;

	unit_require(waitpid(pid, &status, WNOHANG) == pid && WIFSIGNALED(status));
	return WTERMSIG(status);
}

static int dies(pid_t pid)
{
	int status;

	unit_require(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	return WTERMSIG(status);
}

static int signal_to(pid_t leader, bool reaped, int sig)
{
	const struct rgate_tree tree = { .leader = leader, .reaped = reaped, .mark = MARK };

	return rgate_tree_signal(&tree, sig);
}

/* The session's, the group's, and children of those, wherever they went */
static int members(void)
{
	pid_t leader, of[3];
	int i;

	leader = fork();
	if (!leader) {
		setsid();
		tell_pid();
		for (i = 0; i < 3; i++)
			if (!fork()) {
				if (i == 1)
					setpgid(0, 0);
				else if (i == 2)
					setsid();
				prctl(PR_SET_NAME, "a) Z 1 (1");
				tell_pid();
				for (;;)
					pause();
			}
		for (;;)
			pause();
	}
	for (i = 0; i < 4; i++) {
		const pid_t pid = told_pid();

		if (i)
			of[i - 1] = pid;
		else
			unit_require(pid == leader);
	}
	unit_require(signal_to(leader, false, 0) == 4);
	unit_require(signal_to(leader, false, SIGTERM) == 4);
	unit_require(dies(leader) == SIGTERM);
	for (i = 0; i < 3; i++)
		unit_require(dies(of[i]) == SIGTERM);
	unit_require(signal_to(leader, true, SIGTERM) == 0);
	return 0;
}

/* @n of them, until nobody is left. On a busy machine who was killed takes longer to die than one
 * call waits, a quarter of a second. */
static void all_killed(pid_t leader, bool reaped, int n)
{
	int k;

	unit_require(signal_to(leader, reaped, SIGKILL) == n);
	for (k = 0; signal_to(leader, reaped, SIGKILL); k++)
		unit_require(k < 100);
}

/* Once it returns nobody is left, at least once in a while. Who is dead, but not reaped, does
 * not count. */
static int killed(void)
{
	const pid_t bystander = child(NULL);
	pid_t leader;
	int k = 0;

	do {
		unit_require(k++ < 20);
		leader = child(NULL);
		unit_require(signal_to(leader, false, SIGKILL) == 1);
	} while (!is_dead(leader));
	unit_require(signal_to(leader, false, SIGKILL) == 0);
	unit_require(died(leader) == SIGKILL);
	unit_require(signal_to(bystander, false, SIGTERM) == 1);
	unit_require(dies(bystander) == SIGTERM);
	return 0;
}

static void *stay(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* Its first thread has ended, which looks like the end of all: it is there, and is killed. */
static int headless(void)
{
	pthread_t thread;
	pid_t pid = fork();
	char state = '?';
	char path[48];
	FILE *f;

	unit_require(pid >= 0);
	if (!pid) {
		setsid();
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		unit_require(!pthread_create(&thread, NULL, stay, NULL));
		tell_pid();
		syscall(SYS_exit, 0);
	}
	unit_require(told_pid() == pid);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (state != 'Z') {
		usleep(100);
		f = fopen(path, "r");
		unit_require(f && fscanf(f, "%*d %*s %c", &state) == 1);
		fclose(f);
	}
	unit_require(signal_to(pid, false, 0) == 1);
	all_killed(pid, false, 1);
	unit_require(died(pid) == SIGKILL);
	return 0;
}

/* It gets a signal once. Real-time signals wait for their turn, the lowest number first. */
static int once(void)
{
	int status, times = 0;
	pid_t pid = fork();

	unit_require(pid >= 0);
	if (!pid) {
		sigset_t all;

		setsid();
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, NULL);
		tell_pid();
		while (sigwaitinfo(&all, NULL) != SIGRTMIN + 1)
			times++;
		_exit(times);
	}
	unit_require(told_pid() == pid);
	unit_require(signal_to(pid, false, SIGRTMIN) == 1);
	unit_require(!kill(pid, SIGRTMIN + 1));
	unit_require(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	unit_require(WEXITSTATUS(status) == 1);
	return 0;
}

/* The number of a leader that was reaped may be somebody else's. */
static int recycled(void)
{
	const pid_t now = child(NULL);

	unit_require(signal_to(now, true, SIGKILL) == 0);
	unit_require(!kill(now, 0) && waitpid(now, NULL, WNOHANG) == 0);
	all_killed(now, false, 1);
	unit_require(died(now) == SIGKILL);
	return 0;
}

/* An orphan is known by a whole word of its environment, wherever in it that is. */
static int marked(void)
{
	static char filler[20000];
	char *const longer[] = { MARK "8", "A=" MARK, NULL };
	char *const first[] = { MARK, "A=b", NULL };
	char *const last[] = { "A=b", filler, MARK, NULL };
	pid_t stranger, orphan[2];
	int i;

	memset(filler, 'x', sizeof(filler) - 1);
	memcpy(filler, "F=", 2);
	stranger = program(longer);
	orphan[0] = program(first);
	orphan[1] = program(last);
	/* Of a leader that ended long ago */
	unit_require(signal_to(INT32_MAX, true, 0) == 2);
	all_killed(INT32_MAX, true, 2);
	for (i = 0; i < 2; i++)
		unit_require(dies(orphan[i]) == SIGKILL);
	unit_require(waitpid(stranger, NULL, WNOHANG) == 0);
	/* The leader is who it is, not an orphan. */
	orphan[0] = program(first);
	unit_require(signal_to(orphan[0], true, SIGKILL) == 0);
	all_killed(orphan[0], false, 1);
	unit_require(dies(orphan[0]) == SIGKILL);
	unit_require(!kill(stranger, SIGKILL) && dies(stranger) == SIGKILL);
	return 0;
}

/* One that has lost its first thread is known by what the others were started with. */
static int headless_orphan(void)
{
	char *const env[] = { "A=b", MARK, NULL };
	char *const argv[] = {
		"python3", "-c", "import ctypes, threading, time\n"
		"threading.Thread(target=time.sleep, args=(1000,)).start()\n"
		"ctypes.CDLL(None).syscall(60, 0)", NULL
	};
	char path[48], state = '?';
	pid_t pid = fork();
	FILE *f;

	unit_require(pid >= 0);
	if (!pid) {
		setsid();
		execve("/usr/bin/python3", argv, env);
		_exit(127);
	}
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (state != 'Z') {
		usleep(1000);
		f = fopen(path, "r");
		unit_require(f && fscanf(f, "%*d %*s %c", &state) == 1);
		fclose(f);
	}
	all_killed(INT32_MAX, true, 1);
	/* While it dies it has no environment. */
	unit_require(dies(pid) == SIGKILL);
	return 0;
}

/* It is never itself among them. */
static int not_itself(void)
{
	unit_require(setsid() == getpid());
	unit_require(signal_to(getpid(), false, SIGKILL) == 0);
	return 0;
}

static int counted(void)
{
	pid_t a, b;

	unit_require(rgate_tree_children() == 0);
	a = child(NULL);
	unit_require(rgate_tree_children() == 1);
	b = child(NULL);
	unit_require(rgate_tree_children() == 2);
	unit_require(!kill(a, SIGKILL) && !kill(b, SIGKILL));
	unit_require(dies(a) == SIGKILL && rgate_tree_children() == 1);
	unit_require(dies(b) == SIGKILL && rgate_tree_children() == 0);
	return 0;
}

static int as_spawner(int sock, void *arg)
{
	int (*const *fn)(void) = arg;

	(void)sock;
	unit_require(!pipe(pipes) && !prctl(PR_SET_CHILD_SUBREAPER, 1));
	return (*fn)();
}

static void in_child(int (*fn)(void))
{
	int sock, pid;

	fflush(stdout);
	pid = unit_fork(as_spawner, &fn, &sock);
	unit_reap(pid, 0);
	close(sock);
}

#define CASE(name, fn) \
	static void name(void **state) \
	{ \
		(void)state; \
		in_child(fn); \
	}

CASE(of_a_session, members)
CASE(until_none_is_left, killed)
CASE(without_a_head, headless)
CASE(once_each, once)
CASE(number_of_another, recycled)
CASE(orphans, marked)
CASE(itself, not_itself)

static void orphan_without_a_head(void **state)
{
	(void)state;
	if (access("/usr/bin/python3", X_OK))
		unit_skip("no python3");
#ifndef __x86_64__
	unit_skip("its number of exit(2) is another one");
#endif
	in_child(headless_orphan);
}

static void counted_children(void **state)
{
	(void)state;
	if (rgate_tree_children() == -ENOENT)
		unit_skip("the kernel does not tell children");
	in_child(counted);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(of_a_session), cmocka_unit_test(until_none_is_left),
	cmocka_unit_test(without_a_head), cmocka_unit_test(once_each),
	cmocka_unit_test(number_of_another), cmocka_unit_test(orphans),
	cmocka_unit_test(orphan_without_a_head), cmocka_unit_test(itself),
	cmocka_unit_test(counted_children),
};

UNIT_MAIN(tests)
