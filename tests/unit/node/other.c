// SPDX-License-Identifier: MIT OR GPL-2.0
#include "other.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

struct other o;
static pthread_mutex_t saying = PTHREAD_MUTEX_INITIALIZER;

static unsigned char stage[RGATE_HUB_MSG_MAX * 16];
static const struct rgate_buf stage_buf = { .addr = stage };
static char node_there;		/* an address alone */
char other_peer_there, other_hub_there;

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
	assert_ptr_equal(hub, HUB);
	assert_int_equal(number & ~(unsigned int)RGATE_SERVICE_ASKER, o.service);
	if (o.taken == number)
		return -EEXIST;
	if (number == o.service)
		o.serves = *s;
	else
		o.asks = *s;
	o.ctx = ctx;
	return 0;
}

void __wrap_rgate_hub_remove(struct rgate_hub *hub, uint32_t number)
{
	assert_ptr_equal(hub, HUB);
	if (number == o.service)
		o.serves.sz = 0;
	else
		o.asks.sz = 0;
}

struct rgate_node *__wrap_rgate_hub_node(const struct rgate_hub *hub)
{
	assert_ptr_equal(hub, HUB);
	return (struct rgate_node *)&node_there;
}

struct rgate_peer *__wrap_rgate_hub_peer(const struct rgate_hub *hub, uint32_t node)
{
	assert_ptr_equal(hub, HUB);
	return node == OTHER ? PEER : NULL;
}

uint32_t __wrap_rgate_hub_epoch(const struct rgate_hub *hub, uint32_t node)
{
	(void)hub;
	assert_int_equal(node, OTHER);
	return o.hub_epoch;
}

static void put(struct msg *to, unsigned int *n, const void *data, size_t len)
{
	assert_true(*n < MSGS && len <= RGATE_HUB_MSG_MAX);
	to[*n].len = len;
	memcpy(to[(*n)++].data, data, len);
}

int __wrap_rgate_hub_send(struct rgate_hub *hub, uint32_t node, const void *msg, size_t len)
{
	(void)hub;
	assert_int_equal(node, OTHER);
	if (!o.up || o.unseen)
		return -ENOTCONN;
	if (o.send_full)
		return -EAGAIN;
	pthread_mutex_lock(&saying);
	put(o.said, &o.nsaid, msg, len);
	pthread_mutex_unlock(&saying);
	return 0;
}

void __wrap_rgate_hub_await(struct rgate_hub *hub, uint32_t node)
{
	(void)hub;
	assert_int_equal(node, OTHER);
	o.awaits++;
}

void __wrap_rgate_hub_wake(struct rgate_hub *hub)
{
	assert_ptr_equal(hub, HUB);
}

uint32_t __wrap_rgate_node_id(const struct rgate_node *node)
{
	(void)node;
	return SELF;
}

struct rgate_pool *__wrap_rgate_node_stage(const struct rgate_node *node)
{
	(void)node;
	return NULL;
}

int __wrap_rgate_peer_info(struct rgate_peer *peer, struct rgate_peer_info *info)
{
	assert_ptr_equal(peer, PEER);
	info->state = o.up ? RGATE_PEER_UP : RGATE_PEER_DOWN;
	info->epoch = o.epoch;
	info->incarnation = o.incarnation;
	return 0;
}

int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket)
{
	assert_ptr_equal(peer, PEER);
	assert_int_equal(n, 1);
	assert_int_equal(ops->kind, RGATE_OP_SEND);
	if (!o.up || ops->epoch != o.epoch)
		return -ENOTCONN;
	if (o.full)
		return -EAGAIN;
	put(o.asked, &o.nasked, ops->sge->addr, ops->sge->length);
	*ticket = ++o.ticket;
	return 0;
}

/* What was posted has left at once, unless it is held up, or is lost with its connection. */
int __wrap_rgate_peer_done(struct rgate_peer *peer, uint64_t ticket)
{
	(void)peer;
	return ticket <= o.lost ? -ECONNRESET : !o.held;
}

int __wrap_rgate_peer_settle(struct rgate_peer *peer, uint64_t ticket, int timeout_ms)
{
	assert_ptr_equal(peer, PEER);
	assert_in_range(ticket, 1, o.ticket);
	/* for a line and its board, as for all who own memory: longer ends the connection */
	assert_int_equal(timeout_ms, 2000);
	if (o.asks.sz || o.serves.sz)
		o.settled_early = true;
	o.held = false;
	o.settles++;
	return 0;
}

int __wrap_rgate_pool_alloc(struct rgate_pool *pool, size_t len, const struct rgate_buf **buf)
{
	(void)pool;
	assert_int_equal(len, sizeof(stage));
	assert_int_equal(o.lent++, 0);
	*buf = &stage_buf;
	return 0;
}

int __wrap_rgate_pool_free(struct rgate_pool *pool, const struct rgate_buf *buf)
{
	(void)pool;
	assert_ptr_equal(buf, &stage_buf);
	o.lent--;
	return 0;
}

void other_init(uint32_t service)
{
	memset(&o, 0, sizeof(o));
	o.service = service;
	o.may = true;
}

bool other_heard(struct msg *m)
{
	bool there;

	pthread_mutex_lock(&saying);
	there = o.nsaid > 0;
	if (there) {
		*m = o.said[0];
		memmove(o.said, o.said + 1, --o.nsaid * sizeof(o.said[0]));
	}
	pthread_mutex_unlock(&saying);
	return there;
}

void other_comes_up(uint64_t incarnation)
{
	o.up = true;
	o.incarnation = incarnation;
	o.hub_epoch = ++o.epoch;
	if (o.asks.state)
		o.asks.state(o.ctx, OTHER, true);
}

void other_goes_down(void)
{
	o.up = false;
	o.lost = o.ticket;
	if (o.asks.state)
		o.asks.state(o.ctx, OTHER, false);
}
