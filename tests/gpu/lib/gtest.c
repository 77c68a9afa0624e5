// SPDX-License-Identifier: MIT OR GPL-2.0
#include "gtest.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_S		240	/* a program that takes longer hangs */
#define FRAME_MAX	65536U

static jmp_buf out;
static const char *skipped;
static uint64_t seed;

void g_note(const char *fmt, ...)
{
	va_list ap;

	fputs("# ", stdout);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

void g_die(const char *file, int line, const char *what)
{
	g_note("%s:%d: %s failed (seed %llu)", file, line, what, (unsigned long long)seed);
	longjmp(out, 1);
}

void g_skip(const char *why)
{
	skipped = why;
	longjmp(out, 1);
}

uint64_t g_slow(void)
{
	const char *s = getenv("RGATE_GPU_SLOW");

	return s && atoi(s) > 0 ? (uint64_t)atoi(s) : 1;
}

static bool wanted(int argc, char **argv, const char *name)
{
	int i;

	if (argc < 2)
		return true;
	for (i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return false;
}

static bool passes(void (*fn)(void))
{
	skipped = NULL;
	if (setjmp(out))
		return skipped;
	fn();
	return true;
}

int g_run(int argc, char **argv, const struct g_test *tests, unsigned int n)
{
	struct rgate_gpu *gpu;
	unsigned int i;
	int err = rgate_gpu_open(&gpu, NULL);

	if (err == -ENODEV) {
		printf("1..0 # SKIP no GPU: %s\n", rgate_gpu_error(NULL));
		return 0;
	}
	if (err) {
		printf("Bail out! %s\n", rgate_gpu_error(NULL));
		return 1;
	}
	rgate_gpu_close(gpu);
	alarm(LIMIT_S);
	printf("1..%u\n", n);
	for (i = 0; i < n; i++) {
		uint64_t t0 = g_now_ns();
		bool good;

		if (!wanted(argc, argv, tests[i].name)) {
			printf("ok %u - %s # SKIP not asked for\n", i + 1, tests[i].name);
			continue;
		}
		good = passes(tests[i].fn);
		printf("%sok %u - %s%s%s\n", good ? "" : "not ", i + 1, tests[i].name,
		       skipped ? " # SKIP " : "", skipped ? skipped : "");
		g_note("%.2f s", (double)(g_now_ns() - t0) / 1e9);
		if (!good)
			return 1;	/* its threads and rings are left as they are */
	}
	return 0;
}

uint64_t g_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t g_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

uint64_t g_seed(void)
{
	const char *given = getenv("RGATE_TEST_SEED");

	if (given)
		seed = strtoull(given, NULL, 0);
	else if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = g_now_ns();
	seed |= 1;
	return seed;
}

uint64_t g_digest(const void *frame, uint32_t len)
{
	const unsigned char *p = frame;
	uint64_t sum = len;
	uint32_t i, w;

	for (i = 0; i < len; i += 4) {
		w = 0;
		memcpy(&w, p + i, len - i < 4 ? len - i : 4);
		sum += g_digest_word(w, i / 4);
	}
	return sum;
}

struct rgate_ring *g_ring(uint32_t slots, uint32_t slot_size, uint32_t flags)
{
	struct rgate_ring_opts o = {
		.sz = sizeof(o),
		.slots = slots,
		.slot_size = slot_size,
		.flags = flags,
	};
	struct rgate_ring *ring = NULL;

	g_require(!rgate_ring_open_memfd(&ring, &o));
	return ring;
}

static void pause_some(struct g_feed *f, uint64_t *state)
{
	uint64_t end;

	if (!f->pause_ns)
		return;
	rgate_producer_flush(&f->p);
	end = g_now_ns() + g_random(state) % (2ULL * f->pause_ns);
	while (g_now_ns() < end)
		;
}

/* Random bytes; the buffer is longer than the frame by a word */
static uint32_t make_frame(const struct g_feed *f, unsigned char *frame, uint32_t n,
			   uint64_t *state)
{
	uint32_t len = f->min + (uint32_t)(g_random(state) % (f->max - f->min + 1)), i;
	struct g_head head = { .ring = f->id, .number = n, .seed = g_random(state) };

	for (i = 0; i < len; i += 8) {
		uint64_t v = g_random(state);

		memcpy(frame + i, &v, 8);
	}
	memcpy(frame, &head, sizeof(head));
	return len;
}

/* false: the feed was told to stop, this frame may be there or not: nobody asks */
static bool put_frame(struct g_feed *f, uint32_t n, uint64_t *state)
{
	static _Thread_local unsigned char frame[FRAME_MAX + 8];
	struct rgate_slot hdr = { .protocol = 0x0800 };
	uint32_t len = make_frame(f, frame, n, state);

	f->digest[n] = g_digest(frame, len);
	f->bytes += len;
	if (f->flows) {
		hdr.flags = RGATE_SLOT_HASH;
		hdr.hash = 1 + (uint32_t)(g_random(state) % f->flows);
		f->flow[n] = hdr.hash;
	}
	while (rgate_producer_write(&f->p, f->flows ? &hdr : NULL, frame, len, len) == -ENOBUFS)
		if (__atomic_load_n(&f->stop, __ATOMIC_RELAXED))
			break;
	if (__atomic_load_n(&f->stop, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&f->published, n + 1, __ATOMIC_RELEASE);
	return true;
}

static void *feed_main(void *arg)
{
	struct g_feed *f = arg;
	uint64_t state = f->seed;
	uint32_t n;

	for (n = 0; n < f->total && !__atomic_load_n(&f->stop, __ATOMIC_RELAXED); n++) {
		if (!put_frame(f, n, &state))
			break;
		pause_some(f, &state);
	}
	rgate_producer_flush(&f->p);
	if (!f->keep)
		rgate_producer_fini(&f->p);
	return NULL;
}

void g_feed_open(struct g_feed *f)
{
	f->digest = calloc(f->total, sizeof(*f->digest));
	f->flow = calloc(f->total, sizeof(*f->flow));
	g_require(f->digest && f->flow && f->min >= sizeof(struct g_head) &&
		  f->max <= FRAME_MAX);
	f->seed = g_seed();
	g_require(!rgate_producer_init(&f->p, f->ring));
}

void g_feed_put(struct g_feed *f)
{
	g_require(f->published < f->total && put_frame(f, f->published, &f->seed));
	rgate_producer_flush(&f->p);
}

void g_feed_start(struct g_feed *f)
{
	g_feed_open(f);
	g_require(!pthread_create(&f->thread, NULL, feed_main, f));
}

void g_feed_join(struct g_feed *f)
{
	pthread_join(f->thread, NULL);
}

void g_feed_close(struct g_feed *f)
{
	rgate_producer_fini(&f->p);
}

void g_feed_free(struct g_feed *f)
{
	free(f->digest);
	free(f->flow);
}

void g_feed_wait(const struct g_feed *f, uint32_t published)
{
	uint64_t end = g_now_ns() + 10000000000ULL;

	while (__atomic_load_n(&f->published, __ATOMIC_ACQUIRE) < published)
		g_require(g_now_ns() < end);
}
