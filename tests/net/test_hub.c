// SPDX-License-Identifier: MIT OR GPL-2.0
/* Messages of services that nobody waits for: their order, their end, a peer that is slow. */
#include "ended.h"
#include "nodes.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_hub.h>
#include <ringgate/rgate_spin.h>

#define SERVICE		9
#define WAITING		256	/* as rgate_hub.h says */
#define SOON_NS		(MS / 4 * 1000000ULL)
#define POLLS_US	RGATE_SPIN_MOST
#define AWAIT		4711		/* a message for which operations are awaited */

static uint32_t spin_us;	/* of the hubs that are made */

struct note {
	uint8_t service;
	uint8_t fill[3];
	uint32_t number;
};

/* A hub at node 0; at node 1 a peer that is read by hand */
struct pair {
	struct cluster c;
	struct rgate_node *node[2];
	struct rgate_hub *hub;
	struct rgate_peer *peer;
	unsigned int ups;		/* atomic: connections that the service was told of */
	bool hold;			/* atomic: the hub's thread does not go on, */
	bool held;			/* atomic: it has seen that */
	uint32_t got[8];
	uint32_t epochs[8];		/* as the hub told with it */
	unsigned int ngot;		/* atomic */
	unsigned int answers;		/* atomic: messages for the role that asks */
	bool went;			/* atomic: another service has come and gone */
	unsigned int ticks;		/* atomic */
};

static void on_state(void *ctx, uint32_t node, bool up)
{
	struct pair *p = ctx;

	assert_int_equal(node, 1);
	if (up)
		__atomic_add_fetch(&p->ups, 1, __ATOMIC_RELEASE);
}

static void on_message(void *ctx, uint32_t node, const void *msg, size_t len)
{
	const struct note *n = msg;
	struct pair *p = ctx;

	if (len != sizeof(*n) || p->ngot == 8)
		return;
	p->epochs[p->ngot] = rgate_hub_epoch(p->hub, node);
	p->got[p->ngot] = n->number;
	if (n->number == AWAIT)
		rgate_hub_await(p->hub, node);
	__atomic_add_fetch(&p->ngot, 1, __ATOMIC_RELEASE);
}

static int64_t on_tick(void *ctx)
{
	struct pair *p = ctx;

	__atomic_add_fetch(&p->ticks, 1, __ATOMIC_RELAXED);
	while (__atomic_load_n(&p->hold, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&p->held, true, __ATOMIC_RELEASE);
		usleep(1000);
	}
	return -1;
}

static void meet(struct pair *p, unsigned int times)
{
	assert_int_equal(rgate_peer_open(&p->peer, p->node[1], 0), 0);
	assert_int_equal(rgate_peer_wait_up(p->peer, MS), 0);
	wait_for(__atomic_load_n(&p->ups, __ATOMIC_ACQUIRE) == times);
}

static void pair_up(struct pair *p)
{
	const struct rgate_service service = {
		.sz = sizeof(service), .state = on_state, .message = on_message, .tick = on_tick,
	};
	const struct rgate_hub_opts o = { .sz = sizeof(o), .spin_us = spin_us };

	memset(p, 0, sizeof(*p));
	cluster_make(&p->c, 2, 0);
	p->node[0] = cluster_node(&p->c, 0);
	p->node[1] = cluster_node(&p->c, 1);
	assert_int_equal(rgate_hub_create(&p->hub, p->node[0], &o), 0);
	assert_int_equal(rgate_hub_add(p->hub, SERVICE, &service, p), 0);
}

static void pair_down(struct pair *p)
{
	struct rgate_pool_stats ps = { .sz = sizeof(ps) };

	rgate_hub_remove(p->hub, SERVICE);
	rgate_peer_close(p->peer);
	rgate_hub_destroy(p->hub);
	assert_int_equal(rgate_pool_stats(rgate_node_pool(p->node[0]), &ps), 0);
	assert_int_equal(ps.used_buffers, 0);
	assert_int_equal(node_ended(p->node[1]), 0);
	assert_int_equal(node_ended(p->node[0]), 0);
	cluster_free(&p->c);
}

static int say(struct pair *p, uint32_t number)
{
	const struct note n = { .service = SERVICE, .number = number };

	return rgate_hub_send(p->hub, 1, &n, sizeof(n));
}

