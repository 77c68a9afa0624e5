/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_LIB_CLOCK_H
#define RGATE_LIB_CLOCK_H

#include <stdint.h>
#include <time.h>

#include <ringgate/ring.h>

static inline uint64_t rgate_clock_now(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* A time, or so long, in ns */
static inline struct timespec rgate_clock_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
				  .tv_nsec = (long)(ns % 1000000000) };
}

/* The system's clock for an enum rgate_clock */
static inline clockid_t rgate_clock_id(uint32_t clock)
{
	switch (clock) {
	case RGATE_CLOCK_TAI:
		return CLOCK_TAI;
	case RGATE_CLOCK_REALTIME:
		return CLOCK_REALTIME;
	default:
		return CLOCK_MONOTONIC;
	}
}

static inline void rgate_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

#endif
