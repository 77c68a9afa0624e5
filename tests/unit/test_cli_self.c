// SPDX-License-Identifier: MIT OR GPL-2.0
/* The queue pair of `ringgate probe` that is connected to itself: what it moves, and that
 * nothing is left when a part of it cannot be had. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "cli.h"
#include "mock_verbs.h"
#include "probe_rdma.h"

static struct rgate_device *dev;

static int begin(void **state)
{
	return mock_setup(state) || rgate_device_open(&dev, NULL);
}

static int end(void **state)
{
	rgate_device_close(dev);
	return mock_teardown(state);
}

static void moves(void **state)
{
	static char target[PROBE_RDMA_MAX + 64], data[PROBE_RDMA_MAX + 1], back[PROBE_RDMA_MAX + 1];
	const struct rgate_mem_opts o = RGATE_OPTS(rgate_mem_opts, .access = RGATE_ACCESS_REMOTE);
	uint64_t word = 40, old = 0;
	struct probe_rdma r;

	(void)state;
	memset(target, 't', sizeof(target));
	memset(data, 'd', sizeof(data));
	assert_int_equal(probe_rdma_open(&r, dev), 0);
	assert_int_equal(rgate_mem_register(&r.target, dev, target, sizeof(target), &o), 0);
	/* to the byte, and no further */
	assert_int_equal(probe_rdma_write(&r, 3, data, 5), 0);
	assert_memory_equal(target, "tttdddddttt", 11);
	assert_int_equal(probe_rdma_read(&r, 2, back, 3), 0);
	assert_memory_equal(back, "tdd\0", 4);
	/* as much as there is room for between the two, and not one more */
	assert_int_equal(probe_rdma_write(&r, 8, data, PROBE_RDMA_MAX), 0);
	assert_int_equal(target[PROBE_RDMA_MAX + 7], 'd');
	assert_int_equal(target[PROBE_RDMA_MAX + 8], 't');
	assert_int_equal(probe_rdma_write(&r, 8, data, PROBE_RDMA_MAX + 1), -EINVAL);
	assert_int_equal(target[PROBE_RDMA_MAX + 8], 't');
	assert_int_equal(probe_rdma_read(&r, 8, back, PROBE_RDMA_MAX), 0);
	assert_memory_equal(back, data, PROBE_RDMA_MAX);
	back[PROBE_RDMA_MAX] = 'b';
	assert_int_equal(probe_rdma_read(&r, 8, back, PROBE_RDMA_MAX + 1), -EINVAL);
	assert_int_equal(back[PROBE_RDMA_MAX], 'b');
	assert_int_equal(probe_rdma_write(&r, 16, &word, sizeof(word)), 0);
	assert_int_equal(probe_rdma_fetch_add(&r, 16, 2, &old), 0);
	assert_int_equal(old, 40);
	assert_int_equal(probe_rdma_read(&r, 16, &word, sizeof(word)), 0);
	assert_int_equal(word, 42);
	/* outside of the region: nothing comes back */
	old = 7;
	assert_true(probe_rdma_fetch_add(&r, sizeof(target), 2, &old) < 0);
	assert_int_equal(old, 7);
	rgate_mem_deregister(r.target);
	probe_rdma_close(&r);
	assert_null(r.rc);
	assert_null(r.buf);
	assert_null(r.buf_mem);
	assert_int_equal(mock.mrs + mock.cqs + mock.qps, 0);
}

/* Each of its parts fails in turn */
static void fails(void **state)
{
	unsigned int *const fail[] = { &mock.fail_mr, &mock.fail_cq, &mock.fail_qp,
				       &mock.fail_modify };
	struct probe_rdma r;
	unsigned int i, n, failed = 0;
	int err;

	(void)state;
	mock.fail_errno = EDQUOT;
	for (i = 0; i < ARRAY_LEN(fail); i++)
		for (n = 1; n < 6; n++) {
			*fail[i] = n;
			err = probe_rdma_open(&r, dev);
			/* it did not come to a failure where so many calls are not made */
			assert_int_equal(!err, !!*fail[i]);
			*fail[i] = 0;
			if (err) {
				failed++;
				assert_null(r.rc);
				assert_null(r.buf);
			} else {
				probe_rdma_close(&r);
			}
			assert_int_equal(mock.mrs + mock.cqs + mock.qps, 0);
		}
	/* one region, one queue at least, one pair, which is brought through three states */
	assert_true(failed >= 6);
}

/* Without atomics none are asked for */
static void no_atomics(void **state)
{
	struct probe_rdma r;

	(void)state;
	assert_int_equal(probe_rdma_open(&r, dev), 0);
	assert_true(mock.modified[IBV_QPS_INIT].qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC);
	probe_rdma_close(&r);
	rgate_device_close(dev);
	mock.dev[0].no_atomics = true;
	assert_int_equal(rgate_device_open(&dev, NULL), 0);
	assert_int_equal(probe_rdma_open(&r, dev), 0);
	assert_int_equal(mock.modified[IBV_QPS_INIT].qp_access_flags & (IBV_ACCESS_REMOTE_ATOMIC |
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE), IBV_ACCESS_REMOTE_READ |
			 IBV_ACCESS_REMOTE_WRITE);
	probe_rdma_close(&r);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)
static const struct CMUnitTest tests[] = { TEST(moves), TEST(fails), TEST(no_atomics) };

UNIT_MAIN_ALONE(tests)
