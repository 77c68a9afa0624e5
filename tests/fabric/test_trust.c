// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Who is let in: the node that has the key, and nobody who replays, turns, cuts or forges
 * what it says, whichever of the three messages that is.
 */
#include "ended.h"
#include "siege.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "link.h"
#include "meet.h"

static void flip(void *data, unsigned int bit)
{
	((uint8_t *)data)[bit / 8] ^= (uint8_t)(1 << bit % 8);
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
		assert_int_equal(siege_knock(&s, &h, 1 + i * 2, &ev), -ECONNREFUSED);
		assert_int_equal(node_stats(s.node).garbage, i + 1);
	}
	/* what it says in clear: of the cluster's nodes there are 0 and 1, and we are 0 */
	for (i = 0; i < 5; i++) {
		siege_hello(&s);
		h = s.hs.hello;
		switch (i) {
		case 0:
			h.magic ^= htole32(1 << 16);
			break;
		case 1:
			h.version = htole16(1);
			break;
		case 2:
			h.to = 1;
			break;
		case 3:
			h.from = 0;
			break;
		default:
			h.from = 200;
		}
		assert_int_equal(siege_knock(&s, &h, sizeof(h), &ev), -ECONNREFUSED);
		assert_int_equal(node_stats(s.node).garbage, 21 + i);
	}
	/* well-formed, of a node that the file does not list */
	siege_hello(&s);
	s.hs.hello.from = 5;
	assert_int_equal(siege_knock(&s, &s.hs.hello, sizeof(h), &ev), -ECONNREFUSED);
	siege_join(&s);
	wait_for(node_stats(s.node).accepted == 1);
	siege_end(&s);
}

/* Every bit of the first message: refused by what it says, or for want of a proof */
static void flipped_hello(void **state)
{
	struct rgate_prov_event ev;
	struct rgate_node_stats st;
	struct rgate_hs_hello h;
	struct siege s;
	unsigned int bit;
	int err;

	(void)state;
	siege_begin(&s, 0);
	siege_hello(&s);
	for (bit = 0; bit < sizeof(h) * 8; bit++) {
		/* Over RDMA each costs a connection of some ms: there one in seven is enough. */
		if (!s.c.local && bit % 7)
			continue;
		h = s.hs.hello;
		flip(&h, bit);
		err = siege_knock(&s, &h, sizeof(h), &ev);
		/* bits of magic, version, from and to; then e and the tag */
		assert_int_equal(err, bit < 64 ? -ECONNREFUSED : -EACCES);
	}
	st = node_stats(s.node);
	assert_true(!st.accepted && st.bad_key >= 384 / 7 && st.garbage >= 48 / 7);
	/* the same, untouched, is still good: nothing was kept of the others */
	siege_enter(&s);
	siege_hang_up(&s);
	siege_end(&s);
}

/* Who has another key than node 1's, whatever he says of himself */
static void wrong_key(void **state)
{
	uint8_t key[RGATE_KEY_LEN];
	struct rgate_prov_event ev;
	struct siege s;
	struct who w;
	unsigned int i;

	(void)state;
	siege_begin(&s, 0);
	for (i = 0; i < 3; i++) {
		/* a key of nobody; that, with node 1's public key; the besieged node's own */
		assert_int_equal(rgate_key_generate(key), 0);
		who_is(&w, &s.c, i == 2 ? s.c.keys[0] : key, 0);
		if (i == 1)
			memcpy(w.public, s.me.public, sizeof(w.public));
		assert_int_equal(rgate_hs_hello(&s.hs, 1, 0, &w.keys), 0);
		assert_int_equal(siege_knock(&s, &s.hs.hello, sizeof(s.hs.hello), &ev), -EACCES);
		assert_int_equal(node_stats(s.node).bad_key, i + 1);
	}
	siege_join(&s);
	siege_end(&s);
}

/* Links that were made: the linker sends the library's calls here (--wrap) */
static unsigned int links;	/* atomic */

int __real_rgate_link_create(struct rgate_link **link, const struct rgate_link_opts *opts);
int __wrap_rgate_link_create(struct rgate_link **link, const struct rgate_link_opts *opts);
int __wrap_rgate_link_create(struct rgate_link **link, const struct rgate_link_opts *opts)
{
	__atomic_add_fetch(&links, 1, __ATOMIC_RELAXED);
	return __real_rgate_link_create(link, opts);
}

