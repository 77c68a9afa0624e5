// SPDX-License-Identifier: MIT OR GPL-2.0
/* A kernel's life: stopped and started, limited in time, without producers, resized rings. */
#include "verify.cuh"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

RGATE_GPU_LANES(lanes_kernel, v_lane, 64, 0)
RGATE_GPU_ORDERED(ordered_kernel, v_order, 64, 0)
RGATE_GPU_BATCH(batch_kernel, v_lane, 64, 0)

/* Never returns from a packet until told to */
static __device__ uint32_t hang(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	while (!rgate_dsys_load(arg))
		;
	return 0;
}

static __device__ uint32_t crash(const struct rgate_dpkt *pkt, void *result, void *arg)
{
	*(volatile uint32_t *)arg = pkt->len;
	return 0;
}

RGATE_GPU_LANES(hang_kernel, hang, 64, 0)
RGATE_GPU_LANES(crash_kernel, crash, 64, 0)

static struct g_feed feed_of(struct rgate_ring *ring, uint32_t id, uint32_t total)
{
	struct g_feed f;

	memset(&f, 0, sizeof(f));
	f.ring = ring;
	f.id = id;
	f.total = (uint32_t)(total / g_slow());
	f.min = 16;
	f.max = 190;
	f.keep = true;
	return f;
}

static void nap_ms(unsigned int ms)
{
	struct timespec ts = { 0, (long)ms * 1000000 };

	nanosleep(&ts, NULL);
}

static uint32_t state_of(struct rgate_gpu *gpu)
{
	struct rgate_gpu_status st;

	memset(&st, 0, sizeof(st));
	st.sz = sizeof(st);
	g_require(!rgate_gpu_query(gpu, &st));
	return st.state;
}

static uint64_t launches_of(struct rgate_gpu *gpu)
{
	struct rgate_gpu_status st;

	memset(&st, 0, sizeof(st));
	st.sz = sizeof(st);
	g_require(!rgate_gpu_query(gpu, &st));
	return st.launches;
}

static bool launched(struct rgate_gpu *gpu, uint64_t launches, unsigned int ms)
{
	uint64_t end = g_now_ns() + ms * 1000000ULL;

	while (launches_of(gpu) < launches)
		if (g_now_ns() > end)
			return false;
	return true;
}

static bool becomes(struct rgate_gpu *gpu, uint32_t state, unsigned int ms)
{
	uint64_t end = g_now_ns() + ms * 1000000ULL;

	while (state_of(gpu) != state)
		if (g_now_ns() > end)
			return false;
	return true;
}

static void close_feeds(struct g_feed *f, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		g_feed_close(&f[i]);
		rgate_ring_close(f[i].ring);
		g_feed_free(&f[i]);
	}
}

/* Stopped and started while traffic comes; what is not taken stays in the ring */
static void stops(const struct rgate_gpu_kernel *kernel, uint32_t flows)
{
	struct rgate_gpu_start_opts o;
	struct rgate_gpu *gpu;
	struct v_seen *seen;
	struct g_feed f[3];
	unsigned int i, round;

	memset(&o, 0, sizeof(o));
	g_ok(NULL, rgate_gpu_open(&gpu, NULL));
	for (i = 0; i < 3; i++) {
		f[i] = feed_of(g_ring(256, 256, 0), i, 400000 >> 2 * i);
		f[i].flows = flows;
		f[i].pause_ns = i * 500;
		g_ok(gpu, rgate_gpu_bind(gpu, f[i].ring, NULL));
	}
	o.sz = sizeof(o);
	o.arg = seen = v_new(f, 3);
	for (i = 0; i < 3; i++)
		g_feed_start(&f[i]);
	for (round = 0; round < 60; round++) {
		g_ok(gpu, rgate_gpu_start(gpu, kernel, &o));
		g_require(rgate_gpu_start(gpu, kernel, &o) == -EBUSY);
		nap_ms(round % 4);
		g_ok(gpu, rgate_gpu_stop(gpu, 5000));
		g_require(state_of(gpu) == RGATE_GPU_IDLE);
	}
	g_ok(gpu, rgate_gpu_start(gpu, kernel, &o));
	for (i = 0; i < 3; i++)
		g_feed_join(&f[i]);
	g_ok(gpu, rgate_gpu_drain(gpu, 20000));
	g_ok(gpu, rgate_gpu_stop(gpu, 5000));
	v_check(seen, f, 3);
	v_free(seen, f, 3);
	rgate_gpu_close(gpu);
	close_feeds(f, 3);
}

