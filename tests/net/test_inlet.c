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

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(registration),
};

UNIT_MAIN(tests)
