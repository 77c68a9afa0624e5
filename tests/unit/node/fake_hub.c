// SPDX-License-Identifier: MIT OR GPL-2.0
#include "fake_hub.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE_MS	2000	/* as for all who own memory: longer ends the connection */

/* Services say something in threads of their own, where no test may fail: so this ends it. */
#define need(c) \
	do { \
		if (!(c)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #c); \
			abort(); \
		} \
	} while (0)

static pthread_mutex_t saying = PTHREAD_MUTEX_INITIALIZER;

int __wrap_rgate_hub_add(struct rgate_hub *hub, uint32_t number, const struct rgate_service *s,
			 void *ctx);
void __wrap_rgate_hub_remove(struct rgate_hub *hub, uint32_t number);
void __wrap_rgate_hub_get(struct rgate_hub *hub);
void __wrap_rgate_hub_put(struct rgate_hub *hub);
struct rgate_node *__wrap_rgate_hub_node(struct rgate_hub *hub);
struct rgate_peer *__wrap_rgate_hub_peer(const struct rgate_hub *hub, uint32_t node);
uint32_t __wrap_rgate_hub_epoch(const struct rgate_hub *hub, uint32_t node);
int __wrap_rgate_hub_send(struct rgate_hub *hub, uint32_t node, const void *msg, size_t len);
void __wrap_rgate_hub_await(struct rgate_hub *hub, uint32_t node);
void __wrap_rgate_hub_wake(struct rgate_hub *hub);
uint32_t __wrap_rgate_node_id(const struct rgate_node *node);
uint64_t __wrap_rgate_node_incarnation(const struct rgate_node *node);
struct rgate_pool *__wrap_rgate_node_stage(struct rgate_node *node);
int __wrap_rgate_peer_info(struct rgate_peer *peer, struct rgate_peer_info *info);
int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket);
int __wrap_rgate_peer_done(struct rgate_peer *peer, uint64_t ticket);
int __wrap_rgate_peer_settle(struct rgate_peer *peer, uint64_t ticket, int timeout_ms);
void __wrap_rgate_peer_cut(struct rgate_peer *peer);
int __wrap_rgate_share_create(struct rgate_share **out, struct rgate_node *node, void *addr,
			      size_t len, int fd, uint64_t fd_off, uint32_t access);
void __wrap_rgate_share_destroy(struct rgate_share *s);
int __wrap_rgate_share_desc(const struct rgate_share *s, size_t off, size_t len,
			    struct rgate_desc *desc);
int __wrap_rgate_pool_alloc(struct rgate_pool *pool, size_t len, const struct rgate_buf **buf);
int __wrap_rgate_pool_free(struct rgate_pool *pool, const struct rgate_buf *buf);

static pthread_mutex_t sharing = PTHREAD_MUTEX_INITIALIZER;
static struct rgate_share *all_shares;
static uint32_t last_key;
static const unsigned char *test_mem;	/* PEER_KEY's */
static size_t test_len;

static struct rgate_peer *peer_to(const struct rgate_hub *hub, uint32_t node)
{
	need(node < HUB_NODES && hub->peer[node]);
	return hub->peer[node];
}

static struct rgate_service *role_of(struct rgate_hub *hub, uint32_t number)
{
	need((number & ~(uint32_t)RGATE_SERVICE_ASKER) == hub->service);
	return number & RGATE_SERVICE_ASKER ? &hub->asks : &hub->serves;
}

int __wrap_rgate_hub_add(struct rgate_hub *hub, uint32_t number, const struct rgate_service *s,
			 void *ctx)
{
	struct rgate_service *role = role_of(hub, number);

	if (hub->taken == number)
		return -EEXIST;
	*role = *s;
	hub->ctx = ctx;
	return 0;
}

void __wrap_rgate_hub_remove(struct rgate_hub *hub, uint32_t number)
{
	role_of(hub, number)->sz = 0;
}

void __wrap_rgate_hub_get(struct rgate_hub *hub)
{
	hub->users++;
}

void __wrap_rgate_hub_put(struct rgate_hub *hub)
{
	need(hub->users);
	hub->users--;
}

