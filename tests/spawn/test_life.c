// SPDX-License-Identifier: MIT OR GPL-2.0
/* Signals, what a process leaves behind, handles that go and come; who dies, and when. */
#include "serve.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct serve s;

static struct rgate_spawn_result result_of(struct rgate_spawn_job *job)
{
	struct rgate_spawn_result r = { .sz = sizeof(r) };

	assert_int_equal(rgate_spawn_job_result(job, &r), 0);
	return r;
}

static struct rgate_spawn_result end_of(struct rgate_spawn_job *job)
{
	struct rgate_spawn_result r = { .sz = sizeof(r) };

	assert_int_equal(rgate_spawn_job_wait(job, &r, MS), 0);
	rgate_spawn_job_close(job);
	return r;
}

/* A line of the job's output */
static const char *line_of(struct rgate_spawn_job *job)
{
	static char line[128];
	size_t len = 0;

	while (len < sizeof(line) - 1 &&
	       rgate_spawn_job_read(job, 1, line + len, 1, MS) == 1 && line[len] != '\n')
		len++;
	line[len] = '\0';
	return line;
}

static bool lives(pid_t pid)
{
	char path[32], state[8] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%*[^)]) %7s", state) != 1)
		state[0] = 'X';
	fclose(f);
	return state[0] != 'Z' && state[0] != 'X';
}

static void signals(void **state)
{
	struct rgate_spawn_job *job;
	struct rgate_spawn_result r;

	(void)state;
	job = start(&s, 0, "/bin/sh", "-c", "trap 'echo usr1' USR1; trap 'echo hup; exit 5' HUP; "
					    "echo on; while :; do sleep 0.05; done");
	assert_string_equal(line_of(job), "on");
	assert_int_equal(rgate_spawn_job_kill(job, SIGUSR1, RGATE_SPAWN_TO_LEADER), 0);
	assert_string_equal(line_of(job), "usr1");
	assert_int_equal(rgate_spawn_job_kill(job, SIGUSR1, RGATE_SPAWN_TO_LEADER), 0);
	assert_string_equal(line_of(job), "usr1");
	assert_int_equal(rgate_spawn_job_kill(job, SIGHUP, RGATE_SPAWN_TO_LEADER), 0);
	r = end_of(job);
	assert_int_equal(r.exit_code, 5);
	/* the group: also its children */
	job = start(&s, 0, "/bin/sh", "-c", "sleep 100 | sleep 100; echo never");
	wait_for(result_of(job).state == RGATE_SPAWN_RUNNING ||
		 (rgate_spawn_process(s.spawn), false));
	assert_int_equal(rgate_spawn_job_kill(job, SIGINT, RGATE_SPAWN_TO_GROUP), 0);
	r = end_of(job);
	assert_int_equal(r.signal, SIGINT);
	/* before it is known to run; and in what order they come */
	job = start(&s, 0, "/bin/sleep", "100");
	assert_int_equal(rgate_spawn_job_kill(job, SIGTERM, RGATE_SPAWN_TO_TREE), 0);
	r = end_of(job);
	assert_true(r.signal == SIGTERM || r.error == -ECANCELED);
	/* stopped, and ended nevertheless */
	job = start(&s, 0, "/bin/sh", "-c", "echo $$; kill -STOP $$; echo never");
	line_of(job);
	assert_int_equal(rgate_spawn_job_kill(job, SIGTERM, RGATE_SPAWN_TO_TREE), 0);
	r = end_of(job);
	assert_int_equal(r.signal, SIGTERM);
	job = start(&s, 0, "/bin/true");
	assert_int_equal(rgate_spawn_job_wait(job, NULL, MS), 0);
	assert_int_equal(rgate_spawn_job_kill(job, SIGTERM, RGATE_SPAWN_TO_TREE), -ESRCH);
	assert_int_equal(rgate_spawn_job_kill(job, 0, RGATE_SPAWN_TO_TREE), -EINVAL);
	rgate_spawn_job_close(job);
}

