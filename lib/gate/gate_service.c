// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "gate_priv.h"
#include "opts.h"

#define SILENCE_MS	10000U
#define ROOM_NS		1000000	/* between looks for room for messages */

void gate_pump(struct gate_node *n)
{
	line_reap(n->line);
	errands_pump(n->errands);
	line_send(n->line, !errands_idle(n->errands));
}

/* ---- The hub's thread ---- */

static void on_news(void *ctx, uint32_t node, enum session_news what)
{
	struct gate_service *sv = ctx;
	struct gate_node *n = &sv->node[node];

	switch (what) {
	case SESSION_DOWN:
		n->down_ns = rgate_clock_now(CLOCK_MONOTONIC);
		gate_docks_end(n);
		break;
	case SESSION_OTHER:
		n->life++;
		gate_guests_end(n);
		gate_guests_forget(n);
		gate_ask_lost(sv, n, true);
		break;
	case SESSION_UP:
		n->down_ns = 0;
		gate_serve_up(n);
		gate_ask_up(n);
		break;
	default:
		break;
	}
}

static void on_question(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct gate_service *sv = ctx;

	gate_serve_question(&sv->node[node], msg, len);
}

static void on_answer(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct gate_service *sv = ctx;

	gate_ask_answer(&sv->node[node], msg, len);
	gate_pump(&sv->node[node]);
}

static void pump(void *ctx, uint32_t node)
{
	struct gate_service *sv = ctx;

	gate_pump(&sv->node[node]);
	gate_serve_pump(&sv->node[node]);
}

/* It does not come back: what each has of the other ends, here as there. */
static void given_up(struct gate_node *n)
{
	gate_guests_end(n);
	gate_ask_lost(n->sv, n, false);
}

static uint64_t expire(void *ctx, uint32_t node)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	struct gate_service *sv = ctx;
	struct gate_node *n = &sv->node[node];
	const uint64_t end = gate_ask_expire(n, now);
	uint64_t ns = errands_expire(n->errands, now), due;

	ns = end < ns ? end : ns;
	if (n->untold && line_is_up(n->line) && ns > ROOM_NS)
		ns = ROOM_NS;
	if (!n->down_ns)
		return ns;
	due = n->down_ns + sv->silence_ns;
	if (due > now)
		return due - now < ns ? due - now : ns;
	n->down_ns = 0;
	given_up(n);
	return ns;
}

static const struct board_ops board_ops = {
	.news = on_news, .question = on_question, .answer = on_answer, .pump = pump,
	.expire = expire,
};

/* ---- The object ---- */

static int open_nodes(struct gate_service *sv)
{
	struct gate_node *n;
	int err = 0;

	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++) {
		n->sv = sv;
		list_init(&n->guests);
		list_init(&n->ending);
		n->line = board_line(sv->board, (uint32_t)(n - sv->node));
		if (n->line && !err)
			err = errands_create(&n->errands, n->line, CLOCK_MONOTONIC,
					     sv->silence_ns);
	}
	return err;
}

static int start(struct gate_service *sv)
{
	const struct board_opts o = { .hub = sv->o.hub, .lock = &sv->lock, .may = sv->o.may,
				      .may_ctx = sv->o.ctx };
	int err;

	err = board_create(&sv->board, &o, &sv->ops, sv);
	if (!err)
		err = open_nodes(sv);
	if (!err && sv->o.engine)
		err = gate_guests_start(sv);
	return err ? err : board_join(sv->board);
}

int gate_service_create(struct gate_service **out, const struct gate_opts *opts)
{
	struct gate_service *sv;
	struct gate_opts o;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (!err && (!o.hub || !o.role || o.gateway >= RGATE_NODES_MAX))
		err = -EINVAL;
	if (err)
		return err;
	sv = calloc(1, sizeof(*sv));
	if (!sv)
		return -ENOMEM;
	sv->o = o;
	sv->ops = board_ops;
	sv->ops.service = o.role->service;
	sv->silence_ns = (o.silence_ms ? o.silence_ms : SILENCE_MS) * 1000000ULL;
	list_init(&sv->callers);
	fair_init(&sv->lock);
	err = index_init(&sv->by_id);
	if (!err)
		err = index_init(&sv->by_seat);
	if (!err)
		err = start(sv);
	if (err) {
		gate_service_quit(sv);
		gate_service_destroy(sv);
		return err;
	}
	*out = sv;
	return 0;
}

int gate_service_stats(struct gate_service *sv, struct gate_stats *stats)
{
	struct gate_stats st = { .sz = sizeof(st) };
	const struct gate_node *n;

	if (stats->sz != sizeof(st))
		return -EINVAL;
	fair_lock(&sv->lock);
	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++)
		st.guests += n->nguests;
	st.came = sv->keys;
	st.turned_away = sv->turned_away;
	st.docks_again = sv->docks_again;
	fair_unlock(&sv->lock);
	*stats = st;
	return 0;
}

void gate_service_quit(struct gate_service *sv)
{
	struct gate_node *n;

	if (!sv)
		return;
	fair_lock(&sv->lock);
	sv->over = true;
	gate_ask_lost(sv, NULL, false);
	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++)
		if (n->line)
			gate_guests_end(n);
	fair_unlock(&sv->lock);
	gate_guests_stop(sv);
	/* By now the hub's thread alone uses the lines: who asks hears that it is over. */
	board_leave(sv->board);
}

void gate_service_destroy(struct gate_service *sv)
{
	struct gate_node *n;

	if (!sv)
		return;
	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++) {
		gate_docks_end(n);
		errands_destroy(n->errands);
	}
	board_destroy(sv->board);
	fair_destroy(&sv->lock);
	index_fini(&sv->by_seat);
	index_fini(&sv->by_id);
	free(sv);
}