#define STRANGERS	20

/* Says what it is told to, and keeps each connection when it was refused */
static int stranger(int sock, void *arg)
{
	struct rgate_cluster_node to = { .sz = sizeof(to) };
	struct rgate_conn *conn[STRANGERS];
	struct rgate_prov_event ev;
	struct rgate_hs_hello h;
	const struct cluster *c = arg;
	unsigned int n = 0;
	struct end e;

	end_open(&e, c, 1, 2000);
	unit_require(!rgate_cluster_node(c->conf, 0, &to));
	while (read(sock, &h, sizeof(h)) == sizeof(h)) {
		unit_require(n < STRANGERS);
		unit_require(!e.prov->connect(e.ep, &to, &h, sizeof(h), &e, &conn[n]));
		while (!end_any_event(&e, &ev))
			nodes_nap();
		unit_require(ev.kind == RGATE_PROV_DOWN && ev.conn == conn[n++]);
		unit_require(write(sock, &ev.err, sizeof(ev.err)) == sizeof(ev.err));
	}
	while (n)
		e.prov->destroy(conn[--n]);
	end_close(&e);
	return 0;
}

struct holding {
	unsigned int files;
	unsigned long objects;
	uint64_t buffers;
};

static struct holding held_by(const struct cluster *c, struct rgate_node *node)
{
	struct rgate_pool_stats pool = { .sz = sizeof(pool) }, stage = { .sz = sizeof(stage) };

	assert_int_equal(rgate_pool_stats(rgate_node_pool(node), &pool), 0);
	assert_int_equal(rgate_pool_stats(rgate_node_stage(node), &stage), 0);
	return (struct holding){
		.files = open_files(), .buffers = pool.used_buffers + stage.used_buffers,
		.objects = rdma_objects(c, c->local ? NULL :
					rgate_device_info(rgate_node_device(node))->name),
	};
}

/*
 * Who is refused by his first message has cost nothing: no link is made for him, not even for a
 * moment, and nothing of him is here while he keeps his end of the connection.
 */
static void nothing_kept(void **state)
{
	struct holding before, after;
	uint8_t key[RGATE_KEY_LEN];
	struct rgate_node *node;
	struct rgate_peer *peer;
	struct rgate_hs hs;
	struct cluster c;
	struct who w;
	unsigned int i;
	int sock, pid, err;

	(void)state;
	cluster_make(&c, 2, 0);
	pid = unit_fork(stranger, &c, &sock);
	node = cluster_node(&c, 0);
	assert_int_equal(rgate_peer_open(&peer, node, 1), 0);
	assert_int_equal(rgate_key_generate(key), 0);
	who_is(&w, &c, key, 0);
	before = held_by(&c, node);
	links = 0;
	for (i = 0; i < STRANGERS; i++) {
		assert_int_equal(rgate_hs_hello(&hs, 1, 0, &w.keys), 0);
		if (i % 2)
			hs.hello.version = htole16(1);
		assert_int_equal(write(sock, &hs.hello, sizeof(hs.hello)), sizeof(hs.hello));
		assert_int_equal(read(sock, &err, sizeof(err)), sizeof(err));
		assert_int_equal(err, i % 2 ? -ECONNREFUSED : -EACCES);
	}
	assert_int_equal(__atomic_load_n(&links, __ATOMIC_RELAXED), 0);
	wait_for(held_by(&c, node).files <= before.files);
	wait_for(held_by(&c, node).objects <= before.objects);
	after = held_by(&c, node);
	assert_int_equal(after.buffers, before.buffers);
	close(sock);
	unit_reap(pid, 0);
	rgate_peer_close(peer);
	assert_int_equal(node_ended(node), 0);
	cluster_free(&c);
}

