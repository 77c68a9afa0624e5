// SPDX-License-Identifier: MIT OR GPL-2.0
/* A client that writes whatever it may into what it shares with its daemon, and a node that lies */
#include "client.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/queue.h>
#include <ringgate/rgate_hub.h>
#include <ringgate/rgate_session.h>
#include <ringgate/sync.h>

#include "gate_wire.h"
#include "sync_wire.h"

#define NOBODY	65534U
#define MEMORY	(512U << 10)
#define NODE	3U

static uint64_t some_word(void)
{
	const uint64_t v = some(UINT64_MAX);

	switch (some(4)) {
	case 0:
		return some(64);
	case 1:
		return UINT64_MAX - some(64);
	case 2:
		return v >> 32;
	default:
		return v;
	}
}

/* ---- A client ---- */

static void ask_anything(struct rgate_session *s, const struct client *c)
{
	struct rgate_completion done[32];
	uint64_t i, n = some(64);

	for (i = 0; i < n; i++) {
		const uint32_t service = some(3) ? RGATE_REQ_QUEUE :
					 some(2) ? RGATE_REQ_LOCK : RGATE_REQ_BARRIER;
		const struct rgate_request q = {
			.op = RGATE_REQ_OP(service, some(20)), .cookie = some(8),
			.a0 = some(2) ? c->home : some_word(), .a1 = some_word(),
			.off = some(MEMORY / 2), .len = (uint32_t)some(some(2) ? 256 : MEMORY / 2),
			.handle = (uint32_t)some(8), .deadline_us = (uint32_t)some(100000),
		};

		if (rgate_session_submit(s, &q))
			(void)rgate_session_poll(s, done, 32);
	}
	(void)rgate_session_wait(s, 2);
	(void)rgate_session_poll(s, done, 32);
}

/* What queue and lock have is behind a name that it may guess. */
static void name_it(struct rgate_session *s, const struct client *c)
{
	uint8_t *mem = rgate_session_memory(s, NULL);
	struct rgate_queue_place place = { .tasks = (uint32_t)some(100) };

	snprintf(place.name, sizeof(place.name), "%.62s", c->name);
	memcpy(mem, &place, sizeof(place));
	(void)rgate_session_submit(s, &(struct rgate_request){
		.op = RGATE_REQ_QUEUE_OPEN, .a0 = c->home, .len = sizeof(place), .cookie = 99,
		.a1 = RGATE_QUEUE_OPEN_A1(some(2) ? 0 : NOBODY, some(RGATE_QUEUE_FLAGS + 1)) });
}

static void write_anything(void)
{
	unsigned long from, to;
	char line[512], perms[5];
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned int i;

	while (f && fgets(line, sizeof(line), f)) {
		uint64_t *words;

		if (sscanf(line, "%lx-%lx %4s", &from, &to, perms) != 3 || strcmp(perms, "rw-s"))
			continue;
		/* NOLINTNEXTLINE(performance-no-int-to-ptr): where it is mapped */
		words = (uint64_t *)from;
		for (i = 0; i < 4096; i++)
			__atomic_store_n(&words[some((to - from) / 8)], some_word(),
					 __ATOMIC_RELAXED);
	}
	if (f)
		fclose(f);
}

int scribbler(const struct client *c)
{
	const struct rgate_session_opts o = {
		.sz = sizeof(o), .path = c->path, .where = RGATE_SESSION_DAEMON,
		.memory = MEMORY, .timeout_ms = 1000,
	};
	struct rgate_session *s;

	if (!geteuid() && (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)))
		return 1;
	/* What it writes may harm itself, too: that is no news. */
	(void)!freopen("/dev/null", "w", stderr);
	while (!told) {
		if (rgate_session_open(&s, &o)) {
			nap_ms(50);
			continue;
		}
		name_it(s, c);
		ask_anything(s, c);
		if (some(2))
			write_anything();
		ask_anything(s, c);
		rgate_session_close(s);
		nap_ms(some(50));
	}
	return 0;
}

/* ---- A node of the cluster ---- */

/* Something that begins as a message of queues or of locks does: service, version and kind */
static size_t nonsense(uint8_t *msg)
{
	static const uint8_t services[] = { RGATE_SERVICE_SYNC, RGATE_SERVICE_QUEUE,
					    RGATE_SERVICE_SYNC | RGATE_SERVICE_ASKER,
					    RGATE_SERVICE_QUEUE | RGATE_SERVICE_ASKER };
	uint64_t at;

	for (at = 0; at < RGATE_HUB_MSG_MAX; at += 8) {
		const uint64_t v = some(3) ? some(8) : some_word();

		memcpy(msg + at, &v, sizeof(v));
	}
	msg[0] = services[some(4)];
	msg[1] = some(50) ? 1 : (uint8_t)some(256);
	msg[2] = (uint8_t)some(12);
	return 1 + some(RGATE_HUB_MSG_MAX);
}

/* Its own user's, for whom the home's policy lets it speak, or another's */
static uint32_t some_user(void)
{
	return some(4) ? NOBODY : 0;
}

