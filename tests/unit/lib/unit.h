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

/* Sanitizers, valgrind and CPUs that are emulated slow everything down: fewer rounds there. */
unsigned int unit_rounds(unsigned int n);
/* ... @few of them there, where a tenth would not be what the test is about */
unsigned int unit_rounds_or(unsigned int n, unsigned int few);

/* RGATE_TEST_EMULATED is set: starting a process takes ten times as long as elsewhere */
bool unit_emulated(void);

/* RGATE_TEST_SLOW is set: runs under valgrind, with fewer rounds */
bool unit_slow(void);

/* RGATE_SLOW, or 1: how many times longer than usual things may take, on kernels that
 * check themselves
 */
unsigned int unit_patience(void);

/* Built with AddressSanitizer? It keeps what was freed for a while, and judges leaks itself. */
bool unit_asan(void);

/* Built with ThreadSanitizer? */
bool unit_tsan(void);

/* Skips the test where ThreadSanitizer runs, and says why */
void unit_not_for_tsan(const char *why);
/* It knows no threads of a child that others made. */
#define UNIT_TSAN_CHILD	"a child of several threads starts more"
/* It takes what a seqlock's reader does for a race. */
#define UNIT_TSAN_SEQLOCK	"the reader of a seqlock races"

/* TAP output, and an end even if a test hangs; returns the exit status */
int unit_run(const char *name, const struct CMUnitTest *tests, size_t n);
/* ... and a failure where it has made a thread */
int unit_run_alone(const char *name, const struct CMUnitTest *tests, size_t n);
/* A public key that nobody has the private one of, as a line of a cluster file */
#define UNIT_KEY_LINE(id) \
	"public-key " #id " " #id "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"

#define UNIT_MAIN(tests) \
	int main(void) \
	{ \
		return unit_run(__FILE__, tests, ARRAY_LEN(tests)); \
	}

/*
 * Of a program that makes no threads, nor do its children: ThreadSanitizer is not asked about it
 * (the Makefile looks for this word). One that makes some after all fails.
 */
#define UNIT_MAIN_ALONE(tests) \
	int main(void) \
	{ \
		return unit_run_alone(__FILE__, tests, ARRAY_LEN(tests)); \
	}

/* Ends the test, which was not made, and says why */
#define unit_skip(why) \
	do { \
		print_message("# SKIP: %s\n", why); \
		skip(); \
	} while (0)

#define UNIT_DIR_ROOM	64U

/*
 * A directory of the test's own, @dir: out, UNIT_DIR_ROOM bytes; in memory where there is some, as
 * a disk's syncs take their time. And all files in it away
 */
void unit_dir_make(char *dir);
void unit_dir_empty(const char *dir);

/* What may be left behind: entries of a directory of /proc; mappings of what is called so */
unsigned int unit_entries(const char *dir);
unsigned int unit_mappings(const char *name);

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
