// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "node.h"
#include "opts.h"
#include "thread.h"

static const char *const names[RGATE_OP_KINDS] = {
	[RGATE_OP_WRITE] = "write",
	[RGATE_OP_WRITE_IMM] = "write-imm",
	[RGATE_OP_READ] = "read",
	[RGATE_OP_FETCH_ADD] = "fetch-add",
	[RGATE_OP_COMPARE_SWAP] = "compare-swap",
	[RGATE_OP_FLUSH] = "flush",
	[RGATE_OP_SEND] = "send",
};

const char *rgate_op_name(uint32_t kind)
{
	return kind < RGATE_OP_KINDS ? names[kind] : "none";
}

void rgate_peer_ring(struct rgate_peer *peer)
{
	events_wake(&peer->ev);
	peer->rung = true;
}

void rgate_peer_signal(struct rgate_peer *peer)
{
	pthread_cond_broadcast(&peer->changed);
	rgate_peer_ring(peer);
}

int rgate_peer_install(struct rgate_peer *peer, struct rgate_link *link)
{
	int err;

	if (peer->link) {
		/* What it has brought is not lost. */
		(void)rgate_link_progress(peer->link);
		rgate_link_fail(peer->link, -ECONNRESET);
		rgate_peer_reap(peer);
	}
	err = events_add(&peer->ev, link->o.prov->conn_fd(link->conn), EPOLLIN, 0);
	if (err)
		return err;
	link->epoch = ++peer->epoch;
	link->peer = peer;
	link->o.counts = peer->counts;
	__atomic_store_n(&peer->inline_size, link->o.prov->inline_size(link->conn),
			 __ATOMIC_RELAXED);
	link->state = RGATE_LINK_UP;
	peer->link = link;
	peer->connecting = false;
	peer->last_err = 0;
	peer->up_ns = rgate_clock_now(CLOCK_MONOTONIC);
	link->o.prov->arm(link->conn);
	rgate_info("node %u: connected to node %u", peer->node->self.id, peer->to.id);
	rgate_peer_signal(peer);
	return 0;
}

void rgate_peer_describe(const struct rgate_link *link, struct rgate_failure *failure)
{
	uint64_t i, lost = 0;

	for (i = link->done + 1; i <= link->posted; i++)
		lost += !link->records[i & link->mask].internal;
	*failure = (struct rgate_failure){
		.sz = sizeof(*failure), .epoch = link->epoch, .error = link->op_err,
		.kind = link->failed_kind, .outcome = link->outcome,
		.ticket = rgate_ticket(link, link->failed_seq),
		.lost = lost,
	};
}

static void tell_loss(const struct rgate_peer *peer, const struct rgate_link *link)
{
	const struct rgate_failure *f = &peer->failure;

	if (!f->lost) {
		rgate_info("node %u: connection to node %u lost: %s", peer->node->self.id,
			   peer->to.id, strerror(-link->err));
		return;
	}
	rgate_warn("node %u: connection to node %u lost: %s; %s was %s; %llu operation%s lost",
		   peer->node->self.id, peer->to.id, strerror(-link->err), rgate_op_name(f->kind),
		   f->outcome == RGATE_OUTCOME_NOT_DONE ? "refused, and did nothing" :
		   "under way, and may have been done",
		   (unsigned long long)f->lost, f->lost == 1 ? "" : "s");
}

void rgate_peer_reap(struct rgate_peer *peer)
{
	struct rgate_link *link = peer->link;

	rgate_peer_describe(link, &peer->failure);
	peer->past[link->epoch % RGATE_PAST] = (struct rgate_past){
		.epoch = link->epoch, .err = link->op_err, .failed = link->failed_seq,
		.done = link->done,
	};
	peer->last_err = link->err;
	peer->link = NULL;
	tell_loss(peer, link);
	/* Closing its fd takes it out of the epoll set. */
	rgate_link_disconnect(link);
	if (link->in == link->out) {
		rgate_link_destroy(link);
	} else {
		rgate_link_destroy(peer->husk);
		peer->husk = link;
	}
	rgate_peer_signal(peer);
}

/* A node's connection with itself needs no handshake. */
static int loop_back(struct rgate_peer *peer)
{
	const struct rgate_link_opts opts = rgate_node_link_opts(peer->node, peer);
	struct rgate_node *node = peer->node;
	struct rgate_link *link;
	struct rgate_desc line;
	int err;

	err = rgate_link_create(&link, &opts);
	if (err)
		return err;
	err = node->prov->loopback(node->ep, link, &link->conn);
	if (!err)
		err = rgate_link_prepare(link);
	if (!err)
		err = node->prov->allow(link->conn, RGATE_ACCESS_REMOTE);
	if (!err)
		err = rgate_link_my_line(link, &line);
	if (!err)
		err = rgate_desc_parse(&link->peer_line, &line, sizeof(line));
	if (!err)
		err = rgate_link_set_peer(link, node->msg_size, node->msg_depth,
					  node->incarnation);
	if (!err)
		err = rgate_peer_install(peer, link);
	if (err)
		rgate_link_destroy(link);
	return err;
}

static void init_locks(struct rgate_peer *peer)
{
	rgate_cond_init(&peer->changed);
	rgate_mutex_init_brief(&peer->lock);
}

static void free_peer(struct rgate_peer *peer)
{
	events_close(&peer->ev);
	pthread_cond_destroy(&peer->changed);
	pthread_mutex_destroy(&peer->lock);
	free(peer);
}

