// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Sockets of the gateway, and, where the input begins with 0xff, queues of other nodes; both sides.
 * A message that is taken says the same when it is written out again. Whatever a node asks, its
 * guests are of users for whom it may speak, no more than there can be, and their requests name
 * memory of their own tickets, which does not change while they are under way, and no third node.
 * Whatever the node that is asked answers, each request ends once, and no byte is written that is
 * not its own, nor by a write beside what there is for it; no berth is lent twice. One with many
 * completions has no more before its end than it has places for, and what a node is told of its own
 * comes in its order, over another connection not before, and from where, it says.
 */
#include <endian.h>

#include "gate_engine.h"
#include "other.h"

#define STEPS		128
#define ASKED		64U		/* questions that are kept for an answer */

struct gate_fuzz gate;

/* ---- The node at the other end ---- */

/* In memory of that length, so that a read beyond is seen */
static void says(bool to_server, const void *msg, size_t len)
{
	const struct rgate_service *to = to_server ? &o.hub.serves : &o.hub.asks;
	unsigned char *copy = malloc(len);

	FUZZ_CHECK(copy);
	memcpy(copy, msg, len);
	to->message(o.hub.ctx, OTHER, copy, len);
	free(copy);
}

/*
 * What a node has heard of a request's GATE_MORE, and of which it has not said so over the
 * connection that there is: guests and tickets of asks() alone, as one of raw() may have any
 * number.
 */
#define TICKETS	8U	/* that are asked for: one in nine, so that the last one is wide */

static struct heard {
	uint64_t serial, messages;
	bool silent;
} heard[257][TICKETS];

static struct heard *heard_of(uint64_t guest, uint32_t ticket)
{
	/* Without a guest it answers a question of such a kind. */
	return guest && guest <= 256 && ticket % 9 == 0 ? &heard[guest][ticket / 9] : NULL;
}

static bool is_silent(const struct gate_question *q)
{
	const struct guest *g = gate_guest_of(&gate.sv->node[OTHER], q->guest);

	return g && g->ticket[q->ticket].shots && g->ticket[q->ticket].shots->silent;
}

static void says_question(const struct gate_question *q, const void *msg, size_t len)
{
	const bool hears = q->kind == GATE_HEARD && is_silent(q);
	struct heard *h = heard_of(q->guest, q->ticket);

	says(true, msg, len);
	if (hears && !is_silent(q) && h)
		*h = (struct heard){ .serial = q->serial, .messages = q->a0 };
}

static void raw(void)
{
	unsigned char again[RGATE_HUB_MSG_MAX];
	struct gate_question q;
	struct gate_result r;
	size_t len;
	const bool to_server = fuzz_u8(&gate.in) & 1;
	unsigned char *msg = fuzz_copy(&gate.in, RGATE_HUB_MSG_MAX + 8, &len);

	if (to_server && !gate_question_get(gate.role, &q, msg, len)) {
		FUZZ_CHECK(gate_question_put(gate.role, again, &q) == len);
		/* the first byte is the hub's */
		FUZZ_CHECK(!memcmp(again + 1, msg + 1, len - 1));
		says_question(&q, msg, len);
		free(msg);
		return;
	}
	if (!to_server && !gate_answer_get(&r, msg, len)) {
		FUZZ_CHECK(r.result >= -4095 && r.data_len <= r.len);
		if (r.result != -EPROTONOSUPPORT && r.result != -EIO) {
			FUZZ_CHECK(gate_answer_put(gate.role, again, &r) == len);
			FUZZ_CHECK(!memcmp(again + 1, msg + 1, len - 1));
		}
	}
	if (len)
		says(to_server, msg, len);
	free(msg);
}

/* What the other node has for this one, and what it says of that: it lies at times */
static unsigned char far[GATE_BERTHS * GATE_ROOM + GATE_WIDE * GATE_LONG];

