// SPDX-License-Identifier: MIT OR GPL-2.0
/* Runtimes of several devices, on a CUDA of the test's own: who does what on which. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "fake_cuda.h"
#include "runtime.h"

static uint32_t count(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	(void)pkt;
	(void)result;
	__atomic_fetch_add((uint64_t *)arg, 1, __ATOMIC_RELAXED);
	return 0;
}

FAKE_LANES(lanes, count, 64, 0);
FAKE_BATCH(batch, count, 64, 0);

static int here(void)
{
	int device = -1;

	assert_int_equal(cudaGetDevice(&device), 0);
	return device;
}

/* A call, and the caller's device is what it was */
#define same_device(call, want) \
	do { \
		assert_int_equal(call, want); \
		assert_int_equal(here(), 0); \
	} while (0)

/* Every entry leaves the caller's current device as it was, also where it fails. */
static void left_alone(void **state)
{
	struct rgate_gpu_status st = { .sz = sizeof(st) };
	struct rgate_ring *ring, *out;
	struct runtime r;
	uint64_t n = 0;

	(void)state;
	runtime_prepare(&r, 1);
	r.start.arg = &n;
	ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	out = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	fake.fail_malloc = 2;
	same_device(rgate_gpu_open(&r.gpu, &r.opts), -ENOMEM);
	same_device(rgate_gpu_open(&r.gpu, &r.opts), 0);
	fake.fail_register = 2;
	same_device(rgate_gpu_bind(r.gpu, ring, NULL), -EIO);
	same_device(rgate_gpu_bind(r.gpu, ring, NULL), 0);
	same_device(rgate_gpu_bind_output(r.gpu, out, RGATE_GPU_FULL_DROP), 0);
	fake.fail_launch = 1;
	same_device(rgate_gpu_start(r.gpu, &lanes, &r.start), -EIO);
	same_device(rgate_gpu_start(r.gpu, &lanes, &r.start), 0);
	same_device(rgate_gpu_query(r.gpu, &st), 0);
	same_device(rgate_gpu_drain(r.gpu, runtime_ms()), 0);
	same_device(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	same_device(rgate_gpu_launch(r.gpu, &batch, &r.start), 0);
	same_device(rgate_gpu_wait(r.gpu, runtime_ms()), 0);
	rgate_gpu_close(r.gpu);
	assert_int_equal(here(), 0);
	assert_int_equal(fake.dev[0].made, 0);
	rgate_ring_close(out);
	rgate_ring_close(ring);
}

/* The caller's thread, with a device of its own, asks and waits; the runtime works meanwhile */
static void asks(struct runtime *r, uint64_t launches)
{
	runtime_until(runtime_launches(r) >= launches);
	assert_int_equal(rgate_gpu_wait(r->gpu, 0), -ETIMEDOUT);
	assert_int_equal(rgate_gpu_drain(r->gpu, runtime_ms()), 0);
}

/* Resizes and launches again, of two runtimes side by side: each on its own device */
static void side_by_side(void **state)
{
	struct runtime r[2];
	const unsigned int turns = unit_rounds_or(30, 6);
	uint64_t n = 0, launches;
	unsigned int i, k;

	(void)state;
	for (k = 0; k < 2; k++) {
		runtime_open(&r[k], k + 1, 1, 64);
		assert_int_equal(cudaSetDevice(0), 0);
		r[k].start.arg = &n;
		assert_int_equal(rgate_gpu_start(r[k].gpu, &lanes, &r[k].start), 0);
	}
	for (i = 0; i < turns; i++)
		for (k = 0; k < 2; k++) {
			launches = runtime_launches(&r[k]);
			assert_int_equal(rgate_ring_resize(r[k].ring[0], i & 1 ? 64 : 128, 256), 0);
			runtime_put(&r[k], 0, 5);
			asks(&r[k], launches + 1);
		}
	for (k = 0; k < 2; k++) {
		assert_int_equal(rgate_gpu_stop(r[k].gpu, runtime_ms()), 0);
		assert_true(fake.dev[k + 1].launches > turns);
		runtime_close(&r[k]);
	}
	assert_int_equal(n, 10 * turns);
	assert_int_equal(fake.dev[0].made, 0);
	assert_int_equal(fake.strays, 0);
}

/* A time limit of a ms: the kernel is launched again and again, by the runtime's thread */
static void limited(void **state)
{
	const unsigned int turns = unit_rounds_or(20, 5);
	struct runtime r;
	uint64_t n = 0;
	unsigned int i;

	(void)state;
	runtime_open(&r, 2, 2, 64);
	assert_int_equal(cudaSetDevice(0), 0);
	r.start.arg = &n;
	r.start.limit_ms = 1;
	assert_int_equal(rgate_gpu_start(r.gpu, &lanes, &r.start), 0);
	for (i = 0; i < turns; i++) {
		runtime_put(&r, 0, 10);
		asks(&r, (uint64_t)i * 2);
	}
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	assert_int_equal(n, 10 * turns);
	assert_int_equal(fake.dev[0].launches, 0);
	assert_int_equal(fake.strays, 0);
	runtime_close(&r);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(left_alone, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(side_by_side, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(limited, fake_setup, fake_teardown),
};

UNIT_MAIN(tests)
