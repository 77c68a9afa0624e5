// SPDX-License-Identifier: MIT OR GPL-2.0
/* What the command line asks ringgated, and makes of its answers: cluster, steer and net. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ringgate/rgate_daemon.h>

#include "cli.h"
#include "module.h"

static struct answer {
	const char *text;
	int err;
} answers[5];

static unsigned int given;	/* in the child */

int __wrap_rgate_daemon_call(const char *path, const char *request, char *answer, size_t len);
int __wrap_rgate_daemon_call(const char *path, const char *request, char *answer, size_t len)
{
	const struct answer *a = &answers[given++ % ARRAY_LEN(answers)];
	size_t n = strlen(fake->log);

	unit_require(len == RGATE_DAEMON_ANSWER);
	snprintf(fake->log + n, sizeof(fake->log) - n, "%s%s%s\n", path ? path : "", path ? ": " : "",
		 request);
	snprintf(answer, len, "%s", a->text ? a->text : "");
	return a->err;
}

static void answered(const struct answer *a, unsigned int n)
{
	unsigned int i;

	*fake->log = '\0';
	for (i = 0; i < ARRAY_LEN(answers); i++)
		answers[i] = a[i < n ? i : n - 1];
}

#define ANSWERS(...) \
	answered((const struct answer[]){ __VA_ARGS__ }, \
		 ARRAY_LEN(((struct answer[]){ __VA_ARGS__ })))

static void asks(const char *line, int status, const char *out, const char *err, const char *log)
{
	*fake->log = '\0';
	cli_is(line, status, out, err);
	assert_string_equal(fake->log, log);
}

static void status(void **state)
{
	(void)state;
	ANSWERS({ "peers\n", 0 });
	asks("cluster status", 0, "peers\n", "", "status\n");
	asks("cluster status -j -s /s", 0, "peers\n", "", "/s: status json\n");
	cli.tty = true;
	cli_is("cluster status", 0, "peers\n\nunseen: not here since this daemon began; away: was here as a "
	       "client, without a daemon\nother columns: man ringgate-cluster\n", "");
	cli_is("cluster status --json", 0, "peers\n", "");
	cli.tty = false;
	ANSWERS({ "this cannot be", -EINVAL });
	cli_is("cluster status", 1, "", "ringgate cluster: this cannot be\n");
	ANSWERS({ "", -ENOENT });
	cli_is("cluster status -s /s", 1, "", "ringgate cluster: no ringgated answers at /s: is it running? "
	       "(systemctl status ringgated)\n");
	ANSWERS({ "", -ECONNREFUSED });
	cli_says("cluster status", 1, "no ringgated answers at " RGATE_DAEMON_SOCKET ": is it");
	setenv("RGATE_SOCKET", "/of/environment", 1);
	cli_says("cluster status", 1, "no ringgated answers at /of/environment: is it");
	unsetenv("RGATE_SOCKET");
	ANSWERS({ "", -EACCES });
	cli_is("cluster status", 1, "", "ringgate cluster: no permission to talk to ringgated: be root, or of "
	       "its group\n");
	ANSWERS({ "", -ETIMEDOUT });
	cli_is("cluster status", 1, "", "ringgate cluster: ringgated does not answer: Connection timed out\n");
}

/* frames, bytes, lost and dropped of a time; what is new has no rate yet */
static void top(void **state)
{
	static const char table[] =
		"NAME  STATE  FRAMES/S  BYTES/S  FRAMES  LOST  DROPPED\n"
		"one   up          500    1.00k    2000     3        4\n"
		"two   down          0        0       5     6        7\n"
		"new   up            0        0       9     8        7\n\n";

	(void)state;
	cli.still = true;
	ANSWERS({ "one up 1000 3000 1 2\ntwo down 10 20 6 7\n", 0 },
		{ "one up 2000 5000 3 4\ntwo down 5 10 6 7\nnew up 9 9 8 7\n", 0 },
		{ "one up 2000 5000 3 4\nnonsense", 0 });
	asks("cluster top -c 1 -i 2", 0, table, "", "counters\ncounters\n");
	cli.tty = true;
	cli_says("cluster top -c 1", 0, "\033[H\033[JNAME ");
	cli.tty = false;
	asks("cluster top -c 2 -i 2 --json", 0,
	     "[{\"name\": \"one\", \"state\": \"up\", \"frames_per_s\": 500.000, \"bytes_per_s\": 1000.000, "
	     "\"frames\": 2000, \"lost\": 3, \"dropped\": 4}, {\"name\": \"two\", \"state\": \"down\", "
	     "\"frames_per_s\": 0.000, \"bytes_per_s\": 0.000, \"frames\": 5, \"lost\": 6, \"dropped\": 7}, "
	     "{\"name\": \"new\", \"state\": \"up\", \"frames_per_s\": 0.000, \"bytes_per_s\": 0.000, "
	     "\"frames\": 9, \"lost\": 8, \"dropped\": 7}]\n"
	     "[{\"name\": \"one\", \"state\": \"up\", \"frames_per_s\": 0.000, \"bytes_per_s\": 0.000, "
	     "\"frames\": 2000, \"lost\": 3, \"dropped\": 4}]\n", "", "counters\ncounters\ncounters\n");
	ANSWERS({ "one up 1000 3000 1 2\n", 0 }, { "no", -EIO });
	cli_is("cluster top -c 3", 1, "", "ringgate cluster: no\n");
}

