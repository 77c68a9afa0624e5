// SPDX-License-Identifier: MIT OR GPL-2.0
/* Rings in memfds: handles of the process that made one, and of others. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "geometry.h"
#include "handover.h"
#include "life.h"
#include "memfd_core.h"
#include "ring.h"
#include "ring_memfd.h"

#define DRAIN_MAX 64

static uint64_t *want_word(struct rgate_ring *ring)
{
	return (uint64_t *)&ring->view.cons->waiter[ring->view.handle].want;
}

static void drop_next_fds(struct rgate_ring *ring)
{
	if (ring->next_fds[0] >= 0)
		close(ring->next_fds[0]);
	if (ring->next_fds[1] >= 0)
		close(ring->next_fds[1]);
	ring->next_fds[0] = ring->next_fds[1] = -1;
}

/* Takes wakeups, and new memory, out of the socket. */
static void drain_sock(struct rgate_ring *ring)
{
	int fds[RGATE_HANDOVER_FDS], n, err;
	struct rgate_handover msg;

	for (n = 0; n < DRAIN_MAX; n++) {
		err = rgate_handover_recv(ring->sock, &msg, fds, MSG_DONTWAIT);
		if (err == -EPIPE || err == -ECONNRESET)
			ring->peer_gone = true;
		if (err == -EPROTO || err == -EINTR)
			continue;
		if (err)
			break;
		if (msg.kind == RGATE_HANDOVER_MEMORY && !ring->core) {
			drop_next_fds(ring);
			ring->next_fds[0] = fds[0];
			ring->next_fds[1] = fds[1];
			continue;
		}
		while (msg.nfds)
			close(fds[--msg.nfds]);
	}
}

/* With a bell: epoll_wait(2) takes its edge, and tells whether the socket has something, too */
static int hear(struct rgate_ring *ring, int ms)
{
	struct epoll_event ev[2];
	int i, n = epoll_wait(ring->fd, ev, 2, ms);

	for (i = 0; i < n; i++)
		if (ev[i].data.u64 == RGATE_MEMFD_SOCK)
			drain_sock(ring);
	return n < 0 ? -errno : n > 0;
}

static bool drain_fd(struct rgate_ring *ring)
{
	if (ring->fd == ring->sock)
		drain_sock(ring);
	else
		(void)hear(ring, 0);
	return ring->peer_gone;
}

static int sleep_on(struct rgate_ring *ring, int ms)
{
	int n;

	if (ring->fd != ring->sock)
		return hear(ring, ms);
	n = rgate_ring_poll(ring, ms);
	drain_sock(ring);
	return n;
}

static bool holder_gone(const struct rgate_ring *ring, uint32_t handle)
{
	return ring->life_fd >= 0 && rgate_life_over(ring->life_fd, handle);
}

/* Handles of the process that made the ring */

static void view_mem(struct rgate_ring *ring, struct rgate_memfd_mem *mem)
{
	struct rgate_geometry geo = mem->geo;

	geo.handle = ring->view.handle;
	ring->mem = mem;
	rgate_ring_set_view(ring, mem->base, &geo, rgate_memfd_prod(mem)->owners_off);
	ring->slots_rw = mem->base + geo.slots_off;
}

static void close_fds(struct rgate_ring *ring)
{
	if (ring->fd != ring->sock)
		close(ring->fd);
	close(ring->sock);
	if (ring->life_fd >= 0)
		close(ring->life_fd);
}

static void own_close(struct rgate_ring *ring)
{
	rgate_memfd_handle_free(ring->core, ring->view.handle);
	close_fds(ring);
	rgate_memfd_mem_put(ring->mem);
	rgate_memfd_put(ring->core);
	free(ring);
}

static int own_new(struct rgate_ring **out, struct rgate_memfd *core);

static int own_dup(struct rgate_ring **ring, struct rgate_ring *from)
{
	return own_new(ring, from->core);
}

