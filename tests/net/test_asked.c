// SPDX-License-Identifier: MIT OR GPL-2.0
/* Processes on another node that a program of this machine asks for, by two daemons. */
#include "asked.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nodes.h"

#define MANY		100	/* processes at once */
#define PUMPED		(300U << 10)	/* bytes through one: some rings full */

/* ---- What it asks for ---- */

static int in_and_out(void)
{
	const struct rgate_spawn_status *st;
	uint32_t h;

	need(!session_open());
	st = status_at(STATUS);
	need(!START(&h, "/bin/cat"));
	need(write_some(h, "hello\n") == 6);
	need(read_some(h, 1) == 6);
	need(!memcmp(mem + FROM, "hello\n", 6));
	need(!ASK(.op = RGATE_REQ_SPAWN_STATUS, .handle = h, .off = STATUS,
		  .len = sizeof(*st)));
	need(le64toh(st->state) == RGATE_SPAWN_RUNNING && le64toh(st->produced[0]) == 6);
	need(le64toh(st->id) && le32toh(st->pid) > 1);
	need(!ASK(.op = RGATE_REQ_SPAWN_CLOSE_STDIN, .handle = h));
	need(write_some(h, "more") == -EPIPE);
	need(!read_some(h, 1));
	need(!read_some(h, 2));
	need(!wait_end(h));
	need(le64toh(st->state) == RGATE_SPAWN_COMPLETE && !st->exit_code && !st->signal);
	need(le64toh(st->taken) == 6 && st->started_ns && st->exited_ns);
	/* its end is there for whoever asks again */
	need(!wait_end(h));
	need(!ASK(.op = RGATE_REQ_SPAWN_WAIT, .handle = h));
	need(!read_some(h, 1));
	need(!ASK(.op = RGATE_REQ_SPAWN_CLOSE, .handle = h));
	need(ASK(.op = RGATE_REQ_SPAWN_CLOSE, .handle = h) == -EBADF);
	need(wait_end(h) == -EBADF);
	return 0;
}

static void input_and_output(void **state)
{
	(void)state;
	daemons_up("allow any spawn\n");
	as_client(in_and_out);
	wait_for(!ringgated_count(&r, "handles"));
	daemons_down();
}

static uint8_t pattern(uint32_t at)
{
	return (uint8_t)(at * 31 + (at >> 11));
}

static int submit_write(uint32_t h, uint32_t at)
{
	const uint32_t left = PUMPED - at;
	struct rgate_request q = { .op = RGATE_REQ_SPAWN_WRITE, .cookie = 1, .handle = h,
				   .off = TO, .len = left < PIECE ? left : PIECE };
	uint32_t i;

	if (!left) {
		q.op = RGATE_REQ_SPAWN_CLOSE_STDIN;
		q.off = q.len = 0;
	}
	for (i = 0; i < q.len; i++)
		mem[TO + i] = pattern(at + i);
	return rgate_session_submit(session, &q);
}

static int submit_read(uint32_t h)
{
	return rgate_session_submit(session, &(struct rgate_request){
		.op = RGATE_REQ_SPAWN_READ, .cookie = 2, .handle = h, .a0 = 1, .off = FROM,
		.len = PIECE });
}

/* More than fits anywhere on the way: both ends wait for each other again and again. */
static int pump(void)
{
	uint32_t h, in = 0, out = 0, i;
	struct rgate_completion c;
	bool closed = false;

	need(!session_open());
	need(!START(&h, "/bin/cat"));
	need(!submit_write(h, 0) && !submit_read(h));
	for (;;) {
		need(!next_completion(&c) && c.result >= 0);
		if (c.cookie == 1) {
			in += (uint32_t)c.result;
			need(closed || !submit_write(h, in));
			closed = in == PUMPED;
			continue;
		}
		if (!c.result)
			break;
		for (i = 0; i < (uint32_t)c.result; i++)
			need(mem[FROM + i] == pattern(out + i));
		out += (uint32_t)c.result;
		need(!submit_read(h));
	}
	need(out == PUMPED && closed);
	need(!wait_end(h));
	return 0;
}

