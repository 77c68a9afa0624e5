// SPDX-License-Identifier: MIT OR GPL-2.0
/* Processes on another node that a program of this machine asks for, by two daemons. */
#include "ringgated.h"

#include <endian.h>
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ringgate/rgate_daemon.h>
#include <ringgate/rgate_session.h>
#include <ringgate/rgate_spawn.h>

#include "nodes.h"

#define MANY		100	/* processes at once */
#define PUMPED		(300U << 10)	/* bytes through one: some rings full */

/* The session's memory */
#define RECORD		0U
#define STATUS		(64U << 10)
#define FROM		(128U << 10)
#define TO		(192U << 10)
#define PIECE		(20U << 10)
#define STATUSES	(256U << 10)	/* MANY of them, 512 bytes each */
#define MEMORY		(512U << 10)

static struct ringgated r;	/* node 0, that is asked */
static pid_t runner;		/* node 1, that runs */
static int word[2];		/* [1]: a client's, to say something to the test */
static int go[2];		/* [1]: the test's, for a client that waits */

/* For children, where an assertion of cmocka's would run the parent's tests */
#define need(cond)							\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #cond); \
			return 1;					\
		}							\
	} while (0)

/* ---- The daemons ---- */

static void write_file(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", r.dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0600), 0);
}

static void tools_dir(char *path, size_t len)
{
	ssize_t n = readlink("/proc/self/exe", path, len - 1);

	assert_true(n > 0);
	path[n] = '\0';
	strcpy(strstr(path, "/tests/net/"), "/tools");
}

/* Node 1 gets a key, too. */
static void two_nodes(void)
{
	char text[512], tools[256], command[1200];

	tools_dir(tools, sizeof(tools));
	snprintf(text, sizeof(text), "provider local\nnode 0 gateway %s/n0\n"
		 "node 1 compute %s/n1\n", r.dir, r.dir);
	write_file("cluster", text);
	snprintf(command, sizeof(command), "cd %s && rm -f *.key && for n in 0 1; do "
		 "%s/ringgate cluster keygen -C cluster -n $n >pub$n || exit 1; done; "
		 "cat pub0 pub1 >>cluster; chmod 644 cluster", r.dir, tools);
	assert_int_equal(system(command), 0);
}

static _Noreturn void run_node(void)
{
	char path[300], cluster[96], socket[96], spawn[128], log[96];

	tools_dir(path, sizeof(path) - 16);
	strcat(path, "/ringgated");
	snprintf(cluster, sizeof(cluster), "%s/cluster", r.dir);
	snprintf(socket, sizeof(socket), "%s/control1", r.dir);
	snprintf(spawn, sizeof(spawn), "policy %s/spawn", r.dir);
	snprintf(log, sizeof(log), "%s/log1", r.dir);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || !freopen(log, "ae", stderr))
		_exit(120);
	execl(path, "ringgated", "-c", "/dev/null", "-C", cluster, "-n", "1", "-s", socket,
	      "--pool", "16M", "--spawn", spawn, NULL);
	_exit(121);
}

static bool sees_other(const char *control)
{
	char text[RGATE_DAEMON_ANSWER];

	return !rgate_daemon_call(control, "status json", text, sizeof(text)) &&
	       strstr(text, "\"state\": \"up\"");
}

static void start_runner(void)
{
	char control[96];

	runner = fork();
	assert_true(runner >= 0);
	if (!runner)
		run_node();
	snprintf(control, sizeof(control), "%s/control1", r.dir);
	wait_for(sees_other(control) && sees_other(r.control));
}