/* A question on queues as it should be, of guests, tickets, handles that there may be */
static size_t queue_question(uint8_t *msg)
{
	static uint64_t serial, number;
	static uint8_t data[GATE_PIECE];
	struct rgate_queue_place *place = (void *)data;
	struct gate_question q = {
		.kind = some(8) ? GATE_SUBMIT : GATE_PUT + (int)some(GATE_LEAVE),
		.uid = some_user(), .ticket = (uint32_t)some(GATE_TICKETS), .number = ++number,
		.guest = 1 + some(4), .serial = some(20) ? ++serial : 1 + some_word() / 2,
	};

	if (q.kind == GATE_SUBMIT) {
		q.op = RGATE_REQ_OP(RGATE_REQ_QUEUE, some(20));
		q.handle = (uint32_t)some(8);
		q.a0 = some(2) ? RGATE_QUEUE_HERE : some(8);
		q.a1 = some(2) ? RGATE_QUEUE_OPEN_A1(some_user(), some(4)) : some_word();
		q.len = some(2) ? sizeof(*place) : (uint32_t)some(GATE_ROOM);
	} else if (q.kind == GATE_PUT || q.kind == GATE_GET) {
		q.off = (uint32_t)some(GATE_ROOM - GATE_PIECE);
		q.len = 1 + (uint32_t)some(GATE_PIECE);
	}
	memset(data, 0, sizeof(data));
	snprintf(place->name, sizeof(place->name), "faults/%u", (unsigned int)some(2));
	q.data = data;
	q.data_len = q.kind == GATE_GET ? 0 : q.len < GATE_PIECE ? q.len : GATE_PIECE;
	return gate_question_put(&gate_queues, msg, &q);
}

/* Likewise on locks and barriers, and that others be fenced */
static size_t sync_question(uint8_t *msg)
{
	static uint64_t number;
	struct sync_question q = {
		.op = SYNC_OPEN + (int)some(SYNC_FENCE), .uid = some_user(), .number = ++number,
		.life = 1 + some(4), .claim = some(4) ? some(16) : some_word(),
		.seq = some(16), .flags = (uint32_t)some(4),
	};

	if (q.op == SYNC_OPEN) {
		q.flags = 0;
		q.as.kind = some(2) ? SYNC_LOCK : SYNC_BARRIER;
		q.as.owner = some_user();
		q.as.members = q.as.kind == SYNC_LOCK ? 0 : 3;
		q.as.flags = (uint32_t)some(4);
		snprintf(q.as.name, sizeof(q.as.name), "faults/%u", (unsigned int)some(2));
	}
	return sync_question_put(msg, &q);
}

static size_t some_message(uint8_t *msg)
{
	if (!some(50))
		return nonsense(msg);
	return some(3) ? queue_question(msg) : sync_question(msg);
}

static void write_at_random(struct rgate_hub *hub, uint32_t to)
{
	struct rgate_pool *pool = rgate_node_pool(rgate_hub_node(hub));
	struct rgate_remote at = { .length = 64, .access = RGATE_ACCESS_REMOTE_WRITE };
	const struct rgate_buf *buf;
	struct rgate_sge from;

	if (rgate_pool_alloc(pool, 64, &buf))
		return;
	memset(buf->addr, 0x66, 64);
	from = (struct rgate_sge){ buf->addr, 64, buf->lkey };
	/* what it has itself lies at the same places as the other one's may */
	at.addr = (uint64_t)(uintptr_t)buf->addr + some(1U << 20) * 64;
	at.rkey = some(2) ? (uint32_t)some(64) : (uint32_t)some_word();
	(void)rgate_peer_write(rgate_hub_peer(hub, to), &at, 0, &from, 1000);
	rgate_pool_free(pool, buf);
}

int liar(const struct client *c)
{
	uint8_t msg[RGATE_HUB_MSG_MAX] __attribute__((aligned(8)));
	struct rgate_cluster *cluster;
	struct rgate_node *node = NULL;
	struct rgate_hub *hub = NULL;
	const struct rgate_hub_opts opts = { .sz = sizeof(opts), .nodes = 1U << c->home };

	(void)!freopen("/dev/null", "w", stderr);
	if (rgate_cluster_load(&cluster, c->name) ||
	    rgate_node_create(&node, cluster, NODE, NULL) ||
	    rgate_hub_create(&hub, node, &opts))
		return 1;
	while (!told) {
		uint64_t i, n = some(100);

		if (rgate_peer_wait_up(rgate_hub_peer(hub, c->home), 200))
			continue;
		for (i = 0; i < n; i++) {
			const size_t len = some_message(msg);

			if (rgate_hub_send(hub, c->home, msg, len))
				nap_ms(1);
		}
		if (!some(20))
			write_at_random(hub, c->home);
		nap_ms(some(20));
	}
	rgate_hub_destroy(hub);
	(void)rgate_node_destroy(node);
	rgate_cluster_destroy(cluster);
	return 0;
}
