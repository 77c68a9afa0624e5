// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Memory in which the other node lays bytes, and berths of the other one's.
 *
 * A dock is made for one connection and is gone with it: what a node writes that has not seen its
 * end yet, as a process can that shares memory with this one, is in memory that nobody reads. A
 * berth is one request's from when it is lent until the node has said that it is done with it; or
 * else, if the request ends before, until it has said that the session is over there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "area.h"
#include "clock.h"
#include "gate_priv.h"

/* Berths; bit N: the one that is called N + 1 */
#define NARROW	((1ULL << GATE_BERTHS) - 1)
#define ALL	((1ULL << (GATE_BERTHS + GATE_WIDE)) - 1)
#define TRIES	4U		/* docks of one connection */

static size_t length(const struct gate_node *n)
{
	return gate_berth_at(n->sv->o.role, gate_berths(n->sv->o.role) + 1);
}

/* Of a node that knows no wide ones */
static size_t least_length(const struct gate_node *n)
{
	return gate_berth_at(n->sv->o.role, GATE_BERTHS + 1);
}

static size_t at_berth(const struct gate_node *n, uint32_t berth)
{
	return gate_berth_at(n->sv->o.role, berth);
}

/* ---- One ---- */

static int share(const struct gate_node *n, struct gate_dock *d, int fd)
{
	struct rgate_node *node = rgate_hub_node(n->sv->o.hub);
	int err;

	d->mem = mmap(NULL, length(n), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (d->mem == MAP_FAILED) {
		d->mem = NULL;
		return -errno;
	}
	err = rgate_share_create(&d->share, node, d->mem, length(n), fd, 0,
				 RGATE_ACCESS_REMOTE_WRITE);
	if (!err)
		err = rgate_share_desc(d->share, 0, length(n), &d->here);
	return err;
}

int gate_dock_open(const struct gate_node *n, struct gate_dock *d)
{
	int err, fd = rgate_area_memfd("ringgate-dock", length(n));

	if (fd < 0)
		return fd;
	err = share(n, d, fd);
	close(fd);
	if (err)
		gate_dock_close(n, d);
	return err;
}

void gate_dock_close(const struct gate_node *n, struct gate_dock *d)
{
	rgate_share_destroy(d->share);
	if (d->mem)
		munmap(d->mem, length(n));
	*d = (struct gate_dock){ .name = 0 };
}

int gate_dock_join(const struct gate_node *n, struct gate_dock *d, uint64_t name,
		   const void *desc, uint32_t len)
{
	int err = rgate_desc_parse(&d->there, desc, len);

	if (err)
		return err;
	if (!(d->there.access & RGATE_ACCESS_REMOTE_WRITE) || d->there.length < least_length(n))
		return -EPROTO;
	d->name = name;
	d->wide = n->sv->o.role->wide && d->there.length >= length(n);
	d->free_here = d->free_there = d->wide ? ALL : NARROW;
	return 0;
}

unsigned char *gate_dock_at(const struct gate_node *n, const struct gate_dock *d, uint32_t berth)
{
	return d->mem + at_berth(n, berth);
}

/* ---- Bytes go ---- */

/* From memory that is its own until it is over: a ticket, or a session, can end before */
struct bytes {
	struct xfer xfer;
	struct rgate_pool *stage;
	const struct rgate_buf *buf;
};

static void free_bytes(struct bytes *b)
{
	rgate_pool_free(b->stage, b->buf);
	free(b);
}

static void gone(struct xfer *x, int err)
{
	/* Whoever waits for it hears nothing over that connection. */
	(void)err;
	free_bytes(container_of(x, struct bytes, xfer));
}

static int post(const struct gate_node *n, struct bytes *b, const struct rgate_remote *to,
		uint64_t at, uint32_t len)
{
	struct rgate_sge sge = { b->buf->addr, len, b->buf->lkey };
	struct rgate_op op = {
		/* With the lock nobody is waited for: the first ones may go in pieces. */
		.kind = RGATE_OP_WRITE, .flags = RGATE_OP_AT_ONCE, .nsge = 1, .sge = &sge,
		.remote = to->addr + at, .rkey = to->rkey,
	};

	return line_post(n->line, &b->xfer, &op, gone);
}

int gate_dock_write(const struct gate_node *n, const struct gate_dock *d, uint32_t berth,
		    uint32_t off, const void *from, uint32_t len)
{
	struct bytes *b;
	int err;

	/* That one does not have. */
	if (berth > GATE_BERTHS && !d->wide)
		return -EINVAL;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->stage = rgate_node_stage(rgate_hub_node(n->sv->o.hub));
	err = rgate_pool_alloc(b->stage, len, &b->buf);
	if (err) {
		free(b);
		return err;
	}
	memcpy(b->buf->addr, from, len);
	err = post(n, b, &d->there, at_berth(n, berth) + off, len);
	if (err)
		free_bytes(b);
	return err;
}

/* ---- Who serves ---- */

int gate_serve_dock(struct gate_node *n, const struct gate_question *q, struct gate_result *r)
{
	struct gate_dock *d = &n->serves;
	int err;

	/* It asks again if no answer came in time: then it knows of no dock before that. */
	if ((d->name && q->serial <= d->name) || n->docks_made == TRIES)
		return -EALREADY;
	gate_dock_close(n, d);
	/* Memory is made for it when it has said something that can be one. */
	err = gate_dock_join(n, d, q->serial, q->data, q->data_len);
	if (!err) {
		n->docks_made++;
		err = gate_dock_open(n, d);
	}
	if (err) {
		gate_dock_close(n, d);
		return err;
	}
	r->data = &d->here;
	r->data_len = r->len = sizeof(d->here);
	return 0;
}

/* ---- Who asks ---- */

static struct gate_node *node_of(const struct wish *w)
{
	return w->caller->node;
}

static size_t dock_ask(struct errand *e, struct ask *a)
{
	struct gate_node *n = container_of(e, struct gate_node, docks);
	struct gate_question q = {
		.kind = GATE_DOCK, .number = a->number, .uid = n->dock_uid, .guest = 1,
		.serial = a->number, .data = &n->asks.here, .data_len = sizeof(n->asks.here),
	};

	e->more = false;
	return gate_question_put(n->sv->o.role, a->msg, &q);
}

static int dock_answer(struct errand *e, struct ask *a, int err, const void *answer, size_t len)
{
	struct gate_node *n = container_of(e, struct gate_node, docks);
	struct gate_result r;

	if (err)
		return err;
	err = gate_answer_get(&r, answer, len);
	if (err)
		return err;
	if (r.result)
		return r.result < 0 ? r.result : -EPROTO;
	return gate_dock_join(n, &n->asks, a->number, r.data, r.data_len);
}

/*
 * Without one bytes go in pieces: for a while, or over this connection. -ENOTCONN: there was no
 * place to ask at, or no room to say it, for as long as it would have been waited for
 */
static void no_dock(struct gate_node *n, int err)
{
	gate_dock_close(n, &n->asks);
	switch (err) {
	case -ETIMEDOUT:
	case -ENOTCONN:
	case -EACCES:
	case -ENOMEM:
	case -EMFILE:
	case -ENFILE:
		n->dockless = n->dock_tries == TRIES;
		n->dock_ns = rgate_clock_now(CLOCK_MONOTONIC) + n->sv->silence_ns;
		break;
	default:
		n->dockless = true;
		break;
	}
}

static void dock_over(struct errand *e, int err)
{
	struct gate_node *n = container_of(e, struct gate_node, docks);

	n->docking = false;
	if (err)
		no_dock(n, err);
}

static const struct errand_ops dock_ops = {
	.ask = dock_ask, .answer = dock_answer, .over = dock_over,
};

/*
 * Is there one? If not, it is asked for, a few times over each connection, and not right after
 * another: for a session that the node takes requests of, as it refuses what is asked for a user
 * who may not be there, and others would be without one.
 */
static bool has_dock(const struct gate_caller *c)
{
	struct gate_node *n = c->node;
	int err;

	if (n->asks.name || n->docking || n->dockless || !c->taken || !line_is_up(n->line))
		return n->asks.name;
	if (n->dock_tries && rgate_clock_now(CLOCK_MONOTONIC) < n->dock_ns)
		return false;
	n->sv->docks_again += n->dock_tries++ > 0;
	err = gate_dock_open(n, &n->asks);
	if (!err) {
		memset(&n->docks, 0, sizeof(n->docks));
		n->dock_uid = c->uid;
		err = errand_begin(n->errands, &n->docks, &dock_ops, c->uid);
	}
	n->docking = !err;
	if (err)
		no_dock(n, err);
	return false;
}

void gate_docks_end(struct gate_node *n)
{
	if (n->docking)
		errand_end(&n->docks, -ENOTCONN);
	gate_dock_close(n, &n->asks);
	gate_dock_close(n, &n->serves);
	n->dockless = false;
	n->dock_tries = n->docks_made = 0;
}

static bool is_there(const struct wish *w)
{
	return w->lent.dock && w->lent.dock == node_of(w)->asks.name;
}

/* Its number, from 1 on; 0: none, or @waits and half of them are not lent to what may wait */
static uint32_t take(uint64_t *berths, bool wide, bool waits)
{
	const uint64_t some = *berths & (wide ? ALL & ~NARROW : NARROW);
	const int spare = (int)(wide ? GATE_WIDE : GATE_BERTHS) / 2;

	if (__builtin_popcountll(some) <= (waits ? spare : 0))
		return 0;
	*berths &= ~(some & -some);
	return (uint32_t)__builtin_ctzll(some) + 1;
}

static void put(uint64_t *berths, uint32_t berth)
{
	if (berth)
		*berths |= 1ULL << (berth - 1);
}

static bool is_wide(const struct wish *w)
{
	return w->len > node_of(w)->sv->o.role->room;
}

static void cut(struct wish *w)
{
	gate_wish_cut(w, node_of(w)->sv->o.role->room);
}

/* Of the dock that there is; what it had of another one is nobody's */
static void lend(struct wish *w)
{
	if (!is_there(w))
		w->lent = (struct gate_lent){ .dock = node_of(w)->asks.name };
}

bool gate_wish_put(struct wish *w)
{
	struct gate_node *n = node_of(w);
	struct gate_dock *d = &n->asks;

	if (w->plain || w->in != w->len || !has_dock(w->caller)) {
		cut(w);
		return false;
	}
	lend(w);
	w->lent.in = is_wide(w) ? take(&d->free_there, true, false) : 0;
	if (!w->lent.in) {
		cut(w);
		w->lent.in = take(&d->free_there, false, false);
	}
	if (w->lent.in && !gate_dock_write(n, d, w->lent.in, 0, w->mem, w->len))
		return true;
	gate_wish_berthed(w);
	cut(w);
	return false;
}

/* What it has come to is as long as it is, and nothing but a wide berth does for it. */
static void lend_out(struct wish *w, bool waits)
{
	struct gate_dock *d = &node_of(w)->asks;
	const bool wide = waits ? is_wide(w) : w->total > node_of(w)->sv->o.role->room;

	w->lent.out = take(&d->free_here, wide, waits);
	if (w->lent.out || !wide || !waits)
		return;
	cut(w);
	w->lent.out = take(&d->free_here, false, true);
}

bool gate_wish_lend(struct wish *w, bool waits)
{
	if (w->plain || !has_dock(w->caller)) {
		if (waits)
			cut(w);
		return false;
	}
	lend(w);
	if (!w->lent.out)
		lend_out(w, waits);
	if (!w->lent.in && !w->lent.out)
		w->lent.dock = 0;
	return w->lent.out;
}

bool gate_wish_took(struct wish *w, const struct gate_lent *lent, uint32_t off, uint32_t len)
{
	const struct gate_node *n = node_of(w);

	if (!is_there(w) || !w->lent.out || lent->dock != w->lent.dock ||
	    lent->out != w->lent.out ||
	    off + len > gate_berth_room(n->sv->o.role, w->lent.out))
		return false;
	memcpy(w->mem + off, gate_dock_at(n, &n->asks, w->lent.out) + off, len);
	return true;
}

void gate_wish_berthed(struct wish *w)
{
	if (is_there(w))
		put(&node_of(w)->asks.free_there, w->lent.in);
	w->lent.in = 0;
	if (!w->lent.out)
		w->lent.dock = 0;
}

void gate_wish_unlend(struct wish *w)
{
	gate_wish_berthed(w);
	if (is_there(w))
		put(&node_of(w)->asks.free_here, w->lent.out);
	w->lent = (struct gate_lent){ .dock = 0 };
}

void gate_wish_abandon(struct wish *w)
{
	struct gate_caller *c = w->caller;

	if (!is_there(w))
		return;
	if (c->left_dock != w->lent.dock)
		c->left_in = c->left_out = 0;
	c->left_dock = w->lent.dock;
	put(&c->left_in, w->lent.in);
	put(&c->left_out, w->lent.out);
}

void gate_caller_unlend(struct gate_caller *c)
{
	struct gate_dock *d = &c->node->asks;

	if (c->left_dock && c->left_dock == d->name) {
		d->free_there |= c->left_in;
		d->free_here |= c->left_out;
	}
	c->left_dock = 0;
	c->left_in = c->left_out = 0;
}
