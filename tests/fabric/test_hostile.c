// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What a node withstands: strangers without the key, who replay and reflect what they
 * heard; members that have the key and break the rules.
 */
#include "ends.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "handshake.h"
#include "link.h"

#define SHORT_MS	1500

struct siege {			/* node 0, and an end that says it is node 1 */
	struct cluster c;
	struct rgate_node *node;
	struct rgate_peer *peer;
	const struct rgate_buf *buf;
	struct rgate_remote at;
	struct end e;
	struct rgate_hs_hello hello;
	struct rgate_hs_welcome welcome;
	struct rgate_remote line;	/* of the node, once it was told */
};

static void siege_begin(struct siege *s, uint32_t timeout_ms)
{
	const struct rgate_alloc_opts zero = RGATE_OPTS(rgate_alloc_opts,
							.flags = RGATE_ALLOC_ZERO);
	struct rgate_desc d;

	memset(s, 0, sizeof(*s));
	cluster_make(&s->c, 2, timeout_ms);
	s->node = cluster_node(&s->c, 0);
	assert_int_equal(rgate_pool_alloc_opts(rgate_node_pool(s->node), 4096, &zero, &s->buf), 0);
	assert_int_equal(rgate_buf_desc(rgate_node_pool(s->node), s->buf, 0, 0, &d), 0);
	assert_int_equal(rgate_desc_parse(&s->at, &d, sizeof(d)), 0);
	assert_int_equal(rgate_peer_open(&s->peer, s->node, 1), 0);
	end_open(&s->e, &s->c, 1, 2000);
}

/* Nothing was written, and nothing is left over */
static void siege_end(struct siege *s)
{
	const uint64_t *words = s->buf->addr;
	unsigned int i;

	for (i = 0; i < 4096 / 8; i++)
		assert_int_equal(words[i], 0);
	rgate_peer_close(s->peer);
	end_close(&s->e);
	assert_int_equal(rgate_pool_free(rgate_node_pool(s->node), s->buf), 0);
	assert_int_equal(rgate_node_destroy(s->node), 0);
	cluster_free(&s->c);
}

static struct rgate_node_stats stats_of(struct rgate_node *node)
{
	struct rgate_node_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_node_stats(node, &st), 0);
	return st;
}

static void hang_up(struct siege *s)
{
	s->e.prov->destroy(s->e.conn);
	s->e.conn = NULL;
}

/* What becomes of such a hello: 0 and an answer in @ev, or why not */
static int knock(struct siege *s, const void *hello, size_t len, struct rgate_prov_event *ev)
{
	struct rgate_cluster_node to = { .sz = sizeof(to) };
	int err;

	assert_int_equal(rgate_cluster_node(s->c.conf, 0, &to), 0);
	err = s->e.prov->connect(s->e.ep, &to, hello, len, &s->e, &s->e.conn);
	if (err) {
		s->e.conn = NULL;
		return err;
	}
	wait_for(end_any_event(&s->e, ev));
	if (ev->kind == RGATE_PROV_REPLY)
		return 0;
	assert_int_equal(ev->kind, RGATE_PROV_DOWN);
	hang_up(s);
	return ev->err;
}

static void good_hello(struct siege *s)
{
	assert_int_equal(rgate_hs_hello(&s->hello, 1, 0, 4711, 1024, ENDS_RECV), 0);
}

/* Up to the proof, which is to be sent next */
static void enter(struct siege *s)
{
	struct rgate_prov_event ev;

	/* The one before may not be gone yet: its place is taken until then. */
	wait_for(!knock(s, &s->hello, sizeof(s->hello), &ev));
	assert_true(ev.len >= sizeof(s->welcome));
	memcpy(&s->welcome, ev.data, sizeof(s->welcome));
	end_prepare(&s->e);
	assert_int_equal(s->e.prov->establish(s->e.conn), 0);
	assert_int_equal(s->e.prov->allow(s->e.conn, RGATE_ACCESS_REMOTE), 0);
}

/* A message of @type with @len bytes */
static int say(struct siege *s, uint64_t type, const void *data, size_t len)
{
	struct rgate_sge sge = end_sge(&s->e, 4096, 8 + len);
	struct rgate_op op = { .kind = RGATE_OP_SEND, .nsge = 1, .sge = &sge };

	type = htole64(type);
	memcpy(sge.addr, &type, 8);
	memcpy((char *)sge.addr + 8, data, len);
	return end_post(&s->e, &op, 1);
}

