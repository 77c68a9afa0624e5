/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the measurements on a GPU share: feeding rings fast, and telling results. */
#ifndef GBENCH_H
#define GBENCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <ringgate/rgate_consumer.h>
#include <ringgate/rgate_gpu.h>
#include <ringgate/rgate_producer.h>

#ifdef __cplusplus
extern "C" {
#endif

#define B_RINGS		16
#define B_THREADS	64

#define b_require(c) \
	do { \
		if (!(c)) \
			b_die(__FILE__, __LINE__, #c, NULL); \
	} while (0)
#define b_ok(gpu, call) \
	do { \
		if ((call) < 0) \
			b_die(__FILE__, __LINE__, #call, rgate_gpu_error(gpu)); \
	} while (0)
void b_die(const char *file, int line, const char *what, const char *why)
	__attribute__((noreturn));

uint64_t b_now_ns(void);
void b_sleep_ms(unsigned int ms);
/* CPU time that this thread has used */
uint64_t b_thread_ns(pthread_t thread);
/* This thread to the n-th CPU it may use; beyond the last: again from the first */
void b_pin(unsigned int n);
void b_unpin(void);
unsigned int b_cpus(void);

/* One line of JSON: b_line("name", "key", value, ..., NULL); values are doubles */
void b_line(const char *name, ...) __attribute__((sentinel));

struct b_quantiles {
	double p50, p90, p99, min;
};

void b_quantiles(uint64_t *v, uint64_t n, struct b_quantiles *q);

struct rgate_ring *b_ring(uint32_t slots, uint32_t slot_size);

/*
 * Feeding. B_REARM: the slots hold frames already, made once; threads publish them again,
 * lap for lap, as credits come back, by storing seq, batches divided among the threads of
 * a ring. What the consumer reads is memory as ever, while the producers' work is one
 * store a frame: so the rate is the consumer's. B_PRODUCE: rgate_producer_*(), one thread
 * a ring, header and frame written anew each time.
 */
enum b_mode { B_REARM, B_PRODUCE };

struct b_feed {
	enum b_mode mode;
	struct rgate_ring *ring[B_RINGS];
	uint32_t rings;
	uint32_t size;		/* bytes of a frame */
	uint32_t threads;	/* of all rings; B_REARM */
	bool stop;
	pthread_t thread[B_THREADS];
	uint32_t running;
	struct b_feeder {
		struct b_feed *feed;
		uint32_t index;
		uint32_t cpu;
	} feeder[B_THREADS];
	struct rgate_producer p[B_RINGS];
	struct {
		uint64_t batch;	/* whose end is published next; B_REARM */
		uint64_t pad[15];
	} turn[B_RINGS];
};

/* Makes the rings; B_REARM: fills them, one lap is published */
void b_feed_open(struct b_feed *f, enum b_mode mode, uint32_t rings, uint32_t slots,
		 uint32_t slot_size, uint32_t size);
/* @threads: 0: as many as there are CPUs for */
void b_feed_start(struct b_feed *f, uint32_t threads);
void b_feed_stop(struct b_feed *f);
void b_feed_close(struct b_feed *f);

#ifdef __cplusplus
}
#endif
#endif
