// SPDX-License-Identifier: MIT OR GPL-2.0
/* Sessions with a daemon: who gets one, what it may do, and what becomes of it. */
#include "ringgated.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ringgate/rgate_session.h>

#include "nodes.h"

#define KILLED		200	/* clients, of which so many are there at once: */
#define AT_ONCE		20

static struct ringgated r;

/* For children, where an assertion of cmocka's would run the parent's tests */
#define need(cond)							\
	do {								\
		if (!(cond)) {						\
			fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #cond); \
			return 1;					\
		}							\
	} while (0)

static struct rgate_session *session;

static int session_open(uint64_t memory)
{
	const struct rgate_session_opts o = RGATE_OPTS(rgate_session_opts, .path = r.requests,
						       .where = RGATE_SESSION_DAEMON,
						       .memory = memory, .timeout_ms = MS);

	return rgate_session_open(&session, &o);
}

/* One request and its completion; its result */
static int ask(const struct rgate_request *q, uint64_t *value)
{
	struct rgate_completion c;
	int n = rgate_session_submit(session, q);

	while (!n) {
		n = rgate_session_wait(session, (int)MS);
		if (n == 1)
			n = rgate_session_poll(session, &c, 1);
		else if (!n)
			return -ETIMEDOUT;
	}
	if (n < 0)
		return n;
	if (value)
		*value = c.value;
	return c.cookie == q->cookie ? c.result : -EBADMSG;
}

static int nop(void)
{
	const struct rgate_request q = { .op = RGATE_REQ_NOP, .cookie = 7, .a0 = 99 };
	uint64_t value = 0;
	int err = ask(&q, &value);

	return err ? err : value == 99 ? 0 : -EBADMSG;
}

static int tell(const char *text, size_t len)
{
	const struct rgate_request q = { .op = RGATE_REQ_LOG_WRITE, .cookie = 8,
					 .len = (uint32_t)len };

	memcpy(rgate_session_memory(session, NULL), text, len);
	return ask(&q, NULL);
}

/* @fn in a child of user nobody, by whom the policies below are tried; 0: all was as wanted */
static pid_t begin(int (*fn)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		_exit(99);
	_exit(fn());
}

