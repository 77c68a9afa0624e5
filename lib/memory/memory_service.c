// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "memory_priv.h"
#include "opts.h"

#define SILENCE_MS	10000U

/* ---- The hub's thread ---- */

static void on_question(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct memory_service *sv = ctx;

	memory_serve_question(&sv->node[node], msg, len);
}

static void on_answer(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct memory_service *sv = ctx;

	memory_ask_answer(&sv->node[node], msg, len);
	memory_ask_pump(&sv->node[node]);
}

static void pump(void *ctx, uint32_t node)
{
	struct memory_service *sv = ctx;

	memory_ask_pump(&sv->node[node]);
}

static uint64_t expire(void *ctx, uint32_t node)
{
	struct memory_service *sv = ctx;

	return errands_expire(sv->node[node].tasks, rgate_clock_now(CLOCK_MONOTONIC));
}

static const struct board_ops board_ops = {
	.service = RGATE_SERVICE_MEMORY, .question = on_question, .answer = on_answer,
	.pump = pump, .expire = expire,
};

/* ---- The object ---- */

static void close_nodes(struct memory_service *sv)
{
	struct memory_node *n;

	board_leave(sv->board);
	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++)
		errands_destroy(n->tasks);
	board_destroy(sv->board);
}

static int open_nodes(struct memory_service *sv)
{
	const uint64_t silence_ms = sv->o.silence_ms ? sv->o.silence_ms : SILENCE_MS;
	struct memory_node *n;
	int err = 0;

	for (n = sv->node; !err && n < sv->node + RGATE_NODES_MAX; n++) {
		n->sv = sv;
		n->line = board_line(sv->board, (uint32_t)(n - sv->node));
		if (n->line)
			err = errands_create(&n->tasks, n->line, CLOCK_MONOTONIC,
					     silence_ms * 1000000);
	}
	return err;
}

static int join_hub(struct memory_service *sv)
{
	const struct board_opts o = { .hub = sv->o.hub, .lock = &sv->lock, .may = sv->o.may,
				      .may_ctx = sv->o.ctx };
	int err;

	err = board_create(&sv->board, &o, &board_ops, sv);
	if (!err)
		err = open_nodes(sv);
	if (!err)
		err = board_join(sv->board);
	if (err)
		close_nodes(sv);
	return err;
}

static void free_service(struct memory_service *sv)
{
	fair_destroy(&sv->lock);
	free(sv);
}

int memory_service_create(struct memory_service **out, const struct memory_opts *opts)
{
	struct memory_service *sv;
	struct memory_opts o;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (err)
		return err;
	sv = calloc(1, sizeof(*sv));
	if (!sv)
		return -ENOMEM;
	sv->o = o;
	list_init(&sv->dead);
	fair_init(&sv->lock);
	err = regions_init(&sv->regions);
	if (!err && o.hub)
		err = join_hub(sv);
	if (err) {
		free_service(sv);
		return err;
	}
	*out = sv;
	return 0;
}

int memory_service_add(struct memory_service *sv, struct rgate_engine *engine)
{
	return rgate_engine_add(engine, &memory_requests, sv);
}

void memory_service_destroy(struct memory_service *sv)
{
	if (!sv)
		return;
	close_nodes(sv);
	free_service(sv);
}
