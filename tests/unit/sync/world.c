// SPDX-License-Identifier: MIT OR GPL-2.0
#include "world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct world w;

static unsigned int hub_index(const struct rgate_hub *hub)
{
	unsigned int i;

	for (i = 0; i < NODES; i++)
		if ((const char *)hub == &w.node[i].hub)
			return i;
	unit_require(0);
	return 0;
}

static void peer_index(const struct rgate_peer *peer, unsigned int *from, unsigned int *to)
{
	for (*from = 0; *from < NODES; ++*from)
		for (*to = 0; *to < NODES; ++*to)
			if ((const char *)peer == &w.node[*from].peer[*to])
				return;
	unit_require(0);
}

static unsigned int low(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static unsigned int high(unsigned int a, unsigned int b)
{
	return a < b ? b : a;
}

bool link_is_up(unsigned int a, unsigned int b)
{
	return w.up[low(a, b)][high(a, b)];
}

static uint32_t epoch_of(unsigned int a, unsigned int b)
{
	return w.epoch[low(a, b)][high(a, b)];
}

/* ---- What the service calls ---- */

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
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
void __wrap_rgate_peer_cut(struct rgate_peer *peer);
int __wrap_rgate_pool_alloc(struct rgate_pool *pool, size_t len, const struct rgate_buf **buf);
int __wrap_rgate_pool_free(struct rgate_pool *pool, const struct rgate_buf *buf);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	const uint64_t ns = w.now + (id == CLOCK_REALTIME ? 1000000000 * MS : 0);

	ts->tv_sec = (time_t)(ns / (1000 * MS));
	ts->tv_nsec = (long)(ns % (1000 * MS));
	return 0;
}

int __wrap_rgate_hub_add(struct rgate_hub *hub, uint32_t number, const struct rgate_service *s,
			 void *ctx)
{
	struct wnode *n = &w.node[hub_index(hub)];

	assert_int_equal(number & ~(unsigned int)RGATE_SERVICE_ASKER, RGATE_SERVICE_SYNC);
	if (number == RGATE_SERVICE_SYNC)
		n->serves = *s;
	else
		n->asks = *s;
	n->ctx = ctx;
	return 0;
}

void __wrap_rgate_hub_remove(struct rgate_hub *hub, uint32_t number)
{
	(void)hub;
	(void)number;
}

struct rgate_node *__wrap_rgate_hub_node(const struct rgate_hub *hub)
{
	return (struct rgate_node *)&w.node[hub_index(hub)].node;
}

struct rgate_peer *__wrap_rgate_hub_peer(const struct rgate_hub *hub, uint32_t node)
{
	const unsigned int i = hub_index(hub);

	return node < w.nodes && node != i ? (struct rgate_peer *)&w.node[i].peer[node] : NULL;
}

uint32_t __wrap_rgate_hub_epoch(const struct rgate_hub *hub, uint32_t node)
{
	return w.wire[hub_index(hub)][node].hub_epoch;
}

static void put(struct fifo *f, const void *data, size_t len)
{
	struct msg *m = &f->m[f->in++ % MSGS];

	unit_require(f->in - f->out <= MSGS && len <= RGATE_HUB_MSG_MAX);
	m->len = len;
	memcpy(m->data, data, len);
}

int __wrap_rgate_hub_send(struct rgate_hub *hub, uint32_t node, const void *msg, size_t len)
{
	const unsigned int from = hub_index(hub);
	struct wire *wire = &w.wire[from][node];

	if (!link_is_up(from, node) || wire->hub_epoch != epoch_of(from, node))
		return -ENOTCONN;
	if (wire->full)
		return -EAGAIN;
	put(&wire->outbox, msg, len);
	return 0;
}

void __wrap_rgate_hub_await(struct rgate_hub *hub, uint32_t node)
{
	(void)hub;
	(void)node;
}

void __wrap_rgate_hub_wake(struct rgate_hub *hub)
{
	w.node[hub_index(hub)].wakes++;
}

uint32_t __wrap_rgate_node_id(const struct rgate_node *node)
{
	unsigned int i;

	for (i = 0; (const char *)node != &w.node[i].node; i++)
		unit_require(i < NODES);
	return i;
}

struct rgate_pool *__wrap_rgate_node_stage(const struct rgate_node *node)
{
	(void)node;
	return NULL;
}

int __wrap_rgate_peer_info(struct rgate_peer *peer, struct rgate_peer_info *info)
{
	unsigned int from, to;

	peer_index(peer, &from, &to);
	info->state = link_is_up(from, to) ? RGATE_PEER_UP : RGATE_PEER_DOWN;
	info->epoch = epoch_of(from, to);
	info->incarnation = w.node[to].incarnation;
	return 0;
}