static void expect(struct pair *p, uint32_t number)
{
	struct rgate_msg msg;
	struct note n;

	assert_int_equal(rgate_peer_recv(p->peer, &msg, &n, sizeof(n), MS), 0);
	assert_int_equal(msg.len, sizeof(n));
	assert_int_equal(n.service, SERVICE);
	assert_int_equal(n.number, number);
}

/* Whoever does not read holds up nobody, and gets all of it when he does. */
static void unread(void **state)
{
	uint64_t began = unit_now_ns();
	uint32_t sent = 0, i;
	struct pair p;
	int err = 0;

	(void)state;
	pair_up(&p);
	meet(&p, 1);
	while (!err && sent < 10 * WAITING) {
		err = say(&p, sent);
		sent += !err;
	}
	assert_int_equal(err, -EAGAIN);
	assert_true(unit_now_ns() - began < SOON_NS);
	assert_true(sent >= WAITING);
	assert_int_equal(peer_state(p.peer), RGATE_PEER_UP);
	for (i = 0; i < sent; i++)
		expect(&p, i);
	/* and as many again */
	for (i = 0; i < WAITING; i++)
		wait_for(say(&p, i) != -EAGAIN);
	for (i = 0; i < WAITING; i++)
		expect(&p, i);
	pair_down(&p);
}

/* What waited for a connection that ended does not go to the next one. */
static void ended(void **state)
{
	struct rgate_msg msg;
	uint32_t round, i;
	struct pair p;
	struct note n;

	(void)state;
	pair_up(&p);
	assert_int_equal(say(&p, 0), -ENOTCONN);
	for (round = 1; round <= 3; round++) {
		meet(&p, round);
		for (i = 0; !say(&p, 1000 * round + i); i++)
			;
		expect(&p, 1000 * round);
		rgate_peer_close(p.peer);
		wait_for(say(&p, 0) == -ENOTCONN);
	}
	meet(&p, round);
	assert_int_equal(say(&p, 7), 0);
	expect(&p, 7);
	assert_int_equal(rgate_peer_recv(p.peer, &msg, &n, sizeof(n), 50), -EAGAIN);
	pair_down(&p);
}

static void tell(struct pair *p, uint32_t number)
{
	const struct note n = { .service = SERVICE, .number = number };

	assert_int_equal(rgate_peer_send(p->peer, &n, sizeof(n), MS), 0);
}

static void reconnect(struct pair *p)
{
	rgate_peer_close(p->peer);
	assert_int_equal(rgate_peer_open(&p->peer, p->node[1], 0), 0);
	assert_int_equal(rgate_peer_wait_up(p->peer, MS), 0);
}

static void hold(struct pair *p)
{
	__atomic_store_n(&p->held, false, __ATOMIC_RELEASE);
	__atomic_store_n(&p->hold, true, __ATOMIC_RELEASE);
	rgate_hub_wake(p->hub);
	wait_for(__atomic_load_n(&p->held, __ATOMIC_ACQUIRE));
}

/* What a service gets is of the connection that it knows: all of one that has ended before
 * it is told so, nothing of one that it never heard of. */
static void late(void **state)
{
	struct rgate_hub_stats stats = { .sz = sizeof(stats) };
	struct rgate_peer_info info = { .sz = sizeof(info) };
	struct pair p;
	unsigned int i;

	(void)state;
	pair_up(&p);
	meet(&p, 1);
	hold(&p);
	tell(&p, 1);
	tell(&p, 2);
	reconnect(&p);
	tell(&p, 3);
	__atomic_store_n(&p.hold, false, __ATOMIC_RELEASE);
	wait_for(__atomic_load_n(&p.ngot, __ATOMIC_ACQUIRE) == 3);
	assert_int_equal(p.ups, 2);
	assert_true(p.epochs[0] && p.epochs[0] == p.epochs[1] && p.epochs[1] < p.epochs[2]);
	hold(&p);
	reconnect(&p);
	tell(&p, 100);
	reconnect(&p);
	tell(&p, 4);
	__atomic_store_n(&p.hold, false, __ATOMIC_RELEASE);
	wait_for(__atomic_load_n(&p.ngot, __ATOMIC_ACQUIRE) == 4);
	for (i = 0; i < 4; i++)
		assert_int_equal(p.got[i], i + 1);
	assert_int_equal(p.ups, 3);
	assert_int_equal(rgate_hub_stats(p.hub, &stats), 0);
	assert_int_equal(stats.stale, 1);
	assert_int_equal(stats.messages, 4);
	assert_int_equal(rgate_peer_info(rgate_hub_peer(p.hub, 1), &info), 0);
	assert_int_equal(p.epochs[3], info.epoch);
	pair_down(&p);
}

