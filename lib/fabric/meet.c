// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "meet.h"

#define REFUSED_NS	1000000000ULL	/* between two lines of the log about strangers */
#define SUSPECT_NS	1000000000ULL	/* for who asked in vain, once more are waiting */

static const char no_proof[] = "it did not prove that it is this node";

static void count(uint64_t *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

static struct rgate_peer *find_peer(struct rgate_node *node, uint32_t id)
{
	struct rgate_peer *peer;

	for (peer = node->peers; peer && peer->to.id != id; peer = peer->next)
		;
	return peer;
}

static struct rgate_hs_terms terms_of(const struct rgate_node *node)
{
	return (struct rgate_hs_terms){
		.incarnation = node->incarnation, .msg_size = node->msg_size,
		.msg_depth = node->msg_depth,
	};
}

static int take_terms(struct rgate_link *link, const struct rgate_hs_terms *theirs)
{
	return rgate_link_set_peer(link, theirs->msg_size, theirs->msg_depth, theirs->incarnation);
}

int rgate_meet_ask(struct rgate_node *node, struct rgate_peer *peer)
{
	const struct rgate_noise_keys keys = rgate_secret_keys(node->secret, &peer->to);
	const struct rgate_link_opts opts = rgate_node_link_opts(node, peer);
	struct rgate_link *link;
	int err;

	err = rgate_link_create(&link, &opts);
	if (err)
		return err;
	link->client = true;
	link->peer = peer;
	link->deadline_ns = rgate_clock_now(CLOCK_MONOTONIC) + node->timeout_ns;
	err = rgate_hs_hello(&link->hs, (uint8_t)node->self.id, (uint8_t)peer->to.id, &keys);
	if (!err)
		err = node->prov->connect(node->ep, &peer->to, &link->hs.hello,
					  sizeof(link->hs.hello), link, &link->conn);
	if (err)
		rgate_link_destroy(link);
	else
		peer->attempt = link;
	return err;
}

/* What this end is like, sealed, and where the server finds what it needs to know */
static int send_proof(struct rgate_node *node, struct rgate_link *link)
{
	const struct rgate_hs_terms own = terms_of(node);
	struct rgate_hs_proof proof;
	struct rgate_desc line;
	int err;

	err = rgate_link_my_line(link, &line);
	if (!err)
		err = rgate_hs_proof(&link->hs, &proof, &own, &line);
	if (!err)
		err = rgate_link_send_handshake(link, RGATE_MSG_PROOF, &proof, sizeof(proof));
	return err;
}

int rgate_meet_reply(struct rgate_node *node, struct rgate_link *link,
		     const struct rgate_prov_event *ev)
{
	struct rgate_hs_terms theirs;
	int err;

	err = rgate_hs_read_welcome(&link->hs, ev->data, ev->len, &theirs);
	if (err) {
		count(err == -EACCES ? &node->stats.bad_key : &node->stats.garbage);
		/* told once, not at each attempt */
		if (err == -EACCES && link->peer->last_err != err)
			rgate_err("node %u: who answers for node %u did not prove that it is this node",
				  node->self.id, link->peer->to.id);
		return err;
	}
	err = take_terms(link, &theirs);
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

void rgate_meet_forget(struct rgate_node *node, struct rgate_link *link)
{
	struct rgate_link **at = &node->incoming;

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	link->next = NULL;
}

/*
 * A place for one more of @peer. Those that have proved who they are keep theirs, and the
 * same hello a second time gets none while the first is here: so a single recording that
 * is sent over and over cannot push out the one that is to come.
 */
static bool make_place(struct rgate_node *node, const struct rgate_peer *peer,
		       const struct rgate_hs_hello *hello)
{
	struct rgate_link *link, *oldest = NULL;
	unsigned int n = 0;

	/* The first of the list came last. */
	for (link = node->incoming; link; link = link->next) {
		if (link->peer != peer)
			continue;
		if (!memcmp(&link->hs.hello, hello, sizeof(*hello)))
			return false;
		if (link->state != RGATE_LINK_READY)
			oldest = link;
		n++;
	}
	if (n < RGATE_MEET_PLACES)
		return true;
	if (!oldest)
		return false;
	rgate_meet_forget(node, oldest);
	rgate_link_destroy(oldest);
	count(&node->stats.timeouts);
	return true;
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

static struct rgate_suspect *find_suspect(struct rgate_node *node, uint64_t source)
{
	unsigned int i;

	for (i = 0; i < RGATE_SUSPECTS; i++)
		if (node->suspects[i].source == source)
			return &node->suspects[i];
	return NULL;
}

static uint64_t source_of(const struct rgate_node *node, const struct rgate_conn *conn)
{
	return node->prov->source && conn ? node->prov->source(conn) : 0;
}

static void suspect(struct rgate_node *node, const struct rgate_conn *conn)
{
	const uint64_t source = source_of(node, conn);
	struct rgate_suspect *s;

	if (!source)
		return;
	s = find_suspect(node, source);
	if (!s)
		s = &node->suspects[node->next_suspect++ % RGATE_SUSPECTS];
	*s = (struct rgate_suspect){ source, rgate_clock_now(CLOCK_MONOTONIC) + SUSPECT_NS };
}

/*
 * A proof costs much more to check than to forge. As long as others wait, who has just
 * asked in vain is not listened to: so a few who flood do not keep a node out.
 */
static bool not_now(struct rgate_node *node, const struct rgate_conn *conn)
{
	const uint64_t source = node->busy ? source_of(node, conn) : 0;
	const struct rgate_suspect *s = source ? find_suspect(node, source) : NULL;

	return s && rgate_clock_now(CLOCK_MONOTONIC) < s->until_ns;
}

/* 0: node hello->from has sent it, once; -EACCES goes to who asks, other errors do not */
static int check_request(struct rgate_node *node, const struct rgate_conn *conn,
			 const struct rgate_hs_hello *hello, const struct rgate_peer *peer,
			 struct rgate_hs *hs)
{
	struct rgate_noise_keys keys;
	int err;

	if (not_now(node, conn)) {
		count(&node->stats.bad_key);
		tell_refused(node, conn, hello->from, "it was refused a moment ago, and others wait");
		return -EBUSY;
	}
	if (!node->prov->is_from(conn, &peer->to)) {
		count(&node->stats.bad_key);
		tell_refused(node, conn, hello->from,
			     "the cluster file has another address for this node");
		return -EACCES;
	}
	keys = rgate_secret_keys(node->secret, &peer->to);
	err = rgate_hs_check_hello(hs, hello, &keys);
	if (err == -EACCES) {
		suspect(node, conn);
		count(&node->stats.bad_key);
		tell_refused(node, conn, hello->from, no_proof);
	}
	return err;
}

static int answer(struct rgate_node *node, struct rgate_link *link)
{
	const struct rgate_hs_terms own = terms_of(node);
	struct rgate_hs_welcome welcome;
	int err;

	link->deadline_ns = rgate_clock_now(CLOCK_MONOTONIC) + node->timeout_ns;
	link->state = RGATE_LINK_PROOF;
	err = rgate_hs_welcome(&link->hs, &welcome, &own);
	/* Receives are of our own size: what the client takes it tells in its proof. */
	if (!err)
		err = rgate_link_prepare(link);
	if (!err)
		err = node->prov->accept(link->conn, &welcome, sizeof(welcome), link);
	return err;
}

/* Takes @conn over */
static void let_in(struct rgate_node *node, struct rgate_peer *peer, struct rgate_conn *conn,
		   const struct rgate_hs *hs)
{
	const struct rgate_link_opts opts = rgate_node_link_opts(node, peer);
	struct rgate_link *link;

	if (!make_place(node, peer, &hs->hello) || rgate_link_create(&link, &opts)) {
		node->prov->reject(conn, 0);
		return;
	}
	link->conn = conn;
	link->peer = peer;
	link->hs = *hs;
	if (answer(node, link)) {
		rgate_link_destroy(link);
		return;
	}
	link->next = node->incoming;
	node->incoming = link;
}

void rgate_meet_request(struct rgate_node *node, const struct rgate_prov_event *ev)
{
	struct rgate_hs hs = { 0 };
	struct rgate_hs_hello hello;
	struct rgate_peer *peer;
	int err;

	/* Of two nodes the one with the higher id connects. */
	if (rgate_hs_read_hello(&hello, ev->data, ev->len, (uint8_t)node->self.id) ||
	    hello.from <= node->self.id) {
		count(&node->stats.garbage);
		tell_refused(node, ev->conn, -1, "it is no node of this cluster, or of another version");
		node->prov->reject(ev->conn, 0);
		return;
	}
	peer = find_peer(node, hello.from);
	err = peer ? check_request(node, ev->conn, &hello, peer, &hs) : -ENOENT;
	if (err)
		node->prov->reject(ev->conn, err == -EACCES ? err : 0);
	else
		let_in(node, peer, ev->conn, &hs);
	rgate_hs_end(&hs);
}

void rgate_meet_failed(struct rgate_node *node, const struct rgate_link *link, int err)
{
	if (err == -EACCES) {
		suspect(node, link->conn);
		count(&node->stats.bad_key);
		tell_refused(node, link->conn, (int)link->peer->to.id, no_proof);
	} else if (err == -ETIMEDOUT) {
		count(&node->stats.timeouts);
	} else if (err == -EPROTO || err == -EPROTONOSUPPORT) {
		count(&node->stats.garbage);
	}
}

static int read_line(struct rgate_link *link, const struct rgate_desc *line)
{
	int err = rgate_desc_parse(&link->peer_line, line, sizeof(*line));

	if (err)
		return err;
	return link->peer_line.length >= offsetof(struct rgate_line, my_beat) &&
	       link->peer_line.addr % 8 == 0 ? 0 : -EPROTO;
}

static int check_client(struct rgate_node *node, struct rgate_link *link, const void *data,
			size_t len)
{
	struct rgate_hs_terms theirs;
	struct rgate_hs_ready ready;
	struct rgate_desc line;
	int err;

	err = rgate_hs_read_proof(&link->hs, data, len, &theirs, &line);
	if (!err)
		err = read_line(link, &line);
	if (!err)
		err = take_terms(link, &theirs);
	/* Not before: who has proved nothing reaches no memory. */
	if (!err)
		err = node->prov->allow(link->conn, RGATE_ACCESS_REMOTE);
	if (!err)
		err = rgate_link_my_line(link, &line);
	if (!err)
		err = rgate_hs_ready(&link->hs, &ready, &line);
	if (!err)
		err = rgate_link_send_handshake(link, RGATE_MSG_READY, &ready, sizeof(ready));
	return err;
}

static int check_server(struct rgate_link *link, const void *data, size_t len)
{
	struct rgate_desc line;
	int err = rgate_hs_read_ready(&link->hs, data, len, &line);

	return err ? err : read_line(link, &line);
}

/* A client that does not believe the server's welcome goes without a proof of its own. */
static int ended(const struct rgate_link *link, int err)
{
	return link->client || err == -EPROTO ? err : -EACCES;
}

/* The hello was refused: told once, not at each attempt */
static int refused_there(const struct rgate_node *node, const struct rgate_link *link)
{
	if (link->client && link->down_err == -EACCES && link->peer->last_err != -EACCES)
		rgate_err("node %u: node %u does not take it for node %u: the cluster file there has another key or address for it",
			  node->self.id, link->peer->to.id, node->self.id);
	return ended(link, link->down_err);
}

int rgate_meet_step(struct rgate_node *node, struct rgate_link *link)
{
	const struct rgate_inbox *at;
	const void *data;
	uint32_t type;
	int err;

	if (link->state == RGATE_LINK_READY)
		return 1;
	if (link->down)
		return refused_there(node, link);
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
	else if (link->client && type == RGATE_MSG_READY)
		err = check_server(link, data, at->len);
	else
		err = -EPROTO;
	rgate_noise_end(&link->hs.noise);
	if (err < 0)
		return err;
	rgate_link_drop_message(link);
	link->state = RGATE_LINK_READY;
	return 1;
}
