// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Handles: a place in the seat's table in the low half, and in the high one how often that was
 * given before, so that an old number is not taken for a new object.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine_priv.h"

#define PLACE_BITS	16
#define PLACES_MAX	(1U << PLACE_BITS)
#define ROOM_FIRST	8U

static struct handle *find(const struct rgate_seat *s, uint32_t service, uint32_t number)
{
	uint32_t place = (number & (PLACES_MAX - 1));
	struct handle *h;

	if (place >= s->nhandles)
		return NULL;
	h = &s->handles[place];
	if (!h->object || h->service != service || h->generation != number >> PLACE_BITS)
		return NULL;
	return h;
}

static int more_room(struct rgate_seat *s)
{
	uint32_t i, room = s->nhandles ? s->nhandles * 2 : ROOM_FIRST;
	struct handle *h;

	if (room > PLACES_MAX)
		return -EDQUOT;
	h = realloc(s->handles, room * sizeof(*h));
	if (!h)
		return -ENOMEM;
	for (i = s->nhandles; i < room; i++)
		h[i] = (struct handle){ .generation = 0 };
	s->handles = h;
	s->nhandles = room;
	return 0;
}

int rgate_seat_handle(struct rgate_seat *s, uint32_t service, void *object, uint32_t *handle)
{
	struct user *u = s->user;
	struct handle *h;
	uint32_t i;
	int err;

	if (u->limits.handles && u->handles >= u->limits.handles)
		return -EDQUOT;
	for (i = s->free_handle; i < s->nhandles && s->handles[i].object; i++)
		;
	if (i == s->nhandles) {
		err = more_room(s);
		if (err)
			return err;
	}
	h = &s->handles[i];
	s->free_handle = i + 1;
	h->object = object;
	h->service = service;
	/* 1 and on, so that no handle is 0 */
	h->generation = h->generation % (PLACES_MAX - 1) + 1;
	count(&u->handles, 1);
	count(&s->engine->stats.handles, 1);
	*handle = h->generation << PLACE_BITS | i;
	return 0;
}

static void *take(struct rgate_seat *s, struct handle *h)
{
	void *object = h->object;
	uint32_t place = (uint32_t)(h - s->handles);

	h->object = NULL;
	if (place < s->free_handle)
		s->free_handle = place;
	count(&s->user->handles, (uint64_t)-1);
	count(&s->engine->stats.handles, (uint64_t)-1);
	return object;
}

void *rgate_seat_object(const struct rgate_seat *s, uint32_t service, uint32_t handle)
{
	struct handle *h = find(s, service, handle);

	return h ? h->object : NULL;
}

void *rgate_seat_release(struct rgate_seat *s, uint32_t service, uint32_t handle)
{
	struct handle *h = find(s, service, handle);

	return h ? take(s, h) : NULL;
}

void *rgate_req_object(const struct rgate_req *r)
{
	return rgate_seat_object(r->seat, r->q.op >> RGATE_REQ_OP_SHIFT, r->q.handle);
}

static void drop(struct rgate_seat *s, struct handle *h)
{
	const struct service *to = &s->engine->service[h->service];
	void *object = take(s, h);

	if (to->s->drop)
		to->s->drop(object, to->ctx);
}

int handle_drop(struct rgate_seat *s, uint32_t service, uint32_t handle)
{
	struct handle *h = find(s, service, handle);

	if (!h)
		return -EBADF;
	drop(s, h);
	return 0;
}

void handles_drop(struct rgate_seat *s)
{
	uint32_t i;

	for (i = 0; i < s->nhandles; i++)
		if (s->handles[i].object)
			drop(s, &s->handles[i]);
	free(s->handles);
}
