// SPDX-License-Identifier: MIT OR GPL-2.0
/* What is told of a peer: each field, while it is up and once it is gone. */
#include "ended.h"
#include "nodes.h"

#include "link.h"
#include "node.h"

#include <errno.h>
#include <string.h>

static struct rgate_peer_info info_of(struct rgate_peer *peer)
{
	struct rgate_peer_info i = { .sz = sizeof(i) };

	assert_int_equal(rgate_peer_info(peer, &i), 0);
	return i;
}

static void up(void **state)
{
	const uint64_t began = unit_now_ns();
	struct rgate_node_stats st[2] = { { .sz = sizeof(st[0]) }, { .sz = sizeof(st[0]) } };
	struct rgate_peer_info i, other;
	struct duo d;
	unsigned int k;

	(void)state;
	duo_up(&d, 0);
	for (k = 0; k < 300; k++)
		assert_int_equal(rgate_peer_flush(d.peer[0], MS), 0);
	i = info_of(d.peer[0]);
	assert_int_equal(i.id, 1);
	assert_int_equal(i.state, RGATE_PEER_UP);
	assert_int_equal(i.epoch, 1);
	assert_int_equal(i.error, 0);
	assert_in_range(i.up_ns, began, unit_now_ns());
	assert_in_range(i.heard_ns, began, unit_now_ns());
	assert_int_equal(i.msg_size, 1024);
	/* All is done; a heartbeat may be under way. */
	assert_in_range(i.outstanding, 0, 1);
	assert_true(i.credits > 0);
	other = info_of(d.peer[1]);
	assert_int_equal(other.id, 0);
	assert_true(i.incarnation == rgate_node_incarnation(d.node[1]));
	assert_true(other.incarnation == rgate_node_incarnation(d.node[0]));
	assert_int_equal(rgate_node_stats(d.node[0], &st[0]), 0);
	assert_int_equal(rgate_node_stats(d.node[1], &st[1]), 0);
	assert_int_equal(st[0].accepted + st[1].accepted, 1);
	for (k = 0; k < 2; k++)
		assert_int_equal(st[k].bad_key | st[k].garbage | st[k].timeouts, 0);
	duo_down(&d);
}

/* What was sent and not received takes room there. */
static void credit(void **state)
{
	uint32_t before, sent = 0, k;
	struct rgate_msg msg;
	struct duo d;

	(void)state;
	duo_up(&d, 0);
	before = info_of(d.peer[0]).credits;
	for (k = 0; k < 10; k++)
		assert_int_equal(rgate_peer_send(d.peer[0], &sent, 4, MS), 0);
	/* that of the handshake may still have come back */
	assert_in_range(info_of(d.peer[0]).credits, before - 10, before - 9);
	for (k = 0; k < 10; k++)
		assert_int_equal(rgate_peer_recv(d.peer[1], &msg, &sent, 4, MS), 0);
	duo_down(&d);
}

static void leave(struct duo *d, unsigned int i)
{
	rgate_peer_close(d->peer[i]);
	assert_int_equal(rgate_pool_free(rgate_node_pool(d->node[i]), d->buf[i]), 0);
	assert_int_equal(node_ended(d->node[i]), 0);
}

static void gone(void **state)
{
	struct rgate_peer_info i;
	struct duo d;

	(void)state;
	duo_up(&d, 0);
	assert_int_equal(rgate_peer_flush(d.peer[0], MS), 0);
	leave(&d, 1);
	wait_for(info_of(d.peer[0]).state != RGATE_PEER_UP);
	i = info_of(d.peer[0]);
	assert_int_equal(i.id, 1);
	assert_int_equal(i.epoch, 1);
	assert_true(i.error < 0);
	assert_int_equal(i.incarnation, 0);
	assert_int_equal(i.heard_ns, 0);
	assert_int_equal(i.msg_size, 0);
	assert_int_equal(i.outstanding, 0);
	assert_int_equal(i.credits, 0);
	leave(&d, 0);
	cluster_free(&d.c);
}

/* What a peer says lies where no other peer can change it before it is taken. */
static void receives_apart(void **state)
{
	struct rgate_pool_region r = { .sz = sizeof(r) };
	const uint8_t *at;
	unsigned int i, k;
	struct duo d;

	(void)state;
	duo_up(&d, 0);
	for (k = 0; k < 2; k++) {
		/* where slow, a connection may be lost for a moment */
		do {
			assert_int_equal(rgate_peer_wait_up(d.peer[k], MS), 0);
			pthread_mutex_lock(&d.peer[k]->lock);
			at = d.peer[k]->link ? d.peer[k]->link->slots : NULL;
			pthread_mutex_unlock(&d.peer[k]->lock);
		} while (!at);
		for (i = 0; !rgate_pool_region(rgate_node_pool(d.node[k]), i, &r); i++)
			assert_false(at >= (uint8_t *)r.addr && at < (uint8_t *)r.addr + r.length);
		assert_true(i > 0);
	}
	duo_down(&d);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(receives_apart),
	cmocka_unit_test(up),
	cmocka_unit_test(credit),
	cmocka_unit_test(gone),
};

UNIT_MAIN(tests)