static struct rgate_desc far_dock(uint8_t how)
{
	const uint32_t all = how & 64 ? gate_berths(gate.role) : GATE_BERTHS;
	struct rgate_desc desc = peer_desc(far, gate_berth_at(gate.role, all + 1), PEER_KEY);

	if (how % 16 == 0)
		desc.length = htole64(GATE_BERTHS * gate.role->room - 1);
	if (how % 16 == 1)
		desc.access = how;
	return desc;
}

/* Into what it was given, whenever it likes */
static void writes(void)
{
	struct gate_node *n = &gate.sv->node[OTHER];
	const uint32_t berth = 1 + fuzz_u8(&gate.in) % gate_berths(gate.role);
	const uint32_t room = gate_berth_room(gate.role, berth);
	const uint8_t byte = fuzz_u8(&gate.in);

	if (n->serves.mem)
		memset(gate_dock_at(n, &n->serves, berth), byte, room);
	if (n->asks.mem)
		memset(gate_dock_at(n, &n->asks, berth), byte, room);
}

static void claim_berth(uint64_t *seen, uint64_t berths)
{
	FUZZ_CHECK(!(*seen & berths));
	*seen |= berths;
}

static uint64_t bit(uint32_t berth)
{
	return berth ? 1ULL << (berth - 1) : 0;
}

/* A berth is one request's, or nobody's, or left behind by one that has ended. */
static void check_berths(void)
{
	const struct gate_dock *d = &gate.sv->node[OTHER].asks;
	struct link *const all = &gate.sv->callers;
	uint64_t here = d->free_here, there = d->free_there;
	const struct gate_caller *c;
	uint32_t i;
	struct link *l;

	for (l = all->next; l != all && d->name; l = l->next) {
		c = container_of(l, struct gate_caller, of_service);
		if (c->left_dock == d->name) {
			claim_berth(&here, c->left_out);
			claim_berth(&there, c->left_in);
		}
		for (i = 0; i < GATE_TICKETS; i++) {
			if (!c->ticket[i] || c->ticket[i]->lent.dock != d->name)
				continue;
			claim_berth(&here, bit(c->ticket[i]->lent.out));
			claim_berth(&there, bit(c->ticket[i]->lent.in));
		}
	}
	FUZZ_CHECK(!o.peer.strayed);
}

static uint64_t number, got_number;	/* got_number: of a question for bytes, 0: none */
static struct gate_question got;

static uint32_t came_to(const struct ticket *t)
{
	return t->result < 0 || t->shots ? 0 : t->has & GATE_HAS_WHOLE ? t->len :
	       t->has & GATE_HAS_OUT ? (uint32_t)t->result : 0;
}

/* What a node is given of a ticket is what its request has come to, and no byte more. */
static void check_got(void)
{
	const struct msgs *said = &o.peer.said;
	const struct msg *m = said->n ? &said->m[said->n - 1] : NULL;
	const struct guest *g;
	struct gate_result r;

	if (!got_number || !m || gate_answer_get(&r, m->data, m->len) ||
	    r.number != got_number || r.kind != GATE_GET || r.result)
		return;
	g = gate_guest_of(&gate.sv->node[OTHER], got.guest);
	FUZZ_CHECK(g && g->uid == got.uid && g->ticket[got.ticket].serial == got.serial);
	FUZZ_CHECK(g->ticket[got.ticket].state == TICKET_DONE);
	FUZZ_CHECK(got.off + r.data_len <= came_to(&g->ticket[got.ticket]));
}

/* Berths of the dock that there is, mostly */
static void lend(struct gate_question *q)
{
	const uint64_t name = gate.sv->node[OTHER].serves.name;
	const uint8_t how = fuzz_u8(&gate.in);
	const int has = gate_op_has(gate.role, q->op);

	if (!(how & 1))
		return;
	q->lent = (struct gate_lent){ .dock = how & 6 && name ? name : how, .out = how >> 3 };
	if (q->kind != GATE_GET && has > 0 && has & GATE_HAS_IN && how & 8)
		q->lent.in = 1 + (how >> 3) % GATE_BERTHS;
	/* one of the wide ones, and of one more */
	if (how & 4 && q->lent.in)
		q->lent.in += GATE_BERTHS - 23;
	if (how & 4 && q->lent.out)
		q->lent.out += GATE_BERTHS - 23;
	if (!q->lent.in && !q->lent.out)
		q->lent.out = 1;
	q->data_len = 0;
}

