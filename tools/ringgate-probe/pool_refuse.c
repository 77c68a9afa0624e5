// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * ringgate pool verify: what the device refuses. Each refusal breaks the connection, so
 * that it is made anew for the next try.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pool.h"
#include "pool_pattern.h"
#include "probe.h"
#include "util.h"

#define LEN	64	/* bytes tried, if the buffers are as large */

static const enum rgate_rc_op ops[] = {
	RGATE_RC_WRITE, RGATE_RC_READ, RGATE_RC_FETCH_ADD,
};

static const char *const op_names[] = { "write", "read", "fetch-add" };

static int refused_call(struct verify *v, struct peer_msg *m, const char *what)
{
	int err = peer_call(&v->peer, m);

	if (!err && m->err) {
		err = m->err;
		probe_fail(err, what, "");
	}
	return err;
}

static bool possible(const struct verify *v, enum rgate_rc_op op, uint64_t remote)
{
	if (op != RGATE_RC_FETCH_ADD)
		return true;
	return v->side.access & RGATE_ACCESS_REMOTE_ATOMIC && v->o->buffer >= 8 &&
	       !(remote % 8);
}

/*
 * One operation on @remote from the first bytes of this process's first buffer. It has
 * to end as @want says, and if refused, without a trace in this process either.
 */
static int attempt(struct verify *v, const char *name, unsigned int op, uint64_t remote,
		   uint32_t rkey, size_t len, int want)
{
	struct carve *c = &v->side.carve;
	struct piece own = pool_place(v, c->n, 0, op == 2 ? 8 : len, 1);
	uint64_t key = pool_key(v);
	struct rgate_rc_work w = {
		.op = ops[op], .addr = piece_addr(c, &own), .length = (uint32_t)own.len,
		.lkey = c->bufs[0]->lkey, .remote = remote, .rkey = rkey, .operand = 1,
	};
	char text[CARVE_TEXT] = "";
	int err;

	piece_fill(c, &own, key);
	err = pool_do(v, &w);
	report_add(&v->report, name, err == want, "%s ended in: %s", op_names[op],
		   err ? rgate_strerror("rgate_mem_", err) : "success");
	if (err)
		report_add(&v->report, name, piece_untouched(c, &own, key, text),
			   "%s, initiator: %s", op_names[op], text);
	if (util_stop)
		return -EINTR;
	return err ? pool_connect(v) : 0;
}

/* The peer's memory at @place is as it was */
static int unharmed(struct verify *v, const char *name, struct peer_msg *m)
{
	int err;

	m->cmd = PEER_CHECK;
	m->how = HOW_UNTOUCHED;
	err = peer_call(&v->peer, m);
	if (!err)
		report_add(&v->report, name, !m->err, "peer: %s", m->text);
	return err;
}

/* The piece at place @i of the peer: ready, and where it is */
static int ready(struct verify *v, uint32_t i, size_t len, struct peer_msg *m,
		 struct rgate_remote *r)
{
	int err;

	*m = (struct peer_msg){
		.cmd = PEER_PREPARE, .window = pool_key(v),
		.piece = pool_place(v, v->peer_buffers, i, len, 1),
	};
	err = refused_call(v, m, "the peer cannot prepare a buffer");
	if (err)
		return err;
	err = rgate_desc_parse(r, &m->desc, sizeof(m->desc));
	return err ? probe_fail(err, "the peer's descriptor", ""), err : 0;
}

static const struct edge {
	const char *name;
	bool end;		/* relative to the end of the region, else to its begin */
	int at;
	size_t len;
} edges[] = {
	{ "refused: byte before the region", false, -1, 1 },
	{ "refused: across the begin", false, -1, LEN },
	{ "refused: byte past the end", true, 0, 1 },
	{ "refused: across the end", true, -1, LEN },
};

/* As the peer's device knows it */
static uint64_t region_begin(const struct verify *v, const struct rgate_remote *first)
{
	return first->addr - v->peer_off;
}

static int try_edge(struct verify *v, const struct edge *e, unsigned int op)
{
	size_t len = v->o->buffer < e->len ? v->o->buffer : e->len;
	struct peer_msg first, last;
	struct rgate_remote r, other;
	uint64_t at;
	int err;

	err = ready(v, 0, v->o->buffer < LEN ? v->o->buffer : LEN, &first, &r);
	if (!err)
		err = ready(v, 1, first.piece.len, &last, &other);
	if (err)
		return err;
	at = region_begin(v, &r) + (e->end ? v->peer_length : 0) +
	     (uint64_t)(int64_t)e->at;
	if (!possible(v, ops[op], at))
		return 0;
	err = attempt(v, e->name, op, at, r.rkey, len, -EREMOTEIO);
	/* one buffer alone was filled anew for its end */
	if (!err && v->peer_buffers > 1)
		err = unharmed(v, e->name, &first);
	return err ?: unharmed(v, e->name, &last);
}