/* Its wait status */
static int stop_runner(int sig)
{
	const pid_t pid = runner;
	int status = 0;

	runner = 0;
	if (!pid)
		return 0;
	kill(pid, sig);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void daemons_up(const char *requests)
{
	const struct passwd *pw = getpwuid(geteuid());
	char text[512];

	assert_non_null(pw);
	snprintf(text, sizeof(text), "node 0 user %s\nallow 0 /bin/cat\nallow 0 /bin/sh\n"
		 "allow 0 /bin/sleep\nallow 0 /bin/there-is-none\nmax-running 1000\n",
		 pw->pw_name);
	write_file("spawn", text);
	ringgated_start(&r, requests, -1);
	start_runner();
	assert_int_equal(pipe(word), 0);
	assert_int_equal(pipe(go), 0);
}

static void daemons_down(void)
{
	close(word[0]);
	close(word[1]);
	close(go[0]);
	close(go[1]);
	assert_int_equal(ringgated_stop(&r, SIGTERM), 0);
	assert_int_equal(stop_runner(SIGTERM), 0);
}

/* ---- A client, in a child ---- */

static struct rgate_session *session;
static uint8_t *mem;

static int session_open(void)
{
	const struct rgate_session_opts o = RGATE_OPTS(rgate_session_opts, .path = r.requests,
						       .where = RGATE_SESSION_DAEMON,
						       .memory = MEMORY, .timeout_ms = MS);
	int err = rgate_session_open(&session, &o);

	mem = err ? NULL : rgate_session_memory(session, NULL);
	return err;
}

/* 0, or why there is none */
static int next(struct rgate_completion *c)
{
	int n;

	while (!(n = rgate_session_poll(session, c, 1))) {
		n = rgate_session_wait(session, (int)MS);
		if (n <= 0)
			return n ? n : -ETIMEDOUT;
	}
	return n < 0 ? n : 0;
}

/* One request and its completion; its result */
static int ask(struct rgate_request q, uint64_t *value)
{
	struct rgate_completion c;
	int err;

	q.cookie = 1000000;
	err = rgate_session_submit(session, &q);
	if (!err)
		err = next(&c);
	if (err)
		return err;
	if (value)
		*value = c.value;
	return c.cookie == q.cookie ? c.result : -EBADMSG;
}

#define ASK(...) ask((struct rgate_request){ __VA_ARGS__ }, NULL)

/* The result of a START with input; the handle */
static int start_with(uint64_t node, const char *const *argv, uint32_t output, uint32_t *handle)
{
	const struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.cwd = "/", .stdin_mode = RGATE_SPAWN_IN_STREAM, .stdout_mode = output,
		.stderr_mode = output);
	const int64_t len = rgate_spawn_record_encode(&req, mem + RECORD, STATUS - RECORD);
	const struct rgate_request start = { .op = RGATE_REQ_SPAWN_START, .a0 = node,
					     .off = RECORD, .len = (uint32_t)len };
	uint64_t value = 0;
	int err;

	if (len < 0)
		return (int)len;
	err = ask(start, &value);
	*handle = (uint32_t)value;
	return err;
}

static int start_at(uint64_t node, const char *const *argv, uint32_t *handle)
{
	return start_with(node, argv, RGATE_SPAWN_OUT_STREAM, handle);
}

#define START(handle, ...) start_at(1, (const char *const[]){ __VA_ARGS__, NULL }, handle)

static const struct rgate_spawn_status *status_at(uint32_t off)
{
	return (const void *)(mem + off);
}

static int wait_end(uint32_t handle)
{
	memset(mem + STATUS, 0, sizeof(struct rgate_spawn_status));
	return ASK(.op = RGATE_REQ_SPAWN_WAIT, .handle = handle, .off = STATUS,
		   .len = sizeof(struct rgate_spawn_status));
}

static int read_some(uint32_t handle, int stream)
{
	return ASK(.op = RGATE_REQ_SPAWN_READ, .handle = handle, .a0 = (uint64_t)stream,
		   .off = FROM, .len = PIECE);
}

static int write_some(uint32_t handle, const char *text)
{
	strcpy((char *)mem + TO, text);
	return ASK(.op = RGATE_REQ_SPAWN_WRITE, .handle = handle, .off = TO,
		   .len = (uint32_t)strlen(text));
}

/* Waits until it does */
static int runs(uint32_t handle)
{
	const uint64_t end = unit_now_ns() + MS * 1000000ULL;

	while (unit_now_ns() < end) {
		need(!ASK(.op = RGATE_REQ_SPAWN_STATUS, .handle = handle, .off = STATUS,
			  .len = sizeof(struct rgate_spawn_status)));
		if (le64toh(status_at(STATUS)->state) == RGATE_SPAWN_RUNNING)
			return 0;
		usleep(1000);
	}
	return 1;
}

/* @fn in a child, which is nobody where that can be; 0: all was as wanted */
static pid_t begin(int (*fn)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	if (!geteuid() && (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)))
		_exit(99);
	_exit(fn());
}