struct proof {
	struct rgate_hs_proof mac;
	struct rgate_desc line;
};

static void make_proof(struct siege *s, struct proof *p, const char *key)
{
	assert_int_equal(rgate_hs_proof(&p->mac, &s->hello, &s->welcome, key, RGATE_KEY_MIN), 0);
	assert_int_equal(rgate_buf_desc(s->e.pool, s->e.buf, 0, 64, &p->line), 0);
}

/* It ends, whatever comes before that */
static void wait_for_end(struct siege *s)
{
	const uint64_t until = unit_now_ns() + MS * 1000000ULL;
	struct rgate_prov_event ev;
	bool gone = false;

	while (!gone && unit_now_ns() < until) {
		gone = end_any_event(&s->e, &ev) && ev.kind == RGATE_PROV_DOWN;
		(void)s->e.prov->poll(s->e.conn, &s->e.last, 1);
	}
	assert_true(gone);
	hang_up(s);
}

/* As a member: the peer is up */
static void join(struct siege *s)
{
	struct proof p;

	good_hello(s);
	enter(s);
	make_proof(s, &p, s->c.key);
	assert_int_equal(say(s, RGATE_MSG_PROOF, &p, sizeof(p)), 0);
	do
		assert_int_equal(end_wait(&s->e), 0);
	while (s->e.last.kind != RGATE_PROV_RECV);
	assert_int_equal(s->e.last.len, 8 + sizeof(struct rgate_desc));
	assert_int_equal(rgate_desc_parse(&s->line, (char *)s->e.slots->addr +
					  s->e.last.id * ENDS_SLOT + 8,
					  sizeof(struct rgate_desc)), 0);
	assert_int_equal(rgate_peer_wait_up(s->peer, MS), 0);
}

static void spoil(struct rgate_hs_hello *h, unsigned int how)
{
	switch (how) {
	case 0:
		h->magic ^= htole32(1 << 16);
		break;
	case 1:
		h->version = htole16(2);
		break;
	case 2:
		h->to = 1;
		break;
	case 3:
		h->from = 0;	/* the node itself */
		break;
	case 4:
		h->from = 200;
		break;
	case 5:
		h->msg_size = htole32(UINT32_MAX);
		break;
	case 6:
		h->msg_size = 0;
		break;
	case 7:
		h->msg_depth = htole32(1 << 20);
		break;
	default:
		h->reserved[15] = 1;
		break;
	}
}

static void garbage_hello(void **state)
{
	struct rgate_prov_event ev;
	struct rgate_hs_hello h;
	struct siege s;
	uint64_t seed = 5;
	unsigned int i, k;

	(void)state;
	siege_begin(&s, 0);
	for (i = 0; i < 20; i++) {
		for (k = 0; k < sizeof(h); k++)
			((uint8_t *)&h)[k] = (uint8_t)unit_random(&seed);
		assert_int_equal(knock(&s, &h, 1 + i * 2, &ev), -ECONNREFUSED);
		assert_int_equal(stats_of(s.node).garbage, i + 1);
	}
	for (i = 0; i < 9; i++) {
		good_hello(&s);
		h = s.hello;
		spoil(&h, i);
		assert_int_equal(knock(&s, &h, sizeof(h), &ev), -ECONNREFUSED);
		assert_int_equal(stats_of(s.node).garbage, 21 + i);
	}
	/* well-formed, of a node that nobody here waits for */
	good_hello(&s);
	s.hello.from = 5;
	assert_int_equal(knock(&s, &s.hello, sizeof(h), &ev), -ECONNREFUSED);
	join(&s);
	assert_int_equal(stats_of(s.node).accepted, 1);
	siege_end(&s);
}

