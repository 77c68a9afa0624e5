// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What other nodes ask of locks and barriers whose home is here. What a node has is kept for
 * one life of it; when the life is over its connection is ended before anybody else gets that.
 */
#include <errno.h>
#include <stdlib.h>

#include "sync_priv.h"

#define CLEAN	1U	/* flags of SYNC_CLOSE */

/* ---- Lives ---- */

static void drop_claims(struct sync_service *sv, struct guest *g)
{
	struct link *l = &g->party.claims;

	while (!list_empty(l))
		sync_table_close(&sv->table, container_of(l->next, struct claim, of_party), false);
	sync_tell(sv);
}

static void free_guest(struct guest *g)
{
	list_del(&g->orphan);
	free(g);
}

void sync_serve_forget(struct sync_service *sv, struct guest *g)
{
	drop_claims(sv, g);
	free_guest(g);
}

static struct guest *make_guest(struct sync_node *n, uint64_t life)
{
	struct guest *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	party_init(&g->party, line_node(n->line));
	list_init(&g->orphan);
	list_init(&g->untold);
	g->life = life;
	n->guest = g;
	return g;
}

/* NULL: that life is over */
static struct guest *guest_of(struct sync_node *n, uint64_t life)
{
	struct guest *g = n->guest;

	if (life <= n->over || (g && life < g->life))
		return NULL;
	if (!g)
		return make_guest(n, life);
	if (life > g->life) {
		g->life = life;
		drop_claims(n->sv, g);
	}
	return g;
}

/* Its programs may still run, and take what they had for theirs until the lease is over. */
void sync_serve_other(struct sync_node *n)
{
	struct guest *g = n->guest;

	n->over = 0;
	n->guest = NULL;
	if (!g)
		return;
	while (!list_empty(&g->untold))
		list_del(g->untold.next);
	list_add_tail(&n->sv->orphans, &g->orphan);
}

void sync_serve_fini(struct sync_service *sv)
{
	struct sync_node *n;

	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++) {
		if (!n->guest)
			continue;
		/* Nobody is told that he has what another one's lease still lets have. */
		list_add_tail(&sv->orphans, &n->guest->orphan);
		n->guest = NULL;
	}
	while (!list_empty(&sv->orphans))
		sync_serve_forget(sv, container_of(sv->orphans.next, struct guest, orphan));
	while (!list_empty(&sv->fences))
		sync_serve_forget(sv, container_of(sv->fences.next, struct guest, orphan));
}

/* What is posted over the old connection can do nothing any more when this has returned. */
static void fence(struct sync_node *n)
{
	if (line_is_up(n->line))
		rgate_peer_cut(line_peer(n->line));
}

static void end_life(struct sync_node *n)
{
	struct guest *g = n->guest;

	fence(n);
	n->over = g->life;
	n->guest = NULL;
	while (!list_empty(&g->untold))
		list_del(g->untold.next);
	sync_fence_begin(n->sv, g);
}

static uint64_t left(const struct sync_service *sv, const struct guest *g, uint64_t now)
{
	const uint64_t end = g->heard_ns + sync_patience(sv);

	return end > now ? end - now : 0;
}

uint64_t sync_serve_expire(struct sync_service *sv, uint64_t now)
{
	uint64_t least = UINT64_MAX, ns;
	struct link *l, *next;
	struct sync_node *n;
	struct guest *g;

	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++) {
		if (!n->guest || !n->guest->party.n)
			continue;
		ns = left(sv, n->guest, now);
		if (!ns)
			end_life(n);
		else if (ns < least)
			least = ns;
	}
	for (l = sv->orphans.next; l != &sv->orphans; l = next) {
		next = l->next;
		g = container_of(l, struct guest, orphan);
		ns = left(sv, g, now);
		if (ns) {
			least = ns < least ? ns : least;
			continue;
		}
		sync_serve_forget(sv, g);
	}
	ns = sync_fence_expire(sv, now);
	return ns < least ? ns : least;
}

/* ---- News ---- */

/* False: not now */
static bool says_news(struct sync_node *n, const struct claim *c)
{
	struct sync_result r = { .op = SYNC_NEWS, .number = c->seq, .claim = c->id,
				 .value = c->value, .err = c->result };
	uint64_t msg[RGATE_HUB_MSG_MAX / sizeof(uint64_t)];

	/* It has begun to wait again, so it was told. */
	if (c->state == CLAIM_WAITS)
		return true;
	r.lease_ms = (uint32_t)(n->sv->lease_ns / 1000000);
	if (c->result) {
		r.kind = SYNC_BARRIER;
		claim_barrier_info(c, &r.info.barrier);
	}
	return line_tell(n->line, msg, sync_answer_put(msg, &r));
}

