// SPDX-License-Identifier: MIT OR GPL-2.0
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "hub_ref.h"
#include "inlet.h"
#include "log.h"
#include "opts.h"
#include "thread.h"

#define LEAVE_NS	2000000000ULL

int inlet_send(struct rgate_inlet *in, const void *msg, size_t len)
{
	int err = rgate_hub_send(in->hub, in->gateway, msg, len);

	if (err && err != -ENOTCONN)
		rgate_warn("node %u: no message to the gateway: %s", rgate_node_id(in->node),
			   strerror(-err));
	return err;
}

static struct inlet_ring *find(struct rgate_inlet *in, uint32_t number)
{
	struct inlet_ring *r = number < NET_RINGS_MAX ? &in->rings[number] : NULL;

	return r && r->ring ? r : NULL;
}

/* A closing ring that the gateway has nothing to do with any more: who closes it waits. */
static void gone(struct rgate_inlet *in, struct inlet_ring *r)
{
	r->left = true;
	pthread_cond_broadcast(&in->left);
}

/* Whoever filled the rings does so no more. */
static void unfilled(struct rgate_inlet *in)
{
	unsigned int i;

	for (i = 0; i < NET_RINGS_MAX; i++) {
		struct inlet_ring *r = &in->rings[i];

		if (!r->ring)
			continue;
		r->offered = r->taken = r->asked = r->late = false;
		if (r->closing)
			gone(in, r);
	}
}

static void on_state(void *ctx, uint32_t node, bool up)
{
	const struct net_hdr hello = { .service = RGATE_SERVICE_NET, .type = NET_HELLO };
	struct rgate_inlet *in = ctx;

	if (node != in->gateway)
		return;
	pthread_mutex_lock(&in->lock);
	in->up = up;
	in->instance = 0;
	unfilled(in);
	inlet_devices_forget(in);
	if (up) {
		inlet_clock_start(in);
		(void)inlet_send(in, &hello, sizeof(hello));
	}
	pthread_mutex_unlock(&in->lock);
}

static void ready(struct rgate_inlet *in, const struct net_ready *msg)
{
	const uint64_t instance = le64toh(msg->instance);
	unsigned int i;

	if (instance != in->instance) {
		unfilled(in);
		inlet_devices_forget(in);
	}
	in->instance = instance;
	for (i = 0; i < NET_RINGS_MAX; i++) {
		struct inlet_ring *r = &in->rings[i];

		/* The gateway would fill one of which it was told that it goes. */
		if (r->ring && !r->offered && !r->closing)
			inlet_ring_offer(in, r);
	}
}

static void message(struct rgate_inlet *in, const struct net_hdr *hdr, size_t len)
{
	struct inlet_ring *r = find(in, le16toh(hdr->ring));

	switch (hdr->type) {
	case NET_READY:
		if (len == sizeof(struct net_ready))
			ready(in, (const struct net_ready *)hdr);
		break;
	case NET_TAKEN:
		if (r && len == sizeof(struct net_taken))
			inlet_ring_taken(in, r, (const struct net_taken *)hdr);
		break;
	case NET_LEFT:
		if (r && r->closing)
			gone(in, r);
		break;
	case NET_PONG:
		if (len == sizeof(struct net_ping))
			inlet_clock_pong(in, (const struct net_ping *)hdr);
		break;
	case NET_NAME:
		if (len == sizeof(struct net_name))
			inlet_device_named(in, (const struct net_name *)hdr);
		break;
	default:
		break;
	}
}

static void on_message(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct rgate_inlet *in = ctx;

	if (node != in->gateway || len < sizeof(struct net_hdr))
		return;
	pthread_mutex_lock(&in->lock);
	message(in, msg, len);
	pthread_mutex_unlock(&in->lock);
}

static void on_notice(void *ctx, uint32_t node, uint32_t imm)
{
	struct rgate_inlet *in = ctx;
	struct inlet_ring *r;

	if (node != in->gateway)
		return;
	pthread_mutex_lock(&in->lock);
	r = find(in, imm & NET_RING_MASK);
	if (r)
		inlet_ring_notice(in, r, imm & NET_ASK);
	pthread_mutex_unlock(&in->lock);
}

