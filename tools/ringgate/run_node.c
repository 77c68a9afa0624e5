// SPDX-License-Identifier: MIT OR GPL-2.0
#include "run_node.h"

#include <errno.h>

#include <ringgate/rgate_session.h>

#include "cmd.h"
#include "util.h"

#define ANSWER_MS	5000

/* The result of the request, or -errno; -ETIMEDOUT */
static int ask(struct rgate_session *s, const struct rgate_request *q, uint64_t *value)
{
	struct rgate_completion done = { 0 };
	int n = rgate_session_submit(s, q);

	if (!n)
		n = rgate_session_poll(s, &done, 1);
	while (!n || n == -EINTR) {
		n = rgate_session_wait(s, ANSWER_MS);
		if (!n)
			return -ETIMEDOUT;
		if (n == 1)
			n = rgate_session_poll(s, &done, 1);
	}
	if (n < 0)
		return n;
	*value = done.value;
	return done.result;
}

static int said(int result, uint64_t value, uint32_t node, const char *what)
{
	if (result == -EINVAL) {
		say("this ringgated is older than --node: install one of this version");
		return EXIT_FAIL;
	}
	if (result)
		return fail_in("rgate_sockets_open", result, "sockets for %s", what);
	if (value == node + 1ULL)
		return EXIT_OK;
	say("sockets of this machine's ringgated are node %llu's, not node %u's: --node %llu, or `requests sockets-at` in its ringgated.conf",
	    (unsigned long long)value - 1, node, (unsigned long long)value - 1);
	return EXIT_FAIL;
}

int run_node_check(const char *socket, uint32_t node, const char *what)
{
	const struct rgate_session_opts o = RGATE_OPTS(rgate_session_opts,
		.path = socket, .where = RGATE_SESSION_DAEMON);
	const struct rgate_request q = { .op = RGATE_REQ_PROBE, .a0 = RGATE_REQ_SOCKET,
					 .a1 = RGATE_PROBE_NODE };
	struct rgate_session *s;
	uint64_t value = 0;
	int err = rgate_session_open(&s, &o);

	if (err)
		return fail_in("rgate_session_open", err, "sockets for %s", what);
	err = ask(s, &q, &value);
	rgate_session_close(s);
	return said(err, value, node, what);
}
