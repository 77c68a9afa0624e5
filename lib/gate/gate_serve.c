// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What other nodes ask. Of a request nothing is believed: its words go to the engine, which
 * checks them as any client's; memory that it names is the guest's, at a place known here.
 */
#include <errno.h>
#include <string.h>

#include "gate_priv.h"

#define CANCELS		UINT64_MAX	/* cookie of what cancels; no serial's */

/* ---- The end of requests ---- */

/* False: not now */
static bool tell(const struct guest *g, uint32_t i)
{
	const struct gate_role *role = g->node->sv->o.role;
	const struct ticket *t = &g->ticket[i];
	const unsigned char *mem = g->mem + gate_room(role, i);
	uint64_t msg[RGATE_HUB_MSG_MAX / sizeof(uint64_t)];
	struct gate_result r = {
		.kind = GATE_DONE, .result = t->result, .guest = g->id, .serial = t->serial,
		.ticket = i, .len = t->total, .value = t->value, .data = mem,
		.data_len = t->total,
	};

	if (t->has & GATE_HAS_FROM && t->result >= 0)
		r.addr = (const void *)(mem + role->room);
	return line_tell(g->node->line, msg, gate_answer_put(role, msg, &r));
}

static bool tell_all(struct guest *g)
{
	uint32_t i;

	for (i = 0; i < GATE_TICKETS; i++) {
		if (!g->ticket[i].untold)
			continue;
		if (!tell(g, i))
			return false;
		g->ticket[i].untold = false;
	}
	return true;
}

void gate_serve_pump(struct gate_node *n)
{
	struct link *l;

	/* An answer that waits for room is to come before what follows it. */
	if (!n->untold || !line_is_up(n->line))
		return;
	for (l = n->guests.next; l != &n->guests; l = l->next) {
		if (!line_is_stalled(n->line) &&
		    tell_all(container_of(l, struct guest, of_node)))
			continue;
		return;
	}
	n->untold = false;
}

void gate_serve_up(struct gate_node *n)
{
	struct guest *g;
	struct link *l;
	uint32_t i;

	for (l = n->guests.next; l != &n->guests; l = l->next) {
		g = container_of(l, struct guest, of_node);
		for (i = 0; i < GATE_TICKETS; i++)
			if (g->ticket[i].state == TICKET_DONE)
				g->ticket[i].untold = n->untold = true;
	}
}

/* ---- Questions ---- */

/* The ticket is this request's from now on. -EBUSY: it has one; -ESTALE: it had a later one */
static int claim(struct guest *g, const struct gate_question *q, struct ticket **out)
{
	struct ticket *t = &g->ticket[q->ticket];

	if (t->state == TICKET_BUSY)
		return -EBUSY;
	if (q->serial < t->serial || (q->serial == t->serial && t->state == TICKET_DONE))
		return -ESTALE;
	*t = (struct ticket){ .serial = q->serial };
	*out = t;
	return 0;
}

static unsigned char *room_of(const struct guest *g, uint32_t ticket)
{
	return g->mem + gate_room(g->node->sv->o.role, ticket);
}

static int put(struct guest *g, const struct gate_question *q)
{
	struct ticket *t;
	int err = claim(g, q, &t);

	if (!err)
		memcpy(room_of(g, q->ticket) + q->off, q->data, q->len);
	return err;
}

static int submit(struct guest *g, const struct gate_question *q)
{
	const struct gate_role *role = g->node->sv->o.role;
	unsigned char *mem = room_of(g, q->ticket);
	struct rgate_request req = {
		.op = (uint16_t)q->op, .cookie = q->serial * GATE_TICKETS + q->ticket,
		.a0 = q->a0, .a1 = q->a1, .len = q->len, .handle = q->handle,
		.off = q->len ? gate_room(role, q->ticket) : 0,
	};
	const int has = gate_op_has(role, q->op);
	struct ticket *t;
	int err;

	if (has < 0)
		return has;
	if (q->serial >= CANCELS / GATE_TICKETS || !!q->addr != !!(has & GATE_HAS_TO) ||
	    (q->data_len && !(has & GATE_HAS_IN)) ||
	    /* A node that may ask here is not shown on to others in this one's name. */
	    (has & GATE_HAS_NODE && q->a0 != role->here))
		return -EINVAL;
	err = claim(g, q, &t);
	if (err)
		return err;
	if (q->data_len)
		memcpy(mem, q->data, q->data_len);
	if (q->addr)
		memcpy(mem + role->room, q->addr, GATE_ADDR);
	if (has & (GATE_HAS_TO | GATE_HAS_FROM))
		req.a1 = gate_room(role, q->ticket) + role->room;
	t->has = (uint32_t)has;
	t->len = q->len;
	err = rgate_session_submit(g->session, &req);
	if (!err)
		t->state = TICKET_BUSY;
	return err;
}

