// SPDX-License-Identifier: MIT OR GPL-2.0
/* The node's thread: connections made and installed, heartbeats, the dead taken away. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "clock.h"
#include "log.h"
#include "meet.h"

#define MS		1000000ULL
#define BACKOFF_FIRST	20	/* ms */
#define BACKOFF_LAST	2000
#define LASTED		(1000 * MS) /* a connection: the next one is begun at once */
#define HANDSHAKE_STEP	2	/* ms between looks while there is a handshake */
#define EVENTS_MAX	16	/* of the endpoint, before the peers have their turn */

static uint64_t beat_interval(const struct rgate_node *node)
{
	const uint64_t ns = node->timeout_ns / 6;

	return ns > 500 * MS ? 500 * MS : ns;
}

int rgate_node_beat(const struct rgate_node *node, struct rgate_link *link, uint64_t now)
{
	return rgate_link_beat(link, now, beat_interval(node), node->timeout_ns);
}

/* Later each time, and not at the same time as others */
static void try_later(struct rgate_peer *peer, int err)
{
	uint16_t random = 0;
	uint32_t ms;

	/* Somebody is there and has much to do: no later than the last time */
	ms = peer->backoff_ms && err != -EAGAIN ? peer->backoff_ms * 2 : BACKOFF_FIRST;
	peer->backoff_ms = ms < BACKOFF_LAST ? ms : BACKOFF_LAST;
	(void)getrandom(&random, sizeof(random), GRND_NONBLOCK);
	ms = peer->backoff_ms - peer->backoff_ms * (random % 256) / 1024;
	peer->retry_ns = rgate_clock_now(CLOCK_MONOTONIC) + ms * MS;
	/* What nobody waits for is not worth waiting for the lock. */
	if (pthread_mutex_trylock(&peer->lock))
		return;
	peer->connecting = false;
	peer->last_err = err;
	pthread_cond_broadcast(&peer->changed);
	pthread_mutex_unlock(&peer->lock);
}

static void give_up(struct rgate_peer *peer, int err)
{
	rgate_link_destroy(peer->attempt);
	peer->attempt = NULL;
	try_later(peer, err);
}

static void on_event(struct rgate_node *node, const struct rgate_prov_event *ev)
{
	struct rgate_link *link;
	int err;

	if (ev->kind == RGATE_PROV_REQUEST) {
		rgate_meet_request(node, ev);
		return;
	}
	link = node->prov->owner(ev->conn);
	if (!link)
		return;
	if (ev->kind == RGATE_PROV_DOWN) {
		link->down_err = ev->err ? ev->err : -ECONNRESET;
		link->down = true;
	} else if (ev->kind == RGATE_PROV_REPLY && link->state == RGATE_LINK_HELLO) {
		err = rgate_meet_reply(node, link, ev);
		if (err)
			give_up(link->peer, err);
	}
}

/*
 * 0: the peer has it; -EAGAIN: somebody holds the peer's lock; else it failed
 * @accepted: counts it, or NULL; with the lock held, so that who sees the peer up and asks then
 * finds it counted
 */
static int install(struct rgate_link *link, uint64_t *accepted)
{
	struct rgate_peer *peer = link->peer;
	int err;

	if (pthread_mutex_trylock(&peer->lock))
		return -EAGAIN;
	err = rgate_peer_install(peer, link);
	if (!err && accepted)
		__atomic_add_fetch(accepted, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&peer->lock);
	return err;
}

static void step_incoming(struct rgate_node *node)
{
	struct rgate_link *link, *next;
	int ret;

	for (link = node->incoming; link; link = next) {
		next = link->next;
		ret = rgate_meet_step(node, link);
		if (ret > 0)
			ret = install(link, &node->stats.accepted);
		else if (!ret)
			ret = -EAGAIN;
		if (ret == -EAGAIN)
			continue;
		rgate_meet_forget(node, link);
		if (!ret)
			continue;
		rgate_meet_failed(node, link, ret);
		rgate_link_destroy(link);
	}
}

static void step_attempt(struct rgate_node *node, struct rgate_peer *peer)
{
	int ret = rgate_meet_step(node, peer->attempt);

	if (ret > 0)
		ret = install(peer->attempt, NULL);
	else if (!ret)
		ret = -EAGAIN;
	if (ret == -EAGAIN)
		return;
	if (ret) {
		give_up(peer, ret);
		return;
	}
	peer->attempt = NULL;
	peer->backoff_ms = 0;
}

