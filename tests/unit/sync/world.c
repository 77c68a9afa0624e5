// SPDX-License-Identifier: MIT OR GPL-2.0
#include "world.h"

#include <string.h>
#include <time.h>

struct world w;

bool link_is_up(unsigned int a, unsigned int b)
{
	return w.peer[a][b].up;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	const uint64_t ns = w.now + (id == CLOCK_REALTIME ? 1000000000 * MS : 0);

	ts->tv_sec = (time_t)(ns / (1000 * MS));
	ts->tv_nsec = (long)(ns % (1000 * MS));
	return 0;
}

/* ---- What happens ---- */

/* The hub's thread tells of connections before all else. */
static void hear(unsigned int i)
{
	unsigned int to;

	for (to = 0; to < w.nodes; to++) {
		struct rgate_peer *p = &w.peer[i][to];

		if (to != i && p->hub_epoch != (p->up ? p->epoch : 0))
			peer_is_seen(p);
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
	(void)n->hub.asks.tick(n->hub.ctx);
	(void)bed_run(n->e);
}

bool deliver(unsigned int from, unsigned int to, bool call)
{
	struct rgate_peer *p = &w.peer[from][to];
	struct wnode *n = &w.node[to];
	struct msg m;

	if (!n->e || n->paused || !msgs_take(call ? &p->asked : &p->said, &m))
		return false;
	hear(to);
	/* service, version */
	m.data[1] = (unsigned char)(m.data[1] + w.node[from].newer - n->newer);
	hub_says(&n->hub, from, m.data, m.len);
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
	struct rgate_peer *p = &w.peer[a][b];

	if (up == p->up || (up && (!w.node[a].e || !w.node[b].e)))
		return;
	if (!up) {
		peer_down(p);
		return;
	}
	p->epoch++;
	p->far->epoch++;
	p->up = p->far->up = true;
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
					      .hub = w.with_hub ? &n->hub : NULL);
	unsigned int j;

	n->paused = false;
	/* Not the one that comes next: they are random. */
	n->incarnation += 0x9e3779b97f4a7c15;
	n->hub.node.incarnation = n->incarnation;
	for (j = 0; j < NODES; j++)
		w.peer[j][i].incarnation = n->incarnation;
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
		w.peer[i][j].hub_epoch = 0;
	}
	node_quit(i);
}

static void connect_all(void)
{
	unsigned int i, j;

	for (i = 0; i < w.nodes; i++) {
		hub_init(&w.node[i].hub, i, RGATE_SERVICE_SYNC);
		for (j = 0; j < w.nodes; j++) {
			w.peer[i][j].far = &w.peer[j][i];
			if (j != i)
				hub_connect(&w.node[i].hub, j, &w.peer[i][j]);
		}
	}
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
	connect_all();
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
