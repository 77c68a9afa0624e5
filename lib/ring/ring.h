/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The ring object behind the public API, common to all backends. */
#ifndef RGATE_LIB_RING_H
#define RGATE_LIB_RING_H

#include <ringgate/rgate_ring.h>

#include "within.h"

struct rgate_memfd;
struct rgate_memfd_mem;

/* What differs between a ring of the module and one in a memfd */
struct rgate_ring_ops {
	void (*close)(struct rgate_ring *ring);
	int (*send)(struct rgate_ring *ring, int sock);
	int (*dup)(struct rgate_ring **ring, struct rgate_ring *from);
	int (*resize)(struct rgate_ring *ring, uint32_t slots, uint32_t slot_size);
	int (*remap)(struct rgate_ring *ring);
	/* NULL: it has none */
	int (*dmabuf)(struct rgate_ring *ring, uint32_t area);
	/* takes the readiness off the fd; true: the producer's end is gone */
	bool (*drain_fd)(struct rgate_ring *ring);
	/* poll(2) of the fd, then drain_fd(); 1, 0: not within @ms, or -errno */
	int (*sleep)(struct rgate_ring *ring, int ms);
	/* nobody has that handle; NULL: rgate_prod.life tells all */
	bool (*holder_gone)(const struct rgate_ring *ring, uint32_t handle);
};

struct rgate_ring {
	const struct rgate_ring_ops *ops;
	struct rgate_view view;		/* private copy, validated */
	uint64_t *owners;		/* owner words, NULL: it has none */
	unsigned char *base;		/* of the mapping */
	unsigned char *slots_rw;	/* NULL: slots are read-only */
	int fd;				/* polled; owned */
	int sock;			/* of the producer's end, and a memfd's wakeups and new
					 * memory; owned. The same as fd, or that is an epoll
					 * instance over it and the bell */
	struct rgate_ident ident;	/* module; else 0 */
	uint32_t flags;			/* RGATE_RING_* */
	uint32_t policy;
	uint32_t clock;
	bool peer_gone;			/* memfd: the producer's process ended */

	char *device;			/* module */

	struct rgate_memfd *core;	/* memfd of this process, else NULL */
	struct rgate_memfd_mem *mem;	/* memfd of this process: what is mapped */
	int next_fds[2];		/* memfd of another: new memory, -1: none */
	int keep_fd;			/* memfd of another: closed with it, -1: none */
	int life_fd;			/* memfd: see life.h; -1: none */
};

/* Sets view and base from a validated geometry; @owners_off: 0 where there are none */
void rgate_ring_set_view(struct rgate_ring *ring, void *base,
			 const struct rgate_geometry *geo, uint64_t owners_off);

/* poll(2) of its fd: 1, 0: not within @ms, or -errno */
int rgate_ring_poll(struct rgate_ring *ring, int ms);

/* Options with defaults filled in and checked; @name is left to the caller. */
RGATE_WITHIN int rgate_ring_opts_get(struct rgate_ring_opts *o,
				     const struct rgate_ring_opts *opts);

#endif
