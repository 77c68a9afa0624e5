/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Numbers from text that a person typed: the one place that reads them. */
#ifndef NUMBER_H
#define NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * number_parse - a whole number, and nothing else
 * @text: decimal digits, or 0x and hexadecimal ones: no blanks, no sign, no octal
 * @suffix: one of K, M, G (1024-fold) may be behind them
 * @v: out, where it is a number from @min to @max
 * Returns 0; -EINVAL: not a number; -ERANGE: one outside of the range. Thread-safe.
 */
int number_parse(const char *text, bool suffix, uint64_t min, uint64_t max, uint64_t *v);

/* As number_parse(), with a minus in front of it allowed, and without suffix */
int number_parse_signed(const char *text, int32_t min, int32_t max, int32_t *v);

/* Seconds, fractions allowed, from 0.001 to 1000000000, in ns */
int number_parse_seconds(const char *text, uint64_t *ns);

#endif
