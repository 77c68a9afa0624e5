// SPDX-License-Identifier: MIT OR GPL-2.0
#include "board.h"

#include <errno.h>
#include <stdlib.h>

#include "hub_ref.h"

#define ROOM_NS		1000000	/* between looks for room for messages */

struct board {
	struct board_opts o;
	const struct board_ops *ops;
	void *ctx;
	uint32_t self;
	bool joined;
	struct line *lines[RGATE_NODES_MAX];	/* never change; NULL: not a node to be asked */
};

static void look(struct board *b, uint32_t node)
{
	/* First of all: after a pause what comes may be as old as it likes. */
	if (b->ops->clock)
		b->ops->clock(b->ctx, node);
	line_look(b->lines[node], b->ops->news, b->ctx);
}

static void message(struct board *b, uint32_t node, const void *msg, size_t len,
		    void (*fn)(void *ctx, uint32_t node, const void *msg, size_t len))
{
	if (!b->lines[node])
		return;
	fair_lock(b->o.lock);
	look(b, node);
	if (line_is_current(b->lines[node]))
		fn(b->ctx, node, msg, len);
	fair_unlock(b->o.lock);
}

static void hub_question(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct board *b = ctx;

	message(b, node, msg, len, b->ops->question);
}

static void hub_answer(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct board *b = ctx;

	message(b, node, msg, len, b->ops->answer);
}

static void pump(struct board *b, uint32_t node)
{
	look(b, node);
	line_say_again(b->lines[node]);
	b->ops->pump(b->ctx, node);
}

static void hub_state(void *ctx, uint32_t node, bool up)
{
	struct board *b = ctx;

	(void)up;
	if (!b->lines[node])
		return;
	fair_lock(b->o.lock);
	pump(b, node);
	fair_unlock(b->o.lock);
}

static uint64_t look_after(struct board *b, uint32_t node)
{
	uint64_t ns;

	pump(b, node);
	ns = b->ops->expire(b->ctx, node);
	return line_is_stalled(b->lines[node]) && ns > ROOM_NS ? ROOM_NS : ns;
}

static int64_t hub_tick(void *ctx)
{
	struct board *b = ctx;
	uint64_t least, ns;
	uint32_t node;

	fair_lock(b->o.lock);
	least = b->ops->tick ? b->ops->tick(b->ctx) : UINT64_MAX;
	for (node = 0; node < RGATE_NODES_MAX; node++) {
		if (!b->lines[node])
			continue;
		ns = look_after(b, node);
		least = ns < least ? ns : least;
	}
	fair_unlock(b->o.lock);
	return least == UINT64_MAX ? -1 : (int64_t)least;
}

/* ---- The object ---- */

static void destroy_lines(struct board *b)
{
	uint32_t node;

	for (node = 0; node < RGATE_NODES_MAX; node++)
		line_destroy(b->lines[node]);
}

int board_create(struct board **out, const struct board_opts *opts, const struct board_ops *ops,
		 void *ctx)
{
	struct board *b = calloc(1, sizeof(*b));
	uint32_t node;
	int err = 0;

	if (!b)
		return -ENOMEM;
	b->o = *opts;
	b->ops = ops;
	b->ctx = ctx;
	b->self = rgate_node_id(rgate_hub_node(opts->hub));
	for (node = 0; !err && node < RGATE_NODES_MAX; node++)
		if (rgate_hub_peer(opts->hub, node))
			err = line_create(&b->lines[node], opts->hub, node);
	if (err) {
		destroy_lines(b);
		free(b);
		return err;
	}
	/* After board_leave(), too, its lines use the hub and its peers. */
	rgate_hub_get(opts->hub);
	*out = b;
	return 0;
}

int board_join(struct board *b)
{
	const struct rgate_service serves = RGATE_OPTS(rgate_service, .message = hub_question);
	const struct rgate_service asks = RGATE_OPTS(rgate_service, .state = hub_state,
						     .message = hub_answer, .tick = hub_tick);
	int err;

	err = rgate_hub_add(b->o.hub, b->ops->service, &serves, b);
	if (err)
		return err;
	err = rgate_hub_add(b->o.hub, b->ops->service | RGATE_SERVICE_ASKER, &asks, b);
	if (err)
		rgate_hub_remove(b->o.hub, b->ops->service);
	b->joined = !err;
	return err;
}

void board_leave(struct board *b)
{
	uint32_t node;

	if (!b || !b->joined)
		return;
	rgate_hub_remove(b->o.hub, b->ops->service);
	rgate_hub_remove(b->o.hub, b->ops->service | RGATE_SERVICE_ASKER);
	b->joined = false;
	for (node = 0; node < RGATE_NODES_MAX; node++)
		if (b->lines[node])
			line_settle(b->lines[node]);
}

void board_destroy(struct board *b)
{
	struct rgate_hub *hub;

	if (!b)
		return;
	hub = b->o.hub;
	board_leave(b);
	destroy_lines(b);
	free(b);
	rgate_hub_put(hub);
}

struct line *board_line(const struct board *b, uint32_t node)
{
	return b && node < RGATE_NODES_MAX ? b->lines[node] : NULL;
}

int board_find(const struct board *b, uint64_t number, uint64_t here, uint32_t *node)
{
	*node = BOARD_HERE;
	if (number == here || (b && number == b->self))
		return 0;
	if (number >= RGATE_NODES_MAX || !board_line(b, (uint32_t)number))
		return -ENXIO;
	*node = (uint32_t)number;
	return 0;
}

bool board_may(const struct board *b, uint32_t node, uid_t uid)
{
	return b->o.may && b->o.may(b->o.may_ctx, node, uid);
}