static void stops_lanes(void)
{
	stops(&lanes_kernel, 0);
}

static void stops_ordered(void)
{
	stops(&ordered_kernel, 50);
}

/* Two kinds of kernels, and two runtimes after another, go on where the last one stopped */
static void takes_over(void)
{
	struct rgate_gpu_start_opts o;
	struct rgate_gpu *gpu;
	struct v_seen *seen;
	unsigned int round;
	struct g_feed f;
	uint64_t end;

	memset(&o, 0, sizeof(o));
	f = feed_of(g_ring(256, 256, 0), 0, 60000);
	f.total -= f.total % RGATE_BATCH;	/* all may be there before the loop below */
	f.flows = 10;
	o.sz = sizeof(o);
	o.arg = seen = v_new(&f, 1);
	f.pause_ns = 200;
	end = g_now_ns() + 60000000000ULL;
	g_feed_start(&f);
	for (round = 0; round < 6; round++) {
		g_ok(NULL, rgate_gpu_open(&gpu, NULL));
		g_ok(gpu, rgate_gpu_bind(gpu, f.ring, NULL));
		g_ok(gpu, rgate_gpu_start(gpu, &lanes_kernel, &o));
		nap_ms(2);
		g_ok(gpu, rgate_gpu_stop(gpu, 5000));
		g_ok(gpu, rgate_gpu_launch(gpu, &batch_kernel, &o));
		g_ok(gpu, rgate_gpu_wait(gpu, 5000));
		g_ok(gpu, rgate_gpu_start(gpu, &ordered_kernel, &o));
		if (round == 5)
			g_feed_join(&f);
		/* at a batch's end, as another consumer sees a batch begun again */
		while (round < 5) {
			struct rgate_gpu_stats st;

			memset(&st, 0, sizeof(st));
			st.sz = sizeof(st);
			g_ok(gpu, rgate_gpu_stop(gpu, 5000));
			g_require(!rgate_gpu_ring_stats(gpu, 0, &st));
			if (st.finished % RGATE_BATCH == 0)
				break;
			g_require(g_now_ns() < end);
			g_ok(gpu, rgate_gpu_start(gpu, &lanes_kernel, &o));
		}
		if (round == 5)
			g_ok(gpu, rgate_gpu_drain(gpu, 5000));
		rgate_gpu_close(gpu);
	}
	v_check(seen, &f, 1);
	v_free(seen, &f, 1);
	close_feeds(&f, 1);
}

/* The kernel returns every 5 ms, and is launched again */
static void limited_time(void)
{
	struct rgate_gpu_start_opts o;
	struct rgate_gpu_status st;
	struct rgate_gpu *gpu;
	struct v_seen *seen;
	struct g_feed f[2];
	unsigned int i;

	memset(&o, 0, sizeof(o));
	memset(&st, 0, sizeof(st));
	st.sz = sizeof(st);
	o.sz = sizeof(o);
	o.limit_ms = 5;
	g_ok(NULL, rgate_gpu_open(&gpu, NULL));
	for (i = 0; i < 2; i++) {
		f[i] = feed_of(g_ring(1024, 256, 0), i, 400000);
		f[i].pause_ns = 1000;
		g_ok(gpu, rgate_gpu_bind(gpu, f[i].ring, NULL));
	}
	o.arg = seen = v_new(f, 2);
	g_ok(gpu, rgate_gpu_start(gpu, &lanes_kernel, &o));
	for (i = 0; i < 2; i++)
		g_feed_start(&f[i]);
	for (i = 0; i < 2; i++)
		g_feed_join(&f[i]);
	g_ok(gpu, rgate_gpu_drain(gpu, 20000));
	g_require(!rgate_gpu_query(gpu, &st));
	g_note("%llu launches", (unsigned long long)st.launches);
	g_require(st.state == RGATE_GPU_RUNNING && st.launches > 10 / g_slow());
	g_ok(gpu, rgate_gpu_stop(gpu, 5000));
	v_check(seen, f, 2);
	v_free(seen, f, 2);
	rgate_gpu_close(gpu);
	close_feeds(f, 2);
}

