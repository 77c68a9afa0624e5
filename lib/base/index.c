// SPDX-License-Identifier: MIT OR GPL-2.0
#include "index.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST	64U	/* places; they double when there are as many objects */

static struct link *new_places(uint64_t places)
{
	struct link *p = malloc(places * sizeof(*p));
	uint64_t i;

	for (i = 0; p && i < places; i++)
		list_init(&p[i]);
	return p;
}

int index_init(struct index *x)
{
	*x = (struct index){ .place = new_places(FIRST), .places = FIRST };
	return x->place ? 0 : -ENOMEM;
}

void index_fini(struct index *x)
{
	free(x->place);
	x->place = NULL;
}

static void grow(struct index *x)
{
	struct link *was = x->place, *more = new_places(x->places * 2), *l;
	const uint64_t n = x->places;
	uint64_t i;

	if (!more)
		return;
	x->place = more;
	x->places = n * 2;
	for (i = 0; i < n; i++) {
		while (!list_empty(&was[i])) {
			l = was[i].next;
			list_del(l);
			list_add_tail(index_at(x, container_of(l, struct index_node, link)->hash),
				      l);
		}
	}
	free(was);
}

void index_add(struct index *x, struct index_node *o, uint64_t hash)
{
	/* More than that where there was no memory the last time. */
	if (x->n >= x->places)
		grow(x);
	o->hash = hash;
	list_add_tail(index_at(x, hash), &o->link);
	x->n++;
}