static int ends(void)
{
	const struct rgate_spawn_status *st;
	uint32_t h;

	need(!session_open());
	st = status_at(STATUS);
	need(!START(&h, "/bin/sh", "-c", "echo bad >&2; exit 7"));
	need(!wait_end(h));
	need(le32toh(st->exit_code) == 7 && !st->signal);
	need(read_some(h, 2) == 4 && !memcmp(mem + FROM, "bad\n", 4));
	need(!read_some(h, 1));
	need(!START(&h, "/bin/sleep", "1000"));
	need(ASK(.op = RGATE_REQ_SPAWN_SIGNAL, .handle = h, .a0 = 1ULL << 32) == -EINVAL);
	need(ASK(.op = RGATE_REQ_SPAWN_SIGNAL, .handle = h, .a0 = 0) == -EINVAL);
	need(ASK(.op = RGATE_REQ_SPAWN_SIGNAL, .handle = h, .a0 = SIGTERM, .a1 = 3) == -EINVAL);
	/* what comes before its turn cancels it */
	need(!wait_running(h));
	need(!ASK(.op = RGATE_REQ_SPAWN_SIGNAL, .handle = h, .a0 = SIGTERM));
	need(!wait_end(h));
	need(le32toh(st->signal) == SIGTERM);
	need(ASK(.op = RGATE_REQ_SPAWN_SIGNAL, .handle = h, .a0 = SIGTERM) == -ESRCH);
	return pump();
}

static void streams_and_ends(void **state)
{
	(void)state;
	daemons_up("allow any spawn\n");
	as_client(ends);
	wait_for(!ringgated_count(&r, "handles"));
	daemons_down();
}

/* Its node's policy says what may run. */
static int refused_there(void)
{
	const struct rgate_spawn_status *st;
	uint32_t h;

	need(!session_open());
	st = status_at(STATUS);
	need(!START(&h, "/bin/ls"));
	need(wait_end(h) == -EACCES);
	need(le64toh(st->state) == RGATE_SPAWN_ERROR && le32toh(st->error) == EACCES);
	need(le32toh(st->stage) == RGATE_SPAWN_AT_REQUEST && st->reason[0]);
	need(read_some(h, 1) <= 0);
	need(!START(&h, "/bin/there-is-none"));
	need(wait_end(h) == -ENOENT);
	need(le32toh(st->stage) == RGATE_SPAWN_AT_EXEC);
	return 0;
}

/* What is wrong with the request itself */
static int refused_here(void)
{
	static const char *const cat[] = { "/bin/cat", NULL };
	struct rgate_request q = { .op = RGATE_REQ_SPAWN_START, .a0 = 1, .off = RECORD };
	uint32_t h;

	need(start_at(0, cat, &h) == -ENXIO);		/* itself */
	need(start_at(7, cat, &h) == -ENXIO);
	need(start_at(UINT64_MAX, cat, &h) == -ENXIO);
	need(ask(q, NULL) == -EINVAL);
	q.len = 16;
	need(ask(q, NULL) == -EPROTO);
	memset(mem + RECORD, 0xff, 512);
	q.len = 512;
	need(ask(q, NULL) == -EPROTO);
	need(!START(&h, "/bin/cat"));
	need(ASK(.op = RGATE_REQ_SPAWN_READ, .handle = h, .a0 = 3, .off = FROM, .len = 9) ==
	     -EINVAL);
	need(ASK(.op = RGATE_REQ_SPAWN_READ, .handle = h, .a0 = 1) == -EINVAL);
	need(ASK(.op = RGATE_REQ_SPAWN_WRITE, .handle = h) == -EINVAL);
	need(ASK(.op = RGATE_REQ_SPAWN_STATUS, .handle = h, .off = STATUS, .len = 8) == -EINVAL);
	need(ASK(.op = RGATE_REQ_SPAWN_WAIT, .handle = h, .off = STATUS + 4,
		 .len = sizeof(struct rgate_spawn_status)) == -EINVAL);
	need(ASK(.op = RGATE_REQ_SPAWN_CLOSE) == -EBADF);
	return 0;
}

static int both_refuse(void)
{
	return refused_there() || refused_here();
}

static int not_allowed(void)
{
	uint32_t h;

	need(!session_open());
	need(START(&h, "/bin/cat") == -EACCES);
	return 0;
}

/* Who has as many handles as he may starts nothing, not even for a moment. */
static int no_handle_left(void)
{
	uint32_t h, none;

	need(!session_open());
	need(!START(&h, "/bin/cat"));
	need(START(&none, "/bin/sh", "-c", "exit 7") == -EDQUOT);
	need(!ASK(.op = RGATE_REQ_SPAWN_CLOSE_STDIN, .handle = h));
	need(!wait_end(h));
	return 0;
}

