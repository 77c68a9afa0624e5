// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "gate_priv.h"
#include "session_at.h"
#include "thread.h"

#define GUESTS_MOST	64U	/* of a node */
#define COME_AT_ONCE	128U	/* of a node: a session's memory is made, and given back */
#define COME_NS		20000000ULL	/* one more in so long */
#define SHARE_AT_ONCE	(COME_AT_ONCE / 2)	/* of a user of it */
#define SHARE_NS	(COME_NS * 2)
#define EVENTS		32

/* ---- One ---- */

static void put(struct guest *g)
{
	unsigned int i;

	if (__atomic_sub_fetch(&g->refs, 1, __ATOMIC_ACQ_REL))
		return;
	for (i = 0; i < GATE_TICKETS; i++)
		free(g->ticket[i].shots);
	free(g);
}

static void seat_over(void *ctx)
{
	put(ctx);
}

static int open_session(struct guest *g, const struct rgate_limits *limits)
{
	struct gate_service *sv = g->node->sv;
	const uint64_t memory = (gate_room(sv->o.role, GATE_TICKETS) + 4095) & ~4095ULL;
	const struct rgate_seat_opts o = RGATE_OPTS(rgate_seat_opts, .uid = g->uid,
		.requests = GATE_PLACES, .completions = GATE_PLACES + GATE_SHOTS, .limits = limits,
		.modest = true, .memory = memory, .over = seat_over, .ctx = g);
	int err;

	err = rgate_session_at(&g->session, sv->o.engine, &o, &g->seat);
	if (err)
		return err;
	g->mem = rgate_session_memory(g->session, NULL);
	err = events_add(&sv->ev, rgate_session_fd(g->session), EPOLLIN, g->key);
	if (err)
		return err;
	(void)rgate_session_arm(g->session);
	return 0;
}

static struct limit *share_of(struct gate_node *n, uid_t uid)
{
	return &n->share[uid % GATE_SHARES];
}

/* May the node, and that user of it, have one more, now? A user takes half of it at most. */
static int admit(struct gate_node *n, uid_t uid)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	struct limit *share = share_of(n, uid);
	unsigned int before;

	if (n->nguests == GUESTS_MOST) {
		n->sv->turned_away++;
		return -EDQUOT;
	}
	if (limit_pass(share, SHARE_AT_ONCE, SHARE_NS, now, &before)) {
		if (limit_pass(&n->comes, COME_AT_ONCE, COME_NS, now, &before))
			return 0;
		limit_back(share);
	}
	n->sv->turned_away++;
	return -EUSERS;
}

/* His quota is looked at before anything is made that has a cost. */
static void was_not_made(struct gate_node *n, uid_t uid, int err)
{
	if (err != -EDQUOT)
		return;
	limit_back(share_of(n, uid));
	limit_back(&n->comes);
}

int gate_guest_new(struct gate_node *n, uint64_t id, uid_t uid, struct guest **out)
{
	struct gate_service *sv = n->sv;
	struct rgate_limits limits;
	struct guest *g;
	int err;

	rgate_limits_init(&limits);
	if (!sv->o.engine || (sv->o.rights && !sv->o.rights(sv->o.ctx, uid, &limits)))
		return -EACCES;
	err = admit(n, uid);
	if (err)
		return err;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->node = n;
	g->id = id;
	g->uid = uid;
	g->key = ++sv->keys;
	g->refs = 2;
	list_init(&g->of_node);
	err = open_session(g, &limits);
	if (err && !g->seat)
		put(g);
	if (err && g->session)
		gate_guest_end(g);
	else if (err)
		put(g);
	if (err) {
		was_not_made(n, uid, err);
		return err;
	}
	list_add_tail(&n->guests, &g->of_node);
	n->nguests++;
	*out = g;
	return 0;
}

struct guest *gate_guest_of(struct gate_node *n, uint64_t id)
{
	struct guest *g;
	struct link *l;

	for (l = n->guests.next; l != &n->guests; l = l->next) {
		g = container_of(l, struct guest, of_node);
		if (g->id == id)
			return g;
	}
	return NULL;
}

bool gate_guest_at(const struct gate_node *n, const struct rgate_seat *seat)
{
	const struct link *l;

	for (l = n->guests.next; l != &n->guests; l = l->next)
		if (container_of(l, struct guest, of_node)->seat == seat)
			return true;
	return false;
}

bool gate_guest_is_gone(const struct gate_node *n, uint64_t id)
{
	unsigned int i;

	for (i = 0; i < GATE_GONE; i++)
		if (n->gone[i] == id)
			return true;
	return id <= n->floor;
}

