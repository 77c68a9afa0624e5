/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Things by time, the earliest first, that know their place: each comes and goes in the logarithm
 * of how many there are. No lock: whoever owns it calls its functions one at a time.
 */
#ifndef RGATE_BASE_HEAP_H
#define RGATE_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Part of an object of its owner's; zeroed: in no heap */
struct heap_node {
	uint64_t at;
	uint32_t place;		/* + 1 */
};

struct heap {
	struct heap_node **nodes;
	uint32_t n, room;
};

/* There can be @n from now on. -ENOMEM */
int heap_reserve(struct heap *h, uint32_t n);
void heap_fini(struct heap *h);

/* @x, which is in none, has its turn at @at. There is room. */
void heap_add(struct heap *h, struct heap_node *x, uint64_t at);
/* Nothing, if it is in none */
void heap_del(struct heap *h, struct heap_node *x);

/* NULL: there is none */
static inline struct heap_node *heap_first(const struct heap *h)
{
	return h->n ? h->nodes[0] : NULL;
}

static inline bool heap_has(const struct heap_node *x)
{
	return x->place;
}

#endif
