/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A tcpdump expression that is applied here, to frames as they stand in a file. */
#ifndef SIEVE_H
#define SIEVE_H

#include <stdbool.h>

#include "frame.h"

struct sieve;

/*
 * sieve_new - @text: the expression
 * Says what is wrong with it; an exit code. For link types other than Ethernet that shows
 * only when the first frame of such a type comes.
 */
int sieve_new(struct sieve **sieve, const char *text);

/* 1: it takes the frame; 0: it does not; -EINVAL: the expression means nothing for frames
 * of that link type, which has been said; -ENOMEM */
int sieve_match(struct sieve *sieve, const struct frame *f);

void sieve_free(struct sieve *sieve);	/* NULL is allowed */

#endif