/* All producers end: the kernel returns, with everything taken */
static void producers_end(void)
{
	struct rgate_gpu_start_opts o;
	struct rgate_gpu *gpu;
	struct v_seen *seen;
	struct g_feed f[3];
	unsigned int i;

	memset(&o, 0, sizeof(o));
	o.sz = sizeof(o);
	g_ok(NULL, rgate_gpu_open(&gpu, NULL));
	for (i = 0; i < 3; i++) {
		f[i] = feed_of(g_ring(64, 256, 0), i, 1000 + 7777 * i);
		g_ok(gpu, rgate_gpu_bind(gpu, f[i].ring, NULL));
	}
	o.arg = seen = v_new(f, 3);
	for (i = 0; i < 3; i++)
		g_feed_start(&f[i]);
	g_ok(gpu, rgate_gpu_start(gpu, &lanes_kernel, &o));
	for (i = 0; i < 3; i++) {
		g_require(state_of(gpu) == RGATE_GPU_RUNNING);
		g_feed_join(&f[i]);
		g_feed_close(&f[i]);
	}
	g_require(becomes(gpu, RGATE_GPU_ENDED, 5000));
	g_ok(gpu, rgate_gpu_wait(gpu, 0));
	v_check(seen, f, 3);
	g_ok(gpu, rgate_gpu_stop(gpu, 1000));
	v_free(seen, f, 3);
	rgate_gpu_close(gpu);
	for (i = 0; i < 3; i++) {
		rgate_ring_close(f[i].ring);
		g_feed_free(&f[i]);
	}
}

/* Forked before CUDA is used: fills a ring of its own, sends a handle, and dies */
static int child_sock = -1;
static pid_t child;
#define CHILD_FRAMES 5003U

static void child_main(int sock)
{
	struct g_feed f;

	f = feed_of(g_ring(8192, 256, 0), 0, CHILD_FRAMES);
	f.total = CHILD_FRAMES;
	if (rgate_ring_send(f.ring, sock))
		_exit(1);
	g_feed_start(&f);
	g_feed_join(&f);
	if (write(sock, &f.seed, sizeof(f.seed)) != sizeof(f.seed) ||
	    write(sock, f.digest, CHILD_FRAMES * 8) != CHILD_FRAMES * 8)
		_exit(1);
	_exit(0);	/* without a word to the ring */
}

static void fork_child(void)
{
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv))
		return;
	child = fork();
	if (child == 0) {
		close(sv[0]);
		alarm(60);
		child_main(sv[1]);
	}
	close(sv[1]);
	child_sock = sv[0];
}

static void read_all(int fd, void *p, size_t len)
{
	size_t at = 0;

	while (at < len) {
		ssize_t n = read(fd, (char *)p + at, len - at);

		g_require(n > 0);
		at += (size_t)n;
	}
}

