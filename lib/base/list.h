/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Rings of objects that have their links in themselves. A head is a link of no object. */
#ifndef RGATE_BASE_LIST_H
#define RGATE_BASE_LIST_H

#include <stdbool.h>

#include "container.h"

struct link {
	struct link *next, *prev;
};

static inline void list_init(struct link *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct link *l)
{
	return l->next == l;
}

static inline void list_add_tail(struct link *head, struct link *l)
{
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}

/* @l is a list of its own after it, so that doing it twice is harmless. */
static inline void list_del(struct link *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	list_init(l);
}

#endif
