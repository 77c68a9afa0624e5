// SPDX-License-Identifier: MIT OR GPL-2.0
/* What is asked of a node, and not about a process that there is a handle of. */
#include <endian.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "service_priv.h"

#define ANSWER_NS	10000000000ULL
/*
 * Questions of a user to a node, with those that he does not wait for any more. A node is
 * asked a few at a time: some are left for others.
 */
#define USER_MAX	4U

static void unlink_inquiry(struct inquiry *i)
{
	struct inquiry **at;

	for (at = &i->node->inquiries; *at != i; at = &(*at)->next)
		;
	*at = i->next;
}

static void end_request(struct inquiry *i, int result, uint64_t value)
{
	struct rgate_req *r = i->r;

	if (!r)
		return;
	i->r = NULL;
	rgate_req_set_data(r, NULL);
	rgate_req_end(r, result, value);
}

static int take_entries(const struct inquiry *i, const struct rgate_spawn_answer *answer,
			const struct rgate_spawn_entry *entries)
{
	const uint32_t room = rgate_req_get(i->r)->len / (uint32_t)sizeof(*entries);
	const uint32_t count = le32toh(answer->count), n = count < room ? count : room;
	struct rgate_spawn_entry *to = rgate_req_mem(i->r), e;
	uint64_t last = i->ask.id;
	uint32_t k;

	for (k = 0; k < n; k++) {
		if (client_take_entry(&e, &entries[k], &last))
			return -EPROTO;
		memcpy(&to[k], &e, sizeof(e));
	}
	return (int)n;
}

/* With the service's lock, as all that calls into the client */
static void over(void *arg, int err, const struct rgate_spawn_answer *answer,
		 const struct rgate_spawn_entry *entries)
{
	struct inquiry *i = arg;
	uint64_t total = 0;

	if (i->r && !err && entries) {
		err = take_entries(i, answer, entries);
		total = err < 0 ? 0 : le32toh(answer->total);
	}
	end_request(i, err, total);
	unlink_inquiry(i);
	free(i);
}

/* Nobody waits for it. One that was asked goes with its answer, or with the connection. */
static void leave(struct inquiry *i, int result)
{
	end_request(i, result, 0);
	if (i->q) {
		client_ask_leave(i->q);
		return;
	}
	unlink_inquiry(i);
	free(i);
}

static struct inquiry *first_unasked(const struct spawn_node *n)
{
	struct inquiry *i = n->inquiries;

	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left its list */
	while (i && (i->q || !i->r))
		i = i->next;
	return i;
}

uint64_t spawn_inquiries_look(struct spawn_node *n)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	struct inquiry *i, *next;
	uint64_t due = UINT64_MAX;
	int err = 0;

	for (i = n->inquiries; i; i = next) {
		next = i->next;
		if (i->r && now >= i->due_ns)
			leave(i, -ETIMEDOUT);
	}
	/* To ask may end others: none of the list is known after it. */
	while (err != -EAGAIN && (i = first_unasked(n))) {
		err = client_ask(n->spawn, &i->ask, &i->q);
		if (err && err != -EAGAIN)
			leave(i, err);
	}
	for (i = n->inquiries; i; i = i->next)
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left its list */
		if (i->r && i->due_ns < due)
			due = i->due_ns;
	return due;
}

static unsigned int asked_by(const struct spawn_node *n, uid_t uid)
{
	const struct inquiry *i;
	unsigned int count = 0;

	for (i = n->inquiries; i; i = i->next)
		count += i->uid == uid;
	return count;
}

static struct inquiry *make(struct rgate_req *r, struct spawn_node *n)
{
	struct inquiry *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	i->node = n;
	i->r = r;
	i->uid = rgate_seat_uid(rgate_req_seat(r));
	i->due_ns = rgate_clock_now(CLOCK_MONOTONIC) + ANSWER_NS;
	i->ask.owner = spawn_owner_of(r);
	i->ask.id = rgate_req_get(r)->a1;
	i->ask.over = over;
	i->ask.arg = i;
	return i;
}

