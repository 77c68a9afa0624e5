// SPDX-License-Identifier: MIT OR GPL-2.0
#include "ended.h"
#include "siege.h"

#include <endian.h>
#include <string.h>

#include "link.h"

void who_is(struct who *w, const struct cluster *c, const uint8_t key[RGATE_KEY_LEN],
	    unsigned int to)
{
	memcpy(w->key, key, sizeof(w->key));
	assert_int_equal(rgate_key_public(w->public, w->key), 0);
	assert_int_equal(rgate_key_public(w->peer, c->keys[to]), 0);
	assert_int_equal(rgate_noise_dh(w->shared, w->key, w->public, w->peer), 0);
	w->keys = (struct rgate_noise_keys){ w->key, w->public, w->peer, w->shared };
}

void siege_begin(struct siege *s, uint32_t timeout_ms)
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
	who_is(&s->me, &s->c, s->c.keys[1], 0);
	s->terms = (struct rgate_hs_terms){ 4711, 1024, ENDS_RECV };
}

void siege_end(struct siege *s)
{
	const uint64_t *words = s->buf->addr;
	unsigned int i;

	for (i = 0; i < 4096 / 8; i++)
		assert_int_equal(words[i], 0);
	rgate_peer_close(s->peer);
	end_close(&s->e);
	assert_int_equal(rgate_pool_free(rgate_node_pool(s->node), s->buf), 0);
	assert_int_equal(node_ended(s->node), 0);
	cluster_free(&s->c);
}

struct rgate_node_stats node_stats(struct rgate_node *node)
{
	struct rgate_node_stats st = { .sz = sizeof(st) };

	assert_int_equal(rgate_node_stats(node, &st), 0);
	return st;
}

void siege_hang_up(struct siege *s)
{
	s->e.prov->destroy(s->e.conn);
	s->e.conn = NULL;
}

int siege_knock(struct siege *s, const void *hello, size_t len, struct rgate_prov_event *ev)
{
	struct rgate_cluster_node to = { .sz = sizeof(to) };
	int err;

	assert_int_equal(rgate_cluster_node(s->c.conf, 0, &to), 0);
	err = s->e.prov->connect(s->e.ep, &to, hello, len, &s->e, &s->e.conn);
	if (err) {
		s->e.conn = NULL;
		return err;
	}
	/* of this one; what becomes of others is nothing to us */
	wait_for(end_any_event(&s->e, ev) && ev->conn == s->e.conn);
	if (ev->kind == RGATE_PROV_REPLY)
		return 0;
	assert_int_equal(ev->kind, RGATE_PROV_DOWN);
	siege_hang_up(s);
	return ev->err;
}

void siege_hello(struct siege *s)
{
	assert_int_equal(rgate_hs_hello(&s->hs, 1, 0, &s->me.keys), 0);
}

void siege_enter(struct siege *s)
{
	struct rgate_prov_event ev;

	assert_int_equal(siege_knock(s, &s->hs.hello, sizeof(s->hs.hello), &ev), 0);
	assert_true(ev.len >= sizeof(s->welcome));
	memcpy(&s->welcome, ev.data, sizeof(s->welcome));
	end_prepare(&s->e);
	assert_int_equal(s->e.prov->establish(s->e.conn), 0);
	assert_int_equal(s->e.prov->allow(s->e.conn, RGATE_ACCESS_REMOTE), 0);
}

void siege_proof(struct siege *s, struct rgate_hs_proof *proof)
{
	struct rgate_hs_terms theirs;
	struct rgate_desc line;

	assert_int_equal(rgate_buf_desc(s->e.pool, s->e.buf, 0, 64, &line), 0);
	assert_int_equal(rgate_hs_read_welcome(&s->hs, &s->welcome, sizeof(s->welcome), &theirs),
			 0);
	assert_int_equal(theirs.incarnation, rgate_node_incarnation(s->node));
	assert_int_equal(rgate_hs_proof(&s->hs, proof, &s->terms, &line), 0);
}

int siege_say(struct siege *s, uint64_t type, const void *data, size_t len)
{
	/* What was said before may not have left yet. */
	const size_t at = 16384 + s->said++ % 8 * 4096;
	struct rgate_sge sge = end_sge(&s->e, at, 8 + len);
	struct rgate_op op = { .kind = RGATE_OP_SEND, .nsge = 1, .sge = &sge };

	type = htole64(type);
	memcpy(sge.addr, &type, 8);
	memcpy((char *)sge.addr + 8, data, len);
	return end_post(&s->e, &op, 1);
}

void siege_over(struct siege *s)
{
	const uint64_t until = unit_now_ns() + MS * 1000000ULL;
	struct rgate_prov_event ev;
	bool gone = false;

	while (!gone && unit_now_ns() < until) {
		gone = end_any_event(&s->e, &ev) && ev.kind == RGATE_PROV_DOWN &&
		       ev.conn == s->e.conn;
		(void)s->e.prov->poll(s->e.conn, &s->e.last, 1);
	}
	assert_true(gone);
	siege_hang_up(s);
}

void siege_join(struct siege *s)
{
	struct rgate_hs_proof proof;
	struct rgate_desc line;

	siege_hello(s);
	siege_enter(s);
	siege_proof(s, &proof);
	assert_int_equal(siege_say(s, RGATE_MSG_PROOF, &proof, sizeof(proof)), 0);
	do
		assert_int_equal(end_wait(&s->e), 0);
	while (s->e.last.kind != RGATE_PROV_RECV);
	assert_int_equal(s->e.last.len, 8 + sizeof(struct rgate_hs_ready));
	assert_int_equal(rgate_hs_read_ready(&s->hs, (char *)s->e.slots->addr +
					     s->e.last.id * ENDS_SLOT + 8,
					     sizeof(struct rgate_hs_ready), &line), 0);
	assert_int_equal(rgate_desc_parse(&s->line, &line, sizeof(line)), 0);
	assert_int_equal(rgate_peer_wait_up(s->peer, MS), 0);
}