/* What has forked twice, and has a session of its own */
static const char daemon_script[] =
	"setsid sh -c 'trap \"\" TERM HUP; echo $$; exec >/dev/null 2>&1; sleep 1000; sleep 1000' & "
	"read line; exit 0";

/* Its number; the one that made it has ended by then, or is about to */
static pid_t start_daemon(uint32_t flags, struct rgate_spawn_job **job)
{
	pid_t pid;

	*job = start(&s, flags, "/bin/sh", "-c", daemon_script);
	pid = atoi(line_of(*job));
	assert_true(pid > 0);
	assert_int_equal(rgate_spawn_job_write(*job, "\n", 1, MS), 1);
	return pid;
}

static void leftovers(void **state)
{
	struct rgate_spawn_job *job;
	struct rgate_spawn_result r;
	pid_t pid;

	(void)state;
	pid = start_daemon(0, &job);
	r = end_of(job);
	assert_int_equal(r.exit_code, 0);
	assert_true(r.flags & RGATE_SPAWN_LEFTOVERS);
	wait_for(!lives(pid));
	/* and if it is wanted so */
	pid = start_daemon(RGATE_SPAWN_LEAVE, &job);
	r = end_of(job);
	assert_false(r.flags & RGATE_SPAWN_LEFTOVERS);
	assert_true(lives(pid));
	kill(pid, SIGKILL);
	wait_for(!lives(pid));
	/* killed while the first one lives */
	job = start(&s, 0, "/bin/sh", "-c", "setsid sh -c 'trap \"\" TERM; echo $$; "
					    "while :; do sleep 1; done' & wait");
	pid = atoi(line_of(job));
	assert_int_equal(rgate_spawn_job_kill(job, SIGKILL, RGATE_SPAWN_TO_TREE), 0);
	r = end_of(job);
	assert_int_equal(r.signal, SIGKILL);
	wait_for(!lives(pid));
	/* nothing is left: nothing is said */
	r = end_of(start(&s, 0, "/bin/sh", "-c", "sleep 0 & wait"));
	assert_int_equal(r.flags & RGATE_SPAWN_LEFTOVERS, 0);
}

static void closed_early(void **state)
{
	struct rgate_spawn_job *job;
	pid_t pid;
	int i;

	(void)state;
	job = start(&s, 0, "/bin/sh", "-c", "echo $$; trap '' TERM; sleep 100; sleep 100");
	pid = atoi(line_of(job));
	rgate_spawn_job_close(job);
	wait_for((rgate_spawn_process(s.spawn), !lives(pid)));
	for (i = 0; i < 50; i++) {
		job = start(&s, 0, "/bin/sh", "-c", "sleep 100");
		usleep((unsigned int)i * 200);
		rgate_spawn_process(s.spawn);
		rgate_spawn_job_close(job);
	}
	/* What found no room yet is sent by and by. */
	wait_for((rgate_spawn_process(s.spawn),
		  !serve_stats(&s).running && !serve_stats(&s).jobs));
}

static void attach_again(void **state)
{
	struct rgate_spawn_job *job, *other;
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	uint64_t id;

	(void)state;
	job = start(&s, RGATE_SPAWN_KEEP, "/bin/sh", "-c",
		    "echo one; read x; echo two $x; read x; echo three $x; exit 6");
	assert_string_equal(line_of(job), "one");
	id = rgate_spawn_job_id(job);
	assert_true(id);
	assert_int_equal(rgate_spawn_attach(s.spawn, id, 4096, &other), 0);
	assert_int_equal(rgate_spawn_job_wait(other, &r, MS), 0);
	assert_int_equal(r.error, -EBUSY);
	rgate_spawn_job_close(other);
	assert_int_equal(rgate_spawn_job_write(job, "a\n", 2, MS), 2);
	assert_string_equal(line_of(job), "two a");
	assert_int_equal(rgate_spawn_job_detach(job, MS), 0);
	/* by the same one */
	assert_int_equal(rgate_spawn_attach(s.spawn, id, 4096, &job), 0);
	assert_int_equal(rgate_spawn_job_wait(job, &r, 100), -ETIMEDOUT);
	assert_int_equal(rgate_spawn_job_detach(job, MS), 0);
	/* by another process of the node: another incarnation */
	serve_client_down(&s);
	serve_client_up(&s);
	assert_int_equal(rgate_spawn_attach(s.spawn, id, 0, &job), 0);
	assert_int_equal(rgate_spawn_job_write(job, "b\n", 2, MS), 2);
	assert_string_equal(line_of(job), "three b");
	assert_int_equal(rgate_spawn_job_wait(job, &r, MS), 0);
	assert_int_equal(r.exit_code, 6);
	assert_int_equal(r.id, id);
	rgate_spawn_job_close(job);
	assert_int_equal(rgate_spawn_attach(s.spawn, id, 0, &job), 0);
	assert_int_equal(rgate_spawn_job_wait(job, &r, MS), 0);
	assert_int_equal(r.error, -ENOENT);
	rgate_spawn_job_close(job);
}

