/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_LIB_RING_MEMFD_H
#define RGATE_LIB_RING_MEMFD_H

#include <stdint.h>

struct rgate_ring;

/*
 * A handle on a memfd ring of another process, from what that sent: producer
 * area and slots, consumer area, wake socket. Takes over @fds, also when it fails.
 */
int rgate_memfd_adopt(struct rgate_ring **out, const int fds[3], uint32_t handle);

#endif