/* A member that takes another member's id: what one shared key could not tell apart */
static void another_node(void **state)
{
	struct rgate_cluster_node to0 = { .sz = sizeof(to0) };
	struct rgate_node *node, *third;
	struct rgate_peer *peer, *to;
	struct rgate_prov_event ev;
	struct rgate_hs hs;
	struct cluster c;
	struct end e;
	struct who w;

	(void)state;
	cluster_make(&c, 3, 0);
	node = cluster_node(&c, 0);
	assert_int_equal(rgate_peer_open(&peer, node, 1), 0);
	end_open(&e, &c, 1, 2000);
	who_is(&w, &c, c.keys[2], 0);
	memset(&hs, 0, sizeof(hs));
	assert_int_equal(rgate_hs_hello(&hs, 1, 0, &w.keys), 0);
	assert_int_equal(rgate_cluster_node(c.conf, 0, &to0), 0);
	assert_int_equal(e.prov->connect(e.ep, &to0, &hs.hello, sizeof(hs.hello), &e, &e.conn), 0);
	end_event(&e, RGATE_PROV_DOWN, &ev);
	assert_int_equal(ev.err, -EACCES);
	assert_int_equal(node_stats(node).bad_key, 1);
	end_close(&e);
	/* nor can a node be made with another one's key */
	c.opts.key = c.keys[2];
	assert_int_equal(rgate_node_create(&third, c.conf, 1, &c.opts), -EACCES);
	c.opts.key = c.keys[0];
	assert_int_equal(rgate_node_create(&third, c.conf, 1, &c.opts), -EACCES);
	/* and with its own it is let in, as itself */
	third = cluster_node(&c, 2);
	assert_int_equal(rgate_peer_open(&to, third, 0), 0);
	rgate_peer_close(peer);
	assert_int_equal(rgate_peer_open(&peer, node, 2), 0);
	assert_int_equal(rgate_peer_wait_up(to, MS), 0);
	rgate_peer_close(to);
	rgate_peer_close(peer);
	assert_int_equal(node_ended(third), 0);
	assert_int_equal(node_ended(node), 0);
	cluster_free(&c);
}

/* Node 1, with its key, from an address that the file has for another node */
static void elsewhere(void **state)
{
	struct rgate_cluster_node to = { .sz = sizeof(to) }, self = { .sz = sizeof(self) };
	const struct rgate_ep_opts opts = {
		.self = &self, .send_depth = ENDS_SEND, .recv_depth = ENDS_RECV, .timeout_ms = 2000,
	};
	struct rgate_prov_event ev;
	struct rgate_conn *conn;
	struct rgate_ep *ep;
	struct siege s;

	(void)state;
	siege_begin(&s, 0);
	assert_int_equal(rgate_cluster_node(s.c.conf, 0, &to), 0);
	assert_int_equal(rgate_cluster_node(s.c.conf, 1, &self), 0);
	if (s.c.local || !strcmp(to.addr, self.addr)) {
		siege_end(&s);
		unit_skip("the nodes have no addresses of their own here");
	}
	memcpy(self.addr, to.addr, sizeof(self.addr));
	assert_int_equal(s.e.prov->open(&ep, &opts), 0);
	siege_hello(&s);
	assert_int_equal(s.e.prov->connect(ep, &to, &s.hs.hello, sizeof(s.hs.hello), &s, &conn), 0);
	wait_for(s.e.prov->event(ep, &ev) == 1);
	assert_int_equal(ev.kind, RGATE_PROV_DOWN);
	assert_int_equal(ev.err, -EACCES);
	assert_int_equal(node_stats(s.node).bad_key, 1);
	s.e.prov->destroy(conn);
	s.e.prov->close(ep);
	/* the same hello, from where node 1 is */
	siege_enter(&s);
	siege_hang_up(&s);
	siege_end(&s);
}

/* Without a proof there is no way to the memory, nor to the peer */
static void no_proof(void **state)
{
	static const uint8_t kinds[] = { RGATE_OP_WRITE, RGATE_OP_READ, RGATE_OP_FETCH_ADD };
	struct rgate_hs_proof p;
	struct rgate_sge sge;
	struct rgate_op op;
	struct siege s;
	unsigned int i;

	(void)state;
	siege_begin(&s, 0);
	sge = end_sge(&s.e, 0, 8);
	memset(sge.addr, 0xee, 8);
	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		siege_hello(&s);
		siege_enter(&s);
		op = (struct rgate_op){ .kind = kinds[i], .nsge = 1, .sge = &sge,
					.remote = s.at.addr, .rkey = s.at.rkey };
		assert_int_equal(end_do(&s.e, &op), -EREMOTEIO);
		siege_hang_up(&s);
		wait_for(node_stats(s.node).bad_key == i + 1);
	}
	for (i = 0; i < 4; i++) {
		siege_hello(&s);
		siege_enter(&s);
		siege_proof(&s, &p);
		/* noise; what the node itself said; a wrong length; another message */
		if (!i)
			memset(&p, 0x5a, sizeof(p));
		else if (i == 1)
			memcpy(&p, &s.welcome, sizeof(p));
		assert_int_equal(siege_say(&s, i == 3 ? RGATE_MSG_USER : RGATE_MSG_PROOF, &p,
					   i == 2 ? sizeof(p) - 1 : sizeof(p)), 0);
		siege_over(&s);
		wait_for(node_stats(s.node).bad_key + node_stats(s.node).garbage ==
			 ARRAY_LEN(kinds) + i + 1);
		assert_int_equal(node_stats(s.node).garbage, i < 2 ? 0 : i - 1);
		assert_true(peer_state(s.peer) != RGATE_PEER_UP);
	}
	assert_int_equal(node_stats(s.node).accepted, 0);
	siege_join(&s);
	siege_end(&s);
}