static void asks(void)
{
	unsigned char msg[RGATE_HUB_MSG_MAX], data[GATE_ROOM];
	struct rgate_socket_addr addr = { .family = fuzz_u8(&gate.in) };
	struct rgate_desc dock;
	struct gate_question q = { .kind = GATE_PUT + fuzz_u8(&gate.in) % 6,
				   .uid = fuzz_u8(&gate.in) % 5,
				   .guest = 1 + fuzz_u8(&gate.in), .serial = 1 + fuzz_u8(&gate.in),
				   .ticket = fuzz_u8(&gate.in) % TICKETS * 9, .data = data };
	bool again;

	/* now and then what was asked already */
	again = fuzz_u8(&gate.in) % 16 == 0;
	number += !again;
	q.number = 16 + number;
	memset(data, fuzz_u8(&gate.in), 256);
	switch (q.kind) {
	case GATE_SUBMIT:
		q.op = RGATE_REQ_OP(gate.role->requests, fuzz_u8(&gate.in) % gate.role->nops);
		q.handle = fuzz_u8(&gate.in);
		q.a0 = fuzz_u8(&gate.in);
		if (gate_op_has(gate.role, q.op) & GATE_HAS_NODE && q.a0 & 1)
			q.a0 = gate.role->here;
		q.len = fuzz_u16(&gate.in) * (q.ticket < GATE_TICKETS - GATE_WIDE ? 1 : 3);
		q.addr = gate_op_has(gate.role, q.op) & GATE_HAS_TO ? &addr : NULL;
		if (gate_op_has(gate.role, q.op) & GATE_HAS_IN && q.len < 64)
			q.data_len = q.len;
		if (gate_op_has(gate.role, q.op) & GATE_HAS_MANY && q.handle & 1) {
			q.kind = GATE_SUBMIT_MANY;
			q.a1 = q.handle & 2 ? GATE_MANY - q.a0 : 2 + q.a0 % 8;
			q.len -= q.len % (uint32_t)(q.a1 - 1);
			q.addr = NULL;
		}
		lend(&q);
		break;
	case GATE_DONE:
		q.kind = GATE_DOCK;
		dock = far_dock(fuzz_u8(&gate.in));
		q.data = &dock;
		q.data_len = sizeof(dock);
		break;
	case GATE_PUT:
	case GATE_GET:
		q.off = fuzz_u16(&gate.in);
		q.len = 1 + fuzz_u8(&gate.in) % GATE_PIECE;
		q.data_len = q.kind == GATE_PUT ? q.len : 0;
		if (q.kind == GATE_GET)
			lend(&q);
		if (q.lent.dock) {
			q.len = fuzz_u16(&gate.in) * (q.ticket < GATE_TICKETS - GATE_WIDE ? 1 : 3);
			q.lent.in = 0;
		}
		break;
	case GATE_LEAVE:
		q.serial = 0;
		break;
	case GATE_CANCEL:
		if (!(addr.family & 1))
			break;
		/* mostly what it has heard */
		q.kind = GATE_HEARD;
		q.a0 = addr.family & 6 ? heard_of(q.guest, q.ticket)->messages : addr.family >> 3;
		break;
	default:
		break;
	}
	got = q;
	/* what was asked already is answered as it was */
	got_number = q.kind == GATE_GET && !again ? q.number : 0;
	says_question(&q, msg, gate_question_put(gate.role, msg, &q));
	check_got();
}

