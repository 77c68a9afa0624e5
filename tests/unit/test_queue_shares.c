// SPDX-License-Identifier: MIT OR GPL-2.0
/* How much is kept of tasks for homes that never say that one has ended */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "keep.h"

#define MOST	(1U << 20)	/* bytes of a user */
#define LEN	1000U		/* of a task */
#define NODES	7U		/* 1 to 7 are homes */
#define TRIES	4096U

static struct rgate_request request;
static unsigned char mem[sizeof(struct rgate_queue_put) + RGATE_QUEUE_PADDED(LEN)];
static uid_t user;

static struct queues home;		/* whose clock it is */
static struct keeper k;
static struct keeping *under_way[TRIES];
static unsigned int n;

/* A request of the user, and his session */
struct rgate_seat *__wrap_rgate_req_seat(const struct rgate_req *r);
uid_t __wrap_rgate_seat_uid(const struct rgate_seat *seat);
const struct rgate_request *__wrap_rgate_req_get(const struct rgate_req *r);
void *__wrap_rgate_req_mem(const struct rgate_req *r);

struct rgate_seat *__wrap_rgate_req_seat(const struct rgate_req *r)
{
	return (struct rgate_seat *)r;
}

uid_t __wrap_rgate_seat_uid(const struct rgate_seat *seat)
{
	(void)seat;
	return user;
}

const struct rgate_request *__wrap_rgate_req_get(const struct rgate_req *r)
{
	(void)r;
	return &request;
}

void *__wrap_rgate_req_mem(const struct rgate_req *r)
{
	(void)r;
	return mem;
}

static int setup(void **state)
{
	const struct rgate_queue_put put = { .len = LEN };

	(void)state;
	memset(mem, 0, sizeof(mem));
	memcpy(mem, &put, sizeof(put));
	request = (struct rgate_request){ .len = sizeof(mem) };
	user = 1;
	n = 0;
	memset(&home, 0, sizeof(home));
	keeper_init(&k, &home, NULL, MOST);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	while (n)
		keep_undo(under_way[--n]);
	assert_int_equal(k.count.bytes, 0);
	keeper_fini(&k);
	return 0;
}

/* A task for the queue of that name */
static int put(uint32_t node, const char *name)
{
	struct queue_open as = { .owner = user };
	struct keeping *g;
	int err;

	assert_true(n < TRIES);
	strcpy(as.place.name, name);
	err = keep_begin(&k, (struct rgate_req *)&request, node, &as, NULL, &g);
	if (!err)
		under_way[n++] = g;
	return err;
}

/* Until no more is kept: how much it is */
static uint64_t fill(uint32_t node, const char *name)
{
	const uint64_t before = k.count.bytes;
	int err;

	while (!(err = put(node, name)))
		;
	assert_int_equal(err, -EDQUOT);
	return k.count.bytes - before;
}

static uint64_t fill_all(uint32_t node)
{
	uint64_t bytes = 0;

	bytes += fill(node, "a");
	bytes += fill(node, "b");
	bytes += fill(node, "c");
	return bytes;
}

/* The first has half, and of what is left the next one; the last has something, too. */
static void homes(void **state)
{
	uint64_t most = MOST / 2, bytes;
	uint32_t node;

	(void)state;
	for (node = 1; node <= NODES; node++) {
		bytes = fill_all(node);
		assert_in_range(bytes, most - 2 * LEN, most);
		most = (MOST - k.count.bytes) / 2;
	}
	/* what has ended there makes room for all */
	assert_true(k.count.bytes > MOST / 16 * 15);
	while (n > 10)
		keep_undo(under_way[--n]);
	assert_int_equal(put(3, "a"), 0);
	assert_int_equal(put(1, "a"), 0);
}

static void one_queue(void **state)
{
	(void)state;
	assert_in_range(fill(1, "a"), MOST / 8 * 3 - 2 * LEN, MOST / 8 * 3);
	assert_in_range(fill(1, "b"), MOST / 8 - 2 * LEN, MOST / 8);
}

/* Whoever they are, for one home they have half of all together. */
static void users(void **state)
{
	uint64_t bytes = 0;

	(void)state;
	for (user = 1; user < 5; user++)
		bytes += fill_all(1);
	assert_in_range(bytes, MOST - 4 * LEN, MOST);
	user = 9;
	assert_int_equal(put(1, "a"), -EDQUOT);
	assert_int_equal(put(2, "a"), 0);
}

/* Queues likewise, with next to nothing in each */
static void queues(void **state)
{
	unsigned int i, some = 0;
	char name[16];

	(void)state;
	request.len = sizeof(struct rgate_queue_put);
	memset(mem, 0, sizeof(mem));
	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "%u", i);
		some += !put(1, name);
	}
	assert_int_equal(some, 128);
	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "%u", i);
		some += !put(2, name);
	}
	assert_int_equal(some, 192);
	/* of all users */
	for (user = 2; user < 10; user++)
		for (i = 0; i < 128; i++) {
			snprintf(name, sizeof(name), "%u", i);
			some += !put(1, name);
		}
	assert_in_range(some, 500, 640);
	assert_int_equal(put(1, "none"), -EDQUOT);
	assert_int_equal(put(3, "some"), 0);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(homes), TEST(one_queue), TEST(users), TEST(queues),
};

UNIT_MAIN_ALONE(tests)
