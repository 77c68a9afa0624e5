/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * KTAP. Each case runs in a child process of its own, in a fresh network
 * namespace, with a time limit; what it leaves behind dies with it.
 */
#ifndef VT_KTAP_H
#define VT_KTAP_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define VT_HOSTNS	(1U << 0)	/* stay in the initial network namespace */

struct vt_case {
	const char *name;
	void (*fn)(void);
	unsigned int flags;
	unsigned int secs;	/* time limit; 0: 30 s */
};

#define VT_COUNT(a)	(sizeof(a) / sizeof((a)[0]))

/* Runs all cases; the exit status of the program */
int vt_run(const struct vt_case *cases, unsigned int n);

#define VT_MAIN(cases)							\
	int main(void)							\
	{								\
		return vt_run(cases, VT_COUNT(cases));			\
	}

void vt_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Marks the case failed; it goes on */
void vt_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Ends the case */
void vt_die(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), noreturn));
void vt_skip(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), noreturn));

#define FAIL(...)	vt_fail(__FILE__, __LINE__, __VA_ARGS__)
#define DIE(...)	vt_die(__FILE__, __LINE__, __VA_ARGS__)

#define EXPECT(c)							\
	do {								\
		if (!(c))						\
			FAIL("%s", #c);					\
	} while (0)
#define REQUIRE(c)							\
	do {								\
		if (!(c))						\
			DIE("%s (errno %s)", #c, strerror(errno));	\
	} while (0)
#define VT_CMP(a, op, b, end)						\
	do {								\
		long long a_ = (long long)(a), b_ = (long long)(b);	\
									\
		if (!(a_ op b_))					\
			end("%s %s %s: %lld against %lld", #a, #op, #b,	\
			    a_, b_);					\
	} while (0)
#define EXPECT_EQ(a, b)	VT_CMP(a, ==, b, FAIL)
#define EXPECT_GE(a, b)	VT_CMP(a, >=, b, FAIL)
#define EXPECT_LE(a, b)	VT_CMP(a, <=, b, FAIL)
#define REQUIRE_EQ(a, b) VT_CMP(a, ==, b, DIE)

/* A system call that has to fail with @err */
#define EXPECT_ERRNO(call, err)						\
	do {								\
		long r_;						\
									\
		errno = 0;						\
		r_ = (long)(call);					\
		if (r_ != -1 || errno != (err))				\
			FAIL("%s: returned %ld, errno %d (%s), not %s",	\
			     #call, r_, errno, strerror(errno), #err);	\
	} while (0)

/* Waits up to @ms milliseconds for @c; true if it came */
#define VT_UNTIL(c, ms)							\
	({								\
		uint64_t end_ = vt_now() + (uint64_t)(ms) * vt_slow() * 1000000; \
		bool ok_;						\
									\
		while (!(ok_ = !!(c)) && vt_now() < end_)		\
			vt_usleep(500);					\
		ok_ || (c);						\
	})

/* How much longer than usual things may take: RGATE_SLOW, for kernels that check */
unsigned int vt_slow(void);
uint64_t vt_now(void);			/* CLOCK_MONOTONIC, ns */
void vt_usleep(unsigned int us);
uint64_t vt_rand(void);			/* thread-local, seeded once a run */
void vt_pin(unsigned int cpu);		/* this thread; ignored if there is no such CPU */
unsigned int vt_cpus(void);

/* A child that dies with its parent; @fn's return is its exit status */
pid_t vt_fork(int (*fn)(void *arg), void *arg);
/* Waits; -1: still running after @ms (it is killed then), else wait status */
int vt_wait(pid_t pid, unsigned int ms);

/* Module: by insmod/rmmod; -errno. RGATE_KO, else as modprobe finds it */
int vt_rmmod(void);
int vt_insmod(const char *params);
bool vt_loaded(void);

#endif
