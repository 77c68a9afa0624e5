// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "opts.h"
#include "sync_priv.h"

#define LEASE_MS	3000U
#define LEASE_LEAST	100U
#define LEASE_MOST	60000U
#define ROOM_NS		1000000	/* between looks for room for messages, and at the clock */

/* That of leases goes on while the machine is suspended. */
uint64_t sync_now(void)
{
	return rgate_clock_now(CLOCK_BOOTTIME);
}

static void tell_here(struct claim *c)
{
	struct rgate_barrier_info info;

	if (c->result)
		claim_barrier_info(c, &info);
	handle_granted(c->ctx, c->result, c->value, c->result ? &info : NULL);
}

void sync_tell(struct sync_service *sv)
{
	struct claim *c;

	while ((c = sync_table_news(&sv->table))) {
		if (c->party == &sv->here)
			tell_here(c);
		else
			sync_serve_tell(sv, c);
	}
}

/* ---- The hub's thread ---- */

static void look(void *ctx, uint32_t node)
{
	struct sync_service *sv = ctx;

	sync_ask_look(&sv->node[node], sync_now());
}

static void on_news(void *ctx, uint32_t node, enum session_news what)
{
	struct sync_service *sv = ctx;
	struct sync_node *n = &sv->node[node];

	if (what == SESSION_OTHER) {
		sync_fence_lapse(n, true);
		sync_ask_lapse(n);
		sync_serve_other(n);
	} else if (what == SESSION_UP) {
		sync_serve_up(n);
	}
}

static void on_question(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct sync_service *sv = ctx;
	struct sync_node *n = &sv->node[node];

	sync_serve_question(n, msg, len);
	line_say_again(n->line);
	sync_serve_pump(n);
}

static void on_answer(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct sync_service *sv = ctx;

	sync_ask_answer(&sv->node[node], msg, len);
	sync_ask_pump(&sv->node[node]);
}

static void pump(void *ctx, uint32_t node)
{
	struct sync_service *sv = ctx;

	sync_fence_pump(&sv->node[node]);
	sync_ask_pump(&sv->node[node]);
	sync_serve_pump(&sv->node[node]);
}

static uint64_t expire(void *ctx, uint32_t node)
{
	struct sync_service *sv = ctx;
	const uint64_t ns = sync_ask_expire(&sv->node[node], sync_now());

	return sync_serve_waits(&sv->node[node]) || ns < ROOM_NS ? ROOM_NS : ns;
}

/* What is here has a lease, too: this process may end, and be followed by another one. */
static uint64_t look_here(struct sync_service *sv, uint64_t now)
{
	struct link *l;

	if (now >= sv->begin_ns && !sv->table.begun) {
		sync_table_begin(&sv->table);
		sync_tell(sv);
	}
	if (list_empty(&sv->handles) && sv->table.begun)
		return UINT64_MAX;
	if (now >= sv->refresh_ns) {
		for (l = sv->handles.next; l != &sv->handles; l = l->next)
			handle_lease(container_of(l, struct handle, of_home));
		sv->refresh_ns = now + sv->lease_ns / 4;
	}
	if (!sv->table.begun && sv->begin_ns < sv->refresh_ns)
		return sv->begin_ns - now;
	return sv->refresh_ns - now;
}

static uint64_t tick(void *ctx)
{
	struct sync_service *sv = ctx;
	const uint64_t there = sync_serve_expire(sv, sync_now());
	const uint64_t here = look_here(sv, sync_now());

	return there < here ? there : here;
}

static const struct board_ops board_ops = {
	.service = RGATE_SERVICE_SYNC, .clock = look, .news = on_news, .question = on_question,
	.answer = on_answer, .pump = pump, .expire = expire, .tick = tick,
};

/* ---- The object ---- */

static void close_nodes(struct sync_service *sv)
{
	struct sync_node *n;

	board_leave(sv->board);
	for (n = sv->node; n < sv->node + RGATE_NODES_MAX; n++)
		if (n->queries)
			sync_ask_fini(n);
	board_destroy(sv->board);
}

static int open_nodes(struct sync_service *sv)
{
	struct sync_node *n;
	int err = 0;

	for (n = sv->node; !err && n < sv->node + RGATE_NODES_MAX; n++) {
		n->sv = sv;
		n->line = board_line(sv->board, (uint32_t)(n - sv->node));
		if (n->line)
			err = sync_ask_init(n);
	}
	return err;
}

static int join_hub(struct sync_service *sv)
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

static void free_service(struct sync_service *sv)
{
	sync_serve_fini(sv);
	sync_table_fini(&sv->table);
	fair_destroy(&sv->lock);
	free(sv);
}

/*
 * Tokens are those of a clock that goes on whatever ends: a home that begins later begins higher,
 * as nobody gives a lock once each ns.
 */
static void init_service(struct sync_service *sv)
{
	fair_init(&sv->lock);
	list_init(&sv->handles);
	list_init(&sv->dead);
	list_init(&sv->orphans);
	list_init(&sv->fences);
	party_init(&sv->here, RGATE_SYNC_NO_NODE);
	sync_table_init(&sv->table, rgate_clock_now(CLOCK_REALTIME));
	sv->lease_ns = (sv->o.lease_ms ? sv->o.lease_ms : LEASE_MS) * 1000000ULL;
	sv->begin_ns = sync_now();
	if (!sv->o.hub) {
		sync_table_begin(&sv->table);
		return;
	}
	/* A process before this one may have given locks, of which their holders still know. */
	sv->begin_ns += sync_patience(sv);
	/* Random: none comes near the one of a process before. Half of it has room to count up. */
	sv->first_life = (rgate_node_incarnation(rgate_hub_node(sv->o.hub)) >> 1) + 1;
}

int sync_service_create(struct sync_service **out, const struct sync_opts *opts)
{
	struct sync_service *sv;
	struct sync_opts o;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (!err && o.lease_ms && (o.lease_ms < LEASE_LEAST || o.lease_ms > LEASE_MOST))
		err = -EINVAL;
	if (err)
		return err;
	sv = calloc(1, sizeof(*sv));
	if (!sv)
		return -ENOMEM;
	sv->o = o;
	init_service(sv);
	if (o.hub)
		err = join_hub(sv);
	if (err) {
		free_service(sv);
		return err;
	}
	*out = sv;
	return 0;
}

int sync_service_add(struct sync_service *sv, struct rgate_engine *engine)
{
	int err;

	err = rgate_engine_add(engine, &lock_requests, sv);
	return err ? err : rgate_engine_add(engine, &barrier_requests, sv);
}

void sync_service_destroy(struct sync_service *sv)
{
	if (!sv)
		return;
	close_nodes(sv);
	free_service(sv);
}
