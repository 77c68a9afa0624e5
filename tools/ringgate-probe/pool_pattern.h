/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Bytes that a seed gives: an endless stream for each key, readable at any place. */
#ifndef POOL_PATTERN_H
#define POOL_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* A fresh seed from the kernel */
uint64_t pattern_seed(void);
/* A key for the @n-th use of @key */
uint64_t pattern_key(uint64_t key, uint64_t n);
/* The next random number */
uint64_t pattern_random(uint64_t *state);
/* A random number below @n, which is not 0 */
uint64_t pattern_below(uint64_t *state, uint64_t n);

/* Bytes @at and on of the stream @key, @len of them */
void pattern_fill(void *p, size_t len, uint64_t key, uint64_t at);
/* Index of the first byte that is another, or @len; @want: out, what it should be */
size_t pattern_differs(const void *p, size_t len, uint64_t key, uint64_t at,
		       unsigned char *want);

#endif
