// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * When another process is made ahead: at once where the one that there was became a job or was
 * not needed, and a while later where none could be made or somebody killed it, so that neither
 * keeps the spawner busy. What was opened for one that is not there is closed.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policy.h"
/* The spawner's own, which the requests of the public headers, in unit.h, are not */
#define rgate_request spawner_request
#include "ahead.h"

static struct rgate_cgroups none = { .parent_fd = -1, .fd = -1, .spare_fd = -1 };
static const struct rgate_child_env env = { .cg = &none, .files = { 256, 256 } };
static struct rgate_spawn_policy *policy;
static unsigned int open_before;

static int up(void **state)
{
	(void)state;
	open_before = unit_entries("/proc/self/fd");
	return rgate_policy_nothing(&policy);
}

static int down(void **state)
{
	(void)state;
	rgate_policy_free(policy);
	return unit_entries("/proc/self/fd") != open_before;
}

/* Nothing is to be made for a second, and then it is */
static void is_for_later(const struct rgate_ahead *a)
{
	int ms;

	assert_int_equal(a->pid, 0);
	assert_true(rgate_ahead_idle(a));
	ms = rgate_ahead_due(a);
	assert_in_range(ms, 1, 1001);
	/* as long as it says, and not much longer */
	usleep((unsigned int)ms * 1000);
	assert_int_equal(rgate_ahead_due(a), 0);
	assert_false(rgate_ahead_idle(a));
}

static void is_for_now(const struct rgate_ahead *a)
{
	assert_int_equal(a->pid, 0);
	assert_int_equal(rgate_ahead_due(a), -1);
	assert_false(rgate_ahead_idle(a));
}

/*
 * Reaps its two processes, the one that keeps the memory and the one that waits for a job, as the
 * spawner does: one of which nothing was heard yet when it was dropped ends by itself.
 */
static void reap(struct rgate_ahead *a)
{
	int status;
	pid_t pid;

	assert_false(rgate_ahead_reaped(a, 0, &env));
	assert_false(rgate_ahead_reaped(a, getpid(), &env));
	assert_true(a->pid > 0);
	while ((pid = waitpid(-1, &status, 0)) > 0) {
		assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WIFEXITED(status));
		(void)rgate_ahead_reaped(a, pid, &env);
	}
	assert_int_equal(errno, ECHILD);
	assert_int_equal(a->pid, 0);
	assert_int_equal(unit_entries("/proc/self/fd"), open_before);
}