static bool runner_has_said(const char *what)
{
	char path[128], line[512];
	bool said = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/log1", r.dir);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		said = said || strstr(line, what);
	fclose(f);
	return said;
}

static void over_quota(void **state)
{
	(void)state;
	if (geteuid())
		unit_skip("needs root, to be another user");
	daemons_up("allow any spawn\nlimit any handles 1\n");
	as_client(no_handle_left);
	assert_true(runner_has_said("/bin/cat"));
	assert_false(runner_has_said("/bin/sh"));
	daemons_down();
}

/*
 * One runs, two wait, which is half of those that may; for one more its node has no room. That is
 * said as -EAGAIN, and it is over all the same.
 */
static int leave_refused(void)
{
	uint32_t h[4], i;

	need(!session_open());
	need(!START(&h[0], "/bin/cat"));
	need(!wait_running(h[0]));
	for (i = 1; i < 4; i++)
		need(!START(&h[i], "/bin/cat"));
	need(wait_end(h[3]) == -EAGAIN);
	need(ASK(.op = RGATE_REQ_SPAWN_DETACH, .handle = h[3]) == -EAGAIN);
	need(le32toh(status_at(STATUS)->state) == RGATE_SPAWN_ERROR);
	need(!ASK(.op = RGATE_REQ_SPAWN_CLOSE, .handle = h[0]));
	need(!wait_running(h[1]));
	return 0;
}

static void left_without_room(void **state)
{
	const struct passwd *pw = getpwuid(geteuid());
	char text[256];

	(void)state;
	assert_non_null(pw);
	daemons_up("allow any spawn\n");
	stop_runner(SIGTERM);
	snprintf(text, sizeof(text), "node 0 user %s max-running 1 max-queued 4\n"
		 "allow 0 /bin/cat\n", pw->pw_name);
	asked_write_file("spawn", text);
	start_runner();
	as_client(leave_refused);
	daemons_down();
}

static void refusals(void **state)
{
	(void)state;
	daemons_up("allow any spawn\n");
	as_client(both_refuse);
	if (!geteuid()) {
		ringgated_reload(&r, "allow any log\n");
		as_client(not_allowed);
	}
	daemons_down();
}

/* All are there at once: none ends before its input does. */
static int many(void)
{
	struct rgate_request q = { .op = RGATE_REQ_SPAWN_WAIT,
				   .len = sizeof(struct rgate_spawn_status) };
	struct rgate_completion c;
	bool seen[MANY] = { false };
	const char *argv[4] = { "/bin/sh", "-c" };
	const uint32_t n = unit_rounds_or(MANY, MANY / 5);
	uint32_t handle[MANY], i;
	char script[32];

	need(!session_open());
	for (i = 0; i < n; i++) {
		snprintf(script, sizeof(script), "read x; exit %u", i);
		argv[2] = script;
		need(!start_with(1, argv, RGATE_SPAWN_OUT_NONE, &handle[i]));
	}
	for (i = 0; i < n; i++) {
		q.cookie = i;
		q.handle = handle[i];
		q.off = STATUSES + i * 512;
		need(!rgate_session_submit(session, &q));
	}
	for (i = 0; i < n; i++)
		need(!rgate_session_submit(session, &(struct rgate_request){
			.op = RGATE_REQ_SPAWN_CLOSE_STDIN, .flags = RGATE_REQ_NO_COMPLETION,
			.cookie = MANY, .handle = handle[i] }));
	for (i = 0; i < n; i++) {
		need(!next_completion(&c) && c.cookie < n && !seen[c.cookie] && !c.result);
		seen[c.cookie] = true;
		need(le32toh(status_at(STATUSES + (uint32_t)c.cookie * 512)->exit_code) ==
		     c.cookie);
	}
	return 0;
}