/* Behind those that wait already */
static int inquire(struct rgate_req *r, struct spawn_service *sv, uint64_t node,
		   const struct client_ask *what)
{
	struct spawn_node *n;
	struct inquiry *i, **last;
	int err = RGATE_REQ_LATER;

	if (node >= RGATE_NODES_MAX || !sv->node[node].spawn)
		return -ENXIO;
	n = &sv->node[node];
	i = make(r, n);
	if (!i)
		return -ENOMEM;
	i->ask.type = what->type;
	i->ask.signal = what->signal;
	i->ask.scope = what->scope;
	pthread_mutex_lock(&sv->lock);
	if (asked_by(n, i->uid) >= USER_MAX) {
		free(i);
		err = -EAGAIN;
	} else {
		rgate_req_set_data(r, i);
		for (last = &n->inquiries; *last; last = &(*last)->next)
			;
		*last = i;
		(void)spawn_inquiries_look(n);
		spawn_service_poke(sv, n);
	}
	pthread_mutex_unlock(&sv->lock);
	return err;
}

int service_begin_list(struct rgate_req *r, void *ctx)
{
	const struct client_ask what = { .type = RGATE_SPAWN_LIST };
	const struct rgate_request *q = rgate_req_get(r);

	if (q->len < sizeof(struct rgate_spawn_entry))
		return -EINVAL;
	return inquire(r, ctx, q->a0, &what);
}

int service_begin_kill(struct rgate_req *r, void *ctx)
{
	const struct rgate_request *q = rgate_req_get(r);
	const struct client_ask what = {
		.type = RGATE_SPAWN_KILL, .signal = (int)(q->a0 >> 16 & 0xffff),
		.scope = (uint32_t)(q->a0 >> 32),
	};

	if (what.signal < 1 || what.signal > SIGRTMAX || what.scope > RGATE_SPAWN_TO_LEADER ||
	    !q->a1)
		return -EINVAL;
	return inquire(r, ctx, q->a0 & 0xffff, &what);
}

/* A signal may have been sent all the same. */
int service_cancel_inquiry(struct rgate_req *r, void *ctx)
{
	struct spawn_service *sv = ctx;
	struct inquiry *i;

	pthread_mutex_lock(&sv->lock);
	i = rgate_req_data(r);
	if (i)
		leave(i, -ECANCELED);
	pthread_mutex_unlock(&sv->lock);
	return i ? 0 : -EALREADY;
}

static bool is_up(const struct spawn_node *n)
{
	struct rgate_peer_info info = { .sz = sizeof(info) };

	return n->spawn && !rgate_peer_info(n->spawn->peer, &info) && info.state == RGATE_PEER_UP;
}

static void fill_node(const struct spawn_service *sv, const struct rgate_cluster_node *from,
		      struct rgate_spawn_node *to)
{
	uint32_t flags = 0;

	if (from->id == rgate_node_id(rgate_hub_node(sv->hub)))
		flags |= RGATE_SPAWN_NODE_SELF;
	if (is_up(&sv->node[from->id]))
		flags |= RGATE_SPAWN_NODE_UP;
	if (from->role == RGATE_ROLE_GATEWAY)
		flags |= RGATE_SPAWN_NODE_GATEWAY;
	*to = (struct rgate_spawn_node){ .node = htole32(from->id), .flags = htole32(flags) };
	memcpy(to->name, from->name, strnlen(from->name, sizeof(to->name) - 1));
}

/* Which nodes there are, for who has no cluster file */
int service_begin_nodes(struct rgate_req *r, void *ctx)
{
	const uint32_t room = rgate_req_get(r)->len / (uint32_t)sizeof(struct rgate_spawn_node);
	const struct spawn_service *sv = ctx;
	const struct rgate_cluster *cluster = rgate_node_cluster(rgate_hub_node(sv->hub));
	const unsigned int all = rgate_cluster_nodes(cluster);
	struct rgate_cluster_node from = { .sz = sizeof(from) };
	struct rgate_spawn_node to;
	unsigned int i;

	for (i = 0; i < all && i < room; i++) {
		if (rgate_cluster_node(cluster, i, &from))
			return -EIO;
		fill_node(sv, &from, &to);
		memcpy((char *)rgate_req_mem(r) + i * sizeof(to), &to, sizeof(to));
	}
	rgate_req_set_value(r, all);
	return (int)i;
}