/* Without the key there is no way to the memory, nor to the peer */
static void no_key(void **state)
{
	static const uint8_t kinds[] = { RGATE_OP_WRITE, RGATE_OP_READ, RGATE_OP_FETCH_ADD };
	char key[RGATE_KEY_MIN] = "guessed";
	struct rgate_hs_welcome w;
	struct rgate_sge sge;
	struct rgate_op op;
	struct proof p;
	struct siege s;
	unsigned int i;

	(void)state;
	siege_begin(&s, 0);
	sge = end_sge(&s.e, 0, 8);
	memset(sge.addr, 0xee, 8);
	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		good_hello(&s);
		enter(&s);
		op = (struct rgate_op){ .kind = kinds[i], .nsge = 1, .sge = &sge,
					.remote = s.at.addr, .rkey = s.at.rkey };
		assert_int_equal(end_do(&s.e, &op), -EREMOTEIO);
		hang_up(&s);
		wait_for(stats_of(s.node).bad_key == i + 1);
	}
	for (i = 0; i < 4; i++) {
		good_hello(&s);
		enter(&s);
		assert_int_equal(rgate_hs_read_welcome(&w, &s.welcome, sizeof(w), &s.hello, key,
						       sizeof(key)), -EACCES);
		make_proof(&s, &p, key);
		/* no key; what the node itself said; a wrong length; another message */
		if (i == 1)
			memcpy(p.mac.mac, s.welcome.mac, sizeof(p.mac.mac));
		assert_int_equal(say(&s, i == 3 ? RGATE_MSG_USER : RGATE_MSG_PROOF, &p,
				     i == 2 ? sizeof(p) - 1 : sizeof(p)), 0);
		wait_for_end(&s);
		wait_for(stats_of(s.node).bad_key + stats_of(s.node).garbage ==
			 ARRAY_LEN(kinds) + i + 1);
		assert_int_equal(stats_of(s.node).garbage, i < 2 ? 0 : i - 1);
		assert_true(peer_state(s.peer) != RGATE_PEER_UP);
	}
	assert_int_equal(stats_of(s.node).accepted, 0);
	join(&s);
	siege_end(&s);
}

/* What was heard of a good handshake is of no use in another one */
static void replayed(void **state)
{
	struct proof p;
	struct siege s;

	(void)state;
	siege_begin(&s, 0);
	join(&s);
	make_proof(&s, &p, s.c.key);
	hang_up(&s);
	wait_for(peer_state(s.peer) != RGATE_PEER_UP);
	enter(&s);		/* the same hello, and then the same proof */
	assert_int_equal(say(&s, RGATE_MSG_PROOF, &p, sizeof(p)), 0);
	wait_for_end(&s);
	wait_for(stats_of(s.node).bad_key == 1);
	assert_int_equal(stats_of(s.node).accepted, 1);
	join(&s);
	siege_end(&s);
}

/* Somebody answers in the place of node 0 */
static void false_server(void **state)
{
	struct rgate_prov_event ev;
	struct rgate_hs_welcome w;
	struct rgate_hs_hello own;
	struct rgate_node *node;
	struct rgate_peer *peer;
	struct cluster c;
	unsigned int i;
	struct end e;

	(void)state;
	cluster_make(&c, 2, 0);
	end_open(&e, &c, 0, 2000);
	node = cluster_node(&c, 1);
	assert_int_equal(rgate_peer_open(&peer, node, 0), 0);
	for (i = 0; i < 4; i++) {
		end_event(&e, RGATE_PROV_REQUEST, &ev);
		e.conn = ev.conn;
		end_prepare(&e);
		assert_int_equal(rgate_hs_hello(&own, 0, 1, 99, 1024, 64), 0);
		/* a guess; noise; the right key for another hello; a short answer */
		assert_int_equal(rgate_hs_welcome(&w, i == 2 ? &own :
						  (struct rgate_hs_hello *)ev.data, &own,
						  i == 2 ? c.key : "a key that somebody has guessed ",
						  RGATE_KEY_MIN), 0);
		if (i == 1)
			memset(&w, 0xa5, sizeof(w));
		assert_int_equal(e.prov->accept(e.conn, &w, i == 3 ? 20 : sizeof(w), &e), 0);
		end_event(&e, RGATE_PROV_DOWN, &ev);
		e.prov->destroy(e.conn);
		e.conn = NULL;
		wait_for(stats_of(node).bad_key + stats_of(node).garbage == i + 1);
		assert_true(peer_state(peer) != RGATE_PEER_UP);
	}
	assert_int_equal(stats_of(node).bad_key, 2);
	rgate_peer_close(peer);
	assert_int_equal(rgate_node_destroy(node), 0);
	end_close(&e);
	cluster_free(&c);
}

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
	cluster_make(&c, 2, SHORT_MS);
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
			assert_true(unit_now_ns() - t > SHORT_MS * 1000000ULL / 2);
		}
		e.prov->destroy(e.conn);
		e.conn = NULL;
	}
	rgate_peer_close(peer);
	assert_int_equal(rgate_node_destroy(node), 0);
	end_close(&e);
	cluster_free(&c);
}