/* Every bit of the third message */
static void flipped_proof(void **state)
{
	unsigned int bit, step, tried = 0;
	struct rgate_hs_proof p;
	struct siege s;

	(void)state;
	siege_begin(&s, 0);
	step = s.c.local ? 1 : 41;
	for (bit = 0; bit < sizeof(p) * 8; bit += step) {
		siege_hello(&s);
		siege_enter(&s);
		siege_proof(&s, &p);
		flip(&p, bit);
		assert_int_equal(siege_say(&s, RGATE_MSG_PROOF, &p, sizeof(p)), 0);
		siege_over(&s);
		tried++;
		wait_for(node_stats(s.node).bad_key == tried);
	}
	assert_int_equal(node_stats(s.node).accepted, 0);
	siege_join(&s);
	siege_end(&s);
}

/* A member whose numbers are none: nothing of it is believed */
static void out_of_range(void **state)
{
	static const struct rgate_hs_terms bad[] = {
		{ 1, 63, 64 }, { 1, UINT32_MAX, 64 }, { 1, 1024, 0 }, { 1, 1024, 4097 },
	};
	struct rgate_hs_proof p;
	struct siege s;
	unsigned int i;

	(void)state;
	siege_begin(&s, 0);
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		s.terms = bad[i];
		siege_hello(&s);
		siege_enter(&s);
		siege_proof(&s, &p);
		assert_int_equal(siege_say(&s, RGATE_MSG_PROOF, &p, sizeof(p)), 0);
		siege_over(&s);
		wait_for(node_stats(s.node).garbage == i + 1);
		assert_true(peer_state(s.peer) != RGATE_PEER_UP);
	}
	s.terms = (struct rgate_hs_terms){ 4711, 1024, ENDS_RECV };
	siege_join(&s);
	assert_int_equal(node_stats(s.node).bad_key, 0);
	siege_end(&s);
}

static struct rgate_peer_info info_of(struct rgate_peer *peer)
{
	struct rgate_peer_info info = { .sz = sizeof(info) };

	assert_int_equal(rgate_peer_info(peer, &info), 0);
	return info;
}

/*
 * All of a good handshake again, while its connection lives: the hello is answered, which
 * is by design, and that is all. The link stays, and no trace of the other one.
 */
static void replayed(void **state)
{
	struct rgate_conn *live;
	struct rgate_hs_hello h;
	struct rgate_hs_proof p;
	struct rgate_prov_event ev;
	struct siege s;
	unsigned int i, files;

	(void)state;
	/* heartbeats of the one that lives are not sent here */
	siege_begin(&s, 60000);
	siege_hello(&s);
	siege_enter(&s);
	siege_proof(&s, &p);
	h = s.hs.hello;
	assert_int_equal(siege_say(&s, RGATE_MSG_PROOF, &p, sizeof(p)), 0);
	assert_int_equal(rgate_peer_wait_up(s.peer, MS), 0);
	live = s.e.conn;
	files = open_files();
	for (i = 0; i < 8; i++) {
		assert_int_equal(siege_knock(&s, &h, sizeof(h), &ev), 0);
		end_prepare(&s.e);
		assert_int_equal(s.e.prov->establish(s.e.conn), 0);
		/* the proof of the other time; or nothing */
		if (i % 2)
			assert_int_equal(siege_say(&s, RGATE_MSG_PROOF, &p, sizeof(p)), 0);
		if (i % 2)
			siege_over(&s);
		else
			siege_hang_up(&s);
		wait_for(node_stats(s.node).bad_key == i + 1);
		assert_int_equal(info_of(s.peer).state, RGATE_PEER_UP);
		assert_int_equal(info_of(s.peer).epoch, 1);
	}
	assert_int_equal(node_stats(s.node).accepted, 1);
	wait_for(open_files() <= files);
	/* the one that lives is the one that it was */
	s.e.conn = live;
	assert_int_equal(siege_say(&s, RGATE_MSG_USER, "hello", 5), 0);
	{
		struct rgate_msg msg;
		char in[64];

		assert_int_equal(rgate_peer_recv(s.peer, &msg, in, sizeof(in), MS), 0);
		assert_int_equal(msg.len, 5);
	}
	siege_hang_up(&s);
	wait_for(peer_state(s.peer) != RGATE_PEER_UP);
	siege_join(&s);
	siege_end(&s);
}