static void as_client(int (*fn)(void))
{
	pid_t pid = begin(fn);
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

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
		need(!next(&c) && c.result >= 0);
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
	need(!runs(h));
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
	struct rgate_spawn_request keep = RGATE_OPTS(rgate_spawn_request, .argv = cat,
						     .flags = RGATE_SPAWN_KEEP);
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
	q.len = (uint32_t)rgate_spawn_record_encode(&keep, mem + RECORD, STATUS);
	need(ask(q, NULL) == -EOPNOTSUPP);
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
	uint32_t handle[MANY], i;
	char script[32];

	need(!session_open());
	for (i = 0; i < MANY; i++) {
		snprintf(script, sizeof(script), "read x; exit %u", i);
		argv[2] = script;
		need(!start_with(1, argv, RGATE_SPAWN_OUT_NONE, &handle[i]));
	}
	for (i = 0; i < MANY; i++) {
		q.cookie = i;
		q.handle = handle[i];
		q.off = STATUSES + i * 512;
		need(!rgate_session_submit(session, &q));
	}
	for (i = 0; i < MANY; i++)
		need(!rgate_session_submit(session, &(struct rgate_request){
			.op = RGATE_REQ_SPAWN_CLOSE_STDIN, .flags = RGATE_REQ_NO_COMPLETION,
			.cookie = MANY, .handle = handle[i] }));
	for (i = 0; i < MANY; i++) {
		need(!next(&c) && c.cookie < MANY && !seen[c.cookie] && !c.result);
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

static pid_t hear_pid(void)
{
	struct pollfd p = { .fd = word[0], .events = POLLIN };
	char text[16] = "";
	pid_t pid;

	assert_int_equal(poll(&p, 1, (int)MS), 1);
	assert_true(read(word[0], text, sizeof(text) - 1) > 1);
	pid = atoi(text);
	assert_true(pid > 1);
	return pid;
}

static bool is_gone(pid_t pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

/* With its client a process ends, and with the daemon that asked for it. */
static void clients_die(void **state)
{
	pid_t client, pid;

	(void)state;
	daemons_up("allow any spawn\n");
	client = begin(stays);
	pid = hear_pid();
	assert_int_equal(kill(pid, 0), 0);
	kill(client, SIGKILL);
	assert_int_equal(waitpid(client, NULL, 0), client);
	wait_for(is_gone(pid));
	wait_for(!ringgated_count(&r, "handles") && !ringgated_count(&r, "sessions"));
	client = begin(goes);
	pid = hear_pid();
	wait_for(is_gone(pid));
	assert_int_equal(waitpid(client, NULL, 0), client);
	client = begin(stays);
	pid = hear_pid();
	assert_int_equal(kill(pid, 0), 0);
	daemons_down();
	wait_for(is_gone(pid));
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
		need(!next(&c) && (c.cookie == 5 || c.cookie == 7));
		need(c.result == (c.cookie == 5 ? -ECANCELED : 0));
		got |= 1U << c.cookie;
	}
	need(got == (1U << 5 | 1U << 7));
	wait.deadline_us = 1000;
	need(!rgate_session_submit(session, &wait));
	need(!next(&c) && c.cookie == 5 && c.result == -ETIMEDOUT);
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
		need(!next(&c) && (c.cookie == 6 || c.cookie == 8) && c.result == 4);
	need(!memcmp(mem + FROM, "late", 4));
	need(!rgate_session_cancel(session, 10, 11));
	for (i = 0; i < 2; i++)
		need(!next(&c) && (c.cookie == 10 || c.cookie == 11));
	need(!rgate_session_submit(session, &read));
	need(!rgate_session_submit(session, &(struct rgate_request){
		.op = RGATE_REQ_SPAWN_CLOSE, .cookie = 9, .handle = h }));
	for (i = 0; i < 2; i++) {
		need(!next(&c) && (c.cookie == 6 || c.cookie == 9));
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

static int await_byte(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte;

	return poll(&p, 1, (int)MS) == 1 && read(fd, &byte, 1) == 1 ? 0 : 1;
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
	/* what it is asked before it serves may be lost */
	need(!await_byte(go[0]));
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
	client = begin(outlives_node);
	assert_int_equal(poll(&p, 1, (int)MS), 1);
	(void)stop_runner(SIGKILL);
	start_runner();
	assert_int_equal(write(go[1], "g", 1), 1);
	assert_int_equal(waitpid(client, &status, 0), client);
	assert_int_equal(status, 0);
	daemons_down();
}

static int up(void **state)
{
	(void)state;
	if (!ringgated_built())
		unit_skip("ringgated is not built");
	ringgated_make(&r);
	two_nodes();
	return 0;
}

static int down(void **state)
{
	(void)state;
	(void)stop_runner(SIGKILL);
	ringgated_free(&r);
	return 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(input_and_output, up, down),
	cmocka_unit_test_setup_teardown(streams_and_ends, up, down),
	cmocka_unit_test_setup_teardown(refusals, up, down),
	cmocka_unit_test_setup_teardown(hundred, up, down),
	cmocka_unit_test_setup_teardown(clients_die, up, down),
	cmocka_unit_test_setup_teardown(cancelled, up, down),
	cmocka_unit_test_setup_teardown(node_restarts, up, down),
};

UNIT_MAIN(tests)