int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket)
{
	unsigned int from, to;

	peer_index(peer, &from, &to);
	assert_int_equal(n, 1);
	assert_int_equal(ops->kind, RGATE_OP_SEND);
	if (!link_is_up(from, to) || ops->epoch != epoch_of(from, to))
		return -ENOTCONN;
	put(&w.wire[from][to].calls, ops->sge->addr, ops->sge->length);
	*ticket = ++w.wire[from][to].ticket;
	return 0;
}

/* What was posted has left at once, or is lost with its connection. */
int __wrap_rgate_peer_done(struct rgate_peer *peer, uint64_t ticket)
{
	unsigned int from, to;

	peer_index(peer, &from, &to);
	return ticket <= w.wire[from][to].lost ? -ECONNRESET : 1;
}

int __wrap_rgate_peer_settle(struct rgate_peer *peer, uint64_t ticket, int timeout_ms)
{
	(void)peer;
	(void)ticket;
	(void)timeout_ms;
	return 0;
}

void drop_messages(unsigned int from, unsigned int to)
{
	struct wire *wire = &w.wire[from][to];

	wire->calls.out = wire->calls.in;
	wire->outbox.out = wire->outbox.in;
	wire->lost = wire->ticket;
}

static void link_down(unsigned int a, unsigned int b)
{
	w.up[low(a, b)][high(a, b)] = false;
	drop_messages(a, b);
	drop_messages(b, a);
}

void __wrap_rgate_peer_cut(struct rgate_peer *peer)
{
	unsigned int from, to;

	peer_index(peer, &from, &to);
	w.wire[from][to].cuts++;
	link_down(from, to);
}

int __wrap_rgate_pool_alloc(struct rgate_pool *pool, size_t len, const struct rgate_buf **buf)
{
	struct rgate_buf *b = aligned_alloc(_Alignof(struct rgate_buf), sizeof(*b));

	(void)pool;
	unit_require(b);
	memset(b, 0, sizeof(*b));
	b->addr = calloc(1, len);
	unit_require(b->addr);
	*buf = b;
	return 0;
}

int __wrap_rgate_pool_free(struct rgate_pool *pool, const struct rgate_buf *buf)
{
	(void)pool;
	free(buf->addr);
	free((void *)(uintptr_t)buf);
	return 0;
}

/* ---- What happens ---- */

/* The hub's thread tells of connections before all else. */
static void hear(unsigned int i)
{
	struct wnode *n = &w.node[i];
	unsigned int to;

	for (to = 0; to < w.nodes; to++) {
		struct wire *wire = &w.wire[i][to];
		const uint32_t now = link_is_up(i, to) ? epoch_of(i, to) : 0;

		if (to == i || wire->hub_epoch == now)
			continue;
		wire->hub_epoch = now;
		n->asks.state(n->ctx, to, now);
	}
}

void node_turn(unsigned int i)
{
	struct wnode *n = &w.node[i];

	if (!n->e || n->paused)
		return;
	(void)bed_run(n->e);
	if (!w.with_hub)
		return;
	hear(i);
	(void)n->asks.tick(n->ctx);
	(void)bed_run(n->e);
}

bool deliver(unsigned int from, unsigned int to, bool call)
{
	struct wire *wire = &w.wire[from][to];
	struct fifo *f = call ? &wire->calls : &wire->outbox;
	struct wnode *n = &w.node[to];
	struct msg m;

	if (f->in == f->out || !n->e || n->paused)
		return false;
	m = f->m[f->out++ % MSGS];
	hear(to);
	if (m.data[0] & RGATE_SERVICE_ASKER)
		n->asks.message(n->ctx, from, m.data, m.len);
	else
		n->serves.message(n->ctx, from, m.data, m.len);
	return true;
}

void settle(void)
{
	unsigned int i, j, rounds = 0;
	bool more;

	do {
		more = false;
		for (i = 0; i < NODES; i++)
			node_turn(i);
		for (i = 0; i < w.nodes; i++)
			for (j = 0; j < w.nodes; j++) {
				more |= i != j && deliver(i, j, true);
				more |= i != j && deliver(i, j, false);
			}
		unit_require(++rounds < 10000);
	} while (more);
}

void pass(uint64_t ms)
{
	const uint64_t until = w.now + ms * MS;

	while (w.now < until) {
		w.now += until - w.now < 50 * MS ? until - w.now : 50 * MS;
		settle();
	}
}

void link_set(unsigned int a, unsigned int b, bool up)
{
	if (up == link_is_up(a, b) || (up && (!w.node[a].e || !w.node[b].e)))
		return;
	if (!up) {
		link_down(a, b);
		return;
	}
	w.epoch[low(a, b)][high(a, b)]++;
	w.up[low(a, b)][high(a, b)] = true;
}

static bool speaks(void *ctx, uint32_t node, uid_t uid)
{
	(void)ctx;
	(void)node;
	return w.may && uid != 13;
}

