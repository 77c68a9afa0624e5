// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What other nodes ask. Of a request nothing is believed: its words go to the engine, which
 * checks them as any client's; memory that it names is the guest's, at a place known here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gate_priv.h"

#define CANCELS		UINT64_MAX	/* cookie of what cancels; no serial's */

/* ---- What requests come to ---- */

static const unsigned char *room_of(const struct guest *g, uint32_t ticket)
{
	return g->mem + gate_room(g->node->sv->o.role, ticket);
}

static struct gate_result about(const struct guest *g, uint32_t i, enum gate_kind kind)
{
	const struct ticket *t = &g->ticket[i];

	return (struct gate_result){
		.kind = kind, .guest = g->id, .serial = t->serial, .ticket = i,
		.number = t->shots && !t->shots->silent ? t->shots->said : 0,
	};
}

/* False: not now. Else as much of its bytes as @r says then went. */
static bool tell(const struct guest *g, struct gate_result *r)
{
	uint64_t msg[RGATE_HUB_MSG_MAX / sizeof(uint64_t)];

	return line_tell(g->node->line, msg, gate_answer_put(g->node->sv->o.role, msg, r));
}

/*
 * Bytes from @off of the part on go to the berth that the request was lent, if it is one of this
 * connection, and there are more than a message has room for. They go once, however often the
 * message that says so is tried.
 */
static bool lay(struct guest *g, uint32_t i, uint32_t off, struct gate_result *r)
{
	struct ticket *t = &g->ticket[i];
	const struct gate_node *n = g->node;

	if (!t->lent.out || t->lent.dock != n->serves.name || r->len <= GATE_PIECE ||
	    off + r->len > gate_berth_room(n->sv->o.role, t->lent.out))
		return false;
	if (!t->written && gate_dock_write(n, &n->serves, t->lent.out, off, r->data, r->len))
		return false;
	t->written = true;
	r->lent = (struct gate_lent){ .dock = t->lent.dock, .out = t->lent.out };
	r->data_len = 0;
	return true;
}

static bool tell_end(struct guest *g, uint32_t i)
{
	const struct gate_role *role = g->node->sv->o.role;
	const struct ticket *t = &g->ticket[i];
	struct gate_result r = about(g, i, GATE_DONE);

	r.result = t->result;
	r.value = t->value;
	r.len = r.data_len = t->total;
	r.data = room_of(g, i);
	if (t->has & GATE_HAS_FROM && t->result >= 0 && !t->shots)
		r.addr = (const void *)(room_of(g, i) + gate_ticket_room(role, i));
	(void)lay(g, i, 0, &r);
	return tell(g, &r);
}

/* The next completion of one that goes on, or a piece of it */
static bool tell_more(struct guest *g, uint32_t i)
{
	struct ticket *t = &g->ticket[i];
	struct gate_result r = about(g, i, GATE_MORE);
	struct shots *s = t->shots;
	uint32_t at;
	bool laid;

	r.result = s->shot[s->told].result;
	r.value = s->shot[s->told].value;
	r.len = gate_share(t->has, s->share, r.result);
	at = s->told * s->share + s->moved;
	r.data = room_of(g, i) + at;
	r.data_len = r.len - s->moved;
	laid = !s->moved && lay(g, i, at, &r);
	if (!tell(g, &r))
		return false;
	s->said += laid ? gate_pieces(r.len) : 1;
	s->moved += laid ? r.len : r.data_len;
	if (s->moved < r.len)
		return true;
	t->written = false;
	s->moved = 0;
	s->told++;
	return true;
}

static bool has_more(const struct ticket *t)
{
	return t->shots && t->shots->told < t->shots->came;
}

/* A message of that ticket, if there is one to tell: its end comes last. False: not now */
static bool tell_one(struct guest *g, uint32_t i)
{
	struct ticket *t = &g->ticket[i];
	const bool goes_on = has_more(t);

	if (!t->untold)
		return true;
	if (!(goes_on ? tell_more(g, i) : tell_end(g, i)))
		return false;
	t->untold = goes_on && (has_more(t) || t->state == TICKET_DONE);
	return true;
}

/* Of each ticket one, so that the end of one is not behind all that another one has come to */
static bool tell_some(struct guest *g, bool *more)
{
	uint32_t n;

	*more = false;
	for (n = 0; n < GATE_TICKETS; n++) {
		if (line_is_stalled(g->node->line) || !tell_one(g, g->turn))
			return false;
		*more |= g->ticket[g->turn].untold;
		g->turn = (g->turn + 1) % GATE_TICKETS;
	}
	return true;
}

