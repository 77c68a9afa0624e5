// SPDX-License-Identifier: MIT OR GPL-2.0
/* Messages that wait for a connection which takes, ends and loses them as it is told to. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "outbox.h"

#define MOST	1024

static struct outbox box;
static struct rgate_buf mem = { .lkey = 77 };
static int no_memory;

static struct {
	int refuse;			/* what posts say; 0: they are taken */
	uint32_t epoch;			/* of the connection */
	unsigned int n, done;		/* messages that were taken; of these are over */
	int err;			/* with which they ended */
	uint64_t said[MOST];
	uint32_t len[MOST];
} wire;

struct rgate_pool *__wrap_rgate_node_stage(struct rgate_node *node);
int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket);
int __wrap_rgate_peer_done(struct rgate_peer *peer, uint64_t ticket);
int __wrap_rgate_pool_alloc(struct rgate_pool *pool, size_t len, const struct rgate_buf **buf);
int __wrap_rgate_pool_free(struct rgate_pool *pool, const struct rgate_buf *buf);

struct rgate_pool *__wrap_rgate_node_stage(struct rgate_node *node)
{
	return (struct rgate_pool *)node;
}

/* What is posted is read until it is over: it lies in memory that nothing else has then. */
int __wrap_rgate_peer_post(struct rgate_peer *peer, const struct rgate_op *ops, unsigned int n,
			   uint64_t *ticket)
{
	const size_t slot = wire.n % OUTBOX_SLOTS;

	assert_ptr_equal(peer, &wire);
	assert_int_equal(n, 1);
	assert_int_equal(ops->kind, RGATE_OP_SEND);
	assert_int_equal(ops->nsge, 1);
	assert_int_equal(ops->sge->lkey, mem.lkey);
	if (ops->epoch != wire.epoch)
		return -ENOTCONN;
	if (wire.refuse)
		return wire.refuse;
	assert_true(wire.n - wire.done < OUTBOX_SLOTS && wire.n < MOST);
	assert_ptr_equal(ops->sge->addr, (char *)mem.addr + slot * RGATE_HUB_MSG_MAX);
	memcpy(&wire.said[wire.n], ops->sge->addr, 8);
	wire.len[wire.n] = ops->sge->length;
	*ticket = ++wire.n;
	return 0;
}

int __wrap_rgate_peer_done(struct rgate_peer *peer, uint64_t ticket)
{
	assert_ptr_equal(peer, &wire);
	return ticket > wire.done ? 0 : wire.err ? wire.err : 1;
}

int __wrap_rgate_pool_alloc(struct rgate_pool *pool, size_t len, const struct rgate_buf **buf)
{
	assert_ptr_equal(pool, &box);
	if (no_memory)
		return no_memory;
	mem.addr = malloc(len);
	mem.length = len;
	*buf = &mem;
	return mem.addr ? 0 : -ENOMEM;
}

int __wrap_rgate_pool_free(struct rgate_pool *pool, const struct rgate_buf *buf)
{
	assert_ptr_equal(pool, &box);
	assert_ptr_equal(buf, &mem);
	free(mem.addr);
	mem.addr = NULL;
	return 0;
}

static int init(void)
{
	return outbox_init(&box, (struct rgate_node *)&box, (struct rgate_peer *)&wire);
}

static int setup(void **state)
{
	(void)state;
	memset(&wire, 0, sizeof(wire));
	return init();
}

static int teardown(void **state)
{
	(void)state;
	outbox_fini(&box);
	return mem.addr ? -1 : 0;
}

static int say(uint64_t what)
{
	return outbox_send(&box, &what, sizeof(what));
}

static void connection(uint32_t epoch)
{
	wire.epoch = epoch;
	outbox_reset(&box, epoch);
}

