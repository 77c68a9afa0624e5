// SPDX-License-Identifier: MIT OR GPL-2.0
/* The runtime's side of the host, on a CUDA of the test's own: a kernel's life. */
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fake_cuda.h"
#include "runtime.h"

static uint32_t count(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	(void)result;
	unit_require(!unit_pattern_check(pkt->near, pkt->pos, pkt->near_len));
	__atomic_fetch_add((uint64_t *)arg, 1, __ATOMIC_RELAXED);
	return 0;
}

FAKE_LANES(lanes, count, 64, 0);
FAKE_BATCH(batch, count, 64, 0);

/* Packets in, all taken, by a kernel that stays and by one that does not */
static void takes(void **state)
{
	struct runtime r;
	uint64_t n = 0;
	int i;

	(void)state;
	runtime_open(&r, 0, 2, 64);
	r.start.arg = &n;
	assert_int_equal(rgate_gpu_start(r.gpu, &lanes, &r.start), 0);
	assert_int_equal(rgate_gpu_start(r.gpu, &lanes, &r.start), -EBUSY);
	for (i = 0; i < 300; i++) {
		runtime_put(&r, 0, 1);
		runtime_put(&r, 1, 2);
	}
	assert_int_equal(rgate_gpu_drain(r.gpu, runtime_ms()), 0);
	assert_int_equal(n, 900);
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	assert_int_equal(runtime_state(&r), RGATE_GPU_IDLE);
	runtime_put(&r, 1, 40);
	assert_int_equal(rgate_gpu_launch(r.gpu, &batch, &r.start), 40);
	assert_int_equal(rgate_gpu_wait(r.gpu, runtime_ms()), 0);
	assert_int_equal(n, 940);
	assert_int_equal(rgate_gpu_launch(r.gpu, &batch, &r.start), 0);
	runtime_close(&r);
}

/* A launch of which the end cannot be signalled is one all the same: it is looked for. */
static void not_signalled(void **state)
{
	struct runtime r;
	uint64_t n = 0;

	(void)state;
	runtime_open(&r, 0, 1, 64);
	r.start.arg = &n;
	r.start.limit_ms = 1;
	fake.fail_host_func = 1;
	assert_int_equal(rgate_gpu_start(r.gpu, &lanes, &r.start), 0);
	assert_int_equal(fake.fail_host_func, 0);
	runtime_put(&r, 0, 100);
	runtime_until(runtime_launches(&r) > 3);
	assert_int_equal(rgate_gpu_drain(r.gpu, runtime_ms()), 0);
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	assert_int_equal(n, 100);
	runtime_close(&r);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(takes, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(not_signalled, fake_setup, fake_teardown),
};

UNIT_MAIN(tests)
