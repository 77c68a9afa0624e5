// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#include <ringgate/ioctl.h>
#include <ringgate/rgate_sender.h>

#include "ring.h"

static uint64_t lap_of(const struct rgate_sender *s, uint64_t pos)
{
	return (pos >> s->lap_shift) + 1;
}

/* Published by a sender that is gone, and not taken at the time */
static bool published(const struct rgate_sender *s, uint64_t pos)
{
	const struct rgate_tx_slot *slot;

	slot = (const struct rgate_tx_slot *)(s->slots + ((pos & s->mask) << s->size_shift));
	return __atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE) == lap_of(s, pos);
}

int rgate_sender_init(struct rgate_sender *s, struct rgate_ring *ring)
{
	const struct rgate_view *v = &ring->view;
	uint64_t head;

	if (!(ring->flags & RGATE_RING_TRANSMIT) || !ring->slots_rw)
		return -EOPNOTSUPP;
	memset(s, 0, sizeof(*s));
	s->slots = ring->slots_rw;
	s->credits = v->credits;
	s->mask = v->nslots - 1;
	s->lap_shift = (uint32_t)__builtin_ctz(v->nslots);
	s->size_shift = (uint32_t)__builtin_ctz(v->slot_size);
	s->fd = ring->fd;
	s->need_wakeup = &v->prod->need_wakeup;
	head = __atomic_load_n(&v->prod->head, __ATOMIC_ACQUIRE);
	for (s->pos = head; s->pos - head <= s->mask && published(s, s->pos);)
		s->pos++;
	s->limit = s->pos;
	return 0;
}

bool rgate_sender_refill(struct rgate_sender *s)
{
	uint64_t lap = lap_of(s, s->pos);
	uint64_t batch = (s->pos & s->mask) >> RGATE_BATCH_SHIFT;

	/* Pairs with the release by which the module returns what it has read. */
	if (__atomic_load_n(&s->credits[batch], __ATOMIC_ACQUIRE) != lap - 1)
		return false;
	s->lap = lap;
	s->limit = (s->pos | (RGATE_BATCH - 1)) + 1;
	return true;
}

int rgate_sender_kick(const struct rgate_sender *s, uint32_t budget)
{
	struct rgate_send arg = { .budget = budget };

	return ioctl(s->fd, RGATE_IOC_SEND, &arg) < 0 ? -errno : (int)arg.taken;
}

int rgate_sender_wait(const struct rgate_sender *s, int timeout_ms)
{
	struct pollfd p = { .fd = s->fd, .events = POLLOUT };
	int n = poll(&p, 1, timeout_ms);

	if (n < 0)
		return -errno;
	return n && !(p.revents & POLLOUT) ? -EIO : n;
}
