// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "agent_priv.h"
#include "client_quiet.h"
#include "log.h"

/*
 * Of one connection two requests are under way at most. A daemon may have its sockets at a gateway,
 * where a session has 64.
 */
#define BUFFERS		4U

static const struct size {
	uint32_t places, conns, made;	/* made: of these, by programs */
} at_gateway = { 64, 28, 14 }, at_daemon = { 1024, 500, 375 }, own = { 8192, 4000, 3000 };

static const struct size *size_of(const struct agent *a)
{
	if (a->sets.where == RGATE_SESSION_PROCESS)
		return &own;
	return a->here ? &at_daemon : &at_gateway;
}

static int lane_open(struct agent *a, struct lane **out)
{
	const struct size *size = size_of(a);
	struct rgate_sockets_opts o = a->sets;
	struct lane *l;
	int err;

	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	*l = (struct lane){ .source.kind = SOURCE_LANE, .agent = a, .buffers = BUFFERS,
			    .free_mask = (1U << BUFFERS) - 1,
			    .conns_max = size->conns, .conns_new = size->made };
	list_init(&l->wants);
	o.requests = size->places;
	o.memory = (uint64_t)BUFFERS * STREAM_CHUNK;
	err = sockets_open_asking(&l->set, &o, a->enough, a->enough_ctx);
	if (err)
		goto free;
	l->mem = rgate_sockets_memory(l->set, NULL);
	err = agent_watch(a, rgate_sockets_fd(l->set), EPOLLIN | EPOLLET, &l->source);
	if (err)
		goto close;
	list_add_tail(&a->lanes, &l->link);
	*out = l;
	return 0;
close:
	rgate_sockets_close(l->set);
free:
	free(l);
	return err;
}

void lane_close(struct lane *l)
{
	list_del(&l->link);
	/* Who was closed has a regular end, and no reset with the session. */
	(void)sockets_settle(l->set);
	rgate_sockets_close(l->set);
	free(l);
}

/* The rest of a lane is left to those that its listeners accept, whose places are there alone. */
int lane_get(struct agent *a, struct lane **lane)
{
	struct link *at;

	for (at = a->lanes.next; at != &a->lanes; at = at->next) {
		*lane = container_of(at, struct lane, link);
		if ((*lane)->conns < (*lane)->conns_new)
			return 0;
	}
	return lane_open(a, lane);
}

void lane_lose(struct lane *l)
{
	l->conns_max = l->conns_new = 0;
}

void lanes_reap(struct agent *a)
{
	struct link *at, *next;

	/* The first one keeps whom it has asked. */
	for (at = a->lanes.next->next; at != &a->lanes; at = next) {
		struct lane *l = container_of(at, struct lane, link);

		next = at->next;
		/* Nobody else waits for those who were closed. */
		if (!l->conns && sockets_settled(l->set))
			lane_close(l);
	}
}

unsigned char *lane_buffer(struct lane *l)
{
	const int n = __builtin_ffs((int)l->free_mask) - 1;

	/* Who has just had one is not before those that wait. */
	if (n < 0 || (!l->turn && !list_empty(&l->wants)))
		return NULL;
	l->free_mask &= ~(1U << n);
	return l->mem + (size_t)n * STREAM_CHUNK;
}

/* Who waits for one has it at the end of lane_take(). */
void lane_put_buffer(struct lane *l, unsigned char *buf)
{
	l->free_mask |= 1U << ((size_t)(buf - l->mem) / STREAM_CHUNK);
}

void lane_want(struct conn *c)
{
	list_del(&c->want);
	list_add_tail(&c->lane->wants, &c->want);
}

static void ended(const struct rgate_socket_end *end)
{
	struct conn *c = (struct conn *)(uintptr_t)(end->cookie & ~(uint64_t)CONN_UP);

	switch (end->what) {
	case RGATE_SOCKET_DO_CONNECT:
		meet_connected(c, end->result);
		break;
	case RGATE_SOCKET_DO_ACCEPT:
		meet_accepted(c, end);
		break;
	default:
		if (c->state == CONN_DATAGRAM)
			datagram_end(c, end);
		else
			flow_end(c, end);
		break;
	}
}

/* Each of those that wait once; who has to wait again is behind them. */
static void serve_wants(struct lane *l)
{
	struct link now;

	if (list_empty(&l->wants))
		return;
	now = l->wants;
	now.next->prev = now.prev->next = &now;
	list_init(&l->wants);
	l->turn = true;
	while (!list_empty(&now)) {
		struct conn *c = container_of(now.next, struct conn, want);

		list_del(&c->want);
		if (c->state == CONN_DATAGRAM)
			datagram_pump(c);
		else
			flow_pump(c);
	}
	l->turn = false;
}

int lane_take(struct lane *l)
{
	struct rgate_socket_end end = { .sz = sizeof(end) };
	int n;

	while ((n = rgate_sockets_next(l->set, &end, 0)) == 1)
		ended(&end);
	serve_wants(l);
	return n;
}
