// SPDX-License-Identifier: MIT OR GPL-2.0
#include "heap.h"

#include <errno.h>
#include <stdlib.h>

#define ROOM_FIRST	64U

static void put(struct heap *h, uint32_t i, struct heap_node *x)
{
	h->nodes[i] = x;
	x->place = i + 1;
}

static void sift_up(struct heap *h, uint32_t i, struct heap_node *x)
{
	uint32_t parent;

	for (; i; i = parent) {
		parent = (i - 1) / 2;
		if (h->nodes[parent]->at <= x->at)
			break;
		put(h, i, h->nodes[parent]);
	}
	put(h, i, x);
}

static void sift_down(struct heap *h, uint32_t i, struct heap_node *x)
{
	uint32_t child;

	for (; (child = i * 2 + 1) < h->n; i = child) {
		if (child + 1 < h->n && h->nodes[child + 1]->at < h->nodes[child]->at)
			child++;
		if (x->at <= h->nodes[child]->at)
			break;
		put(h, i, h->nodes[child]);
	}
	put(h, i, x);
}

int heap_reserve(struct heap *h, uint32_t n)
{
	uint32_t room = h->room ? h->room : ROOM_FIRST;
	struct heap_node **nodes;

	if (n <= h->room)
		return 0;
	while (room < n)
		room *= 2;
	nodes = realloc(h->nodes, room * sizeof(struct heap_node *));
	if (!nodes)
		return -ENOMEM;
	h->nodes = nodes;
	h->room = room;
	return 0;
}

void heap_fini(struct heap *h)
{
	free(h->nodes);
	*h = (struct heap){ .n = 0 };
}

void heap_add(struct heap *h, struct heap_node *x, uint64_t at)
{
	x->at = at;
	sift_up(h, h->n++, x);
}

void heap_del(struct heap *h, struct heap_node *x)
{
	struct heap_node *last;
	uint32_t i = x->place - 1;

	if (!x->place)
		return;
	x->place = 0;
	last = h->nodes[--h->n];
	if (last == x)
		return;
	if (i && last->at < h->nodes[(i - 1) / 2]->at)
		sift_up(h, i, last);
	else
		sift_down(h, i, last);
}