/* Who attaches sends signals where another sent some before. */
static void signal_attached(void **state)
{
	struct rgate_spawn_job *job;
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	uint64_t id;
	int i;

	(void)state;
	job = start(&s, RGATE_SPAWN_KEEP, "/bin/sh", "-c",
		    "trap 'echo told' USR1; echo one; while :; do sleep 0.02; done");
	assert_string_equal(line_of(job), "one");
	id = rgate_spawn_job_id(job);
	for (i = 0; i < 3; i++) {
		assert_int_equal(rgate_spawn_job_kill(job, SIGUSR1, RGATE_SPAWN_TO_LEADER), 0);
		assert_string_equal(line_of(job), "told");
		assert_int_equal(rgate_spawn_job_detach(job, MS), 0);
		assert_int_equal(rgate_spawn_attach(s.spawn, id, 0, &job), 0);
	}
	assert_int_equal(rgate_spawn_job_kill(job, SIGKILL, RGATE_SPAWN_TO_TREE), 0);
	assert_int_equal(rgate_spawn_job_wait(job, &r, MS), 0);
	assert_int_equal(r.signal, SIGKILL);
	rgate_spawn_job_close(job);
}

/* Who asks for processes no more has none: those that he has not closed are killed. */
static void closed_with_jobs(void **state)
{
	struct rgate_spawn_job *job;
	pid_t pid;

	(void)state;
	job = start(&s, 0, "/bin/sh", "-c", "echo $$; sleep 1000");
	(void)start(&s, 0, "/bin/sleep", "1000");
	pid = atoi(line_of(job));
	assert_true(pid > 0 && lives(pid));
	wait_for(serve_stats(&s).running == 2);
	/* one that was not even sent */
	(void)start(&s, 0, "/bin/sleep", "1000");
	serve_client_down(&s);
	wait_for(!lives(pid));
	wait_for(!serve_stats(&s).running);
	wait_for(!serve_stats(&s).jobs);
	serve_client_up(&s);
}

/* The result of one that ended while nobody was attached */
static void result_waits(void **state)
{
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	struct rgate_spawn_job *job;
	uint64_t id;

	(void)state;
	job = start(&s, RGATE_SPAWN_KEEP, "/bin/sh", "-c", "echo on; read x; echo off; exit 9");
	assert_string_equal(line_of(job), "on");
	id = rgate_spawn_job_id(job);
	assert_int_equal(rgate_spawn_job_write(job, "\n", 1, MS), 1);
	assert_int_equal(rgate_spawn_job_detach(job, MS), 0);
	wait_for(!serve_stats(&s).running);
	assert_int_equal(rgate_spawn_attach(s.spawn, id, 0, &job), 0);
	assert_int_equal(rgate_spawn_job_wait(job, &r, MS), 0);
	assert_int_equal(r.exit_code, 9);
	rgate_spawn_job_close(job);
	wait_for(!serve_stats(&s).jobs);
}

struct listed {
	unsigned int n;
	uint64_t id;
	char command[129];
};

