// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Requests: three linked ones, the last with a deadline, and cancelled too late.
 *
 *	request [SOCKET]
 *
 * Without an argument this process serves itself; with one it asks the daemon there.
 */
#include <ringgate/ringgate.h>
#include <stdio.h>
#include <string.h>

enum { LOG = 1, TIME, NOP, CANCEL };

static void on_log(void *ctx, enum rgate_log_level level, const char *msg)
{
	(void)ctx;
	(void)level;
	printf("log: %s\n", msg);
}

static int ask(struct rgate_session *s)
{
	static const char text[] = "hello from a request";
	char *mem = rgate_session_memory(s, NULL);
	const struct rgate_request reqs[] = {
		/* One after the other: if the first fails, the others are not begun. */
		{ .op = RGATE_REQ_LOG_WRITE, .cookie = LOG, .flags = RGATE_REQ_LINK,
		  .off = 64, .len = sizeof(text) - 1 },
		{ .op = RGATE_REQ_TIME, .cookie = TIME, .flags = RGATE_REQ_LINK,
		  .a0 = RGATE_CLOCK_MONOTONIC },
		{ .op = RGATE_REQ_NOP, .cookie = NOP, .a0 = 42, .deadline_us = 5000000 },
	};
	int n;

	memcpy(mem + 64, text, sizeof(text) - 1);
	n = rgate_session_submit_many(s, reqs, 3);
	if (n != 3)
		return n;
	return rgate_session_cancel(s, NOP, CANCEL);
}

static int take(struct rgate_session *s, int left)
{
	struct rgate_completion c;
	int n;

	while (left) {
		n = rgate_session_poll(s, &c, 1);
		if (!n)
			n = rgate_session_wait(s, 5000);
		else if (n == 1 && left--)
			printf("request %llu: %d%s\n", c.cookie, c.result,
			       c.value == 42 ? ", value 42" : "");
		if (n <= 0)
			return n ? n : -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct rgate_session_opts opts = RGATE_OPTS(rgate_session_opts,
		.where = argc > 1 ? RGATE_SESSION_DAEMON : RGATE_SESSION_PROCESS,
		.path = argc > 1 ? argv[1] : NULL,
		.memory = 4096);
	struct rgate_session *s;
	int err;

	rgate_log_set(on_log, NULL);
	err = rgate_session_open(&s, &opts);
	if (err) {
		fprintf(stderr, "no session: %s\n", rgate_strerror("rgate_session_open", err));
		return 1;
	}
	err = ask(s);
	if (!err)
		err = take(s, 4);
	rgate_session_close(s);
	if (err)
		fprintf(stderr, "requests: %s\n", rgate_strerror(NULL, err));
	return err ? 1 : 0;
}
