/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the demonstration's programs share. Each prints one line of JSON; all
 * lines of a run carry the value of DEMO_TEST, so that scripts/demo can tell
 * which belong together.
 */
#ifndef DEMO_H
#define DEMO_H

#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define DEMO_MAGIC	0x6f6d6544U
#define DEMO_SRC_MAC	{ 0x02, 0x72, 0x67, 0x00, 0x00, 0x01 }
#define DEMO_SRC_FILTER	"ether src 02:72:67:00:00:01"

/* What a datagram begins with; bytes that depend on seq follow */
struct demo_payload {
	uint32_t magic;
	uint32_t seq;
	uint64_t sent_ns;	/* CLOCK_MONOTONIC */
};

/* A SHA-256 or a plain sum over all that was sent or received, in order */
struct demo_sum {
	EVP_MD_CTX *sha;	/* NULL: the plain sum alone */
	uint64_t sum;
	uint64_t bytes;
};

void demo_sum_init(struct demo_sum *s, bool sha);
void demo_sum_add(struct demo_sum *s, const void *data, size_t len);
/* "sha256:..." or "sum:..." */
#define DEMO_SUM_TEXT 80
void demo_sum_text(struct demo_sum *s, char text[DEMO_SUM_TEXT]);

uint64_t demo_now_ns(void);

/*
 * A clock read without a system call on any machine: the vDSO leaves the kernel
 * out only where the clock source allows it.
 */
static inline uint64_t demo_ticks(void)
{
#if defined(__x86_64__)
	unsigned int aux;

	return __rdtscp(&aux);
#else
	return demo_now_ns();
#endif
}

/* Translates ticks to CLOCK_MONOTONIC, by two readings of both */
struct demo_clock {
	uint64_t ticks[2];
	uint64_t ns[2];
};

void demo_clock_read(struct demo_clock *c, int which);
uint64_t demo_clock_ns(const struct demo_clock *c, uint64_t ticks);

/* CPU time in us: of this process, of a child that was not reaped, of the machine */
uint64_t demo_cpu_us(void);
uint64_t demo_cpu_of(pid_t pid);
uint64_t demo_cpu_all(void);

/*
 * This thread stays on the CPU where it is. The kernel keeps the order of what one CPU sends;
 * a sender that moves can be ahead of what its last CPU has still to do.
 */
void demo_stay(void);

/* Starts argv[0] by PATH; returns its pid */
pid_t demo_spawn(char **argv);
/* Has the child ended? It can still be reaped then. */
bool demo_ended(pid_t pid);
/* Exits unless the child ends well */
void demo_reap(pid_t pid, const char *what);

/* The test's name as JSON value */
const char *demo_test(void);

/* Value of a numeric option; exits unless it is from min to max */
unsigned long demo_number(const char *text, unsigned long min, unsigned long max);

void __attribute__((noreturn, format(printf, 2, 3)))
demo_die(int err, const char *fmt, ...);

#endif
