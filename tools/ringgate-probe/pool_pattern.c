// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include <string.h>
#include <sys/random.h>

#include "pool_pattern.h"
#include "util.h"

#define STEP	0x9e3779b97f4a7c15ULL	/* 2^64 by the golden ratio, odd */

/* Each bit of @x changes half of the result's. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

uint64_t pattern_seed(void)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = mix(util_now());
	return seed;
}

uint64_t pattern_key(uint64_t key, uint64_t n)
{
	return mix(mix(key + STEP) + n * STEP);
}

uint64_t pattern_random(uint64_t *state)
{
	*state += STEP;
	return mix(*state);
}

uint64_t pattern_below(uint64_t *state, uint64_t n)
{
	return pattern_random(state) % n;
}

/* The 8 bytes that byte @at is one of; @n: out, how many from it on */
static const unsigned char *word_at(uint64_t *word, uint64_t key, uint64_t at, size_t *n)
{
	*word = mix(key + (at >> 3) * STEP);
	*n = 8 - (at & 7);
	return (const unsigned char *)word + (at & 7);
}

void pattern_fill(void *p, size_t len, uint64_t key, uint64_t at)
{
	unsigned char *to = p;
	uint64_t word;
	size_t n;

	while (len) {
		const unsigned char *from = word_at(&word, key, at, &n);

		if (n > len)
			n = len;
		memcpy(to, from, n);
		to += n;
		at += n;
		len -= n;
	}
}

size_t pattern_differs(const void *p, size_t len, uint64_t key, uint64_t at,
		       unsigned char *want)
{
	const unsigned char *got = p;
	size_t done = 0, n, i;
	uint64_t word;

	while (done < len) {
		const unsigned char *from = word_at(&word, key, at + done, &n);

		if (n > len - done)
			n = len - done;
		if (memcmp(got + done, from, n)) {
			for (i = 0; got[done + i] == from[i]; i++)
				;
			*want = from[i];
			return done + i;
		}
		done += n;
	}
	return len;
}
