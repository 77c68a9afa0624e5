/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The user's end of a transmit ring, by its raw interface. */
#ifndef VT_SEND_H
#define VT_SEND_H

#include "vt_nl.h"
#include "vt_ring.h"

struct vt_send {
	struct vt_ring r;
	uint64_t pos;		/* next position to fill */
};

void vt_send_open(struct vt_send *s, uint32_t slots, uint32_t slot_size);
/* Attachment's number, or -errno */
int vt_send_try_bind(struct vt_nl *nl, const struct vt_send *s, const char *ifname);
uint32_t vt_send_bind(struct vt_nl *nl, const struct vt_send *s, const char *ifname);
/* With a thread that may take that many percent of a CPU */
uint32_t vt_send_bind_thread(struct vt_nl *nl, const struct vt_send *s, const char *ifname,
			     uint32_t share);
struct rgate_tx_slot *vt_send_slot(const struct vt_send *s, uint64_t pos);
/* The next slot, cleared but for its seq; NULL: not returned yet */
struct rgate_tx_slot *vt_send_next(const struct vt_send *s);
static inline uint8_t *vt_send_data(struct rgate_tx_slot *slot)
{
	return (uint8_t *)(slot + 1);
}

void vt_send_publish(struct vt_send *s, uint32_t len, uint32_t flags);
/* A UDP frame of ours into the next slot; false: there is none */
bool vt_send_udp(struct vt_send *s, size_t len, uint64_t seq);
/* RGATE_IOC_SEND; slots taken, or -errno. @out may be NULL */
int vt_send_kick(const struct vt_send *s, uint32_t budget, struct rgate_send *out);

/* Does nobody look for frames? Asked behind what was published, as users have to */
bool vt_send_need_wakeup(const struct vt_send *s);

/* Headers of a TCP segment with @data bytes, its checksum that of the pseudo header */
void vt_send_tcp(uint8_t *frame, uint32_t data);
/* va can neither add up nor cut: the kernel does before it gets the frames */
void vt_send_no_offload(void);

#endif
