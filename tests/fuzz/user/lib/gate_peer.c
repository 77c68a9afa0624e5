// SPDX-License-Identifier: MIT OR GPL-2.0
#include "gate_peer.h"

#include <errno.h>

struct gate_peer gate_peer;
char gate_hub_there;
static char peer_there, node_there;
static unsigned char stage[RGATE_HUB_MSG_MAX * 16] __attribute__((aligned(8)));
static const struct rgate_buf stage_buf = { .addr = stage };

int __wrap_rgate_hub_add(struct rgate_hub *hub, uint32_t number, const struct rgate_service *s,
			 void *ctx);
void __wrap_rgate_hub_remove(struct rgate_hub *hub, uint32_t number);
struct rgate_node *__wrap_rgate_hub_node(const struct rgate_hub *hub);
struct rgate_peer *__wrap_rgate_hub_peer(const struct rgate_hub *hub, uint32_t node);
uint32_t __wrap_rgate_hub_epoch(const struct rgate_hub *hub, uint32_t node);
int __wrap_rgate_hub_send(struct rgate_hub *hub, uint32_t node, const void *msg, size_t len);
void __wrap_rgate_hub_await(struct rgate_hub *hub, uint32_t node);
void __wrap_rgate_hub_wake(struct rgate_hub *hub);
uint32_t __wrap_rgate_node_id(const struct rgate_node *node);
struct rgate_pool *__wrap_rgate_node_stage(const struct rgate_node *node);
int __wrap_rgate_peer_info(struct rgate_peer *peer, struct rgate_peer_info *info);
int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket);
int __wrap_rgate_peer_done(struct rgate_peer *peer, uint64_t ticket);
int __wrap_rgate_peer_settle(struct rgate_peer *peer, uint64_t ticket, int timeout_ms);
int __wrap_rgate_pool_alloc(struct rgate_pool *pool, size_t len, const struct rgate_buf **buf);
int __wrap_rgate_pool_free(struct rgate_pool *pool, const struct rgate_buf *buf);

int __wrap_rgate_hub_add(struct rgate_hub *hub, uint32_t number, const struct rgate_service *s,
			 void *ctx)
{
	(void)hub;
	if (!(number & RGATE_SERVICE_ASKER))
		gate_peer.serves = *s;
	else
		gate_peer.asks = *s;
	gate_peer.ctx = ctx;
	return 0;
}

void __wrap_rgate_hub_remove(struct rgate_hub *hub, uint32_t number)
{
	(void)hub;
	if (!(number & RGATE_SERVICE_ASKER))
		gate_peer.serves.sz = 0;
	else
		gate_peer.asks.sz = 0;
}

struct rgate_node *__wrap_rgate_hub_node(const struct rgate_hub *hub)
{
	(void)hub;
	return (struct rgate_node *)&node_there;
}

struct rgate_peer *__wrap_rgate_hub_peer(const struct rgate_hub *hub, uint32_t node)
{
	(void)hub;
	return node == GATE_OTHER ? (struct rgate_peer *)&peer_there : NULL;
}

uint32_t __wrap_rgate_hub_epoch(const struct rgate_hub *hub, uint32_t node)
{
	(void)hub;
	(void)node;
	return gate_peer.epoch;
}

static void keep(struct gate_msg *to, unsigned int *n, const void *data, size_t len)
{
	struct gate_msg *m = &to[(*n)++ % GATE_KEPT];

	FUZZ_CHECK(len <= RGATE_HUB_MSG_MAX);
	m->len = len;
	memcpy(m->data, data, len);
}

int __wrap_rgate_hub_send(struct rgate_hub *hub, uint32_t node, const void *msg, size_t len)
{
	(void)hub;
	FUZZ_CHECK(node == GATE_OTHER);
	if (!gate_peer.up)
		return -ENOTCONN;
	if (gate_peer.full)
		return -EAGAIN;
	keep(gate_peer.said, &gate_peer.nsaid, msg, len);
	return 0;
}

void __wrap_rgate_hub_await(struct rgate_hub *hub, uint32_t node)
{
	(void)hub;
	(void)node;
}

void __wrap_rgate_hub_wake(struct rgate_hub *hub)
{
	(void)hub;
}

uint32_t __wrap_rgate_node_id(const struct rgate_node *node)
{
	(void)node;
	return GATE_SELF;
}

struct rgate_pool *__wrap_rgate_node_stage(const struct rgate_node *node)
{
	(void)node;
	return NULL;
}

int __wrap_rgate_peer_info(struct rgate_peer *peer, struct rgate_peer_info *info)
{
	(void)peer;
	info->state = gate_peer.up ? RGATE_PEER_UP : RGATE_PEER_DOWN;
	info->epoch = gate_peer.epoch;
	info->incarnation = gate_peer.incarnation;
	return 0;
}

int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket)
{
	(void)peer;
	FUZZ_CHECK(n == 1 && ops->kind == RGATE_OP_SEND);
	if (!gate_peer.up || ops->epoch != gate_peer.epoch)
		return -ENOTCONN;
	if (gate_peer.full)
		return -EAGAIN;
	keep(gate_peer.asked, &gate_peer.nasked, ops->sge->addr, ops->sge->length);
	*ticket = ++gate_peer.ticket;
	return 0;
}

int __wrap_rgate_peer_done(struct rgate_peer *peer, uint64_t ticket)
{
	(void)peer;
	return ticket <= gate_peer.lost ? -ECONNRESET : !gate_peer.held;
}

int __wrap_rgate_peer_settle(struct rgate_peer *peer, uint64_t ticket, int timeout_ms)
{
	(void)peer;
	(void)timeout_ms;
	FUZZ_CHECK(ticket && ticket <= gate_peer.ticket);
	gate_peer.held = false;
	return 0;
}

int __wrap_rgate_pool_alloc(struct rgate_pool *pool, size_t len, const struct rgate_buf **buf)
{
	(void)pool;
	FUZZ_CHECK(len <= sizeof(stage) && !gate_peer.lent++);
	*buf = &stage_buf;
	return 0;
}

int __wrap_rgate_pool_free(struct rgate_pool *pool, const struct rgate_buf *buf)
{
	(void)pool;
	FUZZ_CHECK(buf == &stage_buf);
	gate_peer.lent--;
	return 0;
}

void gate_peer_begin(void)
{
	memset(&gate_peer, 0, sizeof(gate_peer));
}

static void tell(bool up)
{
	if (gate_peer.asks.state)
		gate_peer.asks.state(gate_peer.ctx, GATE_OTHER, up);
	if (gate_peer.serves.state)
		gate_peer.serves.state(gate_peer.ctx, GATE_OTHER, up);
}

void gate_peer_up(bool other)
{
	gate_peer.up = true;
	gate_peer.lost = gate_peer.ticket;
	gate_peer.incarnation += other || !gate_peer.incarnation;
	gate_peer.epoch++;
	tell(true);
}

void gate_peer_down(void)
{
	gate_peer.up = false;
	gate_peer.lost = gate_peer.ticket;
	tell(false);
}

void gate_peer_says(bool to_server, const void *msg, size_t len)
{
	const struct rgate_service *s = to_server ? &gate_peer.serves : &gate_peer.asks;
	unsigned char *copy;

	/* of that length, so that a read beyond is seen */
	copy = malloc(len ? len : 1);
	FUZZ_CHECK(copy);
	memcpy(copy, msg, len);
	s->message(gate_peer.ctx, GATE_OTHER, copy, len);
	free(copy);
}