/* With fewer descriptors than it needs, from none at all */
static void cannot_be_made(void **state)
{
	struct rlimit was, few;
	struct rgate_ahead a = { .pid = 0 };
	const int top = dup(0);
	unsigned int n, failed = 0;

	(void)state;
	assert_true(top > 0);
	close(top);
	is_for_now(&a);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	for (n = 0; n < 8; n++) {
		few = (struct rlimit){ (rlim_t)top + n, was.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		rgate_ahead_make(&a, policy, &env);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
		if (a.pid)
			break;
		assert_int_equal(unit_entries("/proc/self/fd"), open_before);
		assert_in_range(rgate_ahead_due(&a), 1, 1001);
		failed++;
	}
	/* a pipe and a pair, at least */
	assert_in_range(failed, 4, 7);
	rgate_ahead_drop(&a);
	reap(&a);
	is_for_now(&a);
	few = (struct rlimit){ (rlim_t)top, was.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	rgate_ahead_make(&a, policy, &env);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	is_for_later(&a);
}

static void not_needed(void **state)
{
	struct rgate_ahead a;
	pid_t pid;

	(void)state;
	/* where there is none nothing is done, and nothing is closed that is somebody's */
	a = (struct rgate_ahead){ .pid = 0 };
	rgate_ahead_drop(&a);
	is_for_now(&a);
	assert_false(a.dying);
	assert_int_equal(unit_entries("/proc/self/fd"), open_before);
	rgate_ahead_make(&a, policy, &env);
	pid = a.pid;
	assert_true(pid > 0);
	assert_true(rgate_ahead_idle(&a));
	assert_int_equal(rgate_ahead_due(&a), -1);
	rgate_ahead_drop(&a);
	/* until it is reaped no other one is made, and nothing of it is open */
	assert_true(rgate_ahead_idle(&a));
	assert_int_equal(unit_entries("/proc/self/fd"), open_before);
	rgate_ahead_drop(&a);
	reap(&a);
	is_for_now(&a);
}

static void killed(void **state)
{
	struct rgate_ahead a;
	const pid_t *pid = &a.pid;

	(void)state;
	rgate_ahead_make(&a, policy, &env);
	assert_true(*pid > 0);
	assert_int_equal(kill(*pid, SIGKILL), 0);
	reap(&a);
	is_for_later(&a);
}

/* It has said its number, as the spawner hears of it */
static void begins(struct rgate_ahead *a)
{
	const uint64_t until = unit_now_ns() + 20000000000ULL;

	while (rgate_ahead_count(a) < 2) {
		assert_true(unit_now_ns() < until);
		usleep(1000);
	}
}

/* Nobody could end one that has no descriptor: so it is told of no job. */
static void cannot_be_held(void **state)
{
	const uint8_t record[16] = { 0 };
	const struct rgate_request r = { .policy = policy, .record = record,
					 .record_len = sizeof(record) };
	struct rgate_child child = { .pidfd = -1, .result_fd = -1 };
	const int fds[3] = { 0, 1, 2 };
	struct rlimit was, few;
	struct rgate_ahead a;
	int top;

	(void)state;
	rgate_ahead_make(&a, policy, &env);
	begins(&a);
	top = dup(0);
	assert_true(top > 0);
	close(top);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = (struct rlimit){ (rlim_t)top, was.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_false(rgate_ahead_start(&a, &child, &r, fds, &env));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(child.pid, 0);
	assert_int_equal(child.pidfd, -1);
	reap(&a);
	is_for_now(&a);
}

static pid_t slow_for = -1;		/* all others are slow to say anything; -1: nobody is */

ssize_t __real_write(int fd, const void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len);

ssize_t __wrap_write(int fd, const void *buf, size_t len)
{
	if (slow_for >= 0 && getpid() != slow_for)
		usleep(300000);
	return __real_write(fd, buf, len);
}

static void reap_one(struct rgate_ahead *a, struct rgate_cgroups *cg)
{
	const struct rgate_child_env in_group = { .cg = cg, .files = { 256, 256 } };
	const pid_t pid = a->pid;

	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(rgate_ahead_reaped(a, pid, &in_group));
}

/*
 * Its keeper is gone before anything was heard of it: its group stays until it is gone as well, and
 * not for ever. @dropped: or is not needed, and ends by itself.
 */
static void group_of_silent(bool dropped)
{
	struct rgate_cgroups cg;
	const struct rgate_child_env in_group = { .cg = &cg, .files = { 256, 256 } };
	struct rgate_ahead a;
	char path[96];
	uint64_t group;

	rgate_cgroups_open(&cg, getenv("RGATE_TEST_CGROUP"));
	if (cg.fd < 0)
		unit_skip("there are no groups");
	slow_for = getpid();
	rgate_ahead_make(&a, policy, &in_group);
	assert_true(a.pid > 0 && a.group);
	group = a.group;
	while (!rgate_cgroup_member(&cg, group))
		usleep(1000);
	if (dropped)
		rgate_ahead_drop(&a);
	assert_int_equal(kill(a.pid, SIGKILL), 0);
	reap_one(&a, &cg);
	slow_for = -1;
	/* of the other one, too, no matter that it never spoke */
	assert_true(a.pid > 0);
	assert_true(rgate_ahead_idle(&a));
	assert_int_equal(rgate_ahead_count(&a), 1);
	reap_one(&a, &cg);
	assert_int_equal(a.pid, 0);
	while (!rgate_cgroups_idle(&cg))
		rgate_cgroups_chore(&cg);
	snprintf(path, sizeof(path), "%llu", (unsigned long long)group);
	assert_int_equal(faccessat(cg.fd, path, F_OK, 0), -1);
	rgate_cgroups_close(&cg);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void keeper_killed(void **state)
{
	(void)state;
	group_of_silent(false);
}

static void dropped_unheard(void **state)
{
	(void)state;
	group_of_silent(true);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)
static const struct CMUnitTest tests[] = {
	TEST(cannot_be_made), TEST(not_needed), TEST(killed), TEST(cannot_be_held),
	TEST(keeper_killed), TEST(dropped_unheard),
};

UNIT_MAIN_ALONE(tests)
