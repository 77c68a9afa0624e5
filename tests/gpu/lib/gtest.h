/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the tests on a GPU share: TAP, and threads that feed rings with random frames. */
#ifndef GTEST_H
#define GTEST_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <ringgate/rgate_consumer.h>
#include <ringgate/rgate_gpu.h>
#include <ringgate/rgate_producer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A test prints its reason and gives up; the others go on */
#define g_require(c) \
	do { \
		if (!(c)) \
			g_die(__FILE__, __LINE__, #c); \
	} while (0)
void g_die(const char *file, int line, const char *what) __attribute__((noreturn));

/* What the runtime says, if a call on it failed */
#define g_ok(gpu, call) \
	do { \
		long g_ret = (call); \
		if (g_ret < 0) { \
			g_note("%s: %s", #call, rgate_gpu_error(gpu)); \
			g_die(__FILE__, __LINE__, #call); \
		} \
	} while (0)

/* The test cannot be made here */
void g_skip(const char *why) __attribute__((noreturn));

void g_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

struct g_test {
	const char *name;
	void (*fn)(void);
};

/* Runs all, or those named on the command line; returns the exit status. Skips all, and
 * says why, where there is no GPU. */
int g_run(int argc, char **argv, const struct g_test *tests, unsigned int n);

/* Work is divided by this: 1, or RGATE_GPU_SLOW, under a checker of memory */
uint64_t g_slow(void);

uint64_t g_now_ns(void);
uint64_t g_random(uint64_t *state);
uint64_t g_seed(void);	/* fresh, from the kernel; printed */

/* First bytes of each frame */
struct g_head {
	uint32_t ring;
	uint32_t number;
	uint64_t seed;
};

/* The digest of a frame: a sum over its 32-bit words, zero-padded, in any order */
static inline uint64_t
#ifdef __CUDACC__
__host__ __device__
#endif
g_digest_word(uint32_t w, uint32_t i)
{
	uint64_t h = (uint64_t)w << 32 | i;

	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9ULL;
	h ^= h >> 32;
	return h;
}

uint64_t g_digest(const void *frame, uint32_t len);

/* A thread that fills a ring */
struct g_feed {
	struct rgate_ring *ring;
	uint32_t id;
	uint32_t total;		/* frames */
	uint32_t min, max;	/* bytes of a frame, at least sizeof(struct g_head) */
	uint32_t flows;		/* not 0: hashes from 1 to this */
	uint32_t pause_ns;	/* after each frame, on the average */
	bool keep;		/* leave the producer open at the end: call g_feed_close() */
	uint64_t *digest;	/* out, by number */
	uint32_t *flow;		/* out, by number */
	uint64_t bytes;		/* out */
	uint32_t published;	/* so far; atomic */
	bool stop;		/* atomic */
	struct rgate_producer p;
	pthread_t thread;
	uint64_t seed;
};

struct rgate_ring *g_ring(uint32_t slots, uint32_t slot_size, uint32_t flags);
void g_feed_start(struct g_feed *f);
/* Or without a thread: opened, then the next frame of @f->total whenever the test wants it */
void g_feed_open(struct g_feed *f);
void g_feed_put(struct g_feed *f);
void g_feed_join(struct g_feed *f);
void g_feed_close(struct g_feed *f);
void g_feed_free(struct g_feed *f);
/* Waits for a number of frames to be published; 10 s at most */
void g_feed_wait(const struct g_feed *f, uint32_t published);

#ifdef __cplusplus
}
#endif
#endif
