// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What a node withstands: strangers who say nothing, and members that have proved who
 * they are and break the rules. What somebody may send until then: test_trust.c.
 */
#include "ended.h"
#include "siege.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "link.h"

static int error_of(struct rgate_peer *peer)
{
	struct rgate_peer_info info = { .sz = sizeof(info) };

	assert_int_equal(rgate_peer_info(peer, &info), 0);
	assert_true(info.state != RGATE_PEER_UP);
	return info.error;
}

/* A server that takes the call and says nothing: it is given up, and called again */
static void mute_server(void **state)
{
	struct rgate_prov_event ev;
	struct rgate_node *node;
	struct rgate_peer *peer;
	struct cluster c;
	unsigned int i;
	uint64_t t;
	struct end e;

	(void)state;
	cluster_make(&c, 2, SILENT_MS);
	end_open(&e, &c, 0, 2000);
	node = cluster_node(&c, 1);
	assert_int_equal(rgate_peer_open(&peer, node, 0), 0);
	for (i = 0; i < 2; i++) {
		t = unit_now_ns();
		/* the second time after the end of the first */
		wait_for(end_any_event(&e, &ev) && ev.kind == RGATE_PROV_REQUEST);
		e.conn = ev.conn;
		if (i) {
			assert_int_equal(error_of(peer), -ETIMEDOUT);
		} else {
			wait_for(error_of(peer) == -ETIMEDOUT);
			/* and not before its time */
			assert_true(unit_now_ns() - t > SILENT_MS * 1000000ULL / 2);
		}
		e.prov->destroy(e.conn);
		e.conn = NULL;
	}
	rgate_peer_close(peer);
	assert_int_equal(node_ended(node), 0);
	end_close(&e);
	cluster_free(&c);
}

/* Who says hello and no more gets his time, and keeps nobody else out for longer */
static void dawdler(void **state)
{
	struct siege s;

	(void)state;
	siege_begin(&s, SILENT_MS);
	siege_hello(&s);
	siege_enter(&s);
	siege_over(&s);
	assert_int_equal(node_stats(s.node).timeouts, 1);
	siege_join(&s);
	/* and then it shows no sign of life */
	wait_for(peer_state(s.peer) != RGATE_PEER_UP);
	{
		struct rgate_peer_info info = { .sz = sizeof(info) };

		assert_int_equal(rgate_peer_info(s.peer, &info), 0);
		assert_int_equal(info.error, -ETIMEDOUT);
	}
	siege_over(&s);
	siege_end(&s);
}

static const char text[2048] = "text";

static void misbehave(struct siege *s, unsigned int how)
{
	struct rgate_sge sge = end_sge(&s->e, 0, 7);
	struct rgate_op op = { .kind = RGATE_OP_SEND, .nsge = how == 4, .sge = &sge };

	switch (how) {
	case 0:
		(void)siege_say(s, RGATE_MSG_PROOF, text, 64);
		break;
	case 1:
		(void)siege_say(s, 77, text, 0);
		break;
	case 2:
		(void)siege_say(s, 1ULL << 40 | RGATE_MSG_USER, text, 8);
		break;
	case 3:
		(void)siege_say(s, RGATE_MSG_USER, text, 1025);
		break;
	default:
		/* less than a header, or nothing at all */
		(void)end_post(&s->e, &op, 1);
		break;
	}
}

/* A member that breaks the rules costs the connection, and that only */
static void bad_member(void **state)
{
	struct rgate_msg msg;
	char in[2048];
	struct siege s;
	unsigned int i;
	int err;

	(void)state;
	siege_begin(&s, 0);
	for (i = 0; i < 6; i++) {
		siege_join(&s);
		assert_int_equal(siege_say(&s, RGATE_MSG_USER, text, 5), 0);
		assert_int_equal(rgate_peer_recv(s.peer, &msg, in, sizeof(in), MS), 0);
		assert_true(msg.len == 5 && !strcmp(in, "text"));
		misbehave(&s, i);
		do
			err = rgate_peer_recv(s.peer, &msg, in, sizeof(in), 100);
		while (err == -EAGAIN);
		assert_true(err == -EPROTO || err == -ENOTCONN);
		siege_over(&s);
		wait_for(peer_state(s.peer) != RGATE_PEER_UP);
		assert_int_equal(rgate_peer_send(s.peer, "x", 1, 10), -ENOTCONN);
	}
	assert_int_equal(node_stats(s.node).accepted, 6);
	siege_end(&s);
}