static void sizes(void **state)
{
	unsigned char buf[RGATE_HUB_MSG_MAX + 1], got[RGATE_HUB_MSG_MAX];
	struct rgate_msg msg;
	struct pair p;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(buf); i++)
		buf[i] = (unsigned char)(i * 7 + SERVICE);
	pair_up(&p);
	meet(&p, 1);
	assert_int_equal(rgate_hub_send(p.hub, 1, buf, 0), -EMSGSIZE);
	assert_int_equal(rgate_hub_send(p.hub, 1, buf, sizeof(buf)), -EMSGSIZE);
	assert_int_equal(rgate_hub_send(p.hub, 0, buf, 1), -ENOTCONN);
	assert_int_equal(rgate_hub_send(p.hub, RGATE_NODES_MAX, buf, 1), -ENOTCONN);
	for (i = 1; i <= RGATE_HUB_MSG_MAX; i += 51) {
		assert_int_equal(rgate_hub_send(p.hub, 1, buf, i), 0);
		assert_int_equal(rgate_peer_recv(p.peer, &msg, got, sizeof(got), MS), 0);
		assert_int_equal(msg.len, i);
		assert_memory_equal(got, buf, i);
	}
	pair_down(&p);
}

static void on_answer(void *ctx, uint32_t node, const void *msg, size_t len)
{
	const struct note *n = msg;
	struct pair *p = ctx;

	if (node == 1 && len == sizeof(*n) && n->service == (SERVICE | RGATE_SERVICE_ASKER) &&
	    n->number == __atomic_load_n(&p->answers, __ATOMIC_RELAXED))
		__atomic_add_fetch(&p->answers, 1, __ATOMIC_RELEASE);
}

static void tell_as(struct pair *p, uint32_t service, uint32_t number)
{
	const struct note n = { .service = (uint8_t)service, .number = number };

	assert_int_equal(rgate_peer_send(p->peer, &n, sizeof(n), MS), 0);
}

static uint64_t unknown(const struct pair *p)
{
	struct rgate_hub_stats stats = { .sz = sizeof(stats) };

	assert_int_equal(rgate_hub_stats(p->hub, &stats), 0);
	return stats.unknown;
}

/* A node serves and asks: each role has its messages, and comes and goes by itself. */
static void roles(void **state)
{
	const struct rgate_service asker = { .sz = sizeof(asker), .message = on_answer };
	const struct rgate_service none = { .sz = sizeof(none) };
	const uint32_t number = SERVICE | RGATE_SERVICE_ASKER;
	struct pair p;

	(void)state;
	pair_up(&p);
	meet(&p, 1);
	tell_as(&p, number, 0);
	wait_for(unknown(&p) == 1);
	assert_int_equal(rgate_hub_add(p.hub, number, &asker, &p), 0);
	assert_int_equal(rgate_hub_add(p.hub, number, &asker, &p), -EEXIST);
	assert_int_equal(rgate_hub_add(p.hub, SERVICE, &asker, &p), -EEXIST);
	assert_int_equal(rgate_hub_add(p.hub, RGATE_SERVICE_ASKER, &none, &p), -EINVAL);
	assert_int_equal(rgate_hub_add(p.hub, RGATE_SERVICES_MAX | RGATE_SERVICE_ASKER, &none, &p),
			 -EINVAL);
	assert_int_equal(rgate_hub_add(p.hub, number << 8, &none, &p), -EINVAL);
	tell(&p, 41);
	tell_as(&p, number, 0);
	tell_as(&p, number, 1);
	tell(&p, 42);
	wait_for(__atomic_load_n(&p.answers, __ATOMIC_ACQUIRE) == 2);
	wait_for(__atomic_load_n(&p.ngot, __ATOMIC_ACQUIRE) == 2);
	assert_int_equal(p.got[0], 41);
	assert_int_equal(p.got[1], 42);
	tell_as(&p, RGATE_SERVICE_ASKER, 2);
	tell_as(&p, RGATE_SERVICES_MAX | RGATE_SERVICE_ASKER, 2);
	wait_for(unknown(&p) == 3);
	rgate_hub_remove(p.hub, number);
	tell_as(&p, number, 2);
	wait_for(unknown(&p) == 4);
	tell(&p, 43);
	wait_for(__atomic_load_n(&p.ngot, __ATOMIC_ACQUIRE) == 3);
	assert_int_equal(p.answers, 2);
	pair_down(&p);
}