static int own_send(struct rgate_ring *ring, int sock)
{
	struct rgate_memfd_ends ends;
	struct rgate_memfd_mem *mem;
	int fds[3], handle, err;

	handle = rgate_memfd_handle_new(ring->core, &ends, true);
	if (handle < 0)
		return handle;
	mem = rgate_memfd_mem_now(ring->core);
	fds[0] = mem->fd_give;
	fds[1] = mem->fd_cons;
	fds[2] = ends.sock;
	err = rgate_handover_send(sock, RGATE_HANDOVER_MEMFD, (uint32_t)handle, fds,
				  3, 0);
	rgate_memfd_mem_put(mem);
	close(ends.sock);
	if (err)
		rgate_memfd_handle_free(ring->core, (uint32_t)handle);
	return err;
}

static int own_resize(struct rgate_ring *ring, uint32_t slots, uint32_t slot_size)
{
	return rgate_memfd_resize(ring->core, slots, slot_size);
}

static int own_remap(struct rgate_ring *ring)
{
	struct rgate_memfd_mem *mem = rgate_memfd_mem_now(ring->core), *was = ring->mem;

	if (mem == was) {
		rgate_memfd_mem_put(mem);
		return 0;
	}
	view_mem(ring, mem);
	rgate_memfd_mem_put(was);
	return 1;
}

static const struct rgate_ring_ops own_ops = {
	.close = own_close,
	.send = own_send,
	.dup = own_dup,
	.resize = own_resize,
	.remap = own_remap,
	.drain_fd = drain_fd,
	.sleep = sleep_on,
	.holder_gone = holder_gone,
};

static int own_new(struct rgate_ring **out, struct rgate_memfd *core)
{
	struct rgate_ring *ring = calloc(1, sizeof(*ring));
	struct rgate_memfd_ends ends;
	int handle;

	if (!ring)
		return -ENOMEM;
	ring->keep_fd = -1;
	handle = rgate_memfd_handle_new(core, &ends, false);
	if (handle < 0) {
		free(ring);
		return handle;
	}
	ring->sock = ends.sock;
	ring->fd = ends.epoll < 0 ? ends.sock : ends.epoll;
	ring->life_fd = ends.life;
	ring->ops = &own_ops;
	ring->core = rgate_memfd_get(core);
	ring->flags = core->flags;
	ring->policy = core->policy;
	ring->clock = core->clock;
	ring->next_fds[0] = ring->next_fds[1] = -1;
	ring->view.handle = (uint32_t)handle;
	view_mem(ring, rgate_memfd_mem_now(core));
	*out = ring;
	return 0;
}

static int name_ok(const char *name)
{
	for (; name && *name; name++)
		if (!isgraph((unsigned char)*name))
			return 0;
	return 1;
}

static int open_memfd(struct rgate_ring **ring, const struct rgate_ring_opts *opts,
		      bool filled, bool bell)
{
	struct rgate_ring_opts o;
	struct rgate_memfd *core;
	int err;

	err = rgate_ring_opts_get(&o, opts);
	if (err)
		return err;
	if (!name_ok(o.name))
		return -EINVAL;
	if (o.flags & (RGATE_RING_RW_SLOTS | RGATE_RING_TRANSMIT | RGATE_RING_COARSE))
		return -EOPNOTSUPP;
	err = rgate_memfd_new(&core, &o, filled, bell);
	if (err)
		return err;
	err = own_new(ring, core);
	rgate_memfd_put(core);
	return err;
}

int rgate_ring_open_memfd(struct rgate_ring **ring,
			  const struct rgate_ring_opts *opts)
{
	return open_memfd(ring, opts, false, false);
}

int rgate_ring_open_filled(struct rgate_ring **ring, const struct rgate_ring_opts *opts,
			   bool bell)
{
	return open_memfd(ring, opts, true, bell);
}

int rgate_ring_bell(const struct rgate_ring *ring)
{
	return ring->core->bell;
}

int rgate_ring_file(const struct rgate_ring *ring, uint64_t *slots_off)
{
	*slots_off = ring->mem->geo.cons_off;
	return ring->mem->fd_prod;
}

/* Handles got from another process */