static int64_t sooner(int64_t a, int64_t b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

static int64_t on_tick(void *ctx)
{
	struct rgate_inlet *in = ctx;
	int64_t ns = -1;
	unsigned int i;

	pthread_mutex_lock(&in->lock);
	for (i = 0; in->up && i < NET_RINGS_MAX; i++)
		if (in->rings[i].asked || in->rings[i].late)
			ns = sooner(ns, inlet_ring_tick(in, &in->rings[i]));
	if (in->up)
		ns = sooner(ns, inlet_clock_tick(in));
	pthread_mutex_unlock(&in->lock);
	return ns;
}

static int find_gateway(struct rgate_inlet *in)
{
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	int err = rgate_cluster_gateway(rgate_node_cluster(in->node), &n);

	if (err)
		return err;
	in->gateway = n.id;
	in->peer = rgate_hub_peer(in->hub, in->gateway);
	if (in->gateway == rgate_node_id(in->node) || !in->peer)
		return -EINVAL;
	return 0;
}

int rgate_inlet_create(struct rgate_inlet **out, struct rgate_hub *hub)
{
	const struct rgate_service service = {
		.sz = sizeof(service), .state = on_state, .message = on_message,
		.notice = on_notice, .tick = on_tick,
	};
	struct rgate_inlet *in = calloc(1, sizeof(*in));
	int err;

	if (!in)
		return -ENOMEM;
	in->hub = hub;
	in->node = rgate_hub_node(hub);
	err = find_gateway(in);
	if (err)
		goto free_inlet;
	err = rgate_pool_alloc(rgate_node_pool(in->node), 2UL * NET_RINGS_MAX * sizeof(uint64_t),
			       &in->words);
	if (err)
		goto free_inlet;
	pthread_mutex_init(&in->lock, NULL);
	rgate_cond_init(&in->left);
	err = rgate_hub_add(hub, RGATE_SERVICE_NET, &service, in);
	if (err)
		goto free_words;
	*out = in;
	return 0;

free_words:
	pthread_cond_destroy(&in->left);
	pthread_mutex_destroy(&in->lock);
	rgate_pool_free(rgate_node_pool(in->node), in->words);
free_inlet:
	free(in);
	return err;
}

/* A free place for a ring of that name */
static int place(struct rgate_inlet *in, const char *name)
{
	int i, at = -ENOSPC;

	for (i = NET_RINGS_MAX - 1; i >= 0; i--) {
		const struct inlet_ring *r = &in->rings[i];

		if (!r->ring && !r->making)
			at = i;
		else if (name && !strcmp(r->name, name))
			return -EEXIST;
	}
	return at;
}

/* Keeps a place, with its name, for a ring that is not there yet: its number, -errno */
static int reserve(struct rgate_inlet *in, const char *name)
{
	struct inlet_ring *r;
	int at;

	if (name && strnlen(name, RGATE_NAME_LEN) == RGATE_NAME_LEN)
		return -EINVAL;
	pthread_mutex_lock(&in->lock);
	at = place(in, name);
	if (at >= 0) {
		r = &in->rings[at];
		memset(r, 0, sizeof(*r));
		r->making = true;
		if (name)
			memcpy(r->name, name, strlen(name));
	}
	pthread_mutex_unlock(&in->lock);
	return at;
}

/* With the lock: the ring is there from now on */
static void begin(struct rgate_inlet *in, struct inlet_ring *r, uint32_t clock)
{
	struct rgate_view v;

	rgate_ring_view(r->ring, &v);
	memcpy(r->name, v.prod->name, sizeof(r->name));
	in->rings[r->number] = *r;
	if (clock < RGATE_CLOCK_COUNT)
		in->clocks[clock].used = true;
	if (in->up)
		inlet_clock_start(in);
	if (in->instance)
		inlet_ring_offer(in, &in->rings[r->number]);
}

int rgate_inlet_add(struct rgate_inlet *in, struct rgate_ring **ring,
		    const struct rgate_ring_opts *opts, uint32_t *number)
{
	struct inlet_ring made = { 0 };
	struct rgate_ring_opts o;
	int at, err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (err)
		return err;
	if (o.policy == RGATE_POLICY_OVERWRITE)
		return -EOPNOTSUPP;
	o.sz = sizeof(o);
	o.flags |= RGATE_RING_CHAIN;
	at = reserve(in, o.name);
	if (at < 0)
		return at;
	made.number = (uint32_t)at;
	err = inlet_ring_make(in, &made, &o);
	if (err)
		goto give_place_back;
	err = rgate_ring_dup(ring, made.ring);
	if (err)
		goto free_ring;
	*number = made.number;
	pthread_mutex_lock(&in->lock);
	begin(in, &made, o.clock);
	pthread_mutex_unlock(&in->lock);
	rgate_hub_wake(in->hub);
	return 0;

free_ring:
	inlet_ring_free(in, &made);
give_place_back:
	pthread_mutex_lock(&in->lock);
	in->rings[at].making = false;
	pthread_mutex_unlock(&in->lock);
	return err;
}

/* With the lock: the gateway is told that the ring goes */
static void begin_close(struct rgate_inlet *in, struct inlet_ring *r)
{
	const struct net_hdr msg = {
		.service = RGATE_SERVICE_NET, .type = NET_WITHDRAW,
		.ring = htole16((uint16_t)r->number),
	};

	r->closing = true;
	/* Where it could not be told it does not leave. */
	r->left = !in->up || inlet_send(in, &msg, sizeof(msg)) == -ENOTCONN;
}

/*
 * With the lock, which is let go meanwhile: the gateway has left, or it is @end (CLOCK_MONOTONIC):
 * then its connection is ended if it knows the ring, whose mail and inbox are memory of the pool,
 * which it would still reach.
 */
static void end_close(struct rgate_inlet *in, struct inlet_ring *r, uint64_t end)
{
	const struct timespec ts = rgate_clock_timespec(end);
	struct inlet_ring closed;

	while (!r->left)
		if (pthread_cond_timedwait(&in->left, &in->lock, &ts))
			break;
	closed = *r;
	memset(r, 0, sizeof(*r));
	/* Its number is another's only once its memory cannot be reached any more. */
	r->making = true;
	pthread_mutex_unlock(&in->lock);
	if (!closed.left && closed.offered)
		rgate_peer_cut(in->peer);
	inlet_ring_free(in, &closed);
	pthread_mutex_lock(&in->lock);
	r->making = false;
}

static uint64_t latest(void)
{
	return rgate_clock_now(CLOCK_MONOTONIC) + LEAVE_NS;
}

int rgate_inlet_remove(struct rgate_inlet *in, uint32_t number)
{
	struct inlet_ring *r;
	int err = 0;

	pthread_mutex_lock(&in->lock);
	r = find(in, number);
	if (!r || r->closing) {
		err = -ENOENT;
	} else {
		begin_close(in, r);
		end_close(in, r, latest());
	}
	pthread_mutex_unlock(&in->lock);
	return err;
}

void rgate_inlet_destroy(struct rgate_inlet *in)
{
	struct rgate_hub *hub;
	uint64_t end;
	unsigned int i;

	if (!in)
		return;
	hub = in->hub;
	/* All of them are told before any is waited for: they leave at the same time. */
	pthread_mutex_lock(&in->lock);
	for (i = 0; i < NET_RINGS_MAX; i++)
		if (in->rings[i].ring)
			begin_close(in, &in->rings[i]);
	end = latest();
	for (i = 0; i < NET_RINGS_MAX; i++)
		if (in->rings[i].ring)
			end_close(in, &in->rings[i], end);
	pthread_mutex_unlock(&in->lock);
	/* Its node and its peers are used until the end. */
	rgate_hub_get(hub);
	rgate_hub_remove(hub, RGATE_SERVICE_NET);
	pthread_cond_destroy(&in->left);
	pthread_mutex_destroy(&in->lock);
	rgate_pool_free(rgate_node_pool(in->node), in->words);
	free(in);
	rgate_hub_put(hub);
}

static void describe(struct inlet_ring *r, struct rgate_inlet_ring *info)
{
	struct rgate_view v;

	rgate_ring_view(r->ring, &v);
	*info = (struct rgate_inlet_ring){
		.sz = sizeof(*info), .number = r->number, .slots = v.nslots,
		.slot_size = v.slot_size, .error = r->error, .filled = r->taken,
		.sessions = r->sessions, .found = r->found, .errors = r->errors,
		.credits = r->credits, .least_slot_size = r->least_size,
	};
	memcpy(info->name, v.prod->name, sizeof(info->name));
	(void)rgate_ring_tstamp_offset(r->ring, &info->tstamp_offset, &info->tstamp_error);
	(void)rgate_ring_stats(r->ring, &info->stats);
}

int rgate_inlet_info(struct rgate_inlet *in, unsigned int i, struct rgate_inlet_ring *info)
{
	struct rgate_inlet_ring one;
	unsigned int k;
	int err = -ENOENT;

	pthread_mutex_lock(&in->lock);
	for (k = 0; k < NET_RINGS_MAX; k++)
		if (in->rings[k].ring && !i--) {
			describe(&in->rings[k], &one);
			err = rgate_info_copy(info, &one, sizeof(one));
			break;
		}
	pthread_mutex_unlock(&in->lock);
	return err;
}