static int try_key(struct verify *v, const char *name, uint32_t change, unsigned int op)
{
	struct peer_msg m;
	struct rgate_remote r;
	int err = ready(v, 0, v->o->buffer < LEN ? v->o->buffer : LEN, &m, &r);

	if (err || !possible(v, ops[op], r.addr))
		return err;
	err = attempt(v, name, op, r.addr, r.rkey ^ change, m.piece.len, -EREMOTEIO);
	return err ?: unharmed(v, name, &m);
}

/* This process's own region, through the queue pair of the peer: another protection
 * domain of the same device */
static int try_foreign(struct verify *v, unsigned int op)
{
	static const char name[] = "refused: key of another process";
	struct carve *c = &v->side.carve;
	struct rgate_desc desc;
	struct rgate_remote r;
	int err;

	err = rgate_buf_desc(c->pool, c->bufs[c->n - 1], 0, 0, &desc);
	if (!err)
		err = rgate_desc_parse(&r, &desc, sizeof(desc));
	if (err)
		return probe_fail(err, "cannot describe a buffer", ""), err;
	if (!possible(v, ops[op], r.addr))
		return 0;
	return attempt(v, name, op, r.addr, r.rkey, v->o->buffer < LEN ? v->o->buffer : LEN,
		       -EREMOTEIO);
}

/* A region of the peer's without access @without: what it is for is refused */
static int try_access(struct verify *v, const char *name, unsigned int op, uint32_t without)
{
	struct peer_msg m = {
		.cmd = PEER_EXTRA, .window = pool_key(v),
		.access = v->side.access & ~without,
	};
	struct rgate_remote r;
	int err;

	if (v->o->buffer < 8 || (op == 2 && !(v->side.access & without))) {
		report_skip(&v->report, name, v->o->buffer < 8 ? "buffers are too small" :
			    "the device has no atomics");
		return 0;
	}
	err = refused_call(v, &m, "the peer cannot register memory");
	if (err)
		return err;
	err = rgate_desc_parse(&r, &m.desc, sizeof(m.desc));
	if (err)
		return probe_fail(err, "the peer's descriptor", ""), err;
	err = attempt(v, name, op, r.addr, r.rkey, 8, -EREMOTEIO);
	if (err)
		return err;
	m = (struct peer_msg){ .cmd = PEER_EXTRA_CHECK };
	err = peer_call(&v->peer, &m);
	if (err)
		return err;
	report_add(&v->report, name, !m.err, "peer: %s", m.text);
	m = (struct peer_msg){ .cmd = PEER_EXTRA_DROP };
	err = refused_call(v, &m, "the peer cannot deregister memory");
	m = (struct peer_msg){ .cmd = PEER_EXTRA_FREE };
	return err ?: refused_call(v, &m, "the peer cannot free memory");
}

/* Does the peer's extra memory hold the first @len bytes of what was written? */
static int extra_holds(struct verify *v, const char *name, uint64_t payload, size_t len)
{
	struct peer_msg m = { .cmd = PEER_EXTRA_CHECK, .payload = payload, .value = len };
	int err = peer_call(&v->peer, &m);

	if (!err)
		report_add(&v->report, name, !m.err, "peer: %s", m.text);
	return err;
}

static int write_extra(struct verify *v, const char *name, const struct rgate_remote *r)
{
	struct carve *c = &v->side.carve;
	struct piece own = pool_place(v, c->n, 0, v->o->buffer < LEN ? v->o->buffer : LEN, 1);
	uint64_t payload = pool_key(v);
	struct rgate_rc_work w = {
		.op = RGATE_RC_WRITE, .addr = piece_addr(c, &own),
		.length = (uint32_t)own.len, .lkey = c->bufs[0]->lkey,
		.remote = r->addr, .rkey = r->rkey,
	};
	int err;

	piece_fill(c, &own, pool_key(v));
	piece_write(c, &own, payload);
	err = pool_do(v, &w);
	if (!err) {
		/* a read behind it: the peer's CPU sees it then */
		w.op = RGATE_RC_READ;
		w.length = 1;
		err = pool_do(v, &w);
	}
	report_add(&v->report, name, !err, "before that: %s", rgate_strerror("rgate_mem_", err));
	if (err)
		return pool_connect(v);
	return extra_holds(v, name, payload, own.len);
}

