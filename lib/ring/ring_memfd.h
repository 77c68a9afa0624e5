/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_LIB_RING_MEMFD_H
#define RGATE_LIB_RING_MEMFD_H

#include <stdbool.h>
#include <stdint.h>

#include "within.h"

struct rgate_ring;
struct rgate_ring_opts;

/*
 * A handle on a memfd ring of another process, from what that sent: producer
 * area and slots, consumer area, wake socket. Takes over @fds, also when it fails.
 */
int rgate_memfd_adopt(struct rgate_ring **out, const int fds[3], uint32_t handle);

/*
 * As rgate_ring_open_memfd(), for slots that another process or machine fills. The
 * producer of this process, which it still has, only accounts for them:
 * rgate_producer_landed(). It is never resized (-EOPNOTSUPP).
 * @bell: who fills it may wake the consumers by rgate_ring_bell()
 */
RGATE_WITHIN int rgate_ring_open_filled(struct rgate_ring **ring,
					const struct rgate_ring_opts *opts, bool bell);

/*
 * An eventfd, owned by the ring: adding to it wakes the consumers that sleep, once what they
 * shall see is written. Nobody reads it. -1: it has none
 */
RGATE_WITHIN int rgate_ring_bell(const struct rgate_ring *ring);

/* What poll(2) tells POLLHUP of, without events, once the process that made the ring is gone:
 * rgate_ring_fd() need not, where the ring has a bell. The ring's */
RGATE_WITHIN int rgate_ring_life(const struct rgate_ring *ring);

/* The file, owned by the ring, and where its slots are in it; of a ring made here */
RGATE_WITHIN int rgate_ring_file(const struct rgate_ring *ring, uint64_t *slots_off);

#endif
