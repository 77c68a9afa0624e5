/* SPDX-License-Identifier: GPL-2.0-only */
/* Events to the multicast group. */
#ifndef RGATE_EVENT_H
#define RGATE_EVENT_H

struct rgate_att;
struct rgate_ring;

void rgate_event_init(struct rgate_ring *ring);
void rgate_event_full(struct rgate_ring *ring);
void rgate_event_ring_gone(struct rgate_ring *ring);
void rgate_event_device_gone(const struct rgate_att *att);

#endif
