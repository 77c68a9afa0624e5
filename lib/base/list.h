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
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left its list */
	return l->next == l;
}

static inline void list_add_tail(struct link *head, struct link *l)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): it is a list */
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}

/* gcc 12's analyzer loses what is in a list. */
#ifndef __clang__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
/* @l is a list of its own after it, so that doing it twice is harmless. */
static inline void list_del(struct link *l)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left its list */
	l->prev->next = l->next;
	l->next->prev = l->prev;
	list_init(l);
}

#ifndef __clang__
#pragma GCC diagnostic pop
#endif

#endif