static int count(void *ctx, const struct rgate_spawn_info *info)
{
	struct listed *l = ctx;

	l->n++;
	assert_true(info->id > l->id);
	l->id = info->id;
	memcpy(l->command, info->command, sizeof(l->command));
	return 0;
}

static void listed_and_killed(void **state)
{
	struct rgate_spawn_job *job[150];
	struct listed l = { 0 };
	unsigned int i;

	(void)state;
	assert_int_equal(rgate_spawn_list(s.spawn, count, &l, MS), 0);
	assert_int_equal(l.n, 0);
	for (i = 0; i < ARRAY_LEN(job); i++)
		job[i] = start(&s, 0, "/bin/sleep", "1000");
	wait_for((rgate_spawn_process(s.spawn), serve_stats(&s).running == ARRAY_LEN(job)));
	/* It tells of each, by and by. */
	for (i = 0; i < ARRAY_LEN(job); i++)
		wait_for((rgate_spawn_process(s.spawn), rgate_spawn_job_id(job[i])));
	assert_int_equal(rgate_spawn_list(s.spawn, count, &l, MS), 0);
	assert_int_equal(l.n, ARRAY_LEN(job));
	assert_string_equal(l.command, "/bin/sleep 1000");
	for (i = 0; i < ARRAY_LEN(job); i++) {
		assert_int_equal(rgate_spawn_kill(s.spawn, rgate_spawn_job_id(job[i]), SIGTERM,
						  RGATE_SPAWN_TO_GROUP, MS), 0);
		assert_int_equal(end_of(job[i]).signal, SIGTERM);
	}
	assert_int_equal(rgate_spawn_kill(s.spawn, 12345, SIGTERM, RGATE_SPAWN_TO_GROUP, MS),
			 -ENOENT);
	wait_for(!serve_stats(&s).jobs);
	memset(&l, 0, sizeof(l));
	assert_int_equal(rgate_spawn_list(s.spawn, count, &l, MS), 0);
	assert_int_equal(l.n, 0);
}

/* A client that starts two processes, tells their numbers, and dies */
static int doomed(int sock, void *arg)
{
	struct serve *own = arg;
	struct rgate_spawn_job *job[2];
	struct rgate_spawn_result r[2];
	int i;

	serve_client_up(own);
	for (i = 0; i < 2; i++) {
		job[i] = start(own, i ? RGATE_SPAWN_KEEP : 0, "/bin/sh", "-c",
			       "trap '' TERM HUP; echo on; read x; echo got $x; exit 8");
		unit_require(!strcmp(line_of(job[i]), "on"));
		r[i] = result_of(job[i]);
	}
	unit_require(write(sock, r, sizeof(r)) == sizeof(r));
	pause();
	return 0;
}

static void client_dies(void **state)
{
	struct rgate_spawn_result r[2];
	struct rgate_spawn_job *job;
	int sock;
	pid_t pid;

	(void)state;
	serve_client_down(&s);
	pid = unit_fork(doomed, &s, &sock);
	assert_int_equal(read(sock, r, sizeof(r)), sizeof(r));
	assert_true(lives(r[0].pid) && lives(r[1].pid));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(sock);
	wait_for(!lives(r[0].pid));
	assert_true(lives(r[1].pid));
	/* The other one belongs to the node still. */
	serve_client_up(&s);
	assert_int_equal(rgate_spawn_attach(s.spawn, r[1].id, 0, &job), 0);
	assert_int_equal(rgate_spawn_job_write(job, "x\n", 2, MS), 2);
	assert_string_equal(line_of(job), "got x");
	assert_int_equal(end_of(job).exit_code, 8);
	assert_int_equal(serve_stats(&s).killed, 1);
}