/* The slots of another process are read-only here; it dies without closing its ring */
static void producer_dies(void)
{
	struct rgate_gpu_start_opts o;
	struct rgate_ring *ring;
	struct rgate_gpu *gpu;
	struct v_seen *seen;
	struct g_feed f;
	int status;

	g_require(child_sock >= 0);
	g_require(!rgate_ring_recv(&ring, child_sock));
	g_require(!rgate_ring_slots_rw(ring));
	f = feed_of(ring, 0, CHILD_FRAMES);
	f.total = f.published = CHILD_FRAMES;
	f.digest = (uint64_t *)calloc(CHILD_FRAMES, 8);
	memset(&o, 0, sizeof(o));
	o.sz = sizeof(o);
	o.arg = seen = v_new(&f, 1);
	g_ok(NULL, rgate_gpu_open(&gpu, NULL));
	g_ok(gpu, rgate_gpu_bind(gpu, ring, NULL));
	g_ok(gpu, rgate_gpu_start(gpu, &lanes_kernel, &o));
	read_all(child_sock, &f.seed, 8);
	read_all(child_sock, f.digest, CHILD_FRAMES * 8);
	g_require(waitpid(child, &status, 0) == child && !status);
	g_ok(gpu, rgate_gpu_drain(gpu, 5000));
	g_require(becomes(gpu, RGATE_GPU_ENDED, 5000));
	g_ok(gpu, rgate_gpu_stop(gpu, 1000));
	v_check(seen, &f, 1);
	v_free(seen, &f, 1);
	rgate_gpu_close(gpu);
	rgate_ring_close(ring);
	free(f.digest);
}

/* A ring is resized while traffic runs; the other goes on */
static void resized(void)
{
	static const uint32_t sizes[] = { 512, 64, 4096, 128 };
	struct rgate_gpu_start_opts o;
	struct rgate_gpu *gpu;
	struct v_seen *seen;
	struct g_feed f[2];
	unsigned int i;

	memset(&o, 0, sizeof(o));
	o.sz = sizeof(o);
	g_ok(NULL, rgate_gpu_open(&gpu, NULL));
	for (i = 0; i < 2; i++) {
		f[i] = feed_of(g_ring(256, 256, 0), i, 300000);
		f[i].total = 300000;	/* goes on for longer than the resizes take */
		f[i].pause_ns = 2000;
		g_ok(gpu, rgate_gpu_bind(gpu, f[i].ring, NULL));
	}
	o.arg = seen = v_new(f, 2);
	g_ok(gpu, rgate_gpu_start(gpu, &lanes_kernel, &o));
	for (i = 0; i < 2; i++)
		g_feed_start(&f[i]);
	for (i = 0; i < 4; i++) {
		uint64_t launches = launches_of(gpu);

		g_feed_wait(&f[0], f[0].total / 16 * (i + 1));
		g_require(!rgate_ring_resize(f[0].ring, sizes[i], i % 2 ? 256 : 512));
		/* what nobody has mapped before the next resize would be lost */
		g_require(launched(gpu, launches + 1, 5000));
	}
	for (i = 0; i < 2; i++)
		g_feed_join(&f[i]);
	g_require(state_of(gpu) == RGATE_GPU_RUNNING);
	g_ok(gpu, rgate_gpu_drain(gpu, 10000));
	g_ok(gpu, rgate_gpu_stop(gpu, 5000));
	v_check(seen, f, 2);
	v_free(seen, f, 2);
	rgate_gpu_close(gpu);
	close_feeds(f, 2);
}

/* A function that does not return: stop says so, and the runtime sees that life is gone */
static void hangs(void)
{
	struct rgate_gpu_start_opts o;
	struct rgate_gpu_opts go;
	struct rgate_gpu *gpu;
	struct g_feed f;
	uint64_t *word;

	memset(&o, 0, sizeof(o));
	memset(&go, 0, sizeof(go));
	go.sz = sizeof(go);
	go.stall_ms = 50;
	o.sz = sizeof(o);
	g_require(!cudaHostAlloc((void **)&word, 64, cudaHostAllocMapped));
	*word = 0;
	o.arg = word;
	g_ok(NULL, rgate_gpu_open(&gpu, &go));
	f = feed_of(g_ring(64, 256, 0), 0, 40 * g_slow());
	g_ok(gpu, rgate_gpu_bind(gpu, f.ring, NULL));
	g_ok(gpu, rgate_gpu_start(gpu, &hang_kernel, &o));
	g_feed_start(&f);
	g_feed_join(&f);
	g_require(becomes(gpu, RGATE_GPU_STALLED, 2000));
	g_note("%s", rgate_gpu_error(gpu));
	g_require(rgate_gpu_drain(gpu, 10) == -ETIMEDOUT);
	g_require(rgate_gpu_stop(gpu, 100) == -ETIMEDOUT);
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	g_ok(gpu, rgate_gpu_wait(gpu, 5000));
	g_require(state_of(gpu) == RGATE_GPU_IDLE);
	/* the stop that was given up is over with it */
	g_ok(gpu, rgate_gpu_start(gpu, &hang_kernel, &o));
	nap_ms(50);
	g_require(state_of(gpu) == RGATE_GPU_RUNNING);
	g_ok(gpu, rgate_gpu_stop(gpu, 5000));
	g_require(state_of(gpu) == RGATE_GPU_IDLE);
	rgate_gpu_close(gpu);
	close_feeds(&f, 1);
	cudaFreeHost(word);
}