int rgate_peer_open(struct rgate_peer **out, struct rgate_node *node, uint32_t id)
{
	struct rgate_peer *peer, *p;
	int err;

	if (!out || !node)
		return -EINVAL;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return -ENOMEM;
	peer->node = node;
	err = rgate_node_find(node->cluster, id, &peer->to);
	if (!err)
		err = events_open(&peer->ev);
	if (err) {
		free(peer);
		return err;
	}
	init_locks(peer);
	pthread_mutex_lock(&node->lock);
	for (p = node->peers; p; p = p->next)
		if (p->to.id == id)
			err = -EBUSY;
	if (!err && id == node->self.id)
		err = loop_back(peer);
	if (err) {
		pthread_mutex_unlock(&node->lock);
		free_peer(peer);
		return err;
	}
	peer->next = node->peers;
	node->peers = peer;
	rgate_node_get(node);
	pthread_mutex_unlock(&node->lock);
	rgate_node_wake(node);
	*out = peer;
	return 0;
}

static void drop_incoming(struct rgate_node *node, const struct rgate_peer *peer)
{
	struct rgate_link **at = &node->incoming, *link;

	while ((link = *at)) {
		if (link->peer == peer) {
			*at = link->next;
			rgate_link_destroy(link);
		} else {
			at = &link->next;
		}
	}
}

void rgate_peer_close(struct rgate_peer *peer)
{
	struct rgate_peer **at;
	struct rgate_node *node;

	if (!peer)
		return;
	node = peer->node;
	pthread_mutex_lock(&node->lock);
	for (at = &node->peers; *at != peer; at = &(*at)->next)
		;
	*at = peer->next;
	drop_incoming(node, peer);
	rgate_link_destroy(peer->attempt);
	rgate_link_destroy(peer->link);
	rgate_link_destroy(peer->husk);
	pthread_mutex_unlock(&node->lock);
	rgate_pool_free(node->pool, peer->word);
	free_peer(peer);
	rgate_node_put(node);
}

static struct timespec deadline_after(int ms)
{
	return rgate_clock_timespec(rgate_clock_now(CLOCK_MONOTONIC) +
				    (uint64_t)(ms > 0 ? ms : 0) * 1000000);
}

int rgate_peer_wait_up(struct rgate_peer *peer, int timeout_ms)
{
	const struct timespec end = deadline_after(timeout_ms);
	int err = 0, last;

	pthread_mutex_lock(&peer->lock);
	while (!(peer->link && peer->link->state == RGATE_LINK_UP) && !err)
		err = pthread_cond_timedwait(&peer->changed, &peer->lock, &end);
	last = peer->last_err;
	pthread_mutex_unlock(&peer->lock);
	if (!err)
		return 0;
	rgate_err("node %u (%s) did not come up within %d ms%s%s", peer->to.id, peer->to.addr,
		  timeout_ms, last ? ": " : "",
		  last == -EACCES ? "keys and cluster files of the two nodes do not agree" :
		  last == -ECONNREFUSED ? "nobody there takes connections from this node" :
		  last ? strerror(-last) : "");
	return last == -EACCES ? -EACCES : -ETIMEDOUT;
}

int rgate_peer_info(struct rgate_peer *peer, struct rgate_peer_info *info)
{
	struct rgate_peer_info i = { .sz = sizeof(i), .id = peer->to.id };
	const struct rgate_link *link;

	pthread_mutex_lock(&peer->lock);
	link = peer->link;
	i.epoch = peer->epoch;
	i.error = peer->last_err;
	i.up_ns = peer->up_ns;
	i.state = peer->connecting ? RGATE_PEER_CONNECTING : RGATE_PEER_DOWN;
	/*
	 * One that has failed is no less up until it is taken away: who is told that it is
	 * down takes back memory that the device may still use.
	 */
	if (link) {
		i.state = RGATE_PEER_UP;
		i.incarnation = link->incarnation;
		i.heard_ns = link->heard_ns;
		i.msg_size = link->peer_size;
		i.outstanding = (uint32_t)(link->posted - link->done);
		i.credits = rgate_link_credits(link);
	}
	pthread_mutex_unlock(&peer->lock);
	return rgate_info_copy(info, &i, sizeof(i));
}

int rgate_peer_failure(struct rgate_peer *peer, struct rgate_failure *failure)
{
	struct rgate_failure f;

	pthread_mutex_lock(&peer->lock);
	if (peer->link && peer->link->state == RGATE_LINK_DEAD)
		rgate_peer_describe(peer->link, &f);
	else
		f = peer->failure;
	pthread_mutex_unlock(&peer->lock);
	return rgate_info_copy(failure, &f, sizeof(f));
}

int rgate_peer_stats(struct rgate_peer *peer, enum rgate_op_kind kind,
		     struct rgate_op_stats *stats)
{
	struct rgate_op_stats s = { .sz = sizeof(s) };
	const struct rgate_op_count *c;

	if ((unsigned int)kind >= RGATE_OP_KINDS)
		return -EINVAL;
	c = &peer->counts[kind];
	pthread_mutex_lock(&peer->lock);
	s.posted = c->posted;
	s.bytes = c->bytes;
	s.failed = c->failed;
	s.stalled = c->stalled;
	s.measured = c->hist.count;
	s.min_ns = c->hist.min;
	s.max_ns = c->hist.max;
	s.p50_ns = rgate_hist_at(&c->hist, 500000);
	s.p90_ns = rgate_hist_at(&c->hist, 900000);
	s.p99_ns = rgate_hist_at(&c->hist, 990000);
	s.p999_ns = rgate_hist_at(&c->hist, 999000);
	pthread_mutex_unlock(&peer->lock);
	return rgate_info_copy(stats, &s, sizeof(s));
}
