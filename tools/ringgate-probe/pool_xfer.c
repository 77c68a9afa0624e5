// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate pool verify: transfers between buffers of two processes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pool.h"
#include "pool_pattern.h"
#include "probe.h"
#include "util.h"

#define LOOK_MS		200
#define BROKEN_MAX	8	/* then it makes no sense to go on */

static const struct transfer {
	const char *name;
	enum rgate_rc_op op;
	enum peer_recv recv;
} transfers[] = {
	{ "send", RGATE_RC_SEND, RECV_SEND },
	{ "send with immediate", RGATE_RC_SEND_IMM, RECV_SEND_IMM },
	{ "write", RGATE_RC_WRITE, RECV_NOTHING },
	{ "write with immediate", RGATE_RC_WRITE_IMM, RECV_WRITE_IMM },
	{ "read", RGATE_RC_READ, RECV_NOTHING },
};

static int failed(int err, const char *what)
{
	probe_fail(err, what, "");
	return err;
}

int pool_connect(struct verify *v)
{
	struct peer_msg m = { .cmd = PEER_CONNECT };
	int err = side_renew(&v->side, &m.rc);

	if (err)
		return failed(err, "cannot make a queue pair");
	err = peer_call(&v->peer, &m);
	if (err)
		return err;
	if (m.err)
		return failed(m.err, "the peer cannot connect");
	err = rgate_rc_connect(v->side.rc, &m.rc);
	return err ? failed(err, "cannot connect to the peer") : 0;
}

int pool_do(struct verify *v, const struct rgate_rc_work *w)
{
	uint64_t until = util_now() + v->o->time_ns;
	struct ibv_wc wc;
	int n = 0, err = rgate_rc_post(v->side.rc, w, 1);

	/* As rgate_rc_do(), and Ctrl-C ends it */
	while (!err && !n && !util_stop && util_now() < until) {
		n = rgate_rc_poll(v->side.rc, &wc, LOOK_MS);
		if (n < 0)
			err = n;
	}
	if (err)
		return err;
	if (n)
		return rgate_rc_status(wc.status);
	return util_stop ? -EINTR : -ETIMEDOUT;
}

/* An operation failed that should not: a new connection for the next one */
static int mend(struct verify *v)
{
	if (util_stop)
		return -EINTR;
	if (++v->broken > BROKEN_MAX) {
		say("too many transfers failed: given up");
		return -EIO;
	}
	return pool_connect(v);
}

/* The peer makes @m's piece ready; @r: out, its descriptor as it was read */
static int prepare(struct verify *v, struct peer_msg *m, struct rgate_remote *r)
{
	int err;

	m->cmd = PEER_PREPARE;
	err = peer_call(&v->peer, m);
	if (err)
		return err;
	err = m->err ?: rgate_desc_parse(r, &m->desc, sizeof(m->desc));
	if (!err && r->length != m->piece.len)
		err = -EPROTO;
	return err ? failed(err, "the peer cannot prepare a buffer") : 0;
}

/* What this process's own buffer and its neighbours have to hold afterwards */
static void check_own(struct verify *v, const char *name, const struct piece *p,
		      uint64_t payload, uint64_t window)
{
	const struct carve *c = &v->side.carve;
	char text[CARVE_TEXT] = "";
	bool ok = piece_holds(c, p, payload, text) && piece_zones(c, p, window, text);

	report_add(&v->report, name, ok, "%zu bytes, initiator: %s", p->len, text);
}

static int check_peer(struct verify *v, const char *name, struct peer_msg *m)
{
	int err;

	m->cmd = PEER_CHECK;
	err = peer_call(&v->peer, m);
	if (!err)
		report_add(&v->report, name, !m->err, "%zu bytes, peer: %s", m->piece.len,
			   *m->text ? m->text : rgate_strerror("rgate_mem_", m->err));
	return err;
}

/* That a write is complete does not mean yet that the peer's CPU sees it. A read
 * behind it does: of one byte, back to where it came from. */
static int do_transfer(struct verify *v, struct rgate_rc_work *w)
{
	int err = pool_do(v, w);

	if (err || w->op != RGATE_RC_WRITE)
		return err;
	w->op = RGATE_RC_READ;
	w->length = 1;
	return pool_do(v, w);
}

static int transfer(struct verify *v, const struct transfer *t, size_t len, uint32_t where)
{
	struct carve *c = &v->side.carve;
	struct piece own = pool_place(v, c->n, where, len, 1);
	uint64_t window = pool_key(v), payload = pool_key(v);
	bool reads = t->op == RGATE_RC_READ;
	struct peer_msg m = {
		.piece = pool_place(v, v->peer_buffers, where, len, 1),
		.window = pool_key(v), .payload = reads ? payload : 0, .recv = t->recv,
		.imm = (uint32_t)pattern_random(&v->rng),
	};
	struct rgate_rc_work w = {
		.op = t->op, .addr = piece_addr(c, &own), .length = (uint32_t)len,
		.lkey = c->bufs[own.index]->lkey, .imm = m.imm,
	};
	struct rgate_remote r;
	int err;

	piece_fill(c, &own, window);
	if (!reads)
		piece_write(c, &own, payload);
	err = prepare(v, &m, &r);
	if (err)
		return err;
	w.remote = r.addr;
	w.rkey = r.rkey;
	err = do_transfer(v, &w);
	report_add(&v->report, t->name, !err, "%zu bytes: %s", len,
		   rgate_strerror("rgate_mem_", err));
	if (err)
		return mend(v);
	check_own(v, "contents and red zones", &own, payload, window);
	m.payload = payload;
	m.how = HOW_PAYLOAD;
	return check_peer(v, "contents and red zones", &m);
}

