// SPDX-License-Identifier: MIT OR GPL-2.0
/* Rings of the kernel module: the device file, its ioctls and its mapping. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "geometry.h"
#include "handover.h"
#include "log.h"
#include "ring.h"
#include "ring_module.h"

#define REMAP_TRIES	16
#define SHRINK_MIN	512	/* slots; a default ring is not made smaller */

static int xioctl(int fd, unsigned long req, void *arg)
{
	return ioctl(fd, req, arg) < 0 ? -errno : 0;
}

static int open_device(const char *device)
{
	int fd = open(device, O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		int err = -errno;

		rgate_err("cannot open %s: %s", device, strerror(-err));
		return err;
	}
	return fd;
}

/*
 * The whole range read-only, then the areas that may be written over it. A
 * resize between the query and the mapping shows as another generation.
 */
static int map_areas(int fd, const struct rgate_geometry *geo, uint32_t flags,
		     unsigned char **out)
{
	size_t end = flags & RGATE_RING_RW_SLOTS ? geo->map_len : geo->slots_off;
	unsigned char *base, *rw;
	const struct rgate_prod *prod;
	struct rgate_geometry seen;
	int err;

	base = mmap(NULL, geo->map_len, PROT_READ, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	rw = mmap(base + geo->cons_off, end - geo->cons_off, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_FIXED, fd, (off_t)geo->cons_off);
	if (rw == MAP_FAILED) {
		err = -errno;
		goto unmap;
	}
	prod = (const struct rgate_prod *)base;
	err = -ESTALE;
	if (prod->generation != geo->generation || prod->slots != geo->slots ||
	    prod->slot_size != geo->slot_size || prod->map_len != geo->map_len)
		goto unmap;
	/* what a later module may do is not known here */
	err = rgate_geometry_from_prod(prod, rgate_page_size(), &seen);
	if (err)
		goto unmap;
	*out = base;
	return 0;
unmap:
	munmap(base, geo->map_len);
	return err;
}

static int query(int fd, struct rgate_query *q)
{
	int err;

	memset(q, 0, sizeof(*q));
	err = xioctl(fd, RGATE_IOC_QUERY, q);
	if (err)
		return err;
	return rgate_geometry_validate(&q->geo, rgate_page_size());
}

/* Maps the ring's present memory, whichever that is by then */
static int map_present(struct rgate_ring *ring)
{
	struct rgate_query q;
	unsigned char *base = NULL;
	int tries, err = -ESTALE;

	for (tries = 0; tries < REMAP_TRIES; tries++) {
		err = query(ring->fd, &q);
		if (err)
			return err;
		if (ring->base && q.geo.generation == ring->view.generation)
			return 0;
		err = map_areas(ring->fd, &q.geo, q.flags, &base);
		/* EINVAL, EACCES: the range or its borders moved meanwhile */
		if (err != -ESTALE && err != -EINVAL && err != -EACCES)
			break;
	}
	if (err || !base)
		return err ? err : -ESTALE;
	if (ring->base)
		munmap(ring->base, ring->view.map_len);
	rgate_ring_set_view(ring, base, &q.geo, ((const struct rgate_prod *)base)->owners_off);
	ring->slots_rw = q.flags & RGATE_RING_RW_SLOTS ?
			 base + q.geo.slots_off : NULL;
	ring->ident.id = q.ring_id;
	ring->ident.cookie = q.cookie;
	ring->flags = q.flags;
	ring->policy = q.policy;
	ring->clock = q.clock;
	return 1;
}

static void module_close(struct rgate_ring *ring)
{
	if (ring->base) {
		/* nobody sleeps on this handle any more */
		__atomic_store_n(&ring->view.cons->waiter[ring->view.handle].want, 0,
				 __ATOMIC_RELAXED);
		munmap(ring->base, ring->view.map_len);
	}
	close(ring->fd);
	free(ring->device);
	free(ring);
}

static int attach_fd(struct rgate_ring *ring)
{
	struct rgate_attach att = { .fd = ring->fd };
	int fd, err;

	fd = open_device(ring->device);
	if (fd < 0)
		return fd;
	err = xioctl(fd, RGATE_IOC_ATTACH, &att);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

static int module_send(struct rgate_ring *ring, int sock)
{
	int err, fd = attach_fd(ring);

	if (fd < 0)
		return fd;
	err = rgate_handover_send(sock, RGATE_HANDOVER_MODULE, 0, &fd, 1, 0);
	close(fd);
	return err;
}

static int module_dup(struct rgate_ring **ring, struct rgate_ring *from)
{
	int fd = attach_fd(from);

	return fd < 0 ? fd : rgate_module_adopt(ring, fd, from->device);
}

static int module_resize(struct rgate_ring *ring, uint32_t slots,
			 uint32_t slot_size)
{
	struct rgate_resize rs = { .slots = slots, .slot_size = slot_size };

	return xioctl(ring->fd, RGATE_IOC_RESIZE, &rs);
}

/* What is told by the view would not be where it is in other memory. */
static int module_dmabuf(struct rgate_ring *ring, uint32_t area)
{
	struct rgate_export ex = { .area = area };
	int err = xioctl(ring->fd, RGATE_IOC_EXPORT, &ex);

	if (err)
		return err == -ENOTTY ? -EOPNOTSUPP : err;
	if (ex.generation != ring->view.generation) {
		close(ex.fd);
		return -ESTALE;
	}
	return ex.fd;
}

/* The file's readiness follows the wait word by itself. */
static bool module_drain_fd(struct rgate_ring *ring)
{
	(void)ring;
	return false;
}

static const struct rgate_ring_ops module_ops = {
	.close = module_close,
	.send = module_send,
	.dup = module_dup,
	.resize = module_resize,
	.remap = map_present,
	.dmabuf = module_dmabuf,
	.drain_fd = module_drain_fd,
	.sleep = rgate_ring_poll,
};

int rgate_module_adopt(struct rgate_ring **out, int fd, const char *device)
{
	struct rgate_ring *ring;
	int err;

	ring = calloc(1, sizeof(*ring));
	if (!ring) {
		close(fd);
		return -ENOMEM;
	}
	ring->ops = &module_ops;
	ring->fd = ring->sock = fd;
	ring->keep_fd = ring->life_fd = -1;
	ring->device = strdup(device ? device : RGATE_DEVICE);
	err = ring->device ? map_present(ring) : -ENOMEM;
	if (err < 0) {
		module_close(ring);
		return err;
	}
	*out = ring;
	return 0;
}

/*
 * Where the caller left the size to the library, a ring that is over the limit of
 * locked memory is made smaller: Debian's limit of 8 MiB is three pages short of
 * the default.
 */
static int create(int fd, struct rgate_create *cr, bool may_shrink)
{
	uint32_t asked = cr->slots;
	int err;

	for (;;) {
		err = xioctl(fd, RGATE_IOC_CREATE, cr);
		if (err != -ENOBUFS || !may_shrink || cr->slots <= SHRINK_MIN)
			break;
		cr->slots /= 2;
	}
	if (!err && cr->slots != asked)
		rgate_warn("ring of %u slots instead of %u: over the limit of locked "
			   "memory; raise `ulimit -l`, or ask for a size",
			   cr->slots, asked);
	/* something else of that name */
	return err == -ENOTTY ? -EPROTO : err;
}

int rgate_ring_open(struct rgate_ring **ring, const struct rgate_ring_opts *opts)
{
	struct rgate_create cr = { 0 };
	struct rgate_ring_opts o;
	const char *device;
	bool by_default;
	int fd, err;

	by_default = !opts || (!opts->slots && !opts->slot_size);
	err = rgate_ring_opts_get(&o, opts);
	if (err)
		return err;
	if (o.node_plus1 > INT32_MAX)
		return -EINVAL;
	cr.flags = o.flags;
	cr.slots = o.slots;
	cr.slot_size = o.slot_size;
	cr.policy = o.policy;
	cr.clock = o.clock;
	cr.node = (int32_t)o.node_plus1 - 1;
	if (o.name)
		memcpy(cr.name, o.name, strlen(o.name));
	device = o.device ? o.device : RGATE_DEVICE;
	fd = open_device(device);
	if (fd < 0)
		return fd;
	err = create(fd, &cr, by_default);
	if (err) {
		rgate_err("the module makes no ring of %u x %u bytes: %s", cr.slots,
			  cr.slot_size, strerror(-err));
		close(fd);
		return err;
	}
	return rgate_module_adopt(ring, fd, device);
}