/* At different points of a process's life */
static void server_dies(void **state)
{
	static const char *const scripts[] = {
		"exec sleep 1000", "yes", "read x", "setsid sleep 1000 & wait",
		"exec >&- 2>&-; sleep 1000",
	};
	struct rgate_spawn_job *job[ARRAY_LEN(scripts)];
	struct rgate_spawn_result r;
	pid_t pid[ARRAY_LEN(scripts)];
	unsigned int i, k;
	uint64_t began;

	(void)state;
	unit_not_for_tsan(UNIT_TSAN_CHILD);
	for (k = 0; k < 4; k++) {
		for (i = 0; i < ARRAY_LEN(job); i++)
			job[i] = start(&s, 0, "/bin/sh", "-c", scripts[i]);
		/* asked for, or accepted, or running */
		for (i = 0; k && i < ARRAY_LEN(job); i++)
			wait_for((rgate_spawn_process(s.spawn), k < 2 ||
				  result_of(job[i]).state == RGATE_SPAWN_RUNNING));
		for (i = 0; i < ARRAY_LEN(job); i++)
			pid[i] = result_of(job[i]).pid;
		serve_stop(&s, SIGKILL);
		/* the spawner sees it, and kills them */
		for (i = 0; i < ARRAY_LEN(job); i++)
			wait_for(!pid[i] || !lives(pid[i]));
		if (k == 3)
			serve_start(&s);	/* another incarnation */
		began = unit_now_ns();
		for (i = 0; i < ARRAY_LEN(job); i++) {
			r = end_of(job[i]);
			if (r.state != RGATE_SPAWN_ERROR || r.stage != RGATE_SPAWN_AT_LOST)
				print_message("# %u: state %u stage %u error %d %s\n", i, r.state,
					      r.stage, r.error, r.reason);
			assert_int_equal(r.state, RGATE_SPAWN_ERROR);
			assert_int_equal(r.stage, RGATE_SPAWN_AT_LOST);
			assert_true(r.error == -ENOTCONN || r.error == -ECONNRESET);
		}
		assert_true(unit_now_ns() - began < 10 * SILENT_MS * 1000000ULL);
		if (k < 3)
			serve_start(&s);
		assert_int_equal(rgate_peer_wait_up(s.peer, MS), 0);
	}
	r = end_of(start(&s, 0, "/bin/sh", "-c", "exit 3"));
	assert_int_equal(r.exit_code, 3);
}

static pid_t spawner_of(pid_t server)
{
	char path[64];
	int pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)server, (int)server);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &pid), 1);
	fclose(f);
	return pid;
}

static void spawner_dies(void **state)
{
	struct rgate_spawn_job *job = start(&s, 0, "/bin/sh", "-c", "echo on; exec sleep 1000");
	struct rgate_spawn_result r;
	pid_t pid;

	(void)state;
	assert_string_equal(line_of(job), "on");
	pid = result_of(job).pid;
	kill(spawner_of(s.server), SIGKILL);
	r = end_of(job);
	assert_int_equal(r.stage, RGATE_SPAWN_AT_LOST);
	assert_int_equal(r.error, -EPIPE);
	wait_for(!lives(pid));
	r = end_of(start(&s, 0, "/bin/true"));
	assert_int_equal(r.state, RGATE_SPAWN_ERROR);
	assert_int_equal(r.error, -EPIPE);
}

/* A server that stands still for longer than it may, and goes on */
static void connection_lost(void **state)
{
	struct rgate_spawn_job *job[2];
	struct rgate_spawn_result r;
	struct rgate_peer_info info = { .sz = sizeof(info) };
	uint64_t expect = 1;
	char text[32];
	const char *line;
	int round;

	(void)state;
	job[0] = start(&s, 0, "/bin/sh", "-c", "seq 1 60000; exit 2");
	job[1] = start(&s, 0, "/bin/sh", "-c", "while read x; do echo $x; done; exit 4");
	for (round = 0; round < 2; round++) {
		for (; expect < 20000 * (uint64_t)(round + 1); expect++) {
			snprintf(text, sizeof(text), "%llu", (unsigned long long)expect);
			assert_string_equal(line_of(job[0]), text);
		}
		assert_int_equal(rgate_spawn_job_write(job[1], "before\n", 7, MS), 7);
		kill(s.server, SIGSTOP);
		wait_for((rgate_spawn_process(s.spawn),
			  !rgate_peer_info(s.peer, &info) && info.state != RGATE_PEER_UP));
		assert_int_equal(rgate_spawn_job_write(job[1], "during\n", 7, MS), 7);
		kill(s.server, SIGCONT);
		line = line_of(job[1]);
		assert_string_equal(line, "before");
		assert_string_equal(line_of(job[1]), "during");
	}
	for (; expect <= 60000; expect++) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)expect);
		assert_string_equal(line_of(job[0]), text);
	}
	r = end_of(job[0]);
	assert_int_equal(r.exit_code, 2);
	assert_int_equal(rgate_spawn_job_close_stdin(job[1]), 0);
	r = end_of(job[1]);
	assert_int_equal(r.exit_code, 4);
}