/* Who says hello and no more gets his time, and keeps nobody else out for longer */
static void dawdler(void **state)
{
	struct siege s;

	(void)state;
	siege_begin(&s, SHORT_MS);
	good_hello(&s);
	enter(&s);
	wait_for_end(&s);
	assert_int_equal(stats_of(s.node).timeouts, 1);
	join(&s);
	/* and then it shows no sign of life */
	wait_for(peer_state(s.peer) != RGATE_PEER_UP);
	{
		struct rgate_peer_info info = { .sz = sizeof(info) };

		assert_int_equal(rgate_peer_info(s.peer, &info), 0);
		assert_int_equal(info.error, -ETIMEDOUT);
	}
	wait_for_end(&s);
	siege_end(&s);
}

static const char text[2048] = "text";

static void misbehave(struct siege *s, unsigned int how)
{
	struct rgate_sge sge = end_sge(&s->e, 0, 7);
	struct rgate_op op = { .kind = RGATE_OP_SEND, .nsge = how == 4, .sge = &sge };

	switch (how) {
	case 0:
		(void)say(s, RGATE_MSG_PROOF, text, 64);
		break;
	case 1:
		(void)say(s, 77, text, 0);
		break;
	case 2:
		(void)say(s, 1ULL << 40 | RGATE_MSG_USER, text, 8);
		break;
	case 3:
		(void)say(s, RGATE_MSG_USER, text, 1025);
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
		join(&s);
		assert_int_equal(say(&s, RGATE_MSG_USER, text, 5), 0);
		assert_int_equal(rgate_peer_recv(s.peer, &msg, in, sizeof(in), MS), 0);
		assert_true(msg.len == 5 && !strcmp(in, "text"));
		misbehave(&s, i);
		do
			err = rgate_peer_recv(s.peer, &msg, in, sizeof(in), 100);
		while (err == -EAGAIN);
		assert_true(err == -EPROTO || err == -ENOTCONN);
		wait_for_end(&s);
		wait_for(peer_state(s.peer) != RGATE_PEER_UP);
		assert_int_equal(rgate_peer_send(s.peer, "x", 1, 10), -ENOTCONN);
	}
	assert_int_equal(stats_of(s.node).accepted, 6);
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
	join(&s);
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
	join(&s);
	for (i = 0; i < 1000 && !err; i++) {
		err = say(&s, RGATE_MSG_USER, &i, sizeof(i));
		if (err == -EAGAIN && !end_wait(&s.e))
			err = 0;
	}
	/* what was taken is in order; then the flood is over, or goes on */
	while (!rgate_peer_recv(s.peer, &msg, in, sizeof(in), 200))
		got++;
	assert_true(got >= 32);
	hang_up(&s);
	wait_for(peer_state(s.peer) != RGATE_PEER_UP);
	while (!rgate_peer_recv(s.peer, &msg, in, sizeof(in), 0))
		;
	join(&s);
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
	join(&s);
	/* at the node: a few, three descriptors each; and what the member has */
	assert_true(open_files() < files + ARRAY_LEN(fd) + 100);
	for (i = 0; i < ARRAY_LEN(fd); i++)
		close(fd[i]);
	wait_for(open_files() < files + 20);
	siege_end(&s);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(garbage_hello),
	cmocka_unit_test(no_key),
	cmocka_unit_test(replayed),
	cmocka_unit_test(false_server),
	cmocka_unit_test(mute_server),
	cmocka_unit_test(dawdler),
	cmocka_unit_test(bad_member),
	cmocka_unit_test(false_credits),
	cmocka_unit_test(flood),
	cmocka_unit_test(strangers),
};

UNIT_MAIN(tests)