static struct rgate_node_stats use_of(const struct rgate_node *node)
{
	struct rgate_node_stats s = { .sz = sizeof(s) };

	assert_int_equal(rgate_node_stats(node, &s), 0);
	return s;
}

/* A hub that was destroyed, with its node, goes on for its services, and ends with the last */
static void outlived(void **state)
{
	const struct rgate_service other = { .sz = sizeof(other), .state = on_state };
	struct rgate_hub_stats s = { .sz = sizeof(s) };
	struct rgate_node *again;
	struct pair p;

	(void)state;
	pair_up(&p);
	meet(&p, 1);
	assert_int_equal(rgate_hub_add(p.hub, SERVICE | RGATE_SERVICE_ASKER, &other, &p), 0);
	assert_int_equal(rgate_hub_stats(p.hub, &s), 0);
	assert_int_equal(s.serving, 1U << SERVICE);
	assert_int_equal(s.asking, 1U << SERVICE);
	assert_int_equal(use_of(p.node[0]).peers, 1);
	rgate_node_destroy(p.node[0]);
	rgate_hub_destroy(p.hub);
	tell(&p, 51);
	wait_for(__atomic_load_n(&p.ngot, __ATOMIC_ACQUIRE) == 1);
	rgate_hub_remove(p.hub, SERVICE | RGATE_SERVICE_ASKER);
	rgate_hub_remove(p.hub, SERVICE + 1);
	tell(&p, 52);
	wait_for(__atomic_load_n(&p.ngot, __ATOMIC_ACQUIRE) == 2);
	p.c.opts.key = p.c.keys[0];
	assert_int_equal(rgate_node_create(&again, p.c.conf, 0, &p.c.opts), -EADDRINUSE);
	rgate_hub_remove(p.hub, SERVICE);
	again = cluster_node(&p.c, 0);
	assert_int_equal(node_ended(again), 0);
	rgate_peer_close(p.peer);
	assert_int_equal(node_ended(p.node[1]), 0);
	cluster_free(&p.c);
}

static void *come_and_go(void *arg)
{
	const struct rgate_service other = { .sz = sizeof(other), .state = on_state };
	struct pair *p = arg;

	unit_require(!rgate_hub_add(p->hub, SERVICE + 1, &other, p));
	rgate_hub_remove(p->hub, SERVICE + 1);
	__atomic_store_n(&p->went, true, __ATOMIC_RELEASE);
	return NULL;
}