/* What is refused, and how */
static void refused(void)
{
	struct rgate_ring_opts ro;
	struct rgate_gpu_opts go;
	struct rgate_gpu *gpu;
	struct rgate_ring *ring;

	memset(&ro, 0, sizeof(ro));
	memset(&go, 0, sizeof(go));
	go.sz = sizeof(go);
	go.device = 99;
	g_require(rgate_gpu_open(&gpu, &go) == -ENODEV);
	g_require(rgate_gpu_error(NULL)[0]);
	go.device = 0;
	go.close_ms = 3600001;
	g_require(rgate_gpu_open(&gpu, &go) == -EINVAL);
	g_ok(NULL, rgate_gpu_open(&gpu, NULL));
	g_require(rgate_gpu_start(gpu, &lanes_kernel, NULL) == -EINVAL);
	ro.sz = sizeof(ro);
	ro.policy = RGATE_POLICY_OVERWRITE;
	g_require(!rgate_ring_open_memfd(&ring, &ro));
	g_require(rgate_gpu_bind(gpu, ring, NULL) == -EOPNOTSUPP);
	rgate_ring_close(ring);
	ring = g_ring(64, 256, 0);
	g_ok(gpu, rgate_gpu_bind(gpu, ring, NULL));
	g_require(rgate_gpu_launch(gpu, &lanes_kernel, NULL) == -EINVAL);
	g_require(rgate_gpu_start(gpu, &batch_kernel, NULL) == -EINVAL);
	g_require(rgate_gpu_launch(gpu, &batch_kernel, NULL) == 0);	/* empty */
	g_require(rgate_gpu_drain(gpu, 0) == 0);
	rgate_gpu_close(gpu);
	rgate_ring_close(ring);
}

/* A fault in the user's function ends this process's use of the device: the last test */
static void crashes(void)
{
	struct rgate_gpu_start_opts o;
	struct rgate_gpu *gpu;
	struct g_feed f;

	memset(&o, 0, sizeof(o));
	o.sz = sizeof(o);
	o.arg = (void *)64;
	g_ok(NULL, rgate_gpu_open(&gpu, NULL));
	f = feed_of(g_ring(64, 256, 0), 0, 40 * g_slow());
	g_ok(gpu, rgate_gpu_bind(gpu, f.ring, NULL));
	g_ok(gpu, rgate_gpu_start(gpu, &crash_kernel, &o));
	g_feed_start(&f);
	g_feed_join(&f);
	g_require(becomes(gpu, RGATE_GPU_FAILED, 10000));
	g_note("%s", rgate_gpu_error(gpu));
	g_require(rgate_gpu_drain(gpu, 1000) == -EIO);
	g_require(rgate_gpu_stop(gpu, 1000) == -EIO);
	g_require(rgate_gpu_start(gpu, &lanes_kernel, &o) == -EIO);
	rgate_gpu_close(gpu);
	close_feeds(&f, 1);
}

static const struct g_test tests[] = {
	{ "refused", refused },
	{ "stops_lanes", stops_lanes },
	{ "stops_ordered", stops_ordered },
	{ "takes_over", takes_over },
	{ "limited_time", limited_time },
	{ "producers_end", producers_end },
	{ "producer_dies", producer_dies },
	{ "resized", resized },
	{ "hangs", hangs },
	{ "crashes", crashes },
};

int main(int argc, char **argv)
{
	fork_child();
	return g_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
