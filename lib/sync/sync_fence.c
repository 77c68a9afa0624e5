// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Before the home gives away what a node had whose life is over, each other node is asked to end
 * its connection to that node, too: what was posted for memory there, under a lock that is
 * another one's then, lands nowhere any more. It is given away when all have said that they
 * did. Only nodes with a connection to the home are asked, and none is waited for longer than a
 * lease: who does not answer must not keep a lock from others for ever. All others may have one to
 * that node all the same, of which the home cannot know: so the log names each that has not said
 * that it ended it.
 */
#include <errno.h>
#include <string.h>

#include "log.h"
#include "sync_priv.h"

static uint32_t bit_of(const struct sync_node *n)
{
	return 1U << line_node(n->line);
}

static bool is_over(const struct guest *g)
{
	return !(g->to_ask | g->asked);
}

/* ---- The home ---- */

static void said(struct sync_service *sv, struct guest *g, uint32_t bit)
{
	g->to_ask &= ~bit;
	g->asked &= ~bit;
	if (is_over(g))
		sync_serve_forget(sv, g);
}

/* It has ended one for this home a moment ago, of an earlier life: it will when a lease is over. */
static void ask_later(struct guest *g, uint32_t bit)
{
	g->asked &= ~bit;
	g->to_ask |= bit;
	g->again_ns = sync_now() + g->sv->lease_ns / 8;
}

static void over_fence(struct ask *a, int err, const void *answer, size_t len)
{
	struct guest *g = a->ctx;
	struct sync_node *n = g->sv->node + a->word;
	struct sync_result r = { 0 };

	/* Another process is there: the last one's connections have ended with it. */
	if (err != -ECONNRESET) {
		if (!err)
			err = sync_answer_get(&r, answer, len);
		if (!err)
			err = r.op == SYNC_FENCE ? r.err : -EPROTO;
		if (err == -EAGAIN) {
			ask_later(g, bit_of(n));
			return;
		}
		if (err)
			rgate_warn("locks of node %u go on, and node %u did not end its connection "
				   "to it: %s", g->party.node, line_node(n->line),
				   strerror(-err));
	}
	said(g->sv, g, bit_of(n));
}

void sync_fence_pump(struct sync_node *n)
{
	struct sync_service *sv = n->sv;
	struct sync_question q = { .op = SYNC_FENCE };
	const uint64_t now = sync_now();
	struct link *l;
	struct guest *g;
	struct ask *a;

	for (l = sv->fences.next; l != &sv->fences; l = l->next) {
		g = container_of(l, struct guest, orphan);
		if (!(g->to_ask & bit_of(n)) || now < g->again_ns)
			continue;
		a = line_open(n->line);
		if (!a)
			return;
		q.number = a->number;
		q.claim = g->party.node;
		q.life = g->life;
		a->ctx = g;
		a->word = line_node(n->line);
		g->to_ask &= ~bit_of(n);
		g->asked |= bit_of(n);
		line_ask(a, sync_question_put(a->msg, &q), false, over_fence);
	}
}

static void not_asked(const struct guest *g, const struct sync_node *n)
{
	rgate_warn("locks of node %u go on, and node %u cannot be asked to end its connection "
		   "to it", g->party.node, line_node(n->line));
}

void sync_fence_begin(struct sync_service *sv, struct guest *g)
{
	struct sync_node *n;

	g->sv = sv;
	g->to_ask = g->asked = 0;
	g->again_ns = 0;
	g->due_ns = sync_now() + sv->lease_ns;
	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++) {
		if (!n->line || line_node(n->line) == g->party.node)
			continue;
		if (line_is_up(n->line))
			g->to_ask |= bit_of(n);
		else
			not_asked(g, n);
	}
	if (is_over(g)) {
		sync_serve_forget(sv, g);
		return;
	}
	list_add_tail(&sv->fences, &g->orphan);
}

void sync_fence_lapse(struct sync_node *n, bool other)
{
	struct link *l, *next;
	struct guest *g;

	for (l = n->sv->fences.next; l != &n->sv->fences; l = next) {
		next = l->next;
		g = container_of(l, struct guest, orphan);
		if (other) {
			said(n->sv, g, bit_of(n));
		} else if (g->asked & bit_of(n)) {
			g->asked &= ~bit_of(n);
			g->to_ask |= bit_of(n);
		}
	}
}

static void give_up(struct sync_service *sv, struct guest *g)
{
	struct sync_node *n;

	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++) {
		if (!n->line || !((g->to_ask | g->asked) & bit_of(n)))
			continue;
		rgate_warn("locks of node %u go on, and node %u did not say that it has ended its "
			   "connection to it", g->party.node, line_node(n->line));
		(void)line_leave(n->line, g);
	}
	sync_serve_forget(sv, g);
}

uint64_t sync_fence_expire(struct sync_service *sv, uint64_t now)
{
	uint64_t least = UINT64_MAX, due;
	struct link *l, *next;
	struct guest *g;

	for (l = sv->fences.next; l != &sv->fences; l = next) {
		next = l->next;
		g = container_of(l, struct guest, orphan);
		if (now >= g->due_ns) {
			give_up(sv, g);
			continue;
		}
		due = now < g->again_ns && g->again_ns < g->due_ns ? g->again_ns : g->due_ns;
		if (due - now < least)
			least = due - now;
	}
	return least;
}

/* ---- Who is asked ---- */

/*
 * No home ends a life of a node twice in a lease. So one that lies ends no connection more often
 * than that.
 */
int sync_fence_peer(struct sync_node *n, uint64_t node, uint64_t life)
{
	struct sync_service *sv = n->sv;
	const uint64_t now = sync_now();
	struct fenced *f;

	if (node >= RGATE_NODES_MAX || node == line_node(n->line) || !sv->node[node].line)
		return -EINVAL;
	f = &n->fenced[node];
	if (f->ns && now - f->ns < sv->lease_ns)
		return f->life == life ? 0 : -EAGAIN;
	f->ns = now;
	f->life = life;
	rgate_peer_cut(line_peer(sv->node[node].line));
	return 0;
}
