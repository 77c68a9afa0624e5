// SPDX-License-Identifier: MIT OR GPL-2.0
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "inlet.h"
#include "log.h"
#include "opts.h"

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

/* A closing ring that the gateway has nothing to do with any more */
static void gone(struct rgate_inlet *in, struct inlet_ring *r)
{
	inlet_ring_free(in, r);
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
		r->offered = r->taken = r->asked = false;
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

	if (instance != in->instance)
		unfilled(in);
	in->instance = instance;
	for (i = 0; i < NET_RINGS_MAX; i++)
		if (in->rings[i].ring && !in->rings[i].offered)
			inlet_ring_offer(in, &in->rings[i]);
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
		if (in->rings[i].asked)
			ns = sooner(ns, inlet_ring_tick(in, &in->rings[i]));
	if (in->up)
		ns = sooner(ns, inlet_clock_tick(in));
	pthread_mutex_unlock(&in->lock);
	return ns;
}

static int find_gateway(struct rgate_inlet *in)
{
	const struct rgate_cluster *cluster = rgate_node_cluster(in->node);
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	unsigned int i;

	for (i = 0; !rgate_cluster_node(cluster, i, &n); i++)
		if (n.role == RGATE_ROLE_GATEWAY)
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
	pthread_condattr_t attr;
	int err;

	if (!in)
		return -ENOMEM;
	in->hub = hub;
	in->node = rgate_hub_node(hub);
	err = find_gateway(in);
	if (err)
		goto free_inlet;
	err = rgate_pool_alloc(rgate_node_pool(in->node), NET_RINGS_MAX * sizeof(uint64_t),
			       &in->words);
	if (err)
		goto free_inlet;
	pthread_mutex_init(&in->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&in->left, &attr);
	pthread_condattr_destroy(&attr);
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

int rgate_inlet_destroy(struct rgate_inlet *in)
{
	unsigned int i;

	if (!in)
		return 0;
	for (i = 0; i < NET_RINGS_MAX; i++)
		if (in->rings[i].ring)
			return -EBUSY;
	rgate_hub_remove(in->hub, RGATE_SERVICE_NET);
	pthread_cond_destroy(&in->left);
	pthread_mutex_destroy(&in->lock);
	rgate_pool_free(rgate_node_pool(in->node), in->words);
	free(in);
	return 0;
}

/* A free place for a ring of that name */
static int place(struct rgate_inlet *in, const char *name)
{
	struct rgate_view v;
	int i, at = -ENOSPC;

	for (i = NET_RINGS_MAX - 1; i >= 0; i--) {
		if (!in->rings[i].ring) {
			at = i;
			continue;
		}
		rgate_ring_view(in->rings[i].ring, &v);
		if (name && !strcmp(v.prod->name, name))
			return -EEXIST;
	}
	return at;
}

int rgate_inlet_open(struct rgate_inlet *in, struct rgate_ring **ring,
		     const struct rgate_ring_opts *opts, uint32_t *number)
{
	struct rgate_ring_opts o;
	struct inlet_ring *r;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (err)
		return err;
	if (o.policy == RGATE_POLICY_OVERWRITE)
		return -EOPNOTSUPP;
	o.sz = sizeof(o);
	o.flags |= RGATE_RING_CHAIN;
	pthread_mutex_lock(&in->lock);
	err = place(in, o.name);
	if (err < 0)
		goto unlock;
	r = &in->rings[err];
	memset(r, 0, sizeof(*r));
	r->number = (uint32_t)err;
	err = inlet_ring_make(in, r, &o);
	if (err)
		goto unlock;
	err = rgate_ring_dup(ring, r->ring);
	if (err) {
		inlet_ring_free(in, r);
		goto unlock;
	}
	*number = r->number;
	if (o.clock < RGATE_CLOCK_COUNT)
		in->clocks[o.clock].used = true;
	if (in->up)
		inlet_clock_start(in);
	if (in->instance)
		inlet_ring_offer(in, r);
unlock:
	pthread_mutex_unlock(&in->lock);
	rgate_hub_wake(in->hub);
	return err;
}

/* With the lock, which is let go meanwhile */
static void wait_left(struct rgate_inlet *in, struct inlet_ring *r)
{
	const uint64_t end = rgate_clock_now(CLOCK_MONOTONIC) + LEAVE_NS;
	const struct timespec ts = {
		.tv_sec = (time_t)(end / 1000000000), .tv_nsec = (long)(end % 1000000000),
	};

	while (r->ring)
		if (pthread_cond_timedwait(&in->left, &in->lock, &ts))
			break;
}

int rgate_inlet_close(struct rgate_inlet *in, uint32_t number)
{
	struct net_hdr msg = {
		.service = RGATE_SERVICE_NET, .type = NET_WITHDRAW,
		.ring = htole16((uint16_t)number),
	};
	struct inlet_ring *r;

	pthread_mutex_lock(&in->lock);
	r = find(in, number);
	if (!r || r->closing) {
		pthread_mutex_unlock(&in->lock);
		return -ENOENT;
	}
	r->closing = true;
	if (in->up && !inlet_send(in, &msg, sizeof(msg)))
		wait_left(in, r);
	/* A gateway that does not answer finds no memory there; its connection ends. */
	if (r->ring)
		inlet_ring_free(in, r);
	pthread_mutex_unlock(&in->lock);
	return 0;
}

static void describe(struct inlet_ring *r, struct rgate_inlet_ring *info)
{
	struct rgate_view v;

	rgate_ring_view(r->ring, &v);
	*info = (struct rgate_inlet_ring){
		.sz = sizeof(*info), .number = r->number, .slots = v.nslots,
		.slot_size = v.slot_size, .error = r->error, .filled = r->taken,
		.sessions = r->sessions, .found = r->found, .errors = r->errors,
		.credits = r->credits,
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
