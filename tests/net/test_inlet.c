// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A ring's memory is registered, and given back, while the hub's thread goes on for all
 * services: it needs the inlet's lock in each of its turns.
 */
#include "plane.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

int __real_rgate_share_create(struct rgate_share **share, struct rgate_node *node, void *addr,
			      size_t len, int fd, uint64_t offset, uint32_t access);
void __real_rgate_share_destroy(struct rgate_share *share);
int __real_rgate_pool_alloc_opts(struct rgate_pool *pool, size_t size,
				 const struct rgate_alloc_opts *opts,
				 const struct rgate_buf **buf);

/* Where the next registration, or its end, stays until it is let go */
static struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool shut;		/* the next one stays */
	bool inside;		/* it is there */
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void pass_gate(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.inside = gate.shut;
	while (gate.shut)
		pthread_cond_wait(&gate.changed, &gate.lock);
	gate.inside = false;
	pthread_mutex_unlock(&gate.lock);
}

static void set_gate(bool shut)
{
	pthread_mutex_lock(&gate.lock);
	gate.shut = shut;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

static bool somebody_inside(void)
{
	bool inside;

	pthread_mutex_lock(&gate.lock);
	inside = gate.inside;
	pthread_mutex_unlock(&gate.lock);
	return inside;
}

int __wrap_rgate_share_create(struct rgate_share **share, struct rgate_node *node, void *addr,
			      size_t len, int fd, uint64_t offset, uint32_t access)
{
	pass_gate();
	return __real_rgate_share_create(share, node, addr, len, fd, offset, access);
}

static bool no_memory;

int __wrap_rgate_pool_alloc_opts(struct rgate_pool *pool, size_t size,
				 const struct rgate_alloc_opts *opts, const struct rgate_buf **buf)
{
	if (no_memory)
		return -ENOMEM;
	return __real_rgate_pool_alloc_opts(pool, size, opts, buf);
}

void __wrap_rgate_share_destroy(struct rgate_share *share)
{
	pass_gate();
	__real_rgate_share_destroy(share);
}

struct other {
	struct rgate_inlet *inlet;
	struct rgate_ring *ring;
	uint32_t number;
	int err;
};

static void *open_other(void *arg)
{
	const struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 64,
						    .slot_size = 2048, .name = "other");
	struct other *other = arg;

	other->err = rgate_inlet_add(other->inlet, &other->ring, &o, &other->number);
	return NULL;
}

static void *close_other(void *arg)
{
	struct other *other = arg;

	other->err = rgate_inlet_remove(other->inlet, other->number);
	return NULL;
}

#define SERVICE	8
#define TURNS	20

static uint32_t heard;		/* atomic: messages of another service */

static void on_message(void *ctx, uint32_t node, const void *msg, size_t len)
{
	(void)ctx;
	(void)node;
	(void)msg;
	(void)len;
	__atomic_add_fetch(&heard, 1, __ATOMIC_RELAXED);
}

/* How many turns the compute node's hub takes: one at a time, as the next message is sent
 * when the last has come. */
static unsigned int turns(struct plane *p)
{
	const uint64_t end = unit_now_ns() + 2000000000ULL * unit_patience();
	const uint8_t msg[8] = { SERVICE };
	unsigned int n;

	__atomic_store_n(&heard, 0, __ATOMIC_RELAXED);
	for (n = 0; n < TURNS; n++) {
		unit_require(!rgate_hub_send(p->hub, 1, msg, sizeof(msg)));
		while (__atomic_load_n(&heard, __ATOMIC_RELAXED) == n) {
			if (unit_now_ns() > end)
				return n;
			nodes_nap();
		}
	}
	return n;
}

/* The hub goes on while @what stays at the gate. It is let go before anything is judged:
 * where it holds the lock nothing else would end. */
static void goes_on(struct plane *p, struct other *other, void *(*what)(void *))
{
	pthread_t thread;
	unsigned int n;

	set_gate(true);
	unit_require(!pthread_create(&thread, NULL, what, other));
	wait_for(somebody_inside());
	n = turns(p);
	set_gate(false);
	pthread_join(thread, NULL);
	assert_int_equal(other->err, 0);
	assert_int_equal(n, TURNS);
}

static void registration(void **state)
{
	const struct rgate_service service = { .sz = sizeof(service), .message = on_message };
	struct other other = { 0 };
	struct plane p;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1 });
	unit_require(!rgate_hub_add(p.at[1].hub, SERVICE, &service, NULL));
	other.inlet = p.at[1].inlet;
	goes_on(&p, &other, open_other);
	wait_for(plane_rings(&p) == 2);
	goes_on(&p, &other, close_other);
	wait_for(plane_rings(&p) == 1);
	rgate_ring_close(other.ring);
	rgate_hub_remove(p.at[1].hub, SERVICE);
	plane_down(&p);
}