/* As many at once as there are places, the others in their order as these end */
static void in_order(void **state)
{
	uint64_t i;
	bool waits;

	(void)state;
	assert_int_equal(say(0), -ENOTCONN);
	connection(5);
	for (i = 0; i < OUTBOX_QUEUE; i++)
		assert_int_equal(say(i), 0);
	assert_int_equal(say(i), -EAGAIN);
	assert_int_equal(wire.n, OUTBOX_SLOTS);
	assert_true(outbox_pump(&box));
	wire.done = 3;
	assert_true(outbox_pump(&box));
	assert_int_equal(wire.n, OUTBOX_SLOTS + 3);
	/* and for each that ended there is room for another one */
	for (; i < OUTBOX_QUEUE + 3; i++)
		assert_int_equal(say(i), 0);
	assert_int_equal(say(i), -EAGAIN);
	while (wire.done < OUTBOX_QUEUE + 3) {
		waits = outbox_pump(&box);
		assert_int_equal(waits, wire.n < OUTBOX_QUEUE + 3);
		wire.done = wire.n;
	}
	assert_false(outbox_pump(&box));
	assert_int_equal(wire.n, OUTBOX_QUEUE + 3);
	for (i = 0; i < wire.n; i++) {
		assert_int_equal(wire.said[i], i);
		assert_int_equal(wire.len[i], 8);
	}
}

static void sizes(void **state)
{
	static unsigned char msg[RGATE_HUB_MSG_MAX + 1];

	(void)state;
	connection(1);
	assert_int_equal(outbox_send(&box, msg, 0), -EMSGSIZE);
	assert_int_equal(outbox_send(&box, msg, RGATE_HUB_MSG_MAX + 1), -EMSGSIZE);
	assert_int_equal(outbox_send(&box, msg, 1), 0);
	assert_int_equal(outbox_send(&box, msg, RGATE_HUB_MSG_MAX), 0);
	assert_int_equal(wire.len[0], 1);
	assert_int_equal(wire.len[1], RGATE_HUB_MSG_MAX);
}

/* A connection that has no room now gets them later; one that is broken never does. */
static void refused(void **state)
{
	(void)state;
	connection(1);
	wire.refuse = -EAGAIN;
	assert_int_equal(say(1), 0);
	assert_int_equal(say(2), 0);
	assert_true(outbox_pump(&box));
	assert_int_equal(wire.n, 0);
	wire.refuse = 0;
	assert_false(outbox_pump(&box));
	assert_int_equal(wire.n, 2);
	wire.refuse = -ECONNRESET;
	assert_int_equal(say(3), -ECONNRESET);
	wire.refuse = 0;
	assert_false(outbox_pump(&box));
	assert_int_equal(wire.n, 2);
	assert_int_equal(say(4), 0);
	assert_int_equal(wire.said[2], 4);
}

/* What was for a former connection does not go to the next one. */
static void another(void **state)
{
	uint64_t i;

	(void)state;
	connection(1);
	for (i = 0; i < OUTBOX_SLOTS + 5; i++)
		assert_int_equal(say(i), 0);
	connection(0);
	assert_false(outbox_pump(&box));
	assert_int_equal(say(100), -ENOTCONN);
	connection(2);
	/* the places of the old ones are in use until these are over, as errors */
	assert_int_equal(say(200), 0);
	assert_true(outbox_pump(&box));
	assert_int_equal(wire.n, OUTBOX_SLOTS);
	wire.done = OUTBOX_SLOTS;
	wire.err = -ECONNRESET;
	assert_false(outbox_pump(&box));
	assert_int_equal(wire.n, OUTBOX_SLOTS + 1);
	assert_int_equal(wire.said[OUTBOX_SLOTS], 200);
	/* one that goes on under the old number is not the box's any more */
	wire.epoch = 1;
	assert_int_equal(say(300), -ENOTCONN);
	assert_int_equal(wire.n, OUTBOX_SLOTS + 1);
}

/* Ends, and memory that there is not: as if it had never been */
static void ends(void **state)
{
	(void)state;
	outbox_fini(&box);
	assert_null(mem.addr);
	outbox_fini(&box);
	no_memory = -EDQUOT;
	assert_int_equal(init(), -EDQUOT);
	outbox_fini(&box);
	no_memory = 0;
	assert_int_equal(init(), 0);
	connection(1);
	assert_int_equal(say(1), 0);
	/* at its end nothing is under way any more, also what nobody said was over */
	assert_false(xfer_list_empty(&box.xfers));
	outbox_fini(&box);
	assert_true(xfer_list_empty(&box.xfers));
}

#define TEST(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(in_order), TEST(sizes), TEST(refused), TEST(another), TEST(ends),
};

UNIT_MAIN_ALONE(tests)
