/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* From slots to what a capture file wants: one packet of a link type. */
#ifndef FRAME_H
#define FRAME_H

#include <stdbool.h>
#include <sys/uio.h>

#include <ringgate/rgate_consumer.h>

/* Bytes a frame can gain: cooked header and VLAN tag */
#define FRAME_EXTRA	20
/* Bytes of a frame at most, as readers of files have it */
#define FRAME_SNAPLEN	262144U

struct frame {
	uint16_t link;		/* LINK_* of pcapng.h */
	uint32_t flags;		/* PCAPNG_* */
	uint32_t cap_len;
	uint32_t orig_len;
	unsigned int iovcnt;
	/* a slot each, one more where a tag goes in, one for a header */
	struct iovec iov[RGATE_CHAIN_MAX + 3];
	unsigned char extra[FRAME_EXTRA];
};

/*
 * frame_build - join the slots of the frame in hand, put its VLAN tag back
 * @f: out; points into the slots, so it ends with their release
 * @room: frame bytes a slot can hold
 * @link: LINK_*, what it is to be: frame_link()'s, or another, since all frames of a
 *	file are of one
 *
 * In place of what was before layer 3, LINK_LINUX_SLL has a cooked header, LINK_ETHERNET
 * one without addresses, LINK_RAW nothing. Longer frames are cut at FRAME_SNAPLEN.
 * Returns false, and nothing in @f: a frame such as this cannot be one of @link.
 */
bool frame_build(struct frame *f, const struct rgate_consumer *c, uint32_t room, uint16_t link);

/* Link type of a frame with this header's dev_type, protocol and flags */
uint16_t frame_link(const struct rgate_slot *s);

#endif