/* They do not get all of the daemon's memory, whose pool has 16 MiB, and give it back. */
static int crowd(void)
{
	static const char *const cat[] = { "/bin/cat", NULL };
	uint32_t h[16 * 8 + 1], n = 0, none;
	unsigned int round;
	int err = 0;

	need(!session_open());
	while (n < ARRAY_LEN(h) && !(err = START(&h[n], "/bin/cat")))
		n++;
	need(err == -ENOBUFS && n >= 32);
	/* what is left is not for one that needs less, either */
	need(start_with(1, cat, RGATE_SPAWN_OUT_NONE, &none) == -ENOBUFS);
	for (round = 0; round < 3; round++) {
		const uint64_t end = unit_now_ns() + MS * 1000000ULL;

		need(!ASK(.op = RGATE_REQ_SPAWN_CLOSE, .handle = h[--n]));
		/* its node lets go of it by and by */
		while ((err = START(&h[n], "/bin/cat")) == -ENOBUFS && unit_now_ns() < end)
			usleep(1000);
		need(!err);
		need(write_some(h[n], "z") == 1 && read_some(h[n], 1) == 1);
		n++;
	}
	return 0;
}

static int crowd_stays(void)
{
	uint32_t h[16 * 8 + 1], n = 0;

	need(!session_open());
	while (n < ARRAY_LEN(h) && !START(&h[n], "/bin/cat"))
		n++;
	need(n < ARRAY_LEN(h));
	need(write(word[1], "1\n", 2) == 2);
	pause();
	return 0;
}

static int as_many(void)
{
	uint32_t h;
	unsigned int n;

	need(!session_open());
	for (n = 0; n < 8; n++)
		need(!START(&h, "/bin/cat"));
	need(write_some(h, "z") == 1 && read_some(h, 1) == 1);
	return 0;
}

/* A user who has started all that he may leaves some for others. */
static void shares(void **state)
{
	struct pollfd p;
	pid_t client;
	int status;

	(void)state;
	if (geteuid())
		unit_skip("needs root, to be two users");
	daemons_up("allow any spawn\n");
	p = (struct pollfd){ .fd = word[0], .events = POLLIN };
	client = begin_client(crowd_stays);
	assert_int_equal(poll(&p, 1, (int)MS), 1);
	assert_int_equal(as_many(), 0);
	rgate_session_close(session);
	assert_int_equal(kill(client, SIGKILL), 0);
	assert_int_equal(waitpid(client, &status, 0), client);
	wait_for(!ringgated_count(&r, "handles"));
	daemons_down();
}

static void hundred(void **state)
{
	(void)state;
	daemons_up("allow any spawn\n");
	as_client(many);
	wait_for(!ringgated_count(&r, "handles"));
	as_client(crowd);
	wait_for(!ringgated_count(&r, "handles"));
	daemons_down();
}

/* Dies, or not, with processes that run, and requests that wait for them. */
static int say_pid_and(bool stay)
{
	uint32_t h;
	int n;

	need(!session_open());
	need(!START(&h, "/bin/sh", "-c", "echo $$; exec sleep 1000"));
	n = read_some(h, 1);
	need(n > 1 && mem[FROM + n - 1] == '\n');
	need(!rgate_session_submit(session, &(struct rgate_request){
		.op = RGATE_REQ_SPAWN_WAIT, .handle = h }));
	need(!rgate_session_submit(session, &(struct rgate_request){
		.op = RGATE_REQ_SPAWN_READ, .handle = h, .a0 = 1, .off = FROM + PIECE, .len = 9 }));
	need(write(word[1], mem + FROM, (size_t)n) == n);
	while (stay)
		pause();
	rgate_session_close(session);
	return 0;
}

static int stays(void)
{
	return say_pid_and(true);
}

static int goes(void)
{
	return say_pid_and(false);
}

/* With its client a process ends, and with the daemon that asked for it. */
static void clients_die(void **state)
{
	pid_t client, pid;

	(void)state;
	daemons_up("allow any spawn\n");
	client = begin_client(stays);
	pid = hear_pid();
	assert_int_equal(kill(pid, 0), 0);
	kill(client, SIGKILL);
	assert_int_equal(waitpid(client, NULL, 0), client);
	wait_for(process_gone(pid));
	wait_for(!ringgated_count(&r, "handles") && !ringgated_count(&r, "sessions"));
	client = begin_client(goes);
	pid = hear_pid();
	wait_for(process_gone(pid));
	assert_int_equal(waitpid(client, NULL, 0), client);
	client = begin_client(stays);
	pid = hear_pid();
	assert_int_equal(kill(pid, 0), 0);
	daemons_down();
	wait_for(process_gone(pid));
	kill(client, SIGKILL);
	assert_int_equal(waitpid(client, NULL, 0), client);
}