/* The same descriptor: it works while the memory is registered, and not afterwards */
static int try_deregistered(struct verify *v)
{
	static const char name[] = "refused: after deregistration";
	struct peer_msg m = {
		.cmd = PEER_EXTRA, .window = pool_key(v), .access = v->side.access,
	};
	size_t len = v->o->buffer < 8 ? v->o->buffer : 8;
	struct rgate_remote r;
	unsigned int op;
	int err;

	err = refused_call(v, &m, "the peer cannot register memory");
	if (!err)
		err = rgate_desc_parse(&r, &m.desc, sizeof(m.desc));
	if (!err)
		err = write_extra(v, name, &r);
	m = (struct peer_msg){ .cmd = PEER_EXTRA_DROP };
	if (!err)
		err = refused_call(v, &m, "the peer cannot deregister memory");
	for (op = 0; op < ARRAY_SIZE(ops) && !err; op++)
		if (possible(v, ops[op], r.addr))
			err = attempt(v, name, op, r.addr, r.rkey, len, -EREMOTEIO);
	if (!err)
		err = extra_holds(v, name, 0, 0);
	m = (struct peer_msg){ .cmd = PEER_EXTRA_FREE };
	return err ?: refused_call(v, &m, "the peer cannot free memory");
}

/* The other side of one region for all: with the descriptor of one buffer, a peer
 * writes into the next, and nothing stops it. */
static int try_beside(struct verify *v)
{
	static const char name[] = "not refused: next buffer of the region";
	struct carve *c = &v->side.carve;
	struct piece own = pool_place(v, c->n, 0, v->o->buffer < LEN ? v->o->buffer : LEN, 1);
	uint64_t window = pool_key(v), payload = pool_key(v);
	struct peer_msg given, next;
	struct rgate_remote a, b;
	struct rgate_rc_work w = {
		.op = RGATE_RC_WRITE, .addr = piece_addr(c, &own),
		.length = (uint32_t)own.len, .lkey = c->bufs[0]->lkey,
	};
	int err;

	if (v->peer_buffers < 2) {
		report_skip(&v->report, name, "there is one buffer only");
		return 0;
	}
	err = ready(v, 0, own.len, &given, &a);
	next = (struct peer_msg){
		.cmd = PEER_PREPARE, .window = pool_key(v), .piece = { 1, 0, own.len },
	};
	if (!err)
		err = refused_call(v, &next, "the peer cannot prepare a buffer");
	if (!err)
		err = rgate_desc_parse(&b, &next.desc, sizeof(next.desc));
	if (err)
		return err;
	piece_fill(c, &own, window);
	piece_write(c, &own, payload);
	w.remote = b.addr;
	w.rkey = a.rkey;
	err = pool_do(v, &w);
	if (!err) {
		w.op = RGATE_RC_READ;
		w.length = 1;
		err = pool_do(v, &w);
	}
	report_add(&v->report, name, !err, "%s", rgate_strerror("rgate_mem_", err));
	if (err)
		return pool_connect(v);
	v->let_through = true;
	next.cmd = PEER_CHECK;
	next.payload = payload;
	next.how = HOW_PAYLOAD;
	err = peer_call(&v->peer, &next);
	if (!err)
		report_add(&v->report, name, !next.err, "peer: %s", next.text);
	return err;
}

static const struct access {
	const char *name;
	unsigned int op;
	uint32_t without;
} accesses[] = {
	/* atomic access takes write access with it, so it goes too */
	{ "refused: no remote write", 0, RGATE_ACCESS_REMOTE_WRITE |
					 RGATE_ACCESS_REMOTE_ATOMIC },
	{ "refused: no remote read", 1, RGATE_ACCESS_REMOTE_READ },
	{ "refused: no remote atomic", 2, RGATE_ACCESS_REMOTE_ATOMIC },
};

static bool same_device(const struct verify *v)
{
	return !v->o->peer_device ||
	       !strcmp(v->o->peer_device, rgate_device_info(v->side.dev)->name);
}

static int each_op(struct verify *v, unsigned int op)
{
	size_t i;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(edges) && !err; i++)
		err = try_edge(v, &edges[i], op);
	if (!err)
		err = try_key(v, "refused: wrong key", 0x55, op);
	if (!err && same_device(v))
		err = try_foreign(v, op);
	return err;
}

int pool_refuse_checks(struct verify *v)
{
	unsigned int op;
	size_t i;
	int err = pool_connect(v);

	for (op = 0; op < ARRAY_SIZE(ops) && !err; op++) {
		report_progress("refusals", op, ARRAY_SIZE(ops));
		err = each_op(v, op);
	}
	for (i = 0; i < ARRAY_SIZE(accesses) && !err; i++)
		err = try_access(v, accesses[i].name, accesses[i].op, accesses[i].without);
	if (!err)
		err = try_deregistered(v);
	if (!err)
		err = try_beside(v);
	report_progress(NULL, 0, 0);
	return err;
}
