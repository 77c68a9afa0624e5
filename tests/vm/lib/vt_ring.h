/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A ring by its raw interface: ioctls, mmap and a consumer written from the
 * ABI's description, so that these tests do not lean on the library.
 */
#ifndef VT_RING_H
#define VT_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ringgate/ioctl.h>

struct vt_ring {
	int fd;
	uint32_t id;
	uint64_t cookie;
	struct rgate_geometry geo;
	uint32_t policy;
	/* the mapping */
	uint8_t *map;
	const struct rgate_prod *prod;
	struct rgate_cons *cons;
	uint64_t *credits;
	uint8_t *slots;
	/* the consumer */
	uint64_t pos;		/* next position to look at */
	uint32_t cnt;		/* slots of the frame in hand */
	uint64_t lost;		/* slots overwritten under us */
};

int vt_dev_open(void);
/* A request that is valid: 256 slots of 2048 bytes */
struct rgate_create vt_create_req(void);
/* CREATE on a new file and map all; the case ends if it fails */
void vt_ring_open(struct vt_ring *r, uint32_t slots, uint32_t slot_size,
		  uint32_t flags, uint32_t policy);
void vt_ring_create(struct vt_ring *r, struct rgate_create *req);
/* A further handle on @from's ring, mapped */
void vt_ring_attach(struct vt_ring *r, int from);
/* Map @r->fd as @r->geo says (whole read-only, writable parts over it) */
int vt_ring_try_map(struct vt_ring *r);
void vt_ring_map(struct vt_ring *r);
void vt_ring_unmap(struct vt_ring *r);
void vt_ring_close(struct vt_ring *r);
/* ioctl; 0 or -errno */
int vt_ring_query(int fd, struct rgate_query *q);
int vt_ring_resize(int fd, uint32_t slots, uint32_t slot_size,
		   struct rgate_geometry *geo);

uint64_t vt_ring_lap(const struct vt_ring *r, uint64_t pos);
const struct rgate_slot *vt_ring_slot(const struct vt_ring *r, uint64_t pos);
static inline const uint8_t *vt_slot_data(const struct rgate_slot *s)
{
	return (const uint8_t *)s + RGATE_SLOT_HDR;
}

/*
 * The next frame or NULL; skips filler. Of a chain the first slot, all others
 * being there too. Until vt_ring_done() the same again.
 */
const struct rgate_slot *vt_ring_next(struct vt_ring *r);
void vt_ring_done(struct vt_ring *r);
/* Frame joined from its slots into @buf; its captured length */
size_t vt_ring_join(const struct vt_ring *r, const struct rgate_slot *s,
		    uint8_t *buf, size_t size);
/* vt_ring_next() that sleeps in poll up to @ms by the need-wakeup protocol */
const struct rgate_slot *vt_ring_wait(struct vt_ring *r, int ms);
/* Arms the wait word for r->pos; true if there is something already (not armed) */
bool vt_ring_arm(struct vt_ring *r);
void vt_ring_disarm(struct vt_ring *r);
/* Takes and returns everything that is there; how many frames */
unsigned int vt_ring_drain(struct vt_ring *r);
uint64_t vt_ring_head(const struct vt_ring *r);
uint32_t vt_ring_state(const struct vt_ring *r);
struct rgate_stats vt_ring_stats(const struct vt_ring *r);
/*
 * Takes our UDP frames until @n came or nothing more for @ms; each is checked
 * byte by byte and noted in @seen (may be NULL). Returns how many.
 */
unsigned int vt_ring_verify(struct vt_ring *r, struct vt_seen *seen,
			    unsigned int n, int ms);

#endif