/* What waits is cancelled, by its client, its deadline, or with what it waits for. */
static int cancels(void)
{
	struct rgate_request wait = { .op = RGATE_REQ_SPAWN_WAIT, .cookie = 5 };
	struct rgate_request read = { .op = RGATE_REQ_SPAWN_READ, .cookie = 6, .a0 = 1,
				      .off = FROM, .len = PIECE };
	struct rgate_completion c;
	unsigned int i, got = 0;
	uint32_t h;

	need(!session_open());
	need(!START(&h, "/bin/cat"));
	wait.handle = read.handle = h;
	need(!rgate_session_submit(session, &wait) && !rgate_session_submit(session, &read));
	need(!rgate_session_cancel(session, 5, 7));
	for (i = 0; i < 2; i++) {
		need(!next_completion(&c) && (c.cookie == 5 || c.cookie == 7));
		need(c.result == (c.cookie == 5 ? -ECANCELED : 0));
		got |= 1U << c.cookie;
	}
	need(got == (1U << 5 | 1U << 7));
	wait.deadline_us = 1000;
	need(!rgate_session_submit(session, &wait));
	need(!next_completion(&c) && c.cookie == 5 && c.result == -ETIMEDOUT);
	/* the other still waits, and gets what comes, before those that came later */
	read.cookie = 10;
	read.off = FROM + PIECE;
	need(!rgate_session_submit(session, &read));
	read.cookie = 6;
	read.off = FROM;
	strcpy((char *)mem + TO, "late");
	need(!rgate_session_submit(session, &(struct rgate_request){
		.op = RGATE_REQ_SPAWN_WRITE, .cookie = 8, .handle = h, .off = TO, .len = 4 }));
	for (i = 0; i < 2; i++)
		need(!next_completion(&c) && (c.cookie == 6 || c.cookie == 8) && c.result == 4);
	need(!memcmp(mem + FROM, "late", 4));
	need(!rgate_session_cancel(session, 10, 11));
	for (i = 0; i < 2; i++)
		need(!next_completion(&c) && (c.cookie == 10 || c.cookie == 11));
	need(!rgate_session_submit(session, &read));
	need(!rgate_session_submit(session, &(struct rgate_request){
		.op = RGATE_REQ_SPAWN_CLOSE, .cookie = 9, .handle = h }));
	for (i = 0; i < 2; i++) {
		need(!next_completion(&c) && (c.cookie == 6 || c.cookie == 9));
		need(c.result == (c.cookie == 6 ? -ECANCELED : 0));
	}
	return 0;
}

static void cancelled(void **state)
{
	(void)state;
	daemons_up("allow any spawn\n");
	as_client(cancels);
	daemons_down();
}

/* A node that comes back as another process has forgotten what it ran. */
static int outlives_node(void)
{
	const struct rgate_spawn_status *st;
	uint32_t h;

	need(!session_open());
	st = status_at(STATUS);
	need(!START(&h, "/bin/cat"));
	need(write_some(h, "x") == 1 && read_some(h, 1) == 1);
	need(write(word[1], "1\n", 2) == 2);
	need(wait_end(h) == -ECONNRESET);
	need(le64toh(st->state) == RGATE_SPAWN_ERROR && st->reason[0]);
	need(le32toh(st->stage) == RGATE_SPAWN_AT_LOST);
	need(read_some(h, 1) == -EPIPE);
	/* what it is asked before it serves waits for that */
	need(!START(&h, "/bin/cat"));
	need(write_some(h, "y") == 1 && read_some(h, 1) == 1 && mem[FROM] == 'y');
	return 0;
}

static void node_restarts(void **state)
{
	struct pollfd p;
	pid_t client;
	int status;

	(void)state;
	daemons_up("allow any spawn\n");
	p = (struct pollfd){ .fd = word[0], .events = POLLIN };
	client = begin_client(outlives_node);
	assert_int_equal(poll(&p, 1, (int)MS), 1);
	(void)stop_runner(SIGKILL);
	start_runner();
	assert_int_equal(waitpid(client, &status, 0), client);
	assert_int_equal(status, 0);
	daemons_down();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, asked_up, asked_down)

static const struct CMUnitTest tests[] = {
	TEST(input_and_output),
	TEST(streams_and_ends),
	TEST(refusals),
	TEST(over_quota),
	TEST(left_without_room),
	TEST(shares),
	TEST(hundred),
	TEST(clients_die),
	TEST(cancelled),
	TEST(node_restarts),
};

UNIT_MAIN(tests)