static int get(struct guest *g, const struct gate_question *q, struct gate_result *r)
{
	const struct ticket *t = &g->ticket[q->ticket];

	if (t->state != TICKET_DONE || t->serial != q->serial)
		return -ESTALE;
	if (q->off > t->total || q->len > t->total - q->off)
		return -ERANGE;
	r->data = room_of(g, q->ticket) + q->off;
	r->data_len = r->len = q->len;
	return 0;
}

static int cancel(struct guest *g, const struct gate_question *q)
{
	const struct ticket *t = &g->ticket[q->ticket];

	/* What it has come to is under way. */
	if (t->state != TICKET_BUSY || t->serial != q->serial)
		return 0;
	return rgate_session_cancel(g->session, q->serial * GATE_TICKETS + q->ticket, CANCELS);
}

/*
 * Of what has left nothing comes back: an id is one guest's, once. Sessions may come in another order
 * than that of their ids: what is asked first has turns, and is asked again over a new connection.
 */
static int guest_for(struct gate_node *n, const struct gate_question *q, struct guest **out)
{
	*out = gate_guest_of(n, q->guest);
	if (*out)
		return (*out)->uid == q->uid ? 0 : -EACCES;
	/* A name may be so long that a part of it comes before the request. */
	if ((q->kind != GATE_SUBMIT && q->kind != GATE_PUT) || gate_guest_is_gone(n, q->guest))
		return -ECONNRESET;
	return gate_guest_new(n, q->guest, q->uid, out);
}

/* By the policy as it is now */
static bool has_rights(const struct gate_service *sv, uid_t uid)
{
	struct rgate_limits limits;

	return !sv->o.rights || sv->o.rights(sv->o.ctx, uid, &limits);
}

static int carry_out(struct gate_node *n, const struct gate_question *q, struct gate_result *r)
{
	struct guest *g;
	int err;

	if (n->sv->over)
		return -ECONNRESET;
	/* Who leaves does not ask for anything, nor does who wants nothing more of it. */
	if (q->kind != GATE_LEAVE && q->kind != GATE_CANCEL &&
	    !board_may(n->sv->board, line_node(n->line), q->uid))
		return -EACCES;
	if (q->kind == GATE_SUBMIT && !has_rights(n->sv, q->uid))
		return -EACCES;
	err = guest_for(n, q, &g);
	if (err)
		return err;
	switch (q->kind) {
	case GATE_PUT:
		return put(g, q);
	case GATE_SUBMIT:
		return submit(g, q);
	case GATE_GET:
		return get(g, q, r);
	case GATE_CANCEL:
		return cancel(g, q);
	default:
		gate_guest_end(g);
		return 0;
	}
}

void gate_serve_question(struct gate_node *n, const void *msg, size_t len)
{
	uint64_t answer[RGATE_HUB_MSG_MAX / sizeof(uint64_t)];
	const struct gate_role *role = n->sv->o.role;
	struct gate_question q;
	struct gate_result r;
	int err;

	err = gate_question_get(role, &q, msg, len);
	if (err == -EPROTO || !line_take(n->line, q.number))
		return;
	r = (struct gate_result){ .kind = q.kind, .number = q.number, .result = err };
	if (!err)
		r.result = carry_out(n, &q, &r);
	line_say(n->line, q.number, answer, gate_answer_put(role, answer, &r));
}

/* ---- Another policy ---- */

/* Where there is no room to tell what waits, its node hears of it when it asks next. */
static void revoke(struct guest *g)
{
	struct ticket *t;
	uint32_t i;

	for (i = 0; i < GATE_TICKETS; i++) {
		t = &g->ticket[i];
		if (t->state != TICKET_BUSY)
			continue;
		t->state = TICKET_DONE;
		t->result = -EACCES;
		(void)tell(g, i);
	}
	gate_guest_end(g);
}

static void review(struct gate_node *n)
{
	struct link *l, *next;
	struct guest *g;

	for (l = n->guests.next; l != &n->guests; l = next) {
		next = l->next;
		g = container_of(l, struct guest, of_node);
		if (!board_may(n->sv->board, line_node(n->line), g->uid) ||
		    !has_rights(n->sv, g->uid))
			revoke(g);
	}
}

void gate_service_review(struct gate_service *sv)
{
	struct gate_node *n;

	if (!sv)
		return;
	fair_lock(&sv->lock);
	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++)
		review(n);
	fair_unlock(&sv->lock);
}