static void far_close(struct rgate_ring *ring)
{
	if (ring->base) {
		__atomic_store_n(want_word(ring), 0, __ATOMIC_RELAXED);
		munmap(ring->base, ring->view.map_len);
	}
	drop_next_fds(ring);
	if (ring->keep_fd >= 0)
		close(ring->keep_fd);
	close_fds(ring);
	free(ring);
}

static int far_send(struct rgate_ring *ring, int sock)
{
	(void)ring;
	(void)sock;
	return -EOPNOTSUPP;
}

static int far_dup(struct rgate_ring **ring, struct rgate_ring *from)
{
	(void)ring;
	(void)from;
	return -EOPNOTSUPP;
}

static int far_resize(struct rgate_ring *ring, uint32_t slots, uint32_t slot_size)
{
	(void)ring;
	(void)slots;
	(void)slot_size;
	return -EOPNOTSUPP;
}

static int far_map(struct rgate_ring *ring, int fd_prod, int fd_cons,
		   uint32_t handle)
{
	struct rgate_geometry geo;
	struct rgate_prod prod;
	unsigned char *base;
	int err;

	err = rgate_memfd_mem_map(fd_prod, fd_cons, &geo, &prod, &base);
	if (err)
		return err;
	if (ring->base)
		munmap(ring->base, ring->view.map_len);
	geo.handle = handle;
	rgate_ring_set_view(ring, base, &geo, prod.owners_off);
	ring->flags = prod.flags;
	ring->policy = prod.policy;
	ring->clock = prod.clock;
	return 0;
}

static int far_remap(struct rgate_ring *ring)
{
	int err;

	drain_fd(ring);
	if (ring->next_fds[0] < 0)
		return __atomic_load_n(&ring->view.prod->state, __ATOMIC_ACQUIRE) ==
		       RGATE_STATE_RETIRED ? -ESTALE : 0;
	err = far_map(ring, ring->next_fds[0], ring->next_fds[1], ring->view.handle);
	drop_next_fds(ring);
	return err ? err : 1;
}

static const struct rgate_ring_ops far_ops = {
	.close = far_close,
	.send = far_send,
	.dup = far_dup,
	.resize = far_resize,
	.remap = far_remap,
	.drain_fd = drain_fd,
	.sleep = sleep_on,
	.holder_gone = holder_gone,
};

/* The first message on a handle's socket, of a ring with owner words */
static int far_life(struct rgate_ring *ring)
{
	int fds[RGATE_HANDOVER_FDS];
	struct rgate_handover msg;
	struct epoll_event ev;
	int err;

	if (!ring->owners)
		return 0;
	err = rgate_handover_recv(ring->sock, &msg, fds, MSG_DONTWAIT);
	if (err)
		return err == -EAGAIN ? -EPROTO : err;
	if (msg.kind == RGATE_HANDOVER_LIFE && rgate_life_valid(fds[0]) &&
	    (msg.nfds < 2 || epoll_wait(fds[1], &ev, 1, 0) >= 0)) {
		ring->life_fd = fds[0];
		if (msg.nfds == 2)
			ring->fd = fds[1];
		return 0;
	}
	while (msg.nfds)
		close(fds[--msg.nfds]);
	return -EPROTO;
}

int rgate_memfd_adopt(struct rgate_ring **out, const int fds[3], uint32_t handle)
{
	struct rgate_ring *ring = calloc(1, sizeof(*ring));
	int err;

	if (!ring) {
		close(fds[0]);
		close(fds[1]);
		close(fds[2]);
		return -ENOMEM;
	}
	ring->ops = &far_ops;
	ring->fd = ring->sock = fds[2];
	ring->keep_fd = ring->life_fd = -1;
	ring->next_fds[0] = ring->next_fds[1] = -1;
	err = far_map(ring, fds[0], fds[1], handle);
	close(fds[0]);
	close(fds[1]);
	if (!err)
		err = far_life(ring);
	if (err) {
		far_close(ring);
		return err;
	}
	*out = ring;
	return 0;
}