/* What is sent here is there, or its connection ends, and then all of it is told anew. */
void sync_serve_up(struct sync_node *n)
{
	struct claim *c;
	struct link *l;

	if (!n->guest)
		return;
	for (l = n->guest->party.claims.next; l != &n->guest->party.claims; l = l->next) {
		c = container_of(l, struct claim, of_party);
		if (c->state != CLAIM_HAS && !c->result)
			continue;
		list_del(&c->news);
		list_add_tail(&n->guest->untold, &c->news);
	}
}

bool sync_serve_waits(const struct sync_node *n)
{
	return line_is_up(n->line) && n->guest && !list_empty(&n->guest->untold);
}

void sync_serve_pump(struct sync_node *n)
{
	struct claim *c;

	while (sync_serve_waits(n)) {
		c = container_of(n->guest->untold.next, struct claim, news);
		if (!says_news(n, c))
			return;
		list_del(&c->news);
	}
}

void sync_serve_tell(struct sync_service *sv, struct claim *c)
{
	struct sync_node *n = &sv->node[c->party->node];

	if (n->guest != container_of(c->party, struct guest, party))
		return;
	list_add_tail(&n->guest->untold, &c->news);
	sync_serve_pump(n);
	/* This may be the engine's thread; the hub's looks again by itself. */
	if (sync_serve_waits(n))
		rgate_hub_wake(sv->o.hub);
}

/* ---- Questions ---- */

static int take(struct sync_service *sv, struct claim *c, const struct sync_question *q,
		struct sync_result *r)
{
	int err = sync_table_take(&sv->table, c, q->seq, q->flags);

	r->value = c->value;
	if (err != -EPIPE)
		return err;
	r->kind = SYNC_BARRIER;
	claim_barrier_info(c, &r->info.barrier);
	return err;
}

static int on_claim(struct sync_service *sv, struct guest *g, const struct sync_question *q,
		    struct sync_result *r)
{
	struct claim *c = sync_table_claim(&sv->table, &g->party, q->claim);

	if (!c)
		return -EBADF;
	if (c->uid != q->uid)
		return -EACCES;
	switch (q->op) {
	case SYNC_TAKE:
		return take(sv, c, q, r);
	case SYNC_DROP:
		sync_table_drop(&sv->table, c);
		return 0;
	case SYNC_CLOSE:
		sync_table_close(&sv->table, c, q->flags & CLEAN);
		return 0;
	default:
		r->kind = claim_kind(c);
		if (r->kind == SYNC_LOCK)
			claim_lock_info(c, &r->info.lock);
		else
			claim_barrier_info(c, &r->info.barrier);
		return 0;
	}
}

static int on_open(struct sync_service *sv, struct guest *g, const struct sync_question *q,
		   struct sync_result *r)
{
	struct claim *c;
	int err;

	err = sync_table_open(&sv->table, &g->party, q->uid, &q->as, &c);
	if (!err)
		r->claim = c->id;
	return err;
}

/* What makes it less than it was is never refused. */
static bool needs_leave(enum sync_op op)
{
	return op != SYNC_RENEW && op != SYNC_DROP && op != SYNC_CLOSE;
}

static int carry_out(struct sync_node *n, const struct sync_question *q, struct sync_result *r)
{
	struct sync_service *sv = n->sv;
	struct guest *g;

	if (q->op == SYNC_FENCE)
		return sync_fence_peer(n, q->claim, q->life);
	g = guest_of(n, q->life);
	if (!g)
		return -ESTALE;
	g->heard_ns = sync_now();
	if (needs_leave(q->op) && !board_may(sv->board, line_node(n->line), q->uid))
		return -EACCES;
	switch (q->op) {
	case SYNC_RENEW:
		return 0;
	case SYNC_OPEN:
		return on_open(sv, g, q, r);
	case SYNC_LIST:
		r->claim = sync_table_list(&sv->table, q->uid, q->claim, &r->info.lock);
		r->kind = r->claim ? SYNC_LOCK : 0;
		return 0;
	default:
		return on_claim(sv, g, q, r);
	}
}

void sync_serve_question(struct sync_node *n, const void *msg, size_t len)
{
	uint64_t answer[RGATE_HUB_MSG_MAX / sizeof(uint64_t)];
	struct sync_question q;
	struct sync_result r;
	int err;

	err = sync_question_get(&q, msg, len);
	if (err == -EPROTO || !line_take(n->line, q.number))
		return;
	r = (struct sync_result){ .number = q.number, .op = q.op, .err = err,
				  .lease_ms = (uint32_t)(n->sv->lease_ns / 1000000) };
	if (!err)
		r.err = carry_out(n, &q, &r);
	line_say(n->line, q.number, answer, sync_answer_put(answer, &r));
	/* Others may have got what it gave back. */
	sync_tell(n->sv);
}