/* A new connection of the same node takes the place of the old one once it has proved it */
static void displaced(void **state)
{
	struct rgate_conn *old;
	struct siege s;

	(void)state;
	siege_begin(&s, 0);
	siege_join(&s);
	old = s.e.conn;
	siege_join(&s);
	/* it was up all the time */
	wait_for(info_of(s.peer).epoch == 2);
	assert_int_equal(info_of(s.peer).state, RGATE_PEER_UP);
	s.e.prov->destroy(old);
	assert_int_equal(info_of(s.peer).epoch, 2);
	siege_end(&s);
}

/* Half-open connections of one node: a few, and then the oldest goes for the newest */
static void half_open(void **state)
{
	struct rgate_conn *conn[RGATE_MEET_PLACES + 3];
	struct rgate_prov_event ev;
	struct rgate_hs_proof p;
	struct siege s;
	unsigned int i;

	(void)state;
	siege_begin(&s, 0);
	for (i = 0; i < ARRAY_LEN(conn); i++) {
		siege_hello(&s);
		assert_int_equal(siege_knock(&s, &s.hs.hello, sizeof(s.hs.hello), &ev), 0);
		conn[i] = s.e.conn;
		assert_int_equal(node_stats(s.node).timeouts,
				 i < RGATE_MEET_PLACES ? 0 : i + 1 - RGATE_MEET_PLACES);
	}
	memcpy(&s.welcome, ev.data, sizeof(s.welcome));
	/* the same hello again gets no second place while the first is there */
	assert_int_equal(siege_knock(&s, &s.hs.hello, sizeof(s.hs.hello), &ev), -ECONNREFUSED);
	assert_int_equal(node_stats(s.node).timeouts, ARRAY_LEN(conn) - RGATE_MEET_PLACES);
	/* the newest one goes on as if the others were not there */
	s.e.conn = conn[ARRAY_LEN(conn) - 1];
	end_prepare(&s.e);
	assert_int_equal(s.e.prov->establish(s.e.conn), 0);
	assert_int_equal(s.e.prov->allow(s.e.conn, RGATE_ACCESS_REMOTE), 0);
	siege_proof(&s, &p);
	assert_int_equal(siege_say(&s, RGATE_MSG_PROOF, &p, sizeof(p)), 0);
	assert_int_equal(rgate_peer_wait_up(s.peer, MS), 0);
	for (i = 0; i + 1 < ARRAY_LEN(conn); i++)
		s.e.prov->destroy(conn[i]);
	wait_for(node_stats(s.node).bad_key == RGATE_MEET_PLACES - 1);
	assert_int_equal(info_of(s.peer).state, RGATE_PEER_UP);
	assert_int_equal(info_of(s.peer).epoch, 1);
	siege_hang_up(&s);
	siege_end(&s);
}

