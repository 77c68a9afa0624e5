// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "geometry.h"
#include "opts.h"
#include "ring.h"
#include "ring_memfd.h"

void rgate_ring_set_view(struct rgate_ring *ring, void *base,
			 const struct rgate_geometry *geo, uint64_t owners_off)
{
	unsigned char *p = base;

	ring->base = p;
	ring->view.prod = (const struct rgate_prod *)p;
	ring->view.cons = (struct rgate_cons *)(p + geo->cons_off);
	ring->view.credits = (uint64_t *)(p + geo->credits_off);
	ring->view.slots = p + geo->slots_off;
	ring->owners = owners_off ? (uint64_t *)(p + owners_off) : NULL;
	ring->view.map_len = (size_t)geo->map_len;
	ring->view.nslots = geo->slots;
	ring->view.slot_size = geo->slot_size;
	ring->view.generation = geo->generation;
	ring->view.handle = geo->handle;
}

int rgate_ring_opts_get(struct rgate_ring_opts *o,
			const struct rgate_ring_opts *opts)
{
	int err = rgate_opts_copy(o, sizeof(*o), opts);

	if (err)
		return err;
	if (!o->slots)
		o->slots = RGATE_SLOTS_DEFAULT;
	if (!o->slot_size)
		o->slot_size = RGATE_SLOT_SIZE_DEFAULT;
	if (o->name && strlen(o->name) >= RGATE_NAME_LEN)
		return -EINVAL;
	if (o->flags & ~RGATE_RING_FLAGS || o->policy >= RGATE_POLICY_COUNT ||
	    o->clock >= RGATE_CLOCK_COUNT)
		return -EINVAL;
	return rgate_geometry_check(o->slots, o->slot_size);
}

void rgate_ring_close(struct rgate_ring *ring)
{
	if (ring)
		ring->ops->close(ring);
}

int rgate_ring_send(struct rgate_ring *ring, int sock)
{
	return ring->ops->send(ring, sock);
}

int rgate_ring_dup(struct rgate_ring **ring, struct rgate_ring *from)
{
	return from->ops->dup(ring, from);
}

int rgate_ring_fd(const struct rgate_ring *ring)
{
	return ring->fd;
}

int rgate_ring_life(const struct rgate_ring *ring)
{
	return ring->sock;
}

uint32_t rgate_ring_id(const struct rgate_ring *ring)
{
	return ring->ident.id;
}

void rgate_ring_ident(const struct rgate_ring *ring, struct rgate_ident *ident)
{
	*ident = ring->ident;
}

void rgate_ring_view(const struct rgate_ring *ring, struct rgate_view *view)
{
	*view = ring->view;
}

unsigned char *rgate_ring_slots_rw(struct rgate_ring *ring)
{
	return ring->slots_rw;
}

int rgate_ring_stats(const struct rgate_ring *ring, struct rgate_stats *stats)
{
	const uint64_t *from = (const uint64_t *)&ring->view.prod->stats;
	uint64_t to[sizeof(*stats) / sizeof(uint64_t)];
	size_t i;

	for (i = 0; i < sizeof(to) / sizeof(to[0]); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	memcpy(stats, to, sizeof(*stats));
	return 0;
}

void rgate_ring_orphans(const struct rgate_ring *ring, uint64_t *batches, uint64_t *skipped)
{
	const struct rgate_cons *cons = ring->view.cons;

	*batches = __atomic_load_n(&cons->orphans, __ATOMIC_RELAXED);
	*skipped = __atomic_load_n(&cons->skipped, __ATOMIC_RELAXED);
}

bool rgate_ring_retired(const struct rgate_ring *ring)
{
	return __atomic_load_n(&ring->view.prod->state, __ATOMIC_ACQUIRE) !=
	       RGATE_STATE_ACTIVE;
}

int rgate_ring_tstamp_offset(const struct rgate_ring *ring, int64_t *offset_ns,
			     uint64_t *error_ns)
{
	const struct rgate_prod *prod = ring->view.prod;

	*error_ns = __atomic_load_n(&prod->tstamp_error, __ATOMIC_ACQUIRE);
	*offset_ns = __atomic_load_n(&prod->tstamp_offset, __ATOMIC_RELAXED);
	return *error_ns == UINT64_MAX ? -ENODATA : 0;
}

int rgate_ring_resize(struct rgate_ring *ring, uint32_t slots, uint32_t slot_size)
{
	int err = rgate_geometry_check(slots, slot_size);

	return err ? err : ring->ops->resize(ring, slots, slot_size);
}

int rgate_ring_poll(struct rgate_ring *ring, int ms)
{
	struct pollfd pfd = { .fd = ring->fd, .events = POLLIN };
	const int n = poll(&pfd, 1, ms);

	return n < 0 ? -errno : n;
}

int rgate_ring_remap(struct rgate_ring *ring)
{
	return ring->ops->remap(ring);
}

int rgate_ring_dmabuf(struct rgate_ring *ring, uint32_t area)
{
	if (area >= RGATE_AREA_COUNT)
		return -EINVAL;
	return ring->ops->dmabuf ? ring->ops->dmabuf(ring, area) : -EOPNOTSUPP;
}
