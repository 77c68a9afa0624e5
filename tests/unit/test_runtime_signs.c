// SPDX-License-Identifier: MIT OR GPL-2.0
/* Signs of life of a kernel, on a CUDA of the test's own: whichever warp hangs, it is seen. */
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fake_cuda.h"
#include "runtime.h"

#define STALL_MS	100

/* The packets of ring 1 do not return until told to; those of ring 0 do */
struct hang {
	uint64_t in, go;	/* atomic */
	uint64_t others;
};

static uint32_t hang(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	struct hang *h = arg;

	(void)result;
	if (!pkt->ring) {
		__atomic_fetch_add(&h->others, 1, __ATOMIC_RELAXED);
		return 0;
	}
	__atomic_fetch_add(&h->in, 1, __ATOMIC_ACQ_REL);
	while (!__atomic_load_n(&h->go, __ATOMIC_ACQUIRE))
		rgate_dpause(0);
	return 0;
}

static uint32_t answer(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	(void)pkt;
	(void)arg;
	memset(result, 1, 64);
	return 64;
}

FAKE_LANES(hanging, hang, 64, 0);
FAKE_LANES(answering, answer, 64, 64);

/* Ring 0 goes on all the while, and its poller, the first, with it */
static void hangs(uint32_t direct)
{
	struct hang h = { 0 };
	struct runtime r;
	uint64_t n = 0;

	runtime_prepare(&r, 0);
	r.opts.stall_ms = STALL_MS;
	runtime_begin(&r, 2, 64);
	r.start.arg = &h;
	r.start.direct = direct;
	assert_int_equal(rgate_gpu_start(r.gpu, &hanging, &r.start), 0);
	runtime_put(&r, 1, 1);
	runtime_until(__atomic_load_n(&h.in, __ATOMIC_ACQUIRE));
	do {
		runtime_put(&r, 0, 1);
		n++;
		runtime_until(__atomic_load_n(&h.others, __ATOMIC_RELAXED) == n);
	} while (runtime_state(&r) != RGATE_GPU_STALLED && n < 20000);
	assert_int_equal(runtime_state(&r), RGATE_GPU_STALLED);
	assert_int_equal(rgate_gpu_drain(r.gpu, 10), -ETIMEDOUT);
	__atomic_store_n(&h.go, 1, __ATOMIC_RELEASE);
	runtime_until(runtime_state(&r) == RGATE_GPU_RUNNING);
	assert_int_equal(rgate_gpu_drain(r.gpu, runtime_ms()), 0);
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	runtime_close(&r);
}

static void worker_hangs(void **state)
{
	(void)state;
	hangs(RGATE_GPU_NO_DIRECT);
}

static void poller_hangs(void **state)
{
	(void)state;
	hangs(32);
}

/* An answer that waits for room waits for somebody else: the kernel is all right */
static void full_output(void **state)
{
	struct rgate_consumer c;
	struct rgate_ring *out;
	struct runtime r;
	unsigned int i;

	(void)state;
	runtime_prepare(&r, 0);
	r.opts.stall_ms = STALL_MS;
	runtime_begin(&r, 1, 256);
	out = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	assert_int_equal(rgate_gpu_bind_output(r.gpu, out, RGATE_GPU_FULL_WAIT), 0);
	assert_int_equal(rgate_consumer_init(&c, out, NULL), 0);
	assert_int_equal(rgate_gpu_start(r.gpu, &answering, &r.start), 0);
	runtime_put(&r, 0, 200);
	/* from then on it is full, and remains so */
	runtime_until(__atomic_load_n(&c.prod->head, __ATOMIC_ACQUIRE) > RGATE_BATCH);
	runtime_until(runtime_state(&r) == RGATE_GPU_RUNNING);
	for (i = 0; i < 20; i++) {
		usleep(STALL_MS * 1000 / 5);
		assert_int_equal(runtime_state(&r), RGATE_GPU_RUNNING);
	}
	for (i = 0; i < 200; i++) {
		runtime_until(__atomic_load_n(&c.prod->head, __ATOMIC_ACQUIRE) > i);
		assert_non_null(rgate_consumer_next(&c));
		rgate_consumer_release(&c);
	}
	assert_int_equal(rgate_gpu_drain(r.gpu, runtime_ms()), 0);
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	runtime_close(&r);
	rgate_ring_close(out);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(worker_hangs, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(poller_hangs, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(full_output, fake_setup, fake_teardown),
};

UNIT_MAIN(tests)
