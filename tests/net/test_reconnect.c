// SPDX-License-Identifier: MIT OR GPL-2.0
/* Sessions whose daemon is killed and started again, and that go on with the new one */
#include "ringgated.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ringgate/rgate_session.h>

#include "nodes.h"

#define MEMORY	12288U

static struct ringgated r;
static struct rgate_session *session;

static void open_it(uint32_t where)
{
	const struct rgate_session_opts o = RGATE_OPTS(rgate_session_opts, .path = r.requests,
						       .where = where, .memory = MEMORY,
						       .timeout_ms = MS);

	assert_int_equal(rgate_session_open(&session, &o), 0);
}

static int take(uint64_t cookie)
{
	struct rgate_completion c;

	assert_int_equal(rgate_session_wait(session, (int)MS), 1);
	assert_int_equal(rgate_session_poll(session, &c, 1), 1);
	assert_int_equal(c.cookie, cookie);
	return c.result;
}

static int ask(struct rgate_request q)
{
	q.cookie = 7;
	assert_int_equal(rgate_session_submit(session, &q), 0);
	return take(7);
}

static int nop(void)
{
	return ask((struct rgate_request){ .op = RGATE_REQ_NOP });
}

static void is_over(void)
{
	struct rgate_completion c;
	int n;

	while ((n = rgate_session_wait(session, (int)MS)) == 1)
		rgate_session_poll(session, &c, 1);
	assert_int_equal(n, -EPIPE);
}

static uint64_t opened(void)
{
	return ringgated_count(&r, "opened");
}

/* Whatever was under way; and as often as it is killed */
static void goes_on(void **state)
{
	char *mem;
	size_t len;
	unsigned int i, k;

	(void)state;
	ringgated_start(&r, NULL, -1);
	open_it(RGATE_SESSION_DAEMON);
	mem = rgate_session_memory(session, &len);
	assert_int_equal(len, MEMORY);
	for (i = 0; i < 5; i++) {
		/* places of all laps */
		for (k = 0; k < 300 * (i % 2); k++)
			assert_int_equal(nop(), 0);
		memset(mem, 'x', len);
		for (k = 0; k < i; k++)
			assert_int_equal(rgate_session_submit(session, &(struct rgate_request){
				.op = RGATE_REQ_LOG_WRITE, .len = 5, .cookie = k }), 0);
		assert_int_equal(ringgated_stop(&r, i % 2 ? SIGTERM : SIGKILL),
				 i % 2 ? 0 : SIGKILL);
		is_over();
		ringgated_start(&r, NULL, -1);
		assert_int_equal(rgate_session_reconnect(session, 0), 0);
		assert_ptr_equal(rgate_session_memory(session, &len), mem);
		assert_int_equal(len, MEMORY);
		for (k = 0; k < MEMORY; k++)
			assert_int_equal(mem[k], 0);
		assert_int_equal(nop(), 0);
		/* it is the daemon's memory, too */
		memcpy(mem + 4096, "again", 5);
		assert_int_equal(ask((struct rgate_request){
			.op = RGATE_REQ_LOG_WRITE, .off = 4096, .len = 5 }), 0);
		assert_int_equal(opened(), 1);
	}
	rgate_session_close(session);
	wait_for(!ringgated_count(&r, "sessions"));
	assert_int_equal(ringgated_stop(&r, SIGTERM), 0);
}

static void *reconnect(void *arg)
{
	*(int *)arg = rgate_session_reconnect(session, -1);
	return NULL;
}

/* It waits as long as it was told to, and can be tried again */
static void waits(void **state)
{
	struct pollfd p = { .events = POLLIN };
	pthread_t thread;
	int err = 1;

	(void)state;
	ringgated_start(&r, NULL, -1);
	open_it(RGATE_SESSION_DAEMON);
	assert_int_equal(ringgated_stop(&r, SIGKILL), SIGKILL);
	assert_int_equal(rgate_session_reconnect(session, 0), -ECONNREFUSED);
	assert_int_equal(rgate_session_reconnect(session, 50), -ECONNREFUSED);
	assert_int_equal(unlink(r.requests), 0);
	assert_int_equal(rgate_session_reconnect(session, 1), -ENOENT);
	assert_int_equal(rgate_session_wait(session, 0), -EPIPE);
	assert_int_equal(pthread_create(&thread, NULL, reconnect, &err), 0);
	usleep(50000);
	ringgated_start(&r, NULL, -1);
	pthread_join(thread, NULL);
	assert_int_equal(err, 0);
	/* asleep, by the new descriptor */
	assert_int_equal(rgate_session_arm(session), 0);
	assert_int_equal(rgate_session_submit(session, &(struct rgate_request){
		.op = RGATE_REQ_NOP, .cookie = 9 }), 0);
	p.fd = rgate_session_fd(session);
	assert_int_equal(poll(&p, 1, (int)MS), 1);
	assert_int_equal(take(9), 0);
	/* and hears of the end */
	assert_int_equal(rgate_session_arm(session), 0);
	assert_int_equal(ringgated_stop(&r, SIGKILL), SIGKILL);
	assert_int_equal(poll(&p, 1, (int)MS), 1);
	assert_int_equal(rgate_session_wait(session, (int)MS), -EPIPE);
	rgate_session_close(session);
}

/* Only what is over, of a daemon, and one's own */
static void refused(void **state)
{
	struct rgate_session_loan loan = { .sz = sizeof(loan) };
	int status;
	pid_t pid;

	(void)state;
	open_it(RGATE_SESSION_PROCESS);
	assert_int_equal(rgate_session_reconnect(session, 0), -EINVAL);
	rgate_session_close(session);

	ringgated_start(&r, NULL, -1);
	open_it(RGATE_SESSION_EITHER);
	assert_int_equal(rgate_session_reconnect(session, 0), -EBUSY);
	assert_int_equal(nop(), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(rgate_session_reconnect(session, 0) == -EOWNERDEAD ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(ringgated_stop(&r, SIGKILL), SIGKILL);
	/* it had the daemon, and does not serve itself now */
	assert_int_equal(rgate_session_reconnect(session, 0), -ECONNREFUSED);
	ringgated_start(&r, NULL, -1);
	assert_int_equal(rgate_session_reconnect(session, 0), 0);
	assert_int_equal(rgate_session_lend(session, &loan), 0);
	assert_int_equal(ringgated_stop(&r, SIGKILL), SIGKILL);
	assert_int_equal(rgate_session_reconnect(session, 0), -EBUSY);
	rgate_session_close(session);
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
	cmocka_unit_test_setup_teardown(goes_on, up, down),
	cmocka_unit_test_setup_teardown(waits, up, down),
	cmocka_unit_test_setup_teardown(refused, up, down),
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
