/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the unit tests share. Include this first: it has cmocka's needs. */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ringgate/ringgate.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Sanitizers and valgrind slow everything down: fewer rounds there. */
unsigned int unit_rounds(unsigned int n);

/* RGATE_TEST_SLOW is set: runs under valgrind, with fewer rounds */
bool unit_slow(void);

/* RGATE_SLOW, or 1: how many times longer than usual things may take, on kernels that
 * check themselves
 */
unsigned int unit_patience(void);

/* Built with ThreadSanitizer? It cannot follow a seqlock, whose reader races. */
bool unit_tsan(void);

/* TAP output, and an end even if a test hangs; returns the exit status */
int unit_run(const char *name, const struct CMUnitTest *tests, size_t n);
#define UNIT_MAIN(tests) \
	int main(void) \
	{ \
		return unit_run(__FILE__, tests, ARRAY_LEN(tests)); \
	}

uint64_t unit_now_ns(void);
uint64_t unit_random(uint64_t *state);

/* A memfd ring that must come to be */
struct rgate_ring *unit_ring(uint32_t slots, uint32_t slot_size, uint32_t flags,
			     uint32_t policy);

/* Frame number @i of @len bytes: bytes that depend on the number */
void unit_pattern(void *data, uint64_t i, size_t len);
/* 0: it is that frame; else where it differs, + 1 */
size_t unit_pattern_check(const void *data, uint64_t i, size_t len);

/* Publishes frame @i; 0 or -ENOBUFS */
int unit_put(struct rgate_producer *p, uint64_t i, size_t len);

/*
 * Runs @fn in a child with one end of a socket pair; returns the child, and the
 * other end in @sock. The child exits with fn's return; it must use unit_require()
 * rather than cmocka's assertions.
 */
int unit_fork(int (*fn)(int sock, void *arg), void *arg, int *sock);
void unit_reap(int pid, int status);	/* waits, asserts the exit status */

#define unit_require(c) \
	do { \
		if (!(c)) \
			unit_die(__FILE__, __LINE__, #c); \
	} while (0)
_Noreturn void unit_die(const char *file, int line, const char *what);

#endif
