// SPDX-License-Identifier: MIT OR GPL-2.0
/* The runtime's side of the host, on a CUDA of the test's own: a kernel's life. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
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

/* A block has as many warps as there is shared memory for, not fewer than 8 */
static void blocks_fit(void **state)
{
	struct cudaDeviceProp prop;
	struct rgate_gpu_kernel k = lanes;
	struct runtime r;
	uint64_t n = 0;

	(void)state;
	runtime_open(&r, 0, 1, 64);
	assert_int_equal(cudaGetDeviceProperties(&prop, 0), 0);
	r.start.arg = &n;
	k.warps = 20;
	k.warp_bytes = (uint32_t)prop.sharedMemPerBlockOptin / 7;
	assert_int_equal(rgate_gpu_start(r.gpu, &k, &r.start), -E2BIG);
	k.warp_bytes = (uint32_t)prop.sharedMemPerBlockOptin / 8;
	assert_int_equal(rgate_gpu_start(r.gpu, &k, &r.start), 0);
	runtime_put(&r, 0, 100);
	assert_int_equal(rgate_gpu_drain(r.gpu, runtime_ms()), 0);
	assert_int_equal(n, 100);
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	runtime_close(&r);
}

/* A ring has a block, however small the device is: of fewer warps then */
static void blocks_shrink(void **state)
{
	struct rgate_gpu_kernel k = lanes;
	struct cudaDeviceProp prop;
	struct rgate_ring *more[2];
	struct runtime r;
	uint64_t n = 0;
	unsigned int i;

	(void)state;
	assert_int_equal(cudaGetDeviceProperties(&prop, 0), 0);
	assert_int_equal(prop.multiProcessorCount, RUNTIME_RINGS);
	runtime_open(&r, 0, RUNTIME_RINGS, 64);
	r.start.arg = &n;
	k.kind = RGATE_GPU_KIND_ORDERED;
	k.warps = 20;
	fake.room = 20 * 32;
	assert_int_equal(rgate_gpu_start(r.gpu, &k, &r.start), 0);
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	for (i = 0; i < 2; i++) {
		more[i] = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
		assert_int_equal(rgate_gpu_bind(r.gpu, more[i], NULL), 0);
	}
	assert_int_equal(rgate_gpu_start(r.gpu, &k, &r.start), 0);
	runtime_put(&r, 0, 100);
	assert_int_equal(rgate_gpu_drain(r.gpu, runtime_ms()), 0);
	assert_int_equal(n, 100);
	assert_int_equal(rgate_gpu_stop(r.gpu, runtime_ms()), 0);
	/* of fewer than 8 none is made */
	fake.room = 2 * 8 * 32 - 1;
	assert_int_equal(rgate_gpu_start(r.gpu, &k, &r.start), -E2BIG);
	runtime_close(&r);
	for (i = 0; i < 2; i++)
		rgate_ring_close(more[i]);
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

/* Does not return from a packet until told to */
struct hang {
	uint64_t in;		/* atomic, as the other */
	uint64_t go;
};

static uint32_t hang(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	struct hang *h = arg;

	(void)pkt;
	(void)result;
	__atomic_fetch_add(&h->in, 1, __ATOMIC_ACQ_REL);
	while (!__atomic_load_n(&h->go, __ATOMIC_ACQUIRE))
		rgate_dpause(0);
	return 0;
}

FAKE_LANES(hanging, hang, 64, 0);

/* Threads of this process that are called so */
static unsigned int threads_called(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	char path[300], comm[32];
	struct dirent *e;
	unsigned int n = 0;
	FILE *f;

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f) && !strncmp(comm, name, strlen(name)))
			n++;
		fclose(f);
	}
	closedir(dir);
	return n;
}

/*
 * The kernel hangs: closing gives up on it, and on its memory. No thread of the runtime is left
 * to look at rings that are closed after it, and none of the memory is given to another one.
 */
static void closed_hanging(void **state)
{
	static struct runtime r, other;	/* the first is never freed */
	struct hang h = { 0 };

	(void)state;
	runtime_prepare(&r, 0);
	r.opts.close_ms = 20;
	runtime_begin(&r, 2, 64);
	r.start.arg = &h;
	assert_int_equal(rgate_gpu_start(r.gpu, &hanging, &r.start), 0);
	runtime_put(&r, 0, 1);
	runtime_until(__atomic_load_n(&h.in, __ATOMIC_ACQUIRE));
	rgate_gpu_close(r.gpu);
	runtime_until(!threads_called("rgate-gpu"));
	runtime_open(&other, 0, 1, 64);
	assert_int_equal(rgate_gpu_bind(other.gpu, r.ring[1], NULL), -EBUSY);
	runtime_close(&other);
	__atomic_store_n(&h.go, 1, __ATOMIC_RELEASE);
	fake_join();
	runtime_end(&r);
	assert_true(fake.registered && fake.hosts && fake.dev[0].mallocs);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(takes, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(blocks_fit, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(blocks_shrink, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(not_signalled, fake_setup, fake_teardown),
	cmocka_unit_test_setup(closed_hanging, fake_setup),
};

UNIT_MAIN(tests)