static void poke(struct siege *s, size_t offset, uint64_t value)
{
	struct rgate_sge sge = end_sge(&s->e, 8192, 8);
	struct rgate_op op = { .kind = RGATE_OP_WRITE, .nsge = 1, .sge = &sge,
			       .remote = s->line.addr + offset, .rkey = s->line.rkey };

	memcpy(sge.addr, &value, 8);
	assert_int_equal(end_post(&s->e, &op, 2), 0);
	do
		assert_int_equal(end_wait(&s->e), 0);
	while (s->e.last.kind != RGATE_PROV_SENT || s->e.last.id != 2);
	end_flush(&s->e, &s->e);
}

/* Credits that nobody has earned; beats that run backwards */
static void false_credits(void **state)
{
	static const uint64_t values[] = { UINT64_MAX, 1ULL << 63, 1000000, 0 };
	struct rgate_peer_info info = { .sz = sizeof(info) };
	struct rgate_sge sge;
	struct siege s;
	unsigned int i;

	(void)state;
	siege_begin(&s, 0);
	siege_join(&s);
	/* end_flush() reads from the peer; here that is the node */
	s.e.at = s.line;
	s.e.at.addr -= ENDS_BYTES - 8;
	for (i = 0; i < ARRAY_LEN(values); i++) {
		poke(&s, 8, values[i]);
		poke(&s, 0, values[i]);
		assert_int_equal(rgate_peer_info(s.peer, &info), 0);
		assert_int_equal(info.state, RGATE_PEER_UP);
		assert_true(info.credits <= ENDS_RECV);
	}
	/* none is given: messages wait for one, and the connection lives */
	sge = (struct rgate_sge){ s.buf->addr, 8, s.buf->lkey };
	for (i = 0; i < ENDS_RECV; i++) {
		struct rgate_op op = { .kind = RGATE_OP_SEND, .nsge = 1, .sge = &sge };

		if (rgate_peer_post(s.peer, &op, 1, NULL))
			break;
	}
	assert_in_range(i, ENDS_RECV - 2, ENDS_RECV);
	assert_int_equal(rgate_peer_send(s.peer, "x", 1, 100), -EAGAIN);
	assert_int_equal(peer_state(s.peer), RGATE_PEER_UP);
	siege_end(&s);
}

/* More than there are receives for: it is the flooder who loses */
static void flood(void **state)
{
	struct rgate_msg msg;
	struct siege s;
	unsigned int i, got = 0;
	char in[64];
	int err = 0;

	(void)state;
	siege_begin(&s, 0);
	siege_join(&s);
	for (i = 0; i < 1000 && !err; i++) {
		err = siege_say(&s, RGATE_MSG_USER, &i, sizeof(i));
		if (err == -EAGAIN && !end_wait(&s.e))
			err = 0;
	}
	/* what was taken is in order; then the flood is over, or goes on */
	while (!rgate_peer_recv(s.peer, &msg, in, sizeof(in), 200))
		got++;
	assert_true(got >= 32);
	siege_hang_up(&s);
	wait_for(peer_state(s.peer) != RGATE_PEER_UP);
	while (!rgate_peer_recv(s.peer, &msg, in, sizeof(in), 0))
		;
	siege_join(&s);
	siege_end(&s);
}

/* Somebody of this machine who connects again and again, and says nothing */
static void strangers(void **state)
{
	struct rgate_cluster_node to = { .sz = sizeof(to) };
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	unsigned int i, files;
	int fd[100];
	struct siege s;

	(void)state;
	siege_begin(&s, 0);
	if (!s.c.local) {
		siege_end(&s);
		unit_skip("this provider has no socket of this machine");
	}
	assert_int_equal(rgate_cluster_node(s.c.conf, 0, &to), 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%.100s", to.addr);
	files = open_files();
	for (i = 0; i < ARRAY_LEN(fd); i++) {
		fd[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(fd[i], (struct sockaddr *)&sa, sizeof(sa)), 0);
		if (i % 3 == 0)
			assert_int_equal(send(fd[i], "noise", i % 6, MSG_NOSIGNAL), i % 6);
	}
	siege_join(&s);
	/* at the node: a few, three descriptors each; and what the member has */
	assert_true(open_files() < files + ARRAY_LEN(fd) + 100);
	for (i = 0; i < ARRAY_LEN(fd); i++)
		close(fd[i]);
	wait_for(open_files() < files + 20);
	siege_end(&s);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(dawdler),
	cmocka_unit_test(bad_member),
	/* not the first: a device's very first connection may be refused before it is made */
	cmocka_unit_test(mute_server),
	cmocka_unit_test(false_credits),
	cmocka_unit_test(flood),
	cmocka_unit_test(strangers),
};

UNIT_MAIN(tests)