/* Who waits for what that question has asked for; NULL: nobody does */
static const struct wish *wish_of(const struct gate_question *q)
{
	struct link *const all = &gate.sv->callers;
	const struct gate_caller *c;
	struct link *l;

	for (l = all->next; l != all; l = l->next) {
		c = container_of(l, struct gate_caller, of_service);
		if (c->id == q->guest && c->ticket[q->ticket] &&
		    c->ticket[q->ticket]->serial == q->serial)
			return c->ticket[q->ticket];
	}
	return NULL;
}

/*
 * Of a request with many: one before the end, if it is no error, or a piece of it: mostly what
 * follows what was heard. How many bytes of it came before.
 */
static uint32_t one_of_many(struct gate_result *r, const struct gate_question *q, uint32_t has)
{
	static const int8_t next[8] = { 0, 0, 0, 0, 0, 1, 2, -1 };
	const uint32_t share = q->len / (uint32_t)(q->a1 - 1), front = gate_front(has);
	const struct wish *w = wish_of(q);

	r->number = (w ? w->heard : 0) + (uint64_t)next[fuzz_u8(&gate.in) % 8];
	r->addr = NULL;
	if (r->result < 0 || share < front)
		return 0;
	r->kind = GATE_MORE;
	r->result = (int)least((uint32_t)r->result, share - front);
	if (w && w->moved) {
		r->result = w->result;
		r->value = w->value;
	}
	r->len = gate_share(has, share, r->result);
	return w && w->moved < r->len ? w->moved : 0;
}

/* An answer, or an end, to one of the questions that were asked; most of it as it should be */
static void answers(void)
{
	unsigned char msg[RGATE_HUB_MSG_MAX], data[GATE_PIECE];
	const struct rgate_socket_addr addr = { .family = 1 };
	const uint8_t how = fuzz_u8(&gate.in);
	struct gate_question q;
	struct gate_result r;
	const struct msg *m;
	unsigned int back;
	struct rgate_desc dock;
	uint32_t before = 0;

	if (!o.peer.asked.n)
		return;
	back = 1 + fuzz_u8(&gate.in) % 16;
	if (back > o.peer.asked.n)
		return;
	m = &o.peer.asked.m[o.peer.asked.n - back];
	FUZZ_CHECK(!gate_question_get(gate.role, &q, m->data, m->len));
	memset(data, fuzz_u8(&gate.in), sizeof(data));
	r = (struct gate_result){ .kind = how & 1 ? GATE_DONE : q.kind, .number = q.number };
	if (how & 1) {
		const int has = gate_op_has(gate.role, q.op);

		r.guest = q.guest;
		r.number = 0;
		r.serial = q.serial + (how >> 6 == 3);
		r.ticket = q.ticket;
		r.result = how & 2 ? -(int)fuzz_u8(&gate.in) :
				     (int)(fuzz_u16(&gate.in) % (q.len + 1));
		/* all of it, or more than it can be */
		if (!(how & 2) && how & 24)
			r.result = (int)q.len + ((how & 24) == 24 ? fuzz_u8(&gate.in) : 0);
		r.value = fuzz_u8(&gate.in);
		if (r.result >= 0 && has >= 0)
			r.len = has & GATE_HAS_OUT ? (uint32_t)r.result :
				has & GATE_HAS_WHOLE ? q.len : 0;
		if (how & 4)
			r.len = fuzz_u16(&gate.in);
		r.addr = r.result >= 0 && has >= 0 && has & GATE_HAS_FROM ? &addr : NULL;
		if (q.kind == GATE_SUBMIT_MANY)
			before = one_of_many(&r, &q, (uint32_t)has);
		/* as it was lent, or another one */
		if (q.lent.out && how & 32 && r.len > GATE_PIECE && !before)
			r.lent = (struct gate_lent){
				.dock = q.lent.dock + (how >> 7 & how >> 6),
				.out = 1 + (q.lent.out - 1 + (how >> 4 == 7)) % GATE_BERTHS };
	} else if (q.kind == GATE_DOCK) {
		dock = far_dock(how);
		r.len = r.data_len = sizeof(dock);
	} else {
		r.result = how & 2 ? -(int)fuzz_u8(&gate.in) : 0;
		r.len = q.kind == GATE_GET ? q.len : 0;
		if (how & 4)
			r.len = how & 8 ? GATE_PIECE : fuzz_u8(&gate.in);
	}
	r.data = r.kind == GATE_DOCK ? (void *)&dock : data;
	r.data_len = r.lent.dock || (q.kind == GATE_GET && q.lent.dock && !(how & 4)) ? 0 :
		     r.len - before;
	says(false, msg, gate_answer_put(gate.role, msg, &r));
}