static const struct atomic {
	const char *name;
	enum rgate_rc_op op;
	bool fits;		/* compare-and-swap finds what it compares with */
} atomics[] = {
	{ "fetch-add", RGATE_RC_FETCH_ADD, true },
	{ "compare-swap", RGATE_RC_COMPARE_SWAP, true },
	{ "compare-swap, other value", RGATE_RC_COMPARE_SWAP, false },
};

static void check_old(struct verify *v, const struct atomic *t, const struct piece *own,
		      uint64_t old, uint64_t window)
{
	const struct carve *c = &v->side.carve;
	char text[CARVE_TEXT] = "";
	uint64_t got;

	memcpy(&got, piece_addr(c, own), sizeof(got));
	report_add(&v->report, t->name, got == old, "returned %#llx instead of %#llx",
		   (unsigned long long)got, (unsigned long long)old);
	report_add(&v->report, "contents and red zones", piece_zones(c, own, window, text),
		   "%s: %s", t->name, text);
}

static int atomic(struct verify *v, const struct atomic *t, uint32_t where)
{
	struct carve *c = &v->side.carve;
	struct piece own = pool_place(v, c->n, where, 8, 8);
	uint64_t window = pool_key(v), old, x = pattern_random(&v->rng);
	struct peer_msg m = {
		.piece = pool_place(v, v->peer_buffers, where, 8, 8),
		.window = pool_key(v), .how = HOW_VALUE,
	};
	struct rgate_rc_work w = {
		.op = t->op, .addr = piece_addr(c, &own), .length = 8,
		.lkey = c->bufs[own.index]->lkey,
	};
	struct rgate_remote r;
	int err;

	piece_fill(c, &own, window);
	err = prepare(v, &m, &r);
	if (err)
		return err;
	old = m.value;
	w.remote = r.addr;
	w.rkey = r.rkey;
	if (t->op == RGATE_RC_FETCH_ADD) {
		w.operand = x;
		m.value = old + x;
	} else {
		w.operand = t->fits ? old : ~old;
		w.swap = x;
		m.value = t->fits ? x : old;
	}
	err = pool_do(v, &w);
	report_add(&v->report, t->name, !err, "%s", rgate_strerror("rgate_mem_", err));
	if (err)
		return mend(v);
	check_old(v, t, &own, old, window);
	return check_peer(v, t->name, &m);
}

static int all_atomics(struct verify *v, uint32_t where)
{
	size_t i;
	int err = 0;

	if (v->o->buffer < 8 || !(v->side.access & RGATE_ACCESS_REMOTE_ATOMIC)) {
		for (i = 0; i < ARRAY_SIZE(atomics); i++)
			report_skip(&v->report, atomics[i].name,
				    v->o->buffer < 8 ? "buffers are too small" :
				    "the device has no atomics");
		return 0;
	}
	for (i = 0; i < ARRAY_SIZE(atomics) && !err; i++)
		err = atomic(v, &atomics[i], where);
	return err;
}

static int all_transfers(struct verify *v, uint32_t where)
{
	unsigned int n;
	size_t i, len;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(transfers) && !err; i++)
		for (n = 0; !err && (len = pool_length(v, n)); n++)
			err = util_stop ? -EINTR : transfer(v, &transfers[i], len, where);
	return err ?: all_atomics(v, where);
}

/* Everything that no transfer was to touch, on both sides */
static int others_intact(struct verify *v)
{
	struct peer_msg m = { .cmd = PEER_INTACT };
	char text[CARVE_TEXT] = "";
	size_t n = carve_damaged(&v->side.carve, text);
	int err = peer_call(&v->peer, &m);

	report_add(&v->report, "other buffers intact", !n, "%zu of the initiator: %s", n, text);
	if (!err)
		report_add(&v->report, "other buffers intact", !m.err && !m.count,
			   "%llu of the peer: %s", (unsigned long long)m.count, m.text);
	return err;
}

int pool_xfer_checks(struct verify *v)
{
	uint32_t i, places = v->o->rounds + 2;
	int err = pool_connect(v);

	for (i = 0; i < places && !err; i++) {
		report_progress("transfers", i, places);
		err = all_transfers(v, i);
	}
	report_progress(NULL, 0, 0);
	return err ?: others_intact(v);
}

int pool_peer_open(struct verify *v)
{
	struct peer_msg m = { 0 };
	int err = peer_wait(&v->peer, &m);

	if (err)
		return err;
	if (m.err)
		return failed(m.err, "the peer cannot make its pool");
	report_add(&v->report, "carved completely", !*m.text, "peer: %s", m.text);
	if (!m.count)
		return failed(-EPROTO, "the peer has no buffers");
	v->peer_buffers = m.count;
	v->peer_off = m.off;
	v->peer_length = m.piece.len;
	if (m.value < v->mtu)
		v->mtu = m.value;
	return 0;
}
