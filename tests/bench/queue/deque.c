// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What there is without a server: a work-stealing deque of Chase and Lev, as Le, Pop, Cohen and
 * Zappa Nardelli have it for C11 (PPoPP 2013), in memory that both processes map. Its owner
 * pushes 32 and then tells of them; a thief steals up to 32, one by one as the deque has it, and
 * then says that they are completed. At most QUEUED are not: ringgate's queue has as many.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "bench.h"
#include "rival.h"

#define QUEUED	65536U
#define SPINS	1000U

/* What rgate_queue_task has of an empty one: */
struct task {
	uint64_t id;
	uint64_t words[4];
};

struct deque {
	_Alignas(128) atomic_uint_least64_t top;
	_Alignas(128) atomic_uint_least64_t bottom;
	_Alignas(128) atomic_uint_least64_t completed;
	_Alignas(128) struct task tasks[QUEUED];
};

static struct deque *d;

static void prepare(const char *address)
{
	(void)address;
	d = mmap(NULL, sizeof(*d), PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (d == MAP_FAILED)
		bench_die(errno, "mmap");
}

/* Where both share a CPU, the other one has it now and then. */
static void pause_for(unsigned int *spins)
{
	bench_relax();
	if (++*spins % SPINS == 0)
		sched_yield();
}

static void submit(const char *address, uint32_t tasks)
{
	uint64_t b = 0;
	unsigned int spins = 0;

	(void)address;
	while (b < tasks) {
		const uint64_t n = tasks - b < batch ? tasks - b : batch;
		uint64_t i;

		while (b + n - atomic_load_explicit(&d->completed, memory_order_acquire) > QUEUED)
			pause_for(&spins);
		for (i = b; i < b + n; i++)
			d->tasks[i % QUEUED] = (struct task){ .id = i + 1 };
		b += n;
		atomic_store_explicit(&d->bottom, b, memory_order_release);
	}
	/* submitted to completed */
	while (atomic_load_explicit(&d->completed, memory_order_acquire) != tasks)
		pause_for(&spins);
}

/* False: there is none */
static bool steal(struct task *got)
{
	uint64_t t = atomic_load_explicit(&d->top, memory_order_acquire), b;

	atomic_thread_fence(memory_order_seq_cst);
	b = atomic_load_explicit(&d->bottom, memory_order_acquire);
	if (t >= b)
		return false;
	*got = d->tasks[t % QUEUED];
	return atomic_compare_exchange_strong_explicit(&d->top, &t, t + 1, memory_order_seq_cst,
						       memory_order_relaxed);
}

static void work(const char *address, uint32_t tasks)
{
	struct task got[BATCH_MOST];
	uint64_t done = 0;
	unsigned int spins = 0;

	(void)address;
	while (done < tasks) {
		uint32_t n = 0, i;

		while (n < batch && steal(&got[n]))
			n++;
		for (i = 0; i < n; i++)
			if (got[i].id != done + i + 1)
				bench_die(0, "deque: task %llu came as number %llu",
					  (unsigned long long)got[i].id,
					  (unsigned long long)(done + i + 1));
		done += n;
		if (n)
			atomic_store_explicit(&d->completed, done, memory_order_release);
		else
			pause_for(&spins);
	}
}

const struct rival chase_lev = { "deque", prepare, submit, work };
