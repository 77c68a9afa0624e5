/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Objects by a number that is made of what they are found by: those whose numbers share a place are
 * in a ring there. It grows with them, so that a place has one on average, if the numbers' low bits
 * differ. No lock: whoever owns it calls its functions one at a time.
 */
#ifndef RGATE_BASE_INDEX_H
#define RGATE_BASE_INDEX_H

#include <stdint.h>

#include "list.h"

/* Part of an object of its owner's; zeroed: in no index */
struct index_node {
	struct link link;
	uint64_t hash;
};

struct index {
	struct link *place;
	uint64_t places, n;	/* the first a power of two */
};

/* -ENOMEM */
int index_init(struct index *x);
/* Objects that are in it stay as they are. */
void index_fini(struct index *x);

/* @o, which is in none. Without memory for more places it is in a longer ring. */
void index_add(struct index *x, struct index_node *o, uint64_t hash);

/* Nothing, if it is in none */
static inline void index_del(struct index *x, struct index_node *o)
{
	if (!o->link.next)
		return;
	list_del(&o->link);
	o->link.next = NULL;
	x->n--;
}

/* The head of the ring in which those of @hash are, among others: links of struct index_node */
static inline struct link *index_at(const struct index *x, uint64_t hash)
{
	return &x->place[hash & (x->places - 1)];
}

#endif