static void ping(void **state)
{
	(void)state;
	cli.still = true;
	ANSWERS({ "one 4000", 0 }, { "one 2000", 0 }, { "one 9000", 0 });
	asks("cluster ping 1 -c 3", 0, "one: read of its memory in 4.0 us\none: read of its memory in 2.0 us\n"
	     "one: read of its memory in 9.0 us\n3 reads, least 2.0 us, mean 5.0 us\n", "",
	     "ping 1\nping 1\nping 1\n");
	asks("cluster ping one -c 2 -j", 0, "{\"node\": \"one\", \"ns\": 4000}\n{\"node\": \"one\", \"ns\": "
	     "2000}\n", "", "ping one\nping one\n");
	cli_says("cluster ping 1", 0, "\n5 reads, least ");
	ANSWERS({ "one 4000", 0 }, { "one", 0 });
	cli_is("cluster ping 1", 1, "one: read of its memory in 4.0 us\n",
	       "ringgate cluster: ringgated answers what is not understood\n");
	ANSWERS({ "there is no such node", -ENOENT });
	cli_is("cluster ping 7", 1, "", "ringgate cluster: there is no such node\n");
}

#define LISTED \
	"3 tcp open 10.0.0.1:80 10.0.0.2:4000 1 2 3000 4000000 5 1000\n" \
	"70 udp bound 10.0.0.1:53 * 6 7 8 9 10 1001\n"

static void net(void **state)
{
	(void)state;
	ANSWERS({ LISTED, 0 }, { "71 tcp listening * * 0 0 0 0 0 0\n", 0 }, { "", 0 });
	asks("net list", 0,
	     "ID  PROTO  STATE      UNREAD  UNSENT  LOCAL        PEER           RECEIVED   SENT  UNDERWAY   UID\n"
	     " 3  tcp    open            1       2  10.0.0.1:80  10.0.0.2:4000     3.00k  4.00M         5  1000\n"
	     "70  udp    bound           6       7  10.0.0.1:53  *                     8      9        10  1001\n"
	     "71  tcp    listening       0       0  *            *                     0      0         0     0\n",
	     "", "net list 0\nnet list 70\nnet list 71\n");
	ANSWERS({ "70 udp bound 10.0.0.1:53 * 6 7 8 9 10 1001\n", 0 }, { "", 0 });
	asks("net list -j -s /s", 0, "[\n  {\n    \"id\": 70,\n    \"protocol\": \"udp\",\n    \"state\": \"bound\",\n"
	     "    \"local\": \"10.0.0.1:53\",\n    \"peer\": null,\n    \"unread\": 6,\n    \"unsent\": 7,\n"
	     "    \"received\": 8,\n    \"sent\": 9,\n    \"under_way\": 10,\n    \"uid\": 1001\n"
	     "  }\n]\n", "",
	     "/s: net list 0\n/s: net list 70\n");
	/* what has no end, or is no list */
	ANSWERS({ LISTED, 0 });
	cli_is("net list", 1, "", "ringgate net: ringgated answers what is not understood\n");
	ANSWERS({ "3 tcp open\n", 0 });
	cli_is("net list", 1, "", "ringgate net: ringgated answers what is not understood\n");
	ANSWERS({ "not you", -EPERM });
	cli_is("net list", 1, "", "ringgate net: not you\n");
	ANSWERS({ "", 0 }, { "no socket 5", -ENOENT }, { "", 0 });
	asks("net kill 4 5 6", 1, "", "ringgate net: no socket 5\n", "net kill 4\nnet kill 5\nnet kill 6\n");
	asks("net kill 4 -s /s", 0, "", "", "/s: net kill 4\n");
}

static void steer(void **state)
{
	(void)state;
	ANSWERS({ "rules\n", 0 });
	asks("steer list", 0, "rules\n", "", "steer list\n");
	asks("steer list -j", 0, "rules\n", "", "steer list-json\n");
	asks("steer add web to:1 'tcp port 80'", 0, "", "", "steer add web to:1 tcp port 80\n");
	asks("steer add -b dns web to:1 tcp", 0, "", "", "steer insert dns web to:1 tcp\n");
	asks("steer remove web -s /s", 0, "", "", "/s: steer remove web\n");
	ANSWERS({ "there is no rule web", -ENOENT });
	cli_is("steer remove web", 1, "", "ringgate steer: there is no rule web\n");
	cli_is("steer list", 1, "", "ringgate steer: there is no rule web\n");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fake_begin, fake_end)
static const struct CMUnitTest tests[] = {
	TEST(status), TEST(top), TEST(ping), TEST(net), TEST(steer),
};

UNIT_MAIN_ALONE(tests)