/* Somebody answers in the place of node 0 */
static void false_server(void **state)
{
	const struct rgate_hs_terms terms = { 99, 1024, 64 }, none = { 99, 1, 64 };
	struct rgate_hs_hello hello;
	struct rgate_prov_event ev;
	struct rgate_hs_welcome w;
	struct rgate_node *node;
	struct rgate_peer *peer;
	struct rgate_hs hs;
	struct cluster c;
	unsigned int i, bits = 0, bad = 0;
	struct who good;
	struct end e;

	(void)state;
	cluster_make(&c, 2, 0);
	end_open(&e, &c, 0, 2000);
	who_is(&good, &c, c.keys[0], 1);
	node = cluster_node(&c, 1);
	assert_int_equal(rgate_peer_open(&peer, node, 0), 0);
	memset(&w, 0xa5, sizeof(w));
	/* noise; the answer to another hello; a short one; numbers that are none; single bits */
	for (i = 0; i < 8; i++) {
		end_event(&e, RGATE_PROV_REQUEST, &ev);
		e.conn = ev.conn;
		end_prepare(&e);
		memset(&hs, 0, sizeof(hs));
		assert_int_equal(rgate_hs_read_hello(&hello, ev.data, ev.len, 0), 0);
		assert_int_equal(rgate_hs_check_hello(&hs, &hello, &good.keys), 0);
		if (i > 1)
			assert_int_equal(rgate_hs_welcome(&hs, &w, i == 3 ? &none : &terms), 0);
		if (i > 3)
			flip(&w, bits += 97);
		bad += i != 2 && i != 3;
		assert_int_equal(e.prov->accept(e.conn, &w, i == 2 ? 20 : sizeof(w), &e), 0);
		/* what would have been right here is wrong the next time */
		if (!i)
			assert_int_equal(rgate_hs_welcome(&hs, &w, &terms), 0);
		end_event(&e, RGATE_PROV_DOWN, &ev);
		e.prov->destroy(e.conn);
		e.conn = NULL;
		wait_for(node_stats(node).bad_key + node_stats(node).garbage == i + 1);
		assert_true(peer_state(peer) != RGATE_PEER_UP);
		assert_int_equal(info_of(peer).epoch, 0);
	}
	/* over RDMA the short one comes with zeros up to its full length */
	assert_true(node_stats(node).bad_key == bad || node_stats(node).bad_key == bad + 1);
	rgate_peer_close(peer);
	assert_int_equal(node_ended(node), 0);
	end_close(&e);
	cluster_free(&c);
}

/* Of both sides, as programs see it: the file of one has another key for the other */
static void files_differ(void **state)
{
	struct rgate_node *node[2];
	struct rgate_peer *peer[2];
	struct cluster c, d;
	char text[2048];
	size_t len;

	(void)state;
	cluster_make(&c, 2, 0);
	node[0] = cluster_node(&c, 0);
	d = c;
	assert_int_equal(rgate_key_generate(d.keys[1]), 0);
	len = cluster_text(&d, "/nowhere", text, sizeof(text));
	assert_int_equal(rgate_cluster_parse(&d.conf, "other", text, len), 0);
	node[1] = cluster_node(&d, 1);
	assert_int_equal(rgate_peer_open(&peer[0], node[0], 1), 0);
	assert_int_equal(rgate_peer_open(&peer[1], node[1], 0), 0);
	assert_int_equal(rgate_peer_wait_up(peer[1], 1000), -EACCES);
	assert_int_equal(rgate_peer_wait_up(peer[0], 10), -ETIMEDOUT);
	assert_true(node_stats(node[0]).bad_key > 0);
	assert_int_equal(node_stats(node[0]).accepted + node_stats(node[1]).accepted, 0);
	rgate_peer_close(peer[1]);
	assert_int_equal(node_ended(node[1]), 0);
	rgate_cluster_destroy(d.conf);
	/* and with the right one */
	node[1] = cluster_node(&c, 1);
	assert_int_equal(rgate_peer_open(&peer[1], node[1], 0), 0);
	assert_int_equal(rgate_peer_wait_up(peer[1], MS), 0);
	assert_int_equal(rgate_peer_wait_up(peer[0], MS), 0);
	rgate_peer_close(peer[0]);
	rgate_peer_close(peer[1]);
	assert_int_equal(node_ended(node[0]), 0);
	assert_int_equal(node_ended(node[1]), 0);
	cluster_free(&c);
}

static const struct CMUnitTest tests[] = {
	/* A child that has its own devices: before this process has any. */
	cmocka_unit_test(nothing_kept),
	cmocka_unit_test(garbage_hello),
	cmocka_unit_test(flipped_hello),
	cmocka_unit_test(wrong_key),
	cmocka_unit_test(another_node),
	cmocka_unit_test(elsewhere),
	cmocka_unit_test(no_proof),
	cmocka_unit_test(flipped_proof),
	cmocka_unit_test(out_of_range),
	cmocka_unit_test(replayed),
	cmocka_unit_test(displaced),
	cmocka_unit_test(half_open),
	cmocka_unit_test(false_server),
	cmocka_unit_test(files_differ),
};

UNIT_MAIN(tests)