/* With the peer's lock */
static void tend(struct rgate_node *node, struct rgate_peer *peer, uint64_t now)
{
	struct rgate_link *link = peer->link;
	int ret;

	if (!link)
		return;
	ret = rgate_link_progress(link);
	if (ret >= 0 && link->down)
		rgate_link_fail(link, link->down_err);
	if (link->state == RGATE_LINK_UP) {
		int err = node->broken ? -EIO : rgate_node_beat(node, link, now);

		if (err)
			rgate_link_fail(link, err);
	}
	/* What was taken here does not make the connection's own fd readable again. */
	if (ret > 0)
		rgate_peer_signal(peer);
	if (link->state == RGATE_LINK_DEAD) {
		rgate_peer_reap(peer);
		peer->retry_ns = now - peer->up_ns < LASTED ? now + BACKOFF_FIRST * MS : now;
	}
}

static void tick(struct rgate_node *node, struct rgate_peer *peer, uint64_t now)
{
	bool begin;
	int err;

	if (peer->attempt)
		step_attempt(node, peer);
	if (pthread_mutex_trylock(&peer->lock)) {
		/* Who has it next does what cannot wait: see lock() in peer_ops.c. */
		__atomic_store_n(&peer->wanted, true, __ATOMIC_RELAXED);
		return;
	}
	__atomic_store_n(&peer->wanted, false, __ATOMIC_RELAXED);
	tend(node, peer, now);
	peer->linked = peer->link;
	/* Of two nodes the one with the higher id connects. */
	begin = peer->to.id < node->self.id && !peer->linked && !peer->attempt &&
		now >= peer->retry_ns && !node->broken;
	peer->connecting = begin || peer->attempt;
	pthread_mutex_unlock(&peer->lock);
	err = begin ? rgate_meet_ask(node, peer) : 0;
	if (err)
		try_later(peer, err);
}

/* How long there is nothing to be done, in ms */
static int pause_of(const struct rgate_node *node, uint64_t now)
{
	uint64_t ns = beat_interval(node) / 2;
	const struct rgate_peer *peer;

	if (node->incoming)
		return HANDSHAKE_STEP;
	for (peer = node->peers; peer; peer = peer->next) {
		if (peer->attempt)
			return HANDSHAKE_STEP;
		if (peer->to.id >= node->self.id || peer->linked)
			continue;
		if (peer->retry_ns <= now)
			return HANDSHAKE_STEP;
		if (peer->retry_ns - now < ns)
			ns = peer->retry_ns - now;
	}
	return (int)(ns / MS) + 1;
}

/* Some of them: strangers who ask without end must not keep the peers from their turn.
 * True: there may be more */
static bool take_events(struct rgate_node *node)
{
	struct rgate_prov_event ev;
	unsigned int i;
	int ret;

	for (i = 0; i < EVENTS_MAX && !node->broken; i++) {
		ret = node->prov->event(node->ep, &ev);
		if (!ret)
			return false;
		if (ret > 0) {
			on_event(node, &ev);
			continue;
		}
		rgate_err("node %u: the endpoint has failed: %s", node->self.id, strerror(-ret));
		node->broken = ret;
		events_remove(&node->ev, node->prov->fd(node->ep));
	}
	return !node->broken;
}

static int turn(struct rgate_node *node)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	struct rgate_peer *peer;
	bool more;
	int ms;

	pthread_mutex_lock(&node->lock);
	more = take_events(node);
	node->busy = more;
	step_incoming(node);
	for (peer = node->peers; peer; peer = peer->next)
		tick(node, peer, now);
	if (node->dev && !node->broken && rgate_device_check(node->dev) == -EIO) {
		rgate_err("node %u: the RDMA device is gone", node->self.id);
		node->broken = -EIO;
	}
	ms = more ? 0 : pause_of(node, now);
	pthread_mutex_unlock(&node->lock);
	return ms;
}

void *rgate_node_main(void *arg)
{
	struct rgate_node *node = arg;
	struct epoll_event ev[2];
	struct rgate_link *link;

	while (!__atomic_load_n(&node->stop, __ATOMIC_ACQUIRE)) {
		(void)events_wait(&node->ev, ev, 2, events_ms(turn(node)));
		events_woken(&node->ev);
	}
	while ((link = node->incoming)) {
		node->incoming = link->next;
		rgate_link_destroy(link);
	}
	return NULL;
}
