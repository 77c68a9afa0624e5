// SPDX-License-Identifier: MIT OR GPL-2.0
/* What becomes of a handle: who waits for it, and what its place in the session's memory says. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sync_priv.h"

void sync_end(struct rgate_req **r, int result, uint64_t value)
{
	struct rgate_req *req = *r;

	if (!req)
		return;
	*r = NULL;
	rgate_req_set_data(req, NULL);
	rgate_req_end(req, result, value);
}

static uint64_t lease_of(const struct handle *h)
{
	if (h->node)
		return h->node->lease_end;
	/* Without other processes that may become its home nothing can be lost. */
	return h->sv->o.hub ? sync_now() + h->sv->lease_ns : RGATE_SYNC_FOREVER;
}

void handle_lease(struct handle *h)
{
	if (h->place && h->granted && !h->leaves && h->as.kind == SYNC_LOCK)
		__atomic_store_n(&h->place->lease_ns, lease_of(h), __ATOMIC_RELEASE);
}

void handle_lost(struct handle *h)
{
	if (h->place)
		__atomic_store_n(&h->place->lease_ns, 0, __ATOMIC_RELEASE);
}

static void barrier_over(struct handle *h, int err, const struct rgate_barrier_info *info)
{
	void *room;

	h->taken = false;
	h->result = err;
	if (err && info)
		h->info = *info;
	sync_end(&h->taking, err, h->value);
	if (!h->waiting)
		return;
	room = rgate_req_mem(h->waiting);
	if (err && room)
		memcpy(room, &h->info, sizeof(h->info));
	/* It was told, so there can be another one; but a broken one stays so. */
	h->granted = err;
	sync_end(&h->waiting, err, h->value);
}

void handle_granted(struct handle *h, int err, uint64_t value,
		    const struct rgate_barrier_info *info)
{
	h->granted = true;
	h->value = value;
	/* Who does not want it any more gives it back. */
	if (h->place && !h->leaves)
		__atomic_store_n(&h->place->value, value, __ATOMIC_RELAXED);
	if (h->as.kind == SYNC_BARRIER) {
		barrier_over(h, err, info);
		return;
	}
	handle_lease(h);
	if (!h->leaves)
		sync_end(&h->taking, 0, value);
}

void handle_free(struct handle *h)
{
	list_del(&h->of_home);
	list_del(&h->ready);
	list_del(&h->dead);
	free(h);
}

void handle_retire(struct handle *h)
{
	sync_end(&h->taking, -ECANCELED, 0);
	sync_end(&h->waiting, -ECANCELED, 0);
	sync_end(&h->dropping, 0, 0);
	sync_end(&h->ending, 0, 0);
	if (!h->seat) {
		handle_free(h);
		return;
	}
	/* Its number can be taken away in the engine's thread only. */
	h->state = HANDLE_DEAD;
	list_del(&h->of_home);
	list_del(&h->ready);
	list_del(&h->dead);
	list_add_tail(&h->sv->dead, &h->dead);
}
