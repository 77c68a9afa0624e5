// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What nodes, hubs, gateways, inlets and spawn servers ask the system for is refused, each
 * call in turn: the error comes through, nothing is left behind, and the next try works.
 * The linker sends those calls here (--wrap, see the Makefile), also under a sanitizer,
 * which then says what was not freed.
 */
#include "ended.h"
#include "plane.h"
#include "refuse.h"

#include <stdio.h>

#include <ringgate/rgate_spawn.h>

static __thread bool mine;	/* calls of this thread fail */
static pid_t self;

static bool refuse_mine(void)
{
	return mine && getpid() == self;
}

static struct plane p;		/* nodes 0 and 1, with hubs */
static struct rgate_ring *source;
static char policy[96];

/* Each returns 0 or -errno, and undoes what it did. */

static int make_cluster(void)
{
	static const char text[] = "provider local\nprivate-key n%i\nnode 0 gateway /tmp/a x\n"
				   "node 1 compute /tmp/b\n" UNIT_KEY_LINE(0) UNIT_KEY_LINE(1);
	struct rgate_cluster *c;
	int err = rgate_cluster_parse(&c, "test", text, strlen(text));

	if (!err)
		rgate_cluster_destroy(c);
	return err;
}

static int make_node(void)
{
	struct rgate_pool_opts pool = RGATE_OPTS(rgate_pool_opts, .region_size = 8 << 20,
						 .access = RGATE_ACCESS_REMOTE,
						 .flags = RGATE_POOL_NO_HUGE);
	struct rgate_node_opts o = p.c.opts;
	struct rgate_node *node;
	struct rgate_peer *peer;
	int err;

	o.pool = &pool;
	o.key = p.c.keys[2];
	err = rgate_node_create(&node, p.c.conf, 2, &o);
	if (err)
		return err;
	err = rgate_peer_open(&peer, node, 1);
	if (!err)
		rgate_peer_close(peer);
	unit_require(!node_ended(node));
	return err;
}

static int make_hub(void)
{
	const struct rgate_service s = { .sz = sizeof(s) };
	struct rgate_hub *hub;
	int err = rgate_hub_create(&hub, p.at[3].node, NULL);

	if (err)
		return err;
	err = rgate_hub_add(hub, RGATE_SERVICE_NET, &s, NULL);
	if (!err)
		rgate_hub_remove(hub, RGATE_SERVICE_NET);
	rgate_hub_destroy(hub);
	return err;
}

static int make_gateway(void)
{
	static const char rules[] = "dns node:1 udp port 53\nall all:*\n";
	struct rgate_steer *steer;
	struct rgate_gateway *gw;
	int err = rgate_gateway_create(&gw, p.hub, NULL);

	if (err)
		return err;
	err = rgate_gateway_add(gw, source);
	if (!err) {
		unit_require(!rgate_gateway_remove(gw, source));
		err = rgate_steer_create(&steer, p.c.conf);
	}
	if (!err) {
		err = rgate_steer_parse(steer, "test", rules, strlen(rules));
		if (!err)
			err = rgate_gateway_steer(gw, steer);
		if (err)
			rgate_steer_destroy(steer);
	}
	rgate_gateway_destroy(gw);
	return err;
}

static int make_inlet(void)
{
	const struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts, .slots = 64,
						    .slot_size = 256, .name = "r");
	struct rgate_inlet *inlet;
	struct rgate_ring *ring;
	uint32_t number;
	int err = rgate_inlet_create(&inlet, p.at[1].hub);

	if (err)
		return err;
	err = rgate_inlet_add(inlet, &ring, &o, &number);
	if (!err) {
		unit_require(!rgate_inlet_remove(inlet, number));
		rgate_ring_close(ring);
	}
	rgate_inlet_destroy(inlet);
	return err;
}

static int spawnd_with(uint32_t flags)
{
	const struct rgate_spawnd_opts o = RGATE_OPTS(rgate_spawnd_opts, .policy = policy,
						      .cgroup = "", .flags = flags);
	struct rgate_spawnd *sd;
	int err = rgate_spawnd_create(&sd, p.c.conf, &o);

	if (err)
		return err;
	err = rgate_spawnd_attach(sd, p.at[3].node);
	rgate_spawnd_destroy(sd);
	return err;
}