/* Guests have turns as well. An answer that waits for room is to come before what follows it. */
void gate_serve_pump(struct gate_node *n)
{
	uint32_t silent = 0;	/* in a row */
	struct guest *g;
	bool more;

	if (!n->untold || !line_is_up(n->line))
		return;
	while (silent < n->nguests) {
		g = container_of(n->guests.next, struct guest, of_node);
		if (!tell_some(g, &more)) {
			/* The end of what was posted makes room. */
			rgate_hub_await(n->sv->o.hub, line_node(n->line));
			return;
		}
		list_del(&g->of_node);
		list_add_tail(&n->guests, &g->of_node);
		silent = more ? 0 : silent + 1;
	}
	n->untold = false;
}

/* An end again, whatever was heard of it; of many nothing, so far. Their berths are gone. */
static void tell_again(struct ticket *t)
{
	t->lent = (struct gate_lent){ .dock = 0 };
	t->written = false;
	if (t->shots)
		t->shots->silent = true;
	t->untold = t->state == TICKET_DONE && !t->shots;
}

void gate_serve_up(struct gate_node *n)
{
	struct guest *g;
	struct link *l;
	uint32_t i;

	for (l = n->guests.next; l != &n->guests; l = l->next) {
		g = container_of(l, struct guest, of_node);
		for (i = 0; i < GATE_TICKETS; i++) {
			tell_again(&g->ticket[i]);
			n->untold |= g->ticket[i].untold;
		}
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
	free(t->shots);
	*t = (struct ticket){ .serial = q->serial };
	*out = t;
	return 0;
}

static int put(struct guest *g, const struct gate_question *q)
{
	struct ticket *t;
	int err = claim(g, q, &t);

	if (!err)
		memcpy(g->mem + gate_room(g->node->sv->o.role, q->ticket) + q->off, q->data,
		       q->len);
	return err;
}

/* A request's words and what comes with them: what the engine cannot know */
static int check(const struct gate_role *role, const struct gate_question *q, int has)
{
	if (has < 0)
		return has;
	if (q->serial >= CANCELS / GATE_TICKETS || !!q->addr != !!(has & GATE_HAS_TO) ||
	    ((q->data_len || q->lent.in) && !(has & GATE_HAS_IN)) ||
	    /* A node that may ask here is not shown on to others in this one's name. */
	    (has & GATE_HAS_NODE && q->a0 != role->here))
		return -EINVAL;
	if (q->kind == GATE_SUBMIT)
		return 0;
	if (!(has & GATE_HAS_MANY))
		return -EOPNOTSUPP;
	return q->a1 < 2 || q->a1 > GATE_MANY ? -EINVAL : 0;
}

/* gcc 12's analyzer loses what it returns so. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
/* Room for what it will come to, before it is begun */
static int new_shots(const struct guest *g, const struct gate_question *q, struct shots **out)
{
	const uint32_t most = (uint32_t)q->a1 - 1;
	struct shots *s;

	/* Not more than leave places for all others, and for what cancels. */
	if (most > GATE_SHOTS - g->shots)
		return -ENOSPC;
	s = calloc(1, sizeof(*s) + most * sizeof(s->shot[0]));
	if (!s)
		return -ENOMEM;
	s->most = most;
	s->share = q->len / most;
	*out = s;
	return 0;
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

/* Its bytes and address, and where these are */
static void fill_room(const struct guest *g, const struct gate_question *q, uint32_t has,
		      struct rgate_request *req)
{
	const struct gate_role *role = g->node->sv->o.role;
	const uint32_t room = gate_ticket_room(role, q->ticket);
	unsigned char *mem = g->mem + gate_room(role, q->ticket);

	if (q->lent.in)
		memcpy(mem, gate_dock_at(g->node, &g->node->serves, q->lent.in), q->len);
	else if (q->data_len)
		memcpy(mem, q->data, q->data_len);
	if (q->addr)
		memcpy(mem + room, q->addr, GATE_ADDR);
	if (q->len)
		req->off = gate_room(role, q->ticket);
	if (q->kind == GATE_SUBMIT_MANY)
		req->flags = RGATE_REQ_MULTI;
	else if (has & (GATE_HAS_TO | GATE_HAS_FROM))
		req->a1 = gate_room(role, q->ticket) + room;
}

static int submit(struct guest *g, const struct gate_question *q)
{
	const struct gate_role *role = g->node->sv->o.role;
	struct rgate_request req = {
		.op = (uint16_t)q->op, .cookie = q->serial * GATE_TICKETS + q->ticket,
		.a0 = q->a0, .a1 = q->a1, .len = q->len, .handle = q->handle,
	};
	const int has = gate_op_has(role, q->op);
	struct ticket *t;
	int err;

	err = check(role, q, has);
	if (!err && q->lent.in && q->lent.dock != g->node->serves.name)
		err = -ENOLINK;
	if (!err)
		err = claim(g, q, &t);
	if (!err && q->kind == GATE_SUBMIT_MANY)
		err = new_shots(g, q, &t->shots);
	if (err)
		return err;
	t->has = (uint32_t)has;
	t->len = q->len;
	t->lent = q->lent;
	fill_room(g, q, (uint32_t)has, &req);
	err = rgate_session_submit(g->session, &req);
	if (err) {
		/* They count against the guest while it is under way. */
		free(t->shots);
		t->shots = NULL;
		return err;
	}
	t->state = TICKET_BUSY;
	g->shots += t->shots ? t->shots->most : 0;
	return 0;
}

/* To a berth. -ENOLINK: of another connection; -EAGAIN: there is no memory for it, or no room */
static int get_all(const struct gate_node *n, const struct gate_question *q, struct gate_result *r)
{
	int err = -ENOLINK;

	if (q->lent.dock == n->serves.name)
		err = gate_dock_write(n, &n->serves, q->lent.out, q->off, r->data, q->len);
	r->data_len = 0;
	if (err)
		r->len = 0;
	return err && err != -ENOLINK ? -EAGAIN : err;
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
	return q->lent.dock ? get_all(g->node, q, r) : 0;
}

/* Messages that tell of one of many */
static uint32_t messages(const struct ticket *t, uint32_t i)
{
	return gate_pieces(gate_share(t->has, t->shots->share, t->shots->shot[i].result));
}

/* It is told from there on: -EINVAL: there are not so many messages */
static int go_to(struct ticket *t, uint64_t said)
{
	struct shots *s = t->shots;
	uint64_t left = said;
	uint32_t i;

	for (i = 0; i < s->came && left >= messages(t, i); i++)
		left -= messages(t, i);
	if (i == s->came && left)
		return -EINVAL;
	s->told = i;
	s->moved = (uint32_t)left * GATE_PIECE;
	s->said = said;
	return 0;
}

static int heard(struct guest *g, const struct gate_question *q)
{
	struct ticket *t = &g->ticket[q->ticket];
	int err;

	if (!t->shots || t->serial != q->serial)
		return -ESTALE;
	/* What is told since then was not heard when that was said. */
	if (!t->shots->silent)
		return 0;
	err = go_to(t, q->a0);
	if (err)
		return err;
	t->shots->silent = false;
	t->untold = has_more(t) || t->state == TICKET_DONE;
	g->node->untold |= t->untold;
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

static bool submits(const struct gate_question *q)
{
	return q->kind == GATE_SUBMIT || q->kind == GATE_SUBMIT_MANY;
}

/*
 * Of what has left nothing comes back: an id is one guest's, once. Sessions may come in another
 * order than that of their ids: what is asked first has turns, and is asked again over a new
 * connection.
 */
static int guest_for(struct gate_node *n, const struct gate_question *q, struct guest **out)
{
	*out = gate_guest_of(n, q->guest);
	if (*out)
		return (*out)->uid == q->uid ? 0 : -EACCES;
	/* A name may be so long that a part of it comes before the request. */
	if ((!submits(q) && q->kind != GATE_PUT) || gate_guest_is_gone(n, q->guest))
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
	if (submits(q) && !has_rights(n->sv, q->uid))
		return -EACCES;
	if (q->kind == GATE_DOCK)
		return gate_serve_dock(n, q, r);
	err = guest_for(n, q, &g);
	if (err)
		return err;
	switch (q->kind) {
	case GATE_PUT:
		return put(g, q);
	case GATE_SUBMIT:
	case GATE_SUBMIT_MANY:
		return submit(g, q);
	case GATE_GET:
		return get(g, q, r);
	case GATE_CANCEL:
		return cancel(g, q);
	case GATE_HEARD:
		return heard(g, q);
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
	gate_serve_pump(n);
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
		(void)tell_end(g, i);
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