/*
 * Of the highest ones each is known. Below them all are taken for gone: a session that has not come
 * before so many later ones have left does not come.
 */
static void note_gone(struct gate_node *n, uint64_t id)
{
	unsigned int i, least = 0;

	for (i = 1; i < GATE_GONE; i++)
		if (n->gone[i] < n->gone[least])
			least = i;
	if (n->gone[least] > id) {
		n->floor = n->floor > id ? n->floor : id;
		return;
	}
	if (n->gone[least] > n->floor)
		n->floor = n->gone[least];
	n->gone[least] = id;
}

void gate_guests_forget(struct gate_node *n)
{
	memset(n->gone, 0, sizeof(n->gone));
	n->floor = 0;
}

void gate_guest_end(struct guest *g)
{
	if (!list_empty(&g->of_node)) {
		g->node->nguests--;
		note_gone(g->node, g->id);
	}
	list_del(&g->of_node);
	events_remove(&g->node->sv->ev, rgate_session_fd(g->session));
	rgate_session_close(g->session);
	rgate_seat_remove(g->seat);
	put(g);
}

void gate_guests_end(struct gate_node *n)
{
	while (!list_empty(&n->guests))
		gate_guest_end(container_of(n->guests.next, struct guest, of_node));
}

/* ---- What their requests have come to ---- */

static struct guest *find(struct gate_service *sv, uint64_t key)
{
	struct gate_node *n;
	struct guest *g;
	struct link *l;

	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++)
		for (l = n->guests.next; l != &n->guests; l = l->next) {
			g = container_of(l, struct guest, of_node);
			if (g->key == key)
				return g;
		}
	return NULL;
}

/* One that is not the last */
static void came(struct shots *s, const struct rgate_completion *c)
{
	if (!s || s->came == s->most)
		return;
	s->shot[s->came].result = c->result;
	s->shot[s->came++].value = c->value;
}

/* gcc 12's analyzer loses what the ticket has. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
/* What it did not come to counts no more, and has no memory; the rest stays with the ticket. */
static void give_back(struct guest *g, struct ticket *t)
{
	struct shots *s = t->shots;

	g->shots -= s->most;
	s->most = s->came;
	s = realloc(s, sizeof(*s) + s->came * sizeof(s->shot[0]));
	if (s)
		t->shots = s;
}

static void is_over(struct guest *g, struct ticket *t, const struct rgate_completion *c)
{
	if (t->shots)
		give_back(g, t);
	t->state = TICKET_DONE;
	t->result = c->result;
	t->value = c->value;
	/* Of many each has had its own. */
	t->total = t->shots ? 0 : gate_bytes(t->has, t->len, t->result);
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

static void completed(struct guest *g, const struct rgate_completion *c)
{
	struct ticket *t = &g->ticket[c->cookie % GATE_TICKETS];

	/* Else it is what has cancelled one. */
	if (t->state != TICKET_BUSY || c->cookie / GATE_TICKETS != t->serial)
		return;
	if (c->flags & RGATE_COMP_MORE)
		came(t->shots, c);
	else
		is_over(g, t, c);
	t->untold = !t->shots || !t->shots->silent;
	g->node->untold |= t->untold;
}

static void take(struct guest *g)
{
	struct rgate_completion c;

	do {
		while (rgate_session_poll(g->session, &c, 1) == 1)
			completed(g, &c);
	} while (rgate_session_arm(g->session) == 1);
	gate_serve_pump(g->node);
	/* The hub's thread looks for room. */
	if (g->node->untold)
		rgate_hub_wake(g->node->sv->o.hub);
}

static void *serve(void *arg)
{
	struct gate_service *sv = arg;
	struct epoll_event ev[EVENTS];
	struct guest *g;
	int i, n;

	for (;;) {
		n = events_wait(&sv->ev, ev, EVENTS, -1);
		for (i = 0; i < n; i++) {
			if (ev[i].data.u64 == EVENTS_WAKE)
				return NULL;
			fair_lock(&sv->lock);
			g = find(sv, ev[i].data.u64);
			if (g)
				take(g);
			fair_unlock(&sv->lock);
		}
	}
}

int gate_guests_start(struct gate_service *sv)
{
	int err = events_open(&sv->ev);

	if (err)
		return err;
	err = rgate_thread_start(&sv->thread, NULL, serve, sv);
	if (err)
		events_close(&sv->ev);
	else
		sv->runs = true;
	return err;
}

void gate_guests_stop(struct gate_service *sv)
{
	if (!sv->runs)
		return;
	events_wake(&sv->ev);
	pthread_join(sv->thread, NULL);
	events_close(&sv->ev);
	sv->runs = false;
}
