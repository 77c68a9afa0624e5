/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Messages, numbers from arguments, signals and small files. */
#ifndef UTIL_H
#define UTIL_H

#include <argp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define NSEC		1000000000ULL

/* "ringgate CMD" in front of every message */
void util_set_name(const char *name);

void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * fail - says "context: what the error means and what to do", for -errno
 * Returns the exit code that fits.
 */
int fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The module is not loaded: says how to mend that; returns EXIT_NO_MODULE. */
int fail_no_module(void);

/* Does the error of opening a ring or a control say that there is no module? */
bool is_no_module(int err);

/* A whole number of an argument, else an argp error */
uint64_t arg_number(struct argp_state *state, const char *what,
		    const char *text, uint64_t min, uint64_t max);

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
