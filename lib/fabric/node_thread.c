// SPDX-License-Identifier: MIT OR GPL-2.0
/* The node's thread: connections made and proved, heartbeats, the dead taken away. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include "clock.h"
#include "log.h"
#include "node.h"

#define MS		1000000ULL
#define BACKOFF_FIRST	20	/* ms */
#define BACKOFF_LAST	2000
#define LASTED		(1000 * MS) /* a connection: the next one is begun at once */
#define HANDSHAKE_STEP	2	/* ms between looks while there is a handshake */
#define INCOMING_MAX	16
#define REFUSED_NS	(1000 * MS) /* between two lines of the log about strangers */
#define PATIENCE	(1000 * MS) /* with a handshake before another may take its place */

static void count(uint64_t *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

static uint64_t beat_interval(const struct rgate_node *node)
{
	const uint64_t ns = node->timeout_ns / 6;

	return ns > 500 * MS ? 500 * MS : ns;
}

int rgate_node_beat(const struct rgate_node *node, struct rgate_link *link, uint64_t now)
{
	return rgate_link_beat(link, now, beat_interval(node), node->timeout_ns);
}

static struct rgate_peer *find_peer(struct rgate_node *node, uint32_t id)
{
	struct rgate_peer *peer;

	for (peer = node->peers; peer && peer->to.id != id; peer = peer->next)
		;
	return peer;
}

/* Later each time, and not at the same time as others */
static void try_later(struct rgate_peer *peer, int err)
{
	uint16_t random = 0;
	uint32_t ms;

	ms = peer->backoff_ms ? peer->backoff_ms * 2 : BACKOFF_FIRST;
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

static void attempt(struct rgate_node *node, struct rgate_peer *peer)
{
	const struct rgate_link_opts opts = rgate_node_link_opts(node, peer);
	struct rgate_link *link;
	int err;

	err = rgate_link_create(&link, &opts);
	if (err) {
		try_later(peer, err);
		return;
	}
	link->client = true;
	link->peer = peer;
	link->deadline_ns = rgate_clock_now(CLOCK_MONOTONIC) + node->timeout_ns;
	err = rgate_hs_hello(&link->hello, (uint8_t)node->self.id, (uint8_t)peer->to.id,
			     node->incarnation, node->msg_size, node->msg_depth);
	if (!err)
		err = node->prov->connect(node->ep, &peer->to, &link->hello,
					  sizeof(link->hello), link, &link->conn);
	peer->attempt = link;
	if (err)
		give_up(peer, err);
}

/* The proof, and then what the peer needs to know of this end */
static int send_proof(struct rgate_node *node, struct rgate_link *link)
{
	struct {
		struct rgate_hs_proof proof;
		struct rgate_desc line;
	} m;
	int err;

	err = rgate_hs_proof(&m.proof, &link->hello, &link->welcome, node->key, node->key_len);
	if (!err)
		err = rgate_link_my_line(link, &m.line);
	if (!err)
		err = rgate_link_send_handshake(link, RGATE_MSG_PROOF, &m, sizeof(m));
	return err;
}

static int take_sizes(struct rgate_link *link, const struct rgate_hs_hello *theirs)
{
	return rgate_link_set_peer(link, le32toh(theirs->msg_size), le32toh(theirs->msg_depth),
				   le64toh(theirs->incarnation));
}

/* The server has answered: does it know the key? */
static int on_reply(struct rgate_node *node, struct rgate_link *link,
		    const struct rgate_prov_event *ev)
{
	int err;

	err = rgate_hs_read_welcome(&link->welcome, ev->data, ev->len, &link->hello, node->key,
				    node->key_len);
	if (err) {
		count(err == -EACCES ? &node->stats.bad_key : &node->stats.garbage);
		/* told once, not at each attempt */
		if (err == -EACCES && link->peer->last_err != err)
			rgate_err("node %u: node %u has another cluster key", node->self.id,
				  link->peer->to.id);
		return err;
	}
	err = take_sizes(link, &link->welcome.hello);
	if (!err)
		err = rgate_link_prepare(link);
	if (!err)
		err = node->prov->establish(link->conn);
	if (!err)
		err = node->prov->allow(link->conn, RGATE_ACCESS_REMOTE);
	if (!err)
		err = send_proof(node, link);
	link->state = err ? RGATE_LINK_DEAD : RGATE_LINK_PROOF;
	return err;
}

static unsigned int incoming_count(const struct rgate_node *node)
{
	const struct rgate_link *link;
	unsigned int n = 0;

	for (link = node->incoming; link; link = link->next)
		n++;
	return n;
}

static void remove_incoming(struct rgate_node *node, struct rgate_link *link)
{
	struct rgate_link **at = &node->incoming;

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	link->next = NULL;
}

/* Whether @peer's place is free, or held by one who has had his time */
static bool make_place(struct rgate_node *node, const struct rgate_peer *peer)
{
	struct rgate_link *link;

	for (link = node->incoming; link && link->peer != peer; link = link->next)
		;
	if (!link)
		return incoming_count(node) < INCOMING_MAX;
	if (rgate_clock_now(CLOCK_MONOTONIC) + node->timeout_ns < link->deadline_ns + PATIENCE)
		return false;
	remove_incoming(node, link);
	rgate_link_destroy(link);
	count(&node->stats.timeouts);
	return true;
}

static int answer(struct rgate_node *node, struct rgate_link *link, uint8_t from)
{
	struct rgate_hs_hello own;
	int err;

	link->deadline_ns = rgate_clock_now(CLOCK_MONOTONIC) + node->timeout_ns;
	link->state = RGATE_LINK_PROOF;
	err = rgate_hs_hello(&own, (uint8_t)node->self.id, from, node->incarnation,
			     node->msg_size, node->msg_depth);
	if (!err)
		err = rgate_hs_welcome(&link->welcome, &link->hello, &own, node->key,
				       node->key_len);
	if (!err)
		err = take_sizes(link, &link->hello);
	if (!err)
		err = rgate_link_prepare(link);
	if (!err)
		err = node->prov->accept(link->conn, &link->welcome, sizeof(link->welcome), link);
	return err;
}

/* Whoever can reach us can make us refuse it: one line a second at most. */
static void tell_refused(struct rgate_node *node, const struct rgate_conn *conn, int id,
			 const char *why)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	char whence[96], as[32] = "";

	if (node->refused_told_ns && now - node->refused_told_ns < REFUSED_NS) {
		node->refused_more++;
		return;
	}
	node->prov->whence(conn, whence, sizeof(whence));
	if (id >= 0)
		snprintf(as, sizeof(as), " as node %d", id);
	rgate_warn("node %u: a connection from %s%s is refused: %s%s", node->self.id, whence, as,
		   why, node->refused_more ? " (and others since the last line)" : "");
	node->refused_told_ns = now;
	node->refused_more = 0;
}

/* Somebody wants to connect: a node with a higher id, for which a peer is open */
static void on_request(struct rgate_node *node, const struct rgate_prov_event *ev)
{
	struct rgate_hs_hello hello;
	struct rgate_link_opts opts;
	struct rgate_link *link;
	struct rgate_peer *peer;

	if (rgate_hs_read_hello(&hello, ev->data, ev->len, -1, (int)node->self.id) ||
	    hello.from <= node->self.id) {
		count(&node->stats.garbage);
		tell_refused(node, ev->conn, -1, "it is no node of this cluster, or of another version");
		goto reject;
	}
	peer = find_peer(node, hello.from);
	if (!peer || !make_place(node, peer))
		goto reject;
	opts = rgate_node_link_opts(node, peer);
	if (rgate_link_create(&link, &opts))
		goto reject;
	link->conn = ev->conn;
	link->peer = peer;
	link->hello = hello;
	if (answer(node, link, hello.from)) {
		rgate_link_destroy(link);
		return;
	}
	link->next = node->incoming;
	node->incoming = link;
	return;

reject:
	node->prov->reject(ev->conn, 0);
}

static void on_event(struct rgate_node *node, const struct rgate_prov_event *ev)
{
	struct rgate_link *link;
	int err;

	if (ev->kind == RGATE_PROV_REQUEST) {
		on_request(node, ev);
		return;
	}
	link = node->prov->owner(ev->conn);
	if (!link)
		return;
	if (ev->kind == RGATE_PROV_DOWN) {
		link->down_err = ev->err ? ev->err : -ECONNRESET;
		link->down = true;
	} else if (ev->kind == RGATE_PROV_REPLY && link->state == RGATE_LINK_HELLO) {
		err = on_reply(node, link, ev);
		if (err)
			give_up(link->peer, err);
	}
}

static int read_line(struct rgate_link *link, const void *buf)
{
	int err = rgate_desc_parse(&link->peer_line, buf, sizeof(struct rgate_desc));

	if (err)
		return err;
	return link->peer_line.length >= offsetof(struct rgate_line, my_beat) &&
	       link->peer_line.addr % 8 == 0 ? 0 : -EPROTO;
}

static int check_client(struct rgate_node *node, struct rgate_link *link, const uint8_t *data,
			size_t len)
{
	struct rgate_desc line;
	int err;

	if (len != RGATE_HS_MAC + sizeof(struct rgate_desc))
		return -EPROTO;
	err = rgate_hs_check_proof(data, RGATE_HS_MAC, &link->hello, &link->welcome, node->key,
				   node->key_len);
	if (!err)
		err = read_line(link, data + RGATE_HS_MAC);
	/* Not before: who has not proved the key reaches no memory. */
	if (!err)
		err = node->prov->allow(link->conn, RGATE_ACCESS_REMOTE);
	if (!err)
		err = rgate_link_my_line(link, &line);
	if (!err)
		err = rgate_link_send_handshake(link, RGATE_MSG_READY, &line, sizeof(line));
	return err;
}

/* A client that does not believe the server's proof goes without one of its own. */
static int ended(const struct rgate_link *link, int err)
{
	return link->client || err == -EPROTO ? err : -EACCES;
}

/* 1: ready; 0: not yet; -errno: it came to nothing */
static int handshake(struct rgate_node *node, struct rgate_link *link)
{
	const struct rgate_inbox *at;
	const void *data;
	uint32_t type;
	int err = 0;

	if (link->state == RGATE_LINK_READY)
		return 1;
	if (link->down)
		return ended(link, link->down_err);
	if (rgate_clock_now(CLOCK_MONOTONIC) > link->deadline_ns)
		return -ETIMEDOUT;
	if (link->state != RGATE_LINK_PROOF)
		return 0;
	err = rgate_link_progress(link);
	if (err < 0)
		return ended(link, err);
	data = rgate_link_message(link, &type, &at);
	if (!data)
		return 0;
	if (!link->client && type == RGATE_MSG_PROOF)
		err = check_client(node, link, data, at->len);
	else if (link->client && type == RGATE_MSG_READY && at->len == sizeof(struct rgate_desc))
		err = read_line(link, data);
	else
		err = -EPROTO;
	if (err < 0)
		return err;
	rgate_link_drop_message(link);
	link->state = RGATE_LINK_READY;
	return 1;
}

/* 0: the peer has it; -EAGAIN: somebody holds the peer's lock; else it failed */
static int install(struct rgate_link *link)
{
	struct rgate_peer *peer = link->peer;
	int err;

	if (pthread_mutex_trylock(&peer->lock))
		return -EAGAIN;
	err = rgate_peer_install(peer, link);
	pthread_mutex_unlock(&peer->lock);
	return err;
}

static void step_incoming(struct rgate_node *node)
{
	struct rgate_link *link, *next;
	int ret;

	for (link = node->incoming; link; link = next) {
		next = link->next;
		ret = handshake(node, link);
		if (ret > 0)
			ret = install(link);
		else if (!ret)
			ret = -EAGAIN;
		if (ret == -EAGAIN)
			continue;
		remove_incoming(node, link);
		if (!ret) {
			count(&node->stats.accepted);
			continue;
		}
		if (ret == -EACCES) {
			count(&node->stats.bad_key);
			tell_refused(node, link->conn, link->hello.from,
				     "it did not prove the cluster's key");
		} else if (ret == -ETIMEDOUT) {
			count(&node->stats.timeouts);
		} else if (ret == -EPROTO || ret == -EPROTONOSUPPORT) {
			count(&node->stats.garbage);
		}
		rgate_link_destroy(link);
	}
}

static void step_attempt(struct rgate_node *node, struct rgate_peer *peer)
{
	int ret = handshake(node, peer->attempt);

	if (ret > 0)
		ret = install(peer->attempt);
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
	if (begin)
		attempt(node, peer);
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

static void take_events(struct rgate_node *node)
{
	struct rgate_prov_event ev;
	int ret;

	while (!node->broken && (ret = node->prov->event(node->ep, &ev)) != 0) {
		if (ret > 0) {
			on_event(node, &ev);
			continue;
		}
		rgate_err("node %u: the endpoint has failed: %s", node->self.id, strerror(-ret));
		node->broken = true;
		epoll_ctl(node->epoll_fd, EPOLL_CTL_DEL, node->prov->fd(node->ep), NULL);
	}
}

static int turn(struct rgate_node *node)
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	struct rgate_peer *peer;
	int ms;

	pthread_mutex_lock(&node->lock);
	take_events(node);
	step_incoming(node);
	for (peer = node->peers; peer; peer = peer->next)
		tick(node, peer, now);
	if (node->dev && !node->broken && rgate_device_check(node->dev) == -EIO) {
		rgate_err("node %u: the RDMA device is gone", node->self.id);
		node->broken = true;
	}
	ms = pause_of(node, now);
	pthread_mutex_unlock(&node->lock);
	return ms;
}

void *rgate_node_main(void *arg)
{
	struct rgate_node *node = arg;
	struct epoll_event ev[2];
	struct rgate_link *link;
	eventfd_t v;

	while (!__atomic_load_n(&node->stop, __ATOMIC_ACQUIRE)) {
		(void)epoll_wait(node->epoll_fd, ev, 2, turn(node));
		(void)eventfd_read(node->wake_fd, &v);
	}
	while ((link = node->incoming)) {
		node->incoming = link->next;
		rgate_link_destroy(link);
	}
	return NULL;
}
