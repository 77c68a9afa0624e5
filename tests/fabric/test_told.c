// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What a node's log says of those that it refuses: from where they come, as whom, why, and one
 * line a second however many there are. And what is told to whoever sleeps at a peer's descriptor.
 */
#include "ended.h"
#include "siege.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROVE	"it did not prove that it is this node"
#define STRANGER "it is no node of this cluster, or of another version"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char heard[16][256];
static unsigned int lines;	/* about who is not who he says */

static void hear(void *ctx, enum rgate_log_level level, const char *line)
{
	(void)ctx;
	(void)level;
	if (!strstr(line, "is refused") && !strstr(line, "did not prove"))
		return;
	pthread_mutex_lock(&mutex);
	if (lines < ARRAY_LEN(heard))
		snprintf(heard[lines], sizeof(heard[0]), "%s", line);
	lines++;
	pthread_mutex_unlock(&mutex);
}

static unsigned int told(void)
{
	unsigned int n;

	pthread_mutex_lock(&mutex);
	n = lines;
	pthread_mutex_unlock(&mutex);
	return n;
}

/* Line @i begins with @begin, and ends with @end */
static void was_told(unsigned int i, const char *begin, const char *end)
{
	pthread_mutex_lock(&mutex);
	assert_true(lines > i);
	if (strncmp(heard[i], begin, strlen(begin)) || strlen(heard[i]) < strlen(end) ||
	    strcmp(heard[i] + strlen(heard[i]) - strlen(end), end))
		fail_msg("\"%s\", not \"%s...%s\"", heard[i], begin, end);
	pthread_mutex_unlock(&mutex);
}

static int up(void **state)
{
	(void)state;
	lines = 0;
	rgate_log_set(hear, NULL);
	return 0;
}

static int down(void **state)
{
	(void)state;
	rgate_log_set(NULL, NULL);
	return 0;
}

/* One that says nothing sensible, then one with a wrong key, then others within the second */
static void strangers(void **state)
{
	struct rgate_prov_event ev;
	struct siege s;
	unsigned int i;

	(void)state;
	siege_begin(&s, 0);
	siege_hello(&s);
	for (i = 0; i < 3; i++)
		assert_int_equal(siege_knock(&s, "what", 4, &ev), -ECONNREFUSED);
	assert_int_equal(told(), 1);
	was_told(0, "node 0: a connection from ", " is refused: " STRANGER);
	assert_null(strstr(heard[0], "as node"));
	/* a second later there is a line again, which tells that it is not of one alone */
	usleep(1050000);
	siege_hello(&s);
	s.hs.hello.noise[RGATE_NOISE_HANDSHAKE - 1] ^= 1;
	assert_int_equal(siege_knock(&s, &s.hs.hello, sizeof(s.hs.hello), &ev), -EACCES);
	assert_int_equal(told(), 2);
	was_told(1, "node 0: a connection from ", " as node 1 is refused: " PROVE
		 " (and others since the last line)");
	usleep(1050000);
	assert_int_equal(siege_knock(&s, "what", 4, &ev), -ECONNREFUSED);
	assert_int_equal(told(), 3);
	was_told(2, "node 0: a connection from ", " is refused: " STRANGER);
	siege_end(&s);
}

/* Somebody answers in the place of node 0. */
static void false_node_0(void **state)
{
	struct rgate_prov_event ev;
	struct rgate_hs_welcome w;
	struct rgate_node *node;
	struct rgate_peer *peer;
	struct cluster c;
	struct end e;

	(void)state;
	cluster_make(&c, 2, 0);
	end_open(&e, &c, 0, 2000);
	node = cluster_node(&c, 1);
	assert_int_equal(rgate_peer_open(&peer, node, 0), 0);
	memset(&w, 0xa5, sizeof(w));
	end_event(&e, RGATE_PROV_REQUEST, &ev);
	e.conn = ev.conn;
	end_prepare(&e);
	assert_int_equal(e.prov->accept(e.conn, &w, sizeof(w), &e), 0);
	end_event(&e, RGATE_PROV_DOWN, &ev);
	wait_for(told() == 1);
	was_told(0, "node 1: who answers for node 0 ", "did not prove that it is this node");
	rgate_peer_close(peer);
	assert_int_equal(node_ended(node), 0);
	end_close(&e);
	cluster_free(&c);
}

static bool readable(struct rgate_peer *peer, int ms)
{
	struct pollfd p = { .fd = rgate_peer_fd(peer), .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/*
 * What came before it was armed is told at once, whichever way it is armed, and as often as that
 * is done until it was taken; and then no more.
 */
static void armed_late(void **state)
{
	int (*const arm[])(struct rgate_peer *peer) = { rgate_peer_arm, rgate_peer_arm_recv };
	struct rgate_msg msg;
	unsigned int i, k, in;
	struct duo d;

	(void)state;
	duo_up(&d, 0);
	for (i = 0; i < 20; i++) {
		assert_int_equal(rgate_peer_send(d.peer[1], &i, sizeof(i), MS), 0);
		assert_int_equal(rgate_peer_send(d.peer[1], &i, sizeof(i), MS), 0);
		/* it came with the first one, and waits here */
		assert_int_equal(rgate_peer_recv(d.peer[0], &msg, &in, sizeof(in), MS), 0);
		usleep(2000);
		for (k = 0; k < 3; k++) {
			assert_int_equal(arm[i % 2](d.peer[0]), 0);
			assert_true(readable(d.peer[0], MS));
		}
		assert_int_equal(rgate_peer_recv(d.peer[0], &msg, &in, sizeof(in), MS), 0);
		assert_int_equal(in, i);
		assert_int_equal(rgate_peer_recv(d.peer[0], &msg, &in, sizeof(in), 0), -EAGAIN);
	}
	duo_down(&d);
}

/* What cannot be meant is refused before anything is sent or waited for. */
static void not_meant(void **state)
{
	static char bytes[UINT16_MAX + 2];
	struct rgate_msg msg;
	struct duo d;
	unsigned int in;

	(void)state;
	duo_up(&d, 0);
	assert_int_equal(rgate_peer_send(d.peer[1], bytes, sizeof(bytes), MS), -EMSGSIZE);
	assert_int_equal(rgate_peer_recv(d.peer[0], NULL, &in, sizeof(in), 0), -EINVAL);
	assert_int_equal(rgate_peer_recv(d.peer[0], &msg, NULL, 1, 0), -EINVAL);
	assert_int_equal(rgate_peer_recv(d.peer[0], &msg, NULL, 0, 0), -EAGAIN);
	/* one without bytes is a message, too */
	assert_int_equal(rgate_peer_send(d.peer[1], NULL, 0, MS), 0);
	assert_int_equal(rgate_peer_recv(d.peer[0], &msg, NULL, 0, MS), 0);
	assert_int_equal(msg.len, 0);
	duo_down(&d);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)
static const struct CMUnitTest tests[] = {
	TEST(strangers), TEST(false_node_0), TEST(armed_late), TEST(not_meant),
};

UNIT_MAIN(tests)