/* What an inlet has open when it ends is closed with it, and what came can be taken */
static void ends_with_rings(void **state)
{
	struct compute *at;
	struct rgate_slot hdr;
	struct other other;
	unsigned int flow;
	struct plane p;
	uint64_t began;
	uint64_t i;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1 });
	at = &p.at[1];
	other.inlet = at->inlet;
	open_other(&other);
	assert_int_equal(other.err, 0);
	wait_for(plane_rings(&p) == 2);
	plane_rules(&p, "all node:1/r\n");
	assert_true(plane_send(&p, 1, 7, 100, true));
	wait_for(plane_inlet(at).stats.delivered == 1);
	began = unit_now_ns();
	rgate_inlet_destroy(at->inlet);
	/* the gateway has left by itself: nobody waited for the end of his patience */
	assert_true(unit_now_ns() - began < 2000000000ULL);
	wait_for(!plane_rings(&p));
	assert_true(plane_take(at, &flow, &i, &hdr, 0));
	assert_int_equal(i, 7);
	assert_false(plane_take(at, &flow, &i, &hdr, 0));
	rgate_ring_close(other.ring);
	rgate_ring_close(at->ring);
	at->ring = NULL;
	at->inlet = NULL;
	plane_down(&p);
}

/* A gateway that says nothing is waited for once, however many rings there are */
static void ends_unanswered(void **state)
{
	struct rgate_ring *rings[8];
	struct compute *at;
	struct plane p;
	uint64_t took;
	uint32_t n;
	unsigned int i;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1 });
	at = &p.at[1];
	for (i = 0; i < ARRAY_LEN(rings); i++) {
		const char name[] = { 'a' + (char)i, '\0' };
		const struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 64,
							    .slot_size = 2048, .name = name);

		assert_int_equal(rgate_inlet_add(at->inlet, &rings[i], &o, &n), 0);
	}
	wait_for(plane_rings(&p) == 1 + ARRAY_LEN(rings));
	rgate_gateway_destroy(p.gw);
	took = unit_now_ns();
	rgate_inlet_destroy(at->inlet);
	took = unit_now_ns() - took;
	assert_true(took >= 2000000000ULL && took < 4000000000ULL * unit_patience());
	for (i = 0; i < ARRAY_LEN(rings); i++)
		rgate_ring_close(rings[i]);
	rgate_ring_close(at->ring);
	at->ring = NULL;
	at->inlet = NULL;
	p.gw = NULL;
	plane_down(&p);
}

/* Both go on until they end themselves, though their hub and their node are nobody's any more */
static void end_last(void **state)
{
	struct compute *at;
	struct plane p;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 2 });
	at = &p.at[1];
	rgate_hub_destroy(at->hub);
	rgate_node_destroy(at->node);
	rgate_inlet_destroy(at->inlet);
	rgate_ring_close(at->ring);
	memset(at, 0, sizeof(*at));
	/* with a ring that it fills */
	wait_for(plane_rings(&p) == 1);
	rgate_hub_destroy(p.hub);
	rgate_node_destroy(p.node);
	rgate_gateway_destroy(p.gw);
	p.gw = NULL;
	p.hub = NULL;
	p.node = NULL;
	plane_down(&p);
}

/* A ring needs no name; one for which there is no memory is not there, nor is its name kept. */
static void unnamed(void **state)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 64, .slot_size = 2048);
	struct rgate_ring *ring;
	struct plane p;
	uint32_t n;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1 });
	assert_int_equal(rgate_inlet_add(p.at[1].inlet, &ring, &o, &n), 0);
	wait_for(plane_rings(&p) == 2);
	assert_int_equal(rgate_inlet_remove(p.at[1].inlet, n), 0);
	rgate_ring_close(ring);
	o.name = "named";
	no_memory = true;
	assert_int_equal(rgate_inlet_add(p.at[1].inlet, &ring, &o, &n), -ENOMEM);
	no_memory = false;
	assert_int_equal(rgate_inlet_add(p.at[1].inlet, &ring, &o, &n), 0);
	wait_for(plane_rings(&p) == 2);
	assert_int_equal(rgate_inlet_remove(p.at[1].inlet, n), 0);
	rgate_ring_close(ring);
	plane_down(&p);
}

/* The name is had from the beginning, while the ring is still made. */
static void named_meanwhile(void **state)
{
	struct other first = { 0 }, second = { 0 };
	pthread_t thread;
	struct plane p;

	(void)state;
	plane_up(&p, &(struct plane_opts){ .computes = 1 });
	first.inlet = second.inlet = p.at[1].inlet;
	set_gate(true);
	unit_require(!pthread_create(&thread, NULL, open_other, &first));
	wait_for(somebody_inside());
	open_other(&second);
	set_gate(false);
	pthread_join(thread, NULL);
	assert_int_equal(first.err, 0);
	assert_int_equal(second.err, -EEXIST);
	assert_int_equal(rgate_inlet_remove(p.at[1].inlet, first.number), 0);
	rgate_ring_close(first.ring);
	plane_down(&p);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(named_meanwhile),
	cmocka_unit_test(unnamed),
	cmocka_unit_test(registration),
	cmocka_unit_test(ends_with_rings),
	cmocka_unit_test(ends_unanswered),
	cmocka_unit_test(end_last),
};

UNIT_MAIN(tests)