/* One service takes its time: another one comes and goes meanwhile, also for all later ones. */
static void beside(void **state)
{
	const struct rgate_service other = { .sz = sizeof(other), .state = on_state };
	pthread_t thread;
	struct pair p;

	(void)state;
	pair_up(&p);
	meet(&p, 1);
	__atomic_store_n(&p.hold, true, __ATOMIC_RELEASE);
	rgate_hub_wake(p.hub);
	wait_for(__atomic_load_n(&p.held, __ATOMIC_ACQUIRE));
	assert_int_equal(pthread_create(&thread, NULL, come_and_go, &p), 0);
	wait_for(__atomic_load_n(&p.went, __ATOMIC_ACQUIRE));
	assert_int_equal(p.ups, 1);
	assert_int_equal(rgate_hub_add(p.hub, SERVICE + 1, &other, &p), 0);
	__atomic_store_n(&p.hold, false, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	/* it is told of the connection that was up before it came, once */
	wait_for(__atomic_load_n(&p.ups, __ATOMIC_ACQUIRE) == 2);
	tell(&p, 3);
	wait_for(__atomic_load_n(&p.ngot, __ATOMIC_ACQUIRE) == 1);
	assert_int_equal(p.ups, 2);
	rgate_hub_remove(p.hub, SERVICE + 1);
	pair_down(&p);
}

/* What comes while a hub has no thread yet waits for the services that are added meanwhile. */
static void paused(void **state)
{
	const struct rgate_hub_opts o = { .sz = sizeof(o), .flags = RGATE_HUB_PAUSED };
	const struct rgate_hub_opts wrong = { .sz = sizeof(wrong), .flags = 2 };
	const struct rgate_hub_opts much = { .sz = sizeof(much), .spin_us = POLLS_US + 1 };
	const struct rgate_service service = {
		.sz = sizeof(service), .state = on_state, .message = on_message,
	};
	struct pair p = { .ups = 0 };

	(void)state;
	cluster_make(&p.c, 2, 0);
	p.node[0] = cluster_node(&p.c, 0);
	p.node[1] = cluster_node(&p.c, 1);
	assert_int_equal(rgate_hub_create(&p.hub, p.node[0], &wrong), -EINVAL);
	assert_int_equal(rgate_hub_create(&p.hub, p.node[0], &much), -EINVAL);
	assert_int_equal(rgate_hub_create(&p.hub, p.node[0], &o), 0);
	rgate_hub_destroy(p.hub);
	assert_int_equal(rgate_hub_create(&p.hub, p.node[0], &o), 0);
	assert_int_equal(rgate_peer_open(&p.peer, p.node[1], 0), 0);
	assert_int_equal(rgate_peer_wait_up(p.peer, MS), 0);
	tell(&p, 17);
	/* Nobody has heard it: also one that comes late does */
	usleep(20000);
	assert_int_equal(unknown(&p), 0);
	assert_int_equal(rgate_hub_add(p.hub, SERVICE, &service, &p), 0);
	assert_int_equal(p.ngot, 0);
	assert_int_equal(rgate_hub_start(p.hub), 0);
	assert_int_equal(rgate_hub_start(p.hub), -EALREADY);
	wait_for(__atomic_load_n(&p.ngot, __ATOMIC_ACQUIRE) == 1);
	assert_int_equal(p.got[0], 17);
	assert_int_equal(p.ups, 1);
	assert_int_equal(unknown(&p), 0);
	pair_down(&p);
}

/*
 * A hub that polls for a second, as something came to it just before, hears at once who wakes it,
 * and asks its services while they await the end of an operation.
 */
static void polling(void **state)
{
	const struct rgate_service other = { .sz = sizeof(other), .state = on_state };
	struct rgate_hub_stats s = { .sz = sizeof(s) };
	uint64_t began, longest = 0;
	unsigned int i;
	struct pair p;

	(void)state;
	pair_up(&p);
	meet(&p, 1);
	for (i = 0; i < 5; i++) {
		const unsigned int ups = __atomic_load_n(&p.ups, __ATOMIC_ACQUIRE);

		tell(&p, i);
		wait_for(__atomic_load_n(&p.ngot, __ATOMIC_ACQUIRE) == i + 1);
		usleep(2000);
		began = unit_now_ns();
		assert_int_equal(rgate_hub_add(p.hub, SERVICE + 1, &other, &p), 0);
		wait_for(__atomic_load_n(&p.ups, __ATOMIC_ACQUIRE) == ups + 1);
		began = unit_now_ns() - began;
		longest = longest > began ? longest : began;
		rgate_hub_remove(p.hub, SERVICE + 1);
	}
	assert_true(longest < POLLS_US * 1000ULL * 3 / 4);
	tell(&p, AWAIT);
	wait_for(__atomic_load_n(&p.ngot, __ATOMIC_ACQUIRE) == 6);
	i = __atomic_load_n(&p.ticks, __ATOMIC_RELAXED);
	usleep(POLLS_US / 4);
	assert_true(__atomic_load_n(&p.ticks, __ATOMIC_RELAXED) > i + 5);
	assert_int_equal(rgate_hub_stats(p.hub, &s), 0);
	assert_int_equal(s.messages, 6);
	pair_down(&p);
}

/* Between messages the thread sleeps, whatever its peers have sent before. */
static void rests(void **state)
{
	unsigned int i, were;
	struct pair p;

	(void)state;
	pair_up(&p);
	meet(&p, 1);
	for (i = 0; i < 5; i++)
		tell(&p, i);
	wait_for(__atomic_load_n(&p.ngot, __ATOMIC_ACQUIRE) == 5);
	usleep(20000);
	were = __atomic_load_n(&p.ticks, __ATOMIC_RELAXED);
	usleep(100000);
	assert_in_range(__atomic_load_n(&p.ticks, __ATOMIC_RELAXED), were, were + 20);
	pair_down(&p);
}

struct three {
	struct rgate_peer *peer[3];	/* of nodes 1 and 2 */
	unsigned int got[3];		/* atomic: of each node */
	bool stop;			/* atomic */
};

static void on_any(void *ctx, uint32_t node, const void *msg, size_t len)
{
	struct three *t = ctx;

	(void)msg;
	(void)len;
	/* Slower than they come, so that there is always a round of them */
	usleep(50);
	__atomic_add_fetch(&t->got[node], 1, __ATOMIC_RELEASE);
}

static void *flood(void *arg)
{
	const struct note n = { .service = SERVICE };
	struct three *t = arg;

	while (!__atomic_load_n(&t->stop, __ATOMIC_ACQUIRE))
		(void)rgate_peer_send(t->peer[1], &n, sizeof(n), 10);
	return NULL;
}

/* One who never stops talking does not keep the others from being heard. */
static void flooded(void **state)
{
	const struct rgate_service service = { .sz = sizeof(service), .message = on_any };
	const struct rgate_hub_opts o = { .sz = sizeof(o), .spin_us = spin_us };
	const struct note n = { .service = SERVICE };
	struct three t = { .stop = false };
	struct rgate_node *node[3];
	struct rgate_hub *hub;
	struct cluster c;
	pthread_t thread;
	unsigned int i;

	(void)state;
	cluster_make(&c, 3, 0);
	c.opts.msg_depth = 1024;
	for (i = 0; i < 3; i++)
		node[i] = cluster_node(&c, i);
	assert_int_equal(rgate_hub_create(&hub, node[0], &o), 0);
	assert_int_equal(rgate_hub_add(hub, SERVICE, &service, &t), 0);
	for (i = 1; i < 3; i++) {
		assert_int_equal(rgate_peer_open(&t.peer[i], node[i], 0), 0);
		assert_int_equal(rgate_peer_wait_up(t.peer[i], MS), 0);
	}
	assert_int_equal(pthread_create(&thread, NULL, flood, &t), 0);
	wait_for(__atomic_load_n(&t.got[1], __ATOMIC_ACQUIRE) > 200);
	for (i = 1; i <= 5; i++) {
		assert_int_equal(rgate_peer_send(t.peer[2], &n, sizeof(n), MS), 0);
		wait_for(__atomic_load_n(&t.got[2], __ATOMIC_ACQUIRE) == i);
	}
	__atomic_store_n(&t.stop, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	rgate_hub_remove(hub, SERVICE);
	rgate_hub_destroy(hub);
	for (i = 1; i < 3; i++)
		rgate_peer_close(t.peer[i]);
	for (i = 0; i < 3; i++)
		assert_int_equal(node_ended(node[i]), 0);
	cluster_free(&c);
}

static int polls(void **state)
{
	(void)state;
	spin_us = POLLS_US;
	return 0;
}

static int sleeps(void **state)
{
	(void)state;
	spin_us = RGATE_SPIN_NONE;
	return 0;
}

#define SLEEPS(name)	cmocka_unit_test_setup(name, sleeps)
#define POLLS(name)	{ #name "_polled", name, polls, NULL, NULL }

static const struct CMUnitTest tests[] = {
	SLEEPS(unread), POLLS(unread),
	SLEEPS(ended), POLLS(ended),
	SLEEPS(late), POLLS(late),
	SLEEPS(sizes), POLLS(sizes),
	SLEEPS(roles), POLLS(roles),
	SLEEPS(outlived), POLLS(outlived),
	SLEEPS(beside), POLLS(beside),
	SLEEPS(paused), POLLS(paused),
	SLEEPS(flooded), POLLS(flooded),
	cmocka_unit_test_setup(rests, sleeps),
	cmocka_unit_test_setup(polling, polls),
};

UNIT_MAIN(tests)