struct rgate_node *__wrap_rgate_hub_node(struct rgate_hub *hub)
{
	return &hub->node;
}

struct rgate_peer *__wrap_rgate_hub_peer(const struct rgate_hub *hub, uint32_t node)
{
	return node < HUB_NODES ? hub->peer[node] : NULL;
}

uint32_t __wrap_rgate_hub_epoch(const struct rgate_hub *hub, uint32_t node)
{
	return peer_to(hub, node)->hub_epoch;
}

static void put(struct msgs *to, const void *data, size_t len)
{
	need(to->n < MSGS && len <= RGATE_HUB_MSG_MAX);
	to->m[to->n].len = len;
	memcpy(to->m[to->n++].data, data, len);
}

int __wrap_rgate_hub_send(struct rgate_hub *hub, uint32_t node, const void *msg, size_t len)
{
	struct rgate_peer *p = peer_to(hub, node);
	int err = 0;

	pthread_mutex_lock(&saying);
	if (!p->up || p->hub_epoch != p->epoch)
		err = -ENOTCONN;
	else if (p->send_full || (p->say_most && p->said.n >= p->say_most))
		err = -EAGAIN;
	else
		put(&p->said, msg, len);
	pthread_mutex_unlock(&saying);
	return err;
}

void __wrap_rgate_hub_await(struct rgate_hub *hub, uint32_t node)
{
	__atomic_fetch_add(&peer_to(hub, node)->awaits, 1, __ATOMIC_RELAXED);
}

void __wrap_rgate_hub_wake(struct rgate_hub *hub)
{
	__atomic_fetch_add(&hub->wakes, 1, __ATOMIC_RELAXED);
}

uint32_t __wrap_rgate_node_id(const struct rgate_node *node)
{
	return node->id;
}

uint64_t __wrap_rgate_node_incarnation(const struct rgate_node *node)
{
	return node->incarnation;
}

struct rgate_pool *__wrap_rgate_node_stage(struct rgate_node *node)
{
	return &node->stage;
}

int __wrap_rgate_peer_info(struct rgate_peer *p, struct rgate_peer_info *info)
{
	info->state = p->up ? RGATE_PEER_UP : RGATE_PEER_DOWN;
	info->epoch = p->epoch;
	info->incarnation = p->incarnation;
	return 0;
}

/* ---- Memory of others ---- */

int __wrap_rgate_share_create(struct rgate_share **out, struct rgate_node *node, void *addr,
			      size_t len, int fd, uint64_t fd_off, uint32_t access)
{
	struct rgate_share *s;

	need(fd >= 0 && !fd_off && access == RGATE_ACCESS_REMOTE_WRITE);
	if (node->no_share)
		return -ENOSPC;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	pthread_mutex_lock(&sharing);
	*s = (struct rgate_share){ .node = node, .next = all_shares, .addr = addr, .len = len,
				   .key = ++last_key };
	all_shares = s;
	pthread_mutex_unlock(&sharing);
	*out = s;
	return 0;
}

void __wrap_rgate_share_destroy(struct rgate_share *s)
{
	struct rgate_share **at;

	if (!s)
		return;
	pthread_mutex_lock(&sharing);
	for (at = &all_shares; *at != s; at = &(*at)->next)
		need(*at);
	*at = s->next;
	pthread_mutex_unlock(&sharing);
	free(s);
}

int __wrap_rgate_share_desc(const struct rgate_share *s, size_t off, size_t len,
			    struct rgate_desc *desc)
{
	need(!off && len == s->len);
	*desc = peer_desc(s->addr, len, s->key);
	return 0;
}

struct rgate_desc peer_desc(const void *addr, size_t len, uint32_t key)
{
	if (key == PEER_KEY) {
		test_mem = addr;
		test_len = len;
	}
	return (struct rgate_desc){
		.magic = htole16(RGATE_DESC_MAGIC), .version = RGATE_DESC_VERSION,
		.access = RGATE_ACCESS_REMOTE_WRITE, .rkey = htole32(key),
		.addr = htole64((uintptr_t)addr), .length = htole64(len),
	};
}