static int make_spawnd(void)
{
	return spawnd_with(RGATE_SPAWND_SHARED);
}

/* With a peer of its own */
static int make_spawnd_alone(void)
{
	return spawnd_with(0);
}

static int make_spawn(void)
{
	struct rgate_spawn *sp;
	struct rgate_peer *peer;
	int err = rgate_peer_open(&peer, p.at[3].node, 2);

	if (err)
		return err;
	err = rgate_spawn_open(&sp, p.at[3].node, peer, NULL);
	if (!err)
		rgate_spawn_close(sp);
	rgate_peer_close(peer);
	return err;
}

static const struct {
	const char *name;
	int (*make)(void);
	unsigned int least;	/* so many calls can fail */
} makers[] = {
	{ "cluster", make_cluster, 1 },
	{ "node", make_node, 10 },
	{ "hub", make_hub, 4 },
	{ "gateway", make_gateway, 4 },
	{ "inlet", make_inlet, 4 },
	{ "spawnd", make_spawnd, 6 },
	{ "spawnd alone", make_spawnd_alone, 8 },
	{ "spawn", make_spawn, 2 },
};

static void up(void)
{
	FILE *f;

	memset(&p, 0, sizeof(p));
	cluster_make(&p.c, 4, 0);
	p.node = cluster_node(&p.c, 0);
	unit_require(!rgate_hub_create(&p.hub, p.node, NULL));
	p.at[1].node = cluster_node(&p.c, 1);
	unit_require(!rgate_hub_create(&p.at[1].hub, p.at[1].node, NULL));
	p.at[3].node = cluster_node(&p.c, 3);
	/* Later its descriptors would be counted as left behind. */
	wait_for(peer_state(rgate_hub_peer(p.hub, 1)) == RGATE_PEER_UP &&
		 peer_state(rgate_hub_peer(p.at[1].hub, 0)) == RGATE_PEER_UP);
	source = unit_ring(64, 256, RGATE_RING_CHAIN, RGATE_POLICY_DROP);
	snprintf(policy, sizeof(policy), "%s/policy", p.c.dir);
	f = fopen(policy, "w");
	unit_require(f);
	fprintf(f, "node 2 user root\nallow 2 /bin/true args\nenv 2 X\nlimit 2 wall 5\npath /bin\n");
	fclose(f);
	unit_require(!chmod(policy, 0600));
}

static void down(void)
{
	unlink(policy);
	rgate_ring_close(source);
	rgate_hub_destroy(p.at[1].hub);
	rgate_hub_destroy(p.hub);
	unit_require(!node_ended(p.at[3].node));
	unit_require(!node_ended(p.at[1].node));
	unit_require(!node_ended(p.node));
	cluster_free(&p.c);
}

static void each_call(void **state)
{
	unsigned int i, n, fds, threads, failed;

	(void)state;
	self = getpid();
	unit_not_for_tsan(UNIT_TSAN_CHILD);
	refuse_setup();
	up();
	if (!p.c.local) {
		down();
		unit_skip("what the device's library asks for is not ours to refuse");
	}
	/* Not counted behind a maker: a thread that was joined is listed a moment longer. */
	threads = unit_entries("/proc/self/task");
	for (i = 0; i < ARRAY_LEN(makers); i++) {
		/* what libraries keep of a first time is kept */
		assert_int_equal(makers[i].make(), 0);
		wait_for(unit_entries("/proc/self/task") == threads);
		fds = open_files();
		for (n = 1, failed = 0;; n++) {
			int err;

			refuse(n);
			mine = true;
			err = makers[i].make();
			mine = false;
			if (!refusal->injected)
				break;
			/* What has another way goes that way. */
			if (err && err != -refusal->injected)
				fail_msg("%s: %d of %s came out as %d", makers[i].name,
					 refusal->injected, refusal->where, err);
			failed += err != 0;
			wait_for(unit_entries("/proc/self/task") == threads);
			/* Connections to nodes that are not there come and go. */
			wait_for(open_files() <= fds);
		}
		assert_int_equal(makers[i].make(), 0);
		print_message("# %s: %u of %u calls\n", makers[i].name, failed, n - 1);
		assert_true(failed >= makers[i].least);
	}
	down();
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(each_call),
};

UNIT_MAIN(tests)