static uint64_t used_buffers(void)
{
	struct rgate_pool_stats ps = { .sz = sizeof(ps) };

	assert_int_equal(rgate_pool_stats(rgate_node_pool(s.node), &ps), 0);
	return ps.used_buffers;
}

/* Closed while there is no connection: the next one brings word of that. */
static void closed_while_down(void **state)
{
	const uint64_t before = used_buffers();
	struct rgate_spawn_job *job;
	pid_t pid;

	(void)state;
	job = start(&s, 0, "/bin/sh", "-c", "echo on; exec sleep 1000");
	assert_string_equal(line_of(job), "on");
	pid = result_of(job).pid;
	kill(s.server, SIGSTOP);
	wait_for(peer_state(s.peer) != RGATE_PEER_UP);
	rgate_spawn_process(s.spawn);
	rgate_spawn_job_close(job);
	assert_true(lives(pid));
	kill(s.server, SIGCONT);
	assert_int_equal(rgate_peer_wait_up(s.peer, MS), 0);
	wait_for((rgate_spawn_process(s.spawn), !lives(pid)));
	wait_for((rgate_spawn_process(s.spawn), !serve_stats(&s).jobs));
	wait_for((rgate_spawn_process(s.spawn), used_buffers() <= before));
	assert_int_equal(end_of(start(&s, 0, "/bin/true")).exit_code, 0);
}

static int up(void **state)
{
	(void)state;
	serve_up(&s, NULL);
	return 0;
}

static int up_short(void **state)
{
	s.reconnect_ms = SILENT_MS;
	return up(state);
}

static int up_patient(void **state)
{
	s.reconnect_ms = 10 * SILENT_MS;
	s.silent_ms = SILENT_MS;
	return up(state);
}

static int up_without(void **state)
{
	s.cgroup = "";
	return up_short(state);
}

static int down(void **state)
{
	(void)state;
	serve_down(&s);
	s.cgroup = NULL;
	s.reconnect_ms = s.silent_ms = 0;
	return 0;
}

#define WITH(f) { #f, f, up_short, down, NULL }
#define WITHOUT(f) { #f " (no control groups)", f, up_without, down, NULL }

static const struct CMUnitTest tests[] = {
	WITH(signals),
	WITHOUT(signals),
	WITH(leftovers),
	WITHOUT(leftovers),
	cmocka_unit_test_setup_teardown(closed_early, up, down),
	cmocka_unit_test_setup_teardown(closed_with_jobs, up, down),
	cmocka_unit_test_setup_teardown(attach_again, up, down),
	cmocka_unit_test_setup_teardown(signal_attached, up, down),
	cmocka_unit_test_setup_teardown(result_waits, up, down),
	cmocka_unit_test_setup_teardown(listed_and_killed, up, down),
	WITH(client_dies),
	WITHOUT(client_dies),
	WITH(server_dies),
	WITHOUT(server_dies),
	cmocka_unit_test_setup_teardown(spawner_dies, up, down),
	cmocka_unit_test_setup_teardown(connection_lost, up_patient, down),
	cmocka_unit_test_setup_teardown(closed_while_down, up_patient, down),
};

UNIT_MAIN(tests)