unsigned int node_shares(const struct rgate_node *node)
{
	const struct rgate_share *s;
	unsigned int n = 0;

	pthread_mutex_lock(&sharing);
	for (s = all_shares; s; s = s->next)
		n += s->node == node;
	pthread_mutex_unlock(&sharing);
	return n;
}

static bool is_in(const struct write *w, const unsigned char *mem, size_t len)
{
	return w->to >= mem && w->len <= len && (size_t)(w->to - mem) <= len - w->len;
}

static bool may_write(struct rgate_peer *p, const struct write *w)
{
	const struct rgate_share *s;

	if (w->key == PEER_KEY) {
		p->strayed += !is_in(w, test_mem, test_len);
		return is_in(w, test_mem, test_len);
	}
	for (s = all_shares; s; s = s->next)
		if (s->key == w->key)
			return p->far && s->node == &p->far->hub->node &&
			       is_in(w, s->addr, s->len);
	return false;
}

static void place_first(struct rgate_peer *p)
{
	const struct write *w = &p->write[0];
	const bool may = may_write(p, w);

	if (may)
		memcpy(w->to, w->from, w->len);
	p->placed += may;
	p->misplaced += !may;
	memmove(p->write, p->write + 1, --p->nwrites * sizeof(*w));
}

/* Up to that one: they are carried out in order. */
static void place(struct rgate_peer *p, uint64_t ticket)
{
	pthread_mutex_lock(&sharing);
	while (p->nwrites && p->write[0].ticket <= ticket)
		place_first(p);
	pthread_mutex_unlock(&sharing);
}

void peer_places(struct rgate_peer *p)
{
	place(p, UINT64_MAX);
}

unsigned int peer_placed(const struct rgate_peer *p)
{
	unsigned int n;

	pthread_mutex_lock(&sharing);
	n = p->placed;
	pthread_mutex_unlock(&sharing);
	return n;
}

static void write_to(struct rgate_peer *p, const struct rgate_op *op, uint64_t ticket)
{
	pthread_mutex_lock(&sharing);
	need(op->nsge == 1);
	p->write[p->nwrites++] = (struct write){
		.ticket = ticket, .key = op->rkey, .from = op->sge->addr, .len = op->sge->length,
		/* NOLINTNEXTLINE(performance-no-int-to-ptr): as peer_desc() made it */
		.to = (unsigned char *)(uintptr_t)op->remote,
	};
	pthread_mutex_unlock(&sharing);
}

/* Others may make room meanwhile, and who posts alone takes it. */
static bool no_more_writes(const struct rgate_peer *p)
{
	bool full;

	pthread_mutex_lock(&sharing);
	full = p->nwrites == WRITES;
	pthread_mutex_unlock(&sharing);
	return full;
}

/* ---- Operations ---- */

int __wrap_rgate_peer_post(struct rgate_peer *p, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket)
{
	need(n == 1 && (ops->kind == RGATE_OP_SEND || ops->kind == RGATE_OP_WRITE));
	/* It may change at any time. */
	if (!__atomic_load_n(&p->up, __ATOMIC_RELAXED) ||
	    ops->epoch != __atomic_load_n(&p->epoch, __ATOMIC_RELAXED))
		return -ENOTCONN;
	if (__atomic_load_n(&p->full, __ATOMIC_RELAXED) ||
	    (ops->kind == RGATE_OP_WRITE && no_more_writes(p)))
		return -EAGAIN;
	*ticket = ++p->ticket;
	if (ops->kind == RGATE_OP_WRITE)
		write_to(p, ops, *ticket);
	else
		put(&p->asked, ops->sge->addr, ops->sge->length);
	return 0;
}

/* What was posted has left at once, unless it is held up, or is lost with its connection. */
int __wrap_rgate_peer_done(struct rgate_peer *p, uint64_t ticket)
{
	/* It may change at any time. */
	const bool held = __atomic_load_n(&p->held, __ATOMIC_RELAXED);

	if (ticket <= p->lost)
		return -ECONNRESET;
	if (!held)
		place(p, ticket);
	return !held;
}

