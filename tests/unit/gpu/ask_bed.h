/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A GPU that asks, whose threads are this CPU's: a seat at a real engine with the sleepy service,
 * which sleeps whenever it can, bound to a runtime on the CUDA of the tests.
 */
#ifndef ASK_BED_H
#define ASK_BED_H

#include "unit.h"

#include <pthread.h>

#include "fake_cuda.h"
#include "runtime.h"

#include <ringgate/gpu/ask.cuh>

#include "engine_priv.h"
#include "sleepy.h"

#define ASK_THREADS	6U
#define ASK_PLACES	64U
#define ASK_LONG	(10000000000ULL * unit_patience())	/* ns */

struct ask_bed {
	struct runtime r;
	struct rgate_engine *engine;
	struct rgate_seat *seat;
	struct rgate_area area;
	struct rgate_session_loan loan;
	int fds[RGATE_FDS], daemon[2];
	unsigned int index;
	struct rgate_dask dask;
};

enum ask_mapping {
	ASK_OWN,	/* as a client has it */
	ASK_ENGINES,	/* the engine's: ThreadSanitizer knows what both do by its address */
};

void ask_bed_open(struct ask_bed *b, enum ask_mapping mapping, uint32_t tickets);
void ask_bed_close(struct ask_bed *b);
/* Without the runtime; its session is b->loan */
void ask_seat_open(struct ask_bed *b);
void ask_seat_close(struct ask_bed *b);
void ask_end_engine(struct ask_bed *b);

/* A loan of what lies in @a */
struct rgate_session_loan ask_loan_of(const struct ask_bed *b, const struct rgate_area *a);
/* Fills b->dask */
void ask_view(struct ask_bed *b);
struct rgate_gpu_session_stats ask_stats(struct ask_bed *b);
/* Requests, by the engine */
uint64_t ask_accepted(struct ask_bed *b);
/* Every cell is free again: nobody has lost one */
void ask_all_free(const struct ask_bed *b);

/* These have to work; of the device's threads */
uint64_t ask_submit(struct rgate_dasker *me, struct rgate_request q);
struct rgate_danswer ask_wait(struct rgate_dasker *me, uint64_t ticket);

struct ask_thread {
	struct ask_bed *b;
	unsigned int number, rounds;
	pthread_t thread;
};

/* @fn by ASK_THREADS threads, @arg of which is a struct ask_thread */
void ask_run_threads(struct ask_bed *b, void *(*fn)(void *), unsigned int rounds);
/* One of these: a nop after the other */
void *ask_in_turn(void *arg);

#endif