void node_start(unsigned int i)
{
	struct wnode *n = &w.node[i];
	const struct sync_opts o = RGATE_OPTS(sync_opts, .may = speaks, .lease_ms = LEASE,
					      .hub = w.with_hub ? (struct rgate_hub *)&n->hub :
						     NULL);

	n->paused = false;
	n->incarnation++;
	n->e = bed_engine();
	assert_int_equal(sync_service_create(&n->sv, &o), 0);
	assert_int_equal(sync_service_add(n->sv, n->e), 0);
}

void node_quit(unsigned int i)
{
	struct wnode *n = &w.node[i];

	rgate_engine_destroy(n->e);
	sync_service_destroy(n->sv);
	n->e = NULL;
}

void node_stop(unsigned int i)
{
	unsigned int j;

	for (j = 0; j < w.nodes; j++) {
		if (j != i)
			link_set(i, j, false);
		w.wire[i][j].hub_epoch = 0;
	}
	node_quit(i);
}

void world_make(unsigned int nodes)
{
	unsigned int i, j;

	memset(&w, 0, sizeof(w));
	w.now = 1000 * MS;
	w.with_hub = w.may = true;
	w.nodes = nodes;
	if (!nodes) {
		w.with_hub = false;
		node_start(0);
		return;
	}
	for (i = 0; i < nodes; i++)
		node_start(i);
	for (i = 0; i < nodes; i++)
		for (j = i + 1; j < nodes; j++)
			link_set(i, j, true);
	settle();
	pass(PATIENCE);
}

void world_unmake(void)
{
	unsigned int i;

	for (i = 0; i < NODES; i++)
		if (w.node[i].e)
			node_stop(i);
}

/* ---- Clients ---- */

void wclient_new(struct wclient *c, unsigned int node, uid_t uid)
{
	memset(c, 0, sizeof(*c));
	client_new(&c->c, w.node[node].e, uid);
	c->node = node;
	c->of = w.node[node].incarnation;
	c->there = true;
}

void wclient_end(struct wclient *c)
{
	if (!c->there)
		return;
	c->there = false;
	if (w.node[c->node].e && w.node[c->node].incarnation == c->of) {
		rgate_seat_remove(c->c.seat);
		/* until nothing writes to its memory */
		(void)bed_run(w.node[c->node].e);
	}
	client_close(&c->c);
}

struct rgate_sync_place *place_of(const struct wclient *c, unsigned int slot)
{
	return (struct rgate_sync_place *)(void *)(c->c.mem + slot * 128);
}

uint64_t wsubmit(struct wclient *c, struct rgate_request q)
{
	q.cookie = ++c->cookie;
	unit_require(q.cookie < COOKIES);
	client_submit(&c->c, q);
	return q.cookie;
}

bool is_done(struct wclient *c, uint64_t cookie)
{
	struct rgate_completion done;

	while (client_poll(&c->c, &done)) {
		unit_require(done.cookie < COOKIES && !c->done[done.cookie]);
		c->done[done.cookie] = true;
		c->result[done.cookie] = done.result;
		c->value[done.cookie] = done.value;
	}
	return c->done[cookie];
}

int result_of(struct wclient *c, uint64_t cookie, uint64_t *value)
{
	settle();
	assert_true(is_done(c, cookie));
	if (value)
		*value = c->value[cookie];
	return c->result[cookie];
}

int wask(struct wclient *c, struct rgate_request q, uint64_t *value)
{
	return result_of(c, wsubmit(c, q), value);
}

int open_at(struct wclient *c, unsigned int slot, const char *name, unsigned int home,
	    uint32_t flags, uint32_t members, uid_t owner, uint32_t *handle)
{
	struct rgate_sync_place *p = place_of(c, slot);
	uint64_t value;
	int err;

	memset(p, 0, sizeof(*p));
	strcpy(p->name, name);
	p->members = members;
	err = wask(c, (struct rgate_request){
		.op = members ? RGATE_REQ_BARRIER_OPEN : RGATE_REQ_LOCK_OPEN,
		.a0 = home < NODES ? home : RGATE_SYNC_HERE,
		.a1 = RGATE_SYNC_OPEN_A1(owner, flags),
		.off = slot * 128, .len = sizeof(*p) }, &value);
	*handle = (uint32_t)value;
	return err;
}

uint32_t lock_at(struct wclient *c, unsigned int slot, const char *name, unsigned int home)
{
	uint32_t handle;

	assert_int_equal(open_at(c, slot, name, home, RGATE_SYNC_CREATE, 0,
				 rgate_seat_uid(c->c.seat), &handle), 0);
	return handle;
}

bool is_valid(const struct wclient *c, unsigned int slot)
{
	return w.now < __atomic_load_n(&place_of(c, slot)->lease_ns, __ATOMIC_ACQUIRE);
}
