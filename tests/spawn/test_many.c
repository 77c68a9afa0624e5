// SPDX-License-Identifier: MIT OR GPL-2.0
/* Many at once, many in a row, turns; and nothing is left of them. */
#include "serve.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define AT_ONCE	1000

static struct serve s;

static struct rgate_spawn_job *run_small(const char *const *argv)
{
	const struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.stdout_mode = RGATE_SPAWN_OUT_STREAM, .ring_bytes = 4096);
	struct rgate_spawn_job *job;

	assert_int_equal(rgate_spawn_start(s.spawn, &req, &job), 0);
	return job;
}

static void at_once(void **state)
{
	static struct rgate_spawn_job *jobs[AT_ONCE];
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	const unsigned int n = unit_rounds(AT_ONCE);
	char number[16], out[16];
	const char *const argv[] = { "/bin/sh", "-c", "read x < /dev/null; sleep 1; echo $0",
				     number, NULL };
	struct rgate_spawnd_stats stats;
	unsigned int i;
	ssize_t len;

	(void)state;
	for (i = 0; i < n; i++) {
		snprintf(number, sizeof(number), "%u", i);
		jobs[i] = run_small(argv);
	}
	for (i = 0; i < n; i++) {
		assert_int_equal(rgate_spawn_job_wait(jobs[i], &r, 100000), 0);
		assert_int_equal(r.state, RGATE_SPAWN_COMPLETE);
		assert_int_equal(r.exit_code, 0);
		len = rgate_spawn_job_read(jobs[i], 1, out, sizeof(out) - 1, 0);
		assert_true(len > 0);
		out[len] = '\0';
		assert_int_equal(atoi(out), i);
		rgate_spawn_job_close(jobs[i]);
	}
	wait_for((rgate_spawn_process(s.spawn), !serve_stats(&s).jobs));
	stats = serve_stats(&s);
	assert_int_equal(stats.started, n);
	assert_int_equal(stats.completed, n);
}

/* All of them through rgate_spawn_next() */
static void next_of_all(void **state)
{
	static const char *const argv[] = { "/bin/echo", "x", NULL };
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	struct rgate_spawn_job *job;
	const uintptr_t n = 40;
	uintptr_t i, ended = 0;

	(void)state;
	for (i = 0; i < n; i++) {
		job = run_small(argv);
		rgate_spawn_job_set_data(job, (void *)(i + 1));
	}
	while (ended < n) {
		assert_int_equal(rgate_spawn_next(s.spawn, &job, MS), 0);
		assert_int_equal(rgate_spawn_job_result(job, &r), 0);
		if (r.state < RGATE_SPAWN_COMPLETE)
			continue;
		i = (uintptr_t)rgate_spawn_job_data(job);
		assert_true(i >= 1 && i <= n);
		rgate_spawn_job_close(job);
		ended++;
	}
	assert_int_equal(rgate_spawn_next(s.spawn, &job, 50), -ETIMEDOUT);
}

/* Children of the spawner, but for the one that waits for a job */
static unsigned int left_over(void)
{
	struct dirent *e;
	unsigned int n = 0;
	char path[300], name[32], state;
	int ppid, spawner = 0;
	FILE *f;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)s.server, (int)s.server);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &spawner), 1);
	fclose(f);
	dir = opendir("/proc");
	assert_non_null(dir);
	while ((e = readdir(dir))) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fscanf(f, "%*d (%31[^)]) %c %d", name, &state, &ppid) == 3)
			n += ppid == spawner && (state == 'Z' || (strcmp(name, "ringgate-ahead") &&
							      strcmp(name, "ringgate-keeper")));
		fclose(f);
	}
	closedir(dir);
	return n;
}

static unsigned long resident_kb(void)
{
	unsigned long kb = 0;
	char path[48], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)s.server);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		(void)sscanf(line, "VmRSS: %lu", &kb);
	fclose(f);
	return kb;
}

static uint64_t buffers(void)
{
	struct rgate_pool_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_pool_stats(rgate_node_pool(s.node), &st), 0);
	return st.used_buffers;
}

