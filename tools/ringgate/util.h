/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Messages, numbers from arguments, signals and small files. */
#ifndef UTIL_H
#define UTIL_H

#include <argp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ringgate/rgate.h>

#include "why.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define NSEC		1000000000ULL

/* "ringgate CMD" in front of every message */
void util_set_name(const char *name);

/* @fn gets each line that is said, in place of stderr; one call at a time */
void util_set_out(void (*fn)(const char *line, size_t len));

void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * fail_in - says one line, "WHAT: why, and what to do", for -errno
 * @call: what returned it, see why.h
 * The reason is what there is to say of the error of that call, else what the library logged
 * of it, else what else is known of it there, else what the system calls it. Returns the exit
 * code that fits.
 */
int fail_in(const char *call, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#define fail(err, ...)	fail_in(WHY_SYSTEM, err, __VA_ARGS__)

/*
 * util_log - for rgate_log_set(); @ctx: an enum rgate_log_level, the last to be printed
 * Errors wait for the line that say() or fail_in() prints of them, so that one failure is
 * one line, unless more than warnings is asked for. util_log_flush(), at the end: of a
 * command that said nothing, prints the last one.
 */
void util_log(void *ctx, enum rgate_log_level level, const char *msg);
void util_log_flush(void);

/*
 * Numbers of arguments, as number_parse() reads them; else an argp error of @what, the
 * option's name, with the value and the range.
 */
uint64_t arg_number(struct argp_state *state, const char *what,
		    const char *text, uint64_t min, uint64_t max);

/* With a sign */
int32_t arg_signed(struct argp_state *state, const char *what, const char *text, int32_t min,
		   int32_t max);

/* As arg_number(), with K, M, G (1024-fold) behind it allowed */
uint64_t arg_size(struct argp_state *state, const char *what, const char *text,
		  uint64_t min, uint64_t max);

/* Seconds, fractions allowed, in ns */
uint64_t arg_seconds(struct argp_state *state, const char *what,
		     const char *text);

/* SIGINT, SIGTERM, SIGHUP set util_stop (one that comes a second later ends the
 * process), and SIGPIPE becomes EPIPE. */
void util_catch_signals(void);
extern volatile sig_atomic_t util_stop;

/* Blocks the signals of util_catch_signals(); @old: out, the mask before */
void util_block_signals(sigset_t *old);

/*
 * util_sleep - until CLOCK_MONOTONIC reaches @until_ns, or a signal
 * The signals of util_catch_signals() are not lost between a check of util_stop
 * and the sleep.
 */
void util_sleep(uint64_t until_ns);

uint64_t util_now(void);

/* Flushes standard output. True: it can take no more, as its reader is gone
 * (util_stop is set then) or the disk is full. */
bool util_stdout_dead(void);

/* First line of a small file, without newline. 0 or -errno */
int util_read_line(const char *path, char *buf, size_t len);

#endif