static int end(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static void as_nobody(int (*fn)(void))
{
	assert_int_equal(end(begin(fn)), 0);
}

#define only_root()						\
	do {							\
		if (geteuid())					\
			unit_skip("needs root, to be others");	\
	} while (0)

static int no_session(void)
{
	need(session_open(0) == -EACCES);
	return 0;
}

/* Without a policy there are sessions for root and the daemon's user. */
static void nobody_else(void **state)
{
	const struct rgate_request probe = { .op = RGATE_REQ_PROBE, .a0 = RGATE_REQ_LOG };
	uint64_t ops = 0;

	(void)state;
	ringgated_start(&r, NULL, -1);
	assert_int_equal(session_open(4096), 0);
	assert_int_equal(nop(), 0);
	assert_int_equal(ask(&probe, &ops), 0);
	assert_true(ops & 1);
	assert_int_equal(ringgated_count(&r, "opened"), 1);
	rgate_session_close(session);
	wait_for(!ringgated_count(&r, "sessions"));
	if (!geteuid()) {
		as_nobody(no_session);
		assert_int_equal(ringgated_count(&r, "denied"), 1);
	}
	assert_int_equal(ringgated_stop(&r, SIGTERM), 0);
	assert_int_equal(access(r.requests, F_OK), -1);
}

static int core_only(void)
{
	struct rgate_request q = { .op = RGATE_REQ_NOP };

	need(!session_open(4096));
	need(!nop());
	need(tell("no", 2) == -EACCES);
	q.cls = RGATE_CLASS_BULK;
	need(!ask(&q, NULL));
	q.cls = RGATE_CLASS_URGENT;
	need(ask(&q, NULL) == -EACCES);
	/* who may not ask it does not learn whether there is such a service */
	q = (struct rgate_request){ .op = RGATE_REQ_OP(31, 0) };
	need(ask(&q, NULL) < 0);
	need(!nop());
	return 0;
}

static int more_too(void)
{
	const struct rgate_request q = { .op = RGATE_REQ_NOP, .cls = RGATE_CLASS_URGENT };

	need(!session_open(4096));
	need(!tell("hello", 5));
	need(!ask(&q, NULL));
	return 0;
}

/* Lines of a policy: of the user, of his group, of any */
static void policies(void **state)
{
	static const char *const allowing[] = {
		"allow user:nobody log # both\nurgent any\n",
		"allow user:65534 log\nurgent user:nobody\n",
		"allow group:65534 \"log\"\nurgent group:65534\n",
		"allow any all\nurgent any\nallow user:0 core\n",
		"allow user:0 spawn\nallow any log\nallow any core\nurgent any\n",
	};
	static const char *const refusing[] = {
		"# nobody\n", "urgent any\n", "limit any sessions 5\n", "allow user:1 all\n",
		"allow group:1 all\n",
	};
	unsigned int i;

	(void)state;
	only_root();
	ringgated_start(&r, "allow any core\n", -1);
	as_nobody(core_only);
	for (i = 0; i < ARRAY_LEN(allowing); i++) {
		ringgated_reload(&r, allowing[i]);
		as_nobody(more_too);
	}
	for (i = 0; i < ARRAY_LEN(refusing); i++) {
		ringgated_reload(&r, refusing[i]);
		as_nobody(no_session);
	}
	assert_int_equal(ringgated_count(&r, "denied"), ARRAY_LEN(refusing));
	assert_int_equal(ringgated_stop(&r, SIGTERM), 0);
}

/* One of its processes is in a group that may more. */
static int shared_rights(void)
{
	struct rgate_session *first;
	const gid_t group = 1;
	unsigned int i;
	int err = 0;

	need(!setgroups(1, &group) && !setegid(NOBODY) && !seteuid(NOBODY));
	need(!session_open(4096));
	first = session;
	need(!seteuid(0) && !setgroups(0, NULL) && !seteuid(NOBODY));
	need(!session_open(4096));
	need(!tell("both", 4));
	rgate_session_close(first);
	/* the daemon hears of the end by and by */
	for (i = 0; i < MS / 10 && !err; i++) {
		err = tell("one", 3);
		if (err == -EAGAIN)
			err = 0;
		usleep(10000);
	}
	need(err == -EACCES && !nop());
	rgate_session_close(session);
	return 0;
}

/* A user may what any of his processes may, as long as that one has a session. */
static void rights_end(void **state)
{
	pid_t pid;

	(void)state;
	only_root();
	ringgated_start(&r, "allow group:1 log\nallow any core\n", -1);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(shared_rights());
	assert_int_equal(end(pid), 0);
	assert_int_equal(ringgated_stop(&r, SIGTERM), 0);
}

/* Tells the parent by a byte, and waits for one of it */
static int ask_parent(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	char byte = 'x';

	need(write(sock, &byte, 1) == 1);
	need(poll(&p, 1, (int)MS) == 1 && read(sock, &byte, 1) == 1);
	return 0;
}

static void hear_child(int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	char byte;

	assert_int_equal(poll(&p, 1, (int)MS), 1);
	assert_int_equal(read(sock, &byte, 1), 1);
}

static int pair[2];	/* [0]: the parent's */

static void tell_child(void)
{
	assert_int_equal(write(pair[0], "x", 1), 1);
}

static int limited(void)
{
	struct rgate_session *first;
	unsigned int i;
	int err = -EDQUOT;

	need(!session_open(0));
	first = session;
	need(!session_open(0));
	need(session_open(0) == -EDQUOT);
	rgate_session_close(first);
	first = session;
	/* the daemon hears of the end by and by */
	for (i = 0; i < MS / 10 && err == -EDQUOT; i++) {
		err = session_open(0);
		usleep(10000);
	}
	need(!err);
	rgate_session_close(session);
	rgate_session_close(first);
	for (i = 0, err = -EDQUOT; i < MS / 10 && err == -EDQUOT; i++) {
		err = session_open(1 << 20);
		usleep(10000);
	}
	need(!err);
	need(session_open(4 << 20) == -EDQUOT);
	return ask_parent(pair[1]);
}

static void limits(void **state)
{
	pid_t pid;

	(void)state;
	only_root();
	ringgated_start(&r, "allow any log\nlimit user:nobody sessions 2 memory 2M\n"
			"limit any sessions 1 memory 1\n", -1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = begin(limited);
	hear_child(pair[0]);
	assert_int_equal(ringgated_count(&r, "sessions"), 1);
	assert_true(ringgated_count(&r, "memory") >= 1 << 20);
	assert_int_equal(ringgated_count(&r, "uid"), NOBODY);
	tell_child();
	assert_int_equal(end(pid), 0);
	wait_for(!ringgated_count(&r, "sessions"));
	assert_true(ringgated_count(&r, "failed") >= 2);
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(ringgated_stop(&r, SIGTERM), 0);
}

static int reloaded(void)
{
	need(!session_open(4096));
	need(tell("early", 5) == -EACCES);
	need(!ask_parent(pair[1]));
	need(!tell("late", 4));
	need(!ask_parent(pair[1]));
	need(tell("third", 5) == -EACCES && !nop());
	need(!ask_parent(pair[1]));
	/* its user may have none any more */
	need(rgate_session_wait(session, (int)MS) == -EPIPE);
	need(rgate_session_submit(session, &(struct rgate_request){ 0 }) == -EPIPE);
	need(session_open(0) == -EACCES);
	return 0;
}

/* What holds is what the policy says now, for sessions that there are, too. */
static void reload(void **state)
{
	pid_t pid;

	(void)state;
	only_root();
	ringgated_start(&r, "allow any core\n", -1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = begin(reloaded);
	hear_child(pair[0]);
	ringgated_reload(&r, "allow any log\n");
	tell_child();
	hear_child(pair[0]);
	ringgated_reload(&r, "allow any core\n");
	tell_child();
	hear_child(pair[0]);
	ringgated_reload(&r, "allow user:0 core\n");
	tell_child();
	assert_int_equal(end(pid), 0);
	assert_int_equal(ringgated_count(&r, "removed"), 1);
	wait_for(ringgated_said(&r, "uid 65534: late"));
	assert_false(ringgated_said(&r, "early"));
	assert_false(ringgated_said(&r, "third"));
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(ringgated_stop(&r, SIGTERM), 0);
}

/* What users write is a line of the log, and nothing else. */
static void log_lines(void **state)
{
	static const char odd[] = "a\nringgated: b\x1b[31m\0c\xff\n";
	char line[257], wanted[100];
	int i, err;

	(void)state;
	ringgated_start(&r, NULL, -1);
	assert_int_equal(session_open(4096), 0);
	assert_int_equal(tell(odd, sizeof(odd) - 1), 0);
	memset(line, 'x', sizeof(line));
	assert_int_equal(tell(line, sizeof(line)), -EMSGSIZE);
	assert_int_equal(tell(line, sizeof(line) - 1), 0);
	snprintf(wanted, sizeof(wanted),
		 "ringgated: uid %u: a\\x0aringgated: b\\x1b[31m\\x00c\\xff\n", geteuid());
	wait_for(ringgated_said(&r, wanted));
	wait_for(ringgated_said(&r, ": xxxxxxxxx"));
	/* a user's share has an end, though it grows while time passes, and another's does not */
	for (i = 0; i < 2; i++) {
		do {
			err = tell("more", 4);
		} while (!err);
		assert_int_equal(err, -EAGAIN);
	}
	assert_int_equal(nop(), 0);
	assert_true(ringgated_count(&r, "log_dropped") >= 2);
	rgate_session_close(session);
	assert_int_equal(ringgated_stop(&r, SIGTERM), 0);
}

/* Nobody reads what the daemon says: who writes into its log stops no request, nor its end. */
static void blocked_log(void **state)
{
	char line[250];
	int log[2];
	unsigned int i;

	(void)state;
	assert_int_equal(pipe2(log, O_CLOEXEC), 0);
	/* less than what is written below: it is filled */
	assert_true(fcntl(log[1], F_SETPIPE_SZ, 4096) > 0);
	ringgated_start(&r, NULL, log[1]);
	close(log[1]);
	assert_int_equal(session_open(4096), 0);
	memset(line, 'x', sizeof(line));
	for (i = 0; i < 1000; i++) {
		const int err = tell(line, sizeof(line));

		assert_true(!err || err == -EAGAIN);
		assert_int_equal(nop(), 0);
	}
	assert_true(ringgated_count(&r, "log_lines") < 100);
	/* what it says itself stops nothing, either */
	for (i = 0; i < 10; i++) {
		assert_int_equal(kill(r.pid, SIGHUP), 0);
		assert_int_equal(ringgated_count(&r, "sessions"), 1);
		usleep(10000);
	}
	wait_for(ringgated_count(&r, "lines_left_out") - 1 < 1000);
	rgate_session_close(session);
	assert_int_equal(session_open(0), 0);
	assert_int_equal(nop(), 0);
	rgate_session_close(session);
	wait_for(!ringgated_count(&r, "sessions"));
	assert_int_equal(ringgated_stop(&r, SIGTERM), 0);
	close(log[0]);
}

/* Dies, or stops, at a moment of its own with requests under way */
static int restless(void)
{
	struct rgate_request q = { .op = RGATE_REQ_NOP, .deadline_us = 10000000 };
	struct rgate_completion c[8];
	uint64_t n = 0;

	need(!session_open(65536));
	need(write(pair[1], "x", 1) == 1);
	for (;; n++) {
		q.cookie = n;
		(void)rgate_session_submit(session, &q);
		if (n % 3)
			(void)rgate_session_poll(session, c, 8);
	}
	return 1;
}

/* Whatever its clients die of, the daemon has what it had before. */
static void killed(void **state)
{
	unsigned int i, n, before;
	pid_t pid[AT_ONCE];

	(void)state;
	ringgated_start(&r, "allow any core\n", -1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	before = ringgated_fds(&r);
	for (n = 0; n < unit_rounds(KILLED); n += AT_ONCE) {
		for (i = 0; i < AT_ONCE; i++)
			pid[i] = geteuid() ? fork() : begin(restless);
		for (i = 0; i < AT_ONCE; i++)
			if (!pid[i])
				_exit(restless());
		/* half of them at any moment, the others once they have a session */
		for (i = 0; i < AT_ONCE / 2; i++)
			kill(pid[i], SIGKILL);
		for (i = AT_ONCE / 2; i < AT_ONCE; i++)
			hear_child(pair[0]);
		for (i = AT_ONCE / 2; i < AT_ONCE; i++)
			kill(pid[i], SIGKILL);
		for (i = 0; i < AT_ONCE; i++)
			assert_int_equal(end(pid[i]), 100 + SIGKILL);
	}
	close(pair[0]);
	close(pair[1]);
	wait_for(!ringgated_count(&r, "sessions"));
	/* The connection that asked whether it is ready may have been one of them. */
	wait_for(ringgated_fds(&r) <= before);
	assert_int_equal(ringgated_count(&r, "under_way"), 0);
	assert_int_equal(ringgated_count(&r, "memory"), 0);
	assert_int_equal(session_open(0), 0);
	assert_int_equal(nop(), 0);
	rgate_session_close(session);
	assert_int_equal(ringgated_stop(&r, SIGTERM), 0);
}

/* A client that is stopped holds nobody up, and goes on where it was. */
static void stopped(void **state)
{
	unsigned int i;
	pid_t pid[3];

	(void)state;
	only_root();
	ringgated_start(&r, "allow any core\n", -1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	for (i = 0; i < 3; i++)
		pid[i] = begin(restless);
	for (i = 0; i < 3; i++)
		hear_child(pair[0]);
	for (i = 0; i < 3; i++)
		assert_int_equal(kill(pid[i], SIGSTOP), 0);
	assert_int_equal(session_open(0), 0);
	for (i = 0; i < 1000; i++)
		assert_int_equal(nop(), 0);
	rgate_session_close(session);
	for (i = 0; i < 3; i++) {
		assert_int_equal(kill(pid[i], SIGKILL), 0);
		assert_int_equal(end(pid[i]), 100 + SIGKILL);
	}
	wait_for(!ringgated_count(&r, "sessions"));
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(ringgated_stop(&r, SIGTERM), 0);
}

/* The daemon ends, in order or not: its clients hear it. */
static void daemon_ends(void **state)
{
	static const int signals[] = { SIGKILL, SIGTERM };
	struct rgate_completion c;
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(signals); i++) {
		ringgated_start(&r, NULL, -1);
		assert_int_equal(session_open(4096), 0);
		assert_int_equal(nop(), 0);
		assert_int_equal(ringgated_stop(&r, signals[i]),
				 signals[i] == SIGKILL ? SIGKILL : 0);
		assert_int_equal(rgate_session_wait(session, (int)MS), -EPIPE);
		assert_int_equal(rgate_session_poll(session, &c, 1), -EPIPE);
		assert_int_equal(nop(), -EPIPE);
		rgate_session_close(session);
		assert_int_equal(session_open(0), signals[i] == SIGKILL ? -ECONNREFUSED : -ENOENT);
	}
}

static int up(void **state)
{
	(void)state;
	ringgated_make(&r);
	return 0;
}

static int down(void **state)
{
	(void)state;
	ringgated_free(&r);
	return 0;
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(nobody_else, up, down),
	cmocka_unit_test_setup_teardown(policies, up, down),
	cmocka_unit_test_setup_teardown(rights_end, up, down),
	cmocka_unit_test_setup_teardown(limits, up, down),
	cmocka_unit_test_setup_teardown(reload, up, down),
	cmocka_unit_test_setup_teardown(log_lines, up, down),
	cmocka_unit_test_setup_teardown(blocked_log, up, down),
	cmocka_unit_test_setup_teardown(killed, up, down),
	cmocka_unit_test_setup_teardown(stopped, up, down),
	cmocka_unit_test_setup_teardown(daemon_ends, up, down),
};

int main(void)
{
	if (!ringgated_built()) {
		printf("1..0 # SKIP ringgated is not built\n");
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	return unit_run(__FILE__, tests, ARRAY_LEN(tests));
}