static void in_a_row(void **state)
{
	static const char *const good[] = { "/bin/true", NULL };
	static const char *const bad[] = { "/bin/no-such-thing", NULL };
	const unsigned int n = serve_long() ? 100000 : unit_rounds_or(3000, 100);
	const unsigned int warm = unit_rounds_or(100, 30);
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	unsigned int fds = 0, own = 0;
	uint64_t before = 0;
	struct rgate_spawn_job *job;
	unsigned long kb = 0;
	uint64_t began = 0;
	unsigned int i;

	(void)state;
	for (i = 0; i < n + warm; i++) {
		if (i == warm) {
			wait_for((rgate_spawn_process(s.spawn), !serve_stats(&s).jobs));
			fds = serve_fds(&s);
			own = open_files();
			kb = resident_kb();
			before = buffers();
			began = unit_now_ns();
		}
		job = run_small(i % 10 == 9 ? bad : good);
		assert_int_equal(rgate_spawn_job_wait(job, &r, MS), 0);
		assert_int_equal(r.error, i % 10 == 9 ? -ENOENT : 0);
		assert_int_equal(r.exit_code, 0);
		rgate_spawn_job_close(job);
	}
	print_message("# %u us each\n", (unsigned int)((unit_now_ns() - began) / 1000 / n));
	wait_for((rgate_spawn_process(s.spawn), !serve_stats(&s).jobs));
	assert_int_equal(serve_fds(&s), fds);
	assert_int_equal(open_files(), own);
	/* Of one that could not be started the client may know before it is reaped. */
	wait_for(!left_over());
	wait_for((rgate_spawn_process(s.spawn), buffers() <= before));
	/* a sanitizer has memory of its own, which grows as it likes */
	if (!unit_asan() && !unit_tsan())
		assert_in_range(resident_kb(), 1, kb + 1023);
	assert_int_equal(serve_stats(&s).bytes_out, 0);
}

static const char few[] = "node 1 user %s max-queued 5\nallow 1 any\nmax-running 2\n";

static void turns(void **state)
{
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	struct rgate_spawn_job *jobs[8];
	struct rgate_spawnd_stats stats;
	uint64_t last = 0;
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++)
		jobs[i] = start(&s, 0, "/bin/sleep", "0.3");
	wait_for((rgate_spawn_process(s.spawn), serve_stats(&s).running == 2));
	for (; i < 8; i++)
		jobs[i] = start(&s, 0, "/bin/sleep", "0.1");
	wait_for((rgate_spawn_process(s.spawn), serve_stats(&s).refused == 1));
	stats = serve_stats(&s);
	assert_true(stats.running <= 2);
	for (i = 0; i < 8; i++) {
		assert_int_equal(rgate_spawn_job_wait(jobs[i], &r, MS), 0);
		stats = serve_stats(&s);
		assert_true(stats.running <= 2);
		if (i == 7) {
			assert_int_equal(r.state, RGATE_SPAWN_ERROR);
			assert_int_equal(r.error, -EAGAIN);
			assert_int_equal(r.stage, RGATE_SPAWN_AT_REQUEST);
			assert_true(strlen(r.reason));
		} else {
			assert_int_equal(r.state, RGATE_SPAWN_COMPLETE);
			/* in the order in which they were asked for */
			assert_true(r.started_ns >= last);
			last = r.started_ns;
		}
		rgate_spawn_job_close(jobs[i]);
	}
	/* one that waits can be taken back */
	jobs[0] = start(&s, 0, "/bin/sleep", "1000");
	jobs[1] = start(&s, 0, "/bin/sleep", "1000");
	jobs[2] = start(&s, 0, "/bin/sleep", "1000");
	wait_for((rgate_spawn_process(s.spawn), serve_stats(&s).queued == 1));
	assert_int_equal(rgate_spawn_job_kill(jobs[2], SIGTERM, RGATE_SPAWN_TO_TREE), 0);
	assert_int_equal(rgate_spawn_job_wait(jobs[2], &r, MS), 0);
	assert_int_equal(r.error, -ECANCELED);
	for (i = 0; i < 3; i++)
		rgate_spawn_job_close(jobs[i]);
	wait_for((rgate_spawn_process(s.spawn), !serve_stats(&s).jobs));
}

static int up(void **state)
{
	(void)state;
	/* the kernel making a huge page of a few small ones is not a leak of 2 MB */
	assert_int_equal(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
	serve_up(&s, NULL);
	return 0;
}

static int up_few(void **state)
{
	(void)state;
	serve_up(&s, few);
	return 0;
}

static int up_without(void **state)
{
	s.cgroup = "";
	return up(state);
}

static int down(void **state)
{
	(void)state;
	serve_down(&s);
	s.cgroup = NULL;
	return 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(at_once, up, down),
	cmocka_unit_test_setup_teardown(next_of_all, up, down),
	cmocka_unit_test_setup_teardown(in_a_row, up, down),
	{ "in_a_row (no control groups)", in_a_row, up_without, down, NULL },
	cmocka_unit_test_setup_teardown(turns, up_few, down),
};

UNIT_MAIN(tests)