int __wrap_rgate_peer_settle(struct rgate_peer *p, uint64_t ticket, int timeout_ms)
{
	need(ticket && ticket <= p->ticket && timeout_ms == SETTLE_MS);
	if (p->hub->asks.sz || p->hub->serves.sz)
		p->settled_early = true;
	if (!p->hub->users)
		p->settled_late = true;
	__atomic_store_n(&p->held, false, __ATOMIC_RELAXED);
	place(p, ticket);
	p->settles++;
	return 0;
}

void __wrap_rgate_peer_cut(struct rgate_peer *p)
{
	p->cuts++;
	peer_down(p);
}

int __wrap_rgate_pool_alloc(struct rgate_pool *pool, size_t len, const struct rgate_buf **buf)
{
	struct rgate_buf *b = aligned_alloc(_Alignof(struct rgate_buf), sizeof(*b));

	need(b);
	memset(b, 0, sizeof(*b));
	b->addr = calloc(1, len);
	need(b->addr);
	pool->lent++;
	*buf = b;
	return 0;
}

int __wrap_rgate_pool_free(struct rgate_pool *pool, const struct rgate_buf *buf)
{
	need(pool->lent);
	pool->lent--;
	free(buf->addr);
	free((void *)(uintptr_t)buf);
	return 0;
}

void hub_init(struct rgate_hub *hub, uint32_t id, uint32_t service)
{
	hub->node.id = id;
	hub->service = service;
}

void hub_connect(struct rgate_hub *hub, uint32_t node, struct rgate_peer *peer)
{
	hub->peer[node] = peer;
	peer->hub = hub;
}

void peer_lose(struct rgate_peer *p)
{
	pthread_mutex_lock(&saying);
	p->asked.n = p->said.n = 0;
	p->lost = p->ticket;
	pthread_mutex_unlock(&saying);
}

void peer_comes_up(struct rgate_peer *p, uint64_t incarnation)
{
	pthread_mutex_lock(&saying);
	__atomic_store_n(&p->up, true, __ATOMIC_RELAXED);
	p->incarnation = incarnation;
	__atomic_store_n(&p->epoch, p->epoch + 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&saying);
}

void peer_goes_down(struct rgate_peer *p)
{
	/* Some of what is under way arrives. */
	pthread_mutex_lock(&sharing);
	if (p->nwrites > 1)
		place_first(p);
	p->nwrites = 0;
	pthread_mutex_unlock(&sharing);
	pthread_mutex_lock(&saying);
	__atomic_store_n(&p->up, false, __ATOMIC_RELAXED);
	p->lost = p->ticket;
	pthread_mutex_unlock(&saying);
}

void peer_say_full(struct rgate_peer *p, bool full)
{
	pthread_mutex_lock(&saying);
	p->send_full = full;
	pthread_mutex_unlock(&saying);
}

void peer_say_most(struct rgate_peer *p, unsigned int n)
{
	pthread_mutex_lock(&saying);
	p->say_most = n;
	pthread_mutex_unlock(&saying);
}

void peer_down(struct rgate_peer *p)
{
	peer_goes_down(p);
	peer_lose(p);
	if (!p->far)
		return;
	peer_goes_down(p->far);
	peer_lose(p->far);
}

void peer_is_seen(struct rgate_peer *p)
{
	uint32_t node = 0;

	while (p->hub->peer[node] != p)
		node++;
	pthread_mutex_lock(&saying);
	p->hub_epoch = p->up ? p->epoch : 0;
	pthread_mutex_unlock(&saying);
	if (p->hub->asks.state)
		p->hub->asks.state(p->hub->ctx, node, p->up);
}

void hub_says(struct rgate_hub *hub, uint32_t node, const void *msg, size_t len)
{
	const struct rgate_service *to = *(const unsigned char *)msg & RGATE_SERVICE_ASKER ?
					 &hub->asks : &hub->serves;

	to->message(hub->ctx, node, msg, len);
}

bool msgs_take(struct msgs *from, struct msg *m)
{
	bool there;

	pthread_mutex_lock(&saying);
	there = from->n > 0;
	if (there) {
		*m = from->m[0];
		memmove(from->m, from->m + 1, --from->n * sizeof(*m));
	}
	pthread_mutex_unlock(&saying);
	return there;
}