static void check_more(const struct gate_result *r)
{
	struct heard *h = heard_of(r->guest, r->ticket);

	if (!h)
		return;
	if (h->serial != r->serial)
		*h = (struct heard){ .serial = r->serial };
	FUZZ_CHECK(r->number == h->messages);
	FUZZ_CHECK(!h->silent || (r->kind == GATE_DONE && !r->number));
	if (r->kind == GATE_MORE)
		h->messages += r->lent.dock ? gate_pieces(r->len) : 1;
}

static void check_said(void)
{
	struct gate_result r;
	struct msg m;

	while (other_heard(&m)) {
		FUZZ_CHECK(!gate_answer_get(&r, m.data, m.len));
		if (r.kind == GATE_MORE || r.kind == GATE_DONE)
			check_more(&r);
	}
	/* and what was asked is answered late, but not for ever */
	while (o.peer.asked.n > ASKED)
		(void)msgs_take(&o.peer.asked, &m);
}

static void step(void)
{
	unsigned int i;
	bool other;

	switch (fuzz_u8(&gate.in) % 11) {
	case 0:
		raw();
		break;
	case 1:
	case 2:
	case 3:
		asks();
		break;
	case 4:
		gate_complete();
		break;
	case 5:
		gate_askers_wish();
		break;
	case 6:
	case 7:
		answers();
		break;
	case 8:
		writes();
		break;
	case 9:
		if (o.peer.up) {
			other_goes_down();
			break;
		}
		other = fuzz_u8(&gate.in) & 1;
		for (i = 0; i < 257 * TICKETS; i++)
			heard[i / TICKETS][i % TICKETS].silent = true;
		if (other)
			memset(heard, 0, sizeof(heard));
		number = other ? 0 : number;
		other_comes_up(o.peer.incarnation + other);
		break;
	default:
		o.peer.full = o.peer.send_full = fuzz_u8(&gate.in) & 1;
		o.peer.held = fuzz_u8(&gate.in) & 1;
		o.hub.node.no_share = gate.no_room = fuzz_u8(&gate.in) % 8 == 0;
		gate.may_all = fuzz_u8(&gate.in) % 4 == 0;
		gate_askers_leave(fuzz_u8(&gate.in));
	}
	(void)o.hub.asks.tick(o.hub.ctx);
	check_said();
	check_berths();
	gate_askers_forget();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gate_opts opts = { .sz = sizeof(opts), .hub = HUB, .may = gate_may,
				  .engine = (struct rgate_engine *)&gate.sv, .gateway = OTHER };
	unsigned int i;

	gate = (struct gate_fuzz){ .in = { .p = data, .len = size } };
	gate.role = opts.role = size && data[0] == 0xff ? &gate_queues : &gate_sockets;
	number = 0;
	gate_askers_begin();
	memset(heard, 0, sizeof(heard));
	other_init(gate.role->service);
	FUZZ_CHECK(!gate_service_create(&gate.sv, &opts));
	other_comes_up(1);
	for (i = 0; gate.in.len && i < STEPS; i++)
		step();
	gate_service_quit(gate.sv);
	gate_askers_check();
	gate_guests_check();
	gate_service_destroy(gate.sv);
	FUZZ_CHECK(!o.hub.node.stage.lent && !node_shares(&o.hub.node));
	return 0;
}
