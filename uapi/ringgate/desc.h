/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * How one node names a piece of its memory to another. The record is written to
 * wires and into shared memory as it stands here: little-endian, no holes.
 */
#ifndef RINGGATE_DESC_H
#define RINGGATE_DESC_H

#include <linux/types.h>
#include <ringgate/assert.h>

#define RGATE_DESC_MAGIC	0x4752	/* "RG" */
#define RGATE_DESC_VERSION	1

/* What may be done with the memory, locally and by descriptor */
enum rgate_access {
	RGATE_ACCESS_REMOTE_READ	= 1U << 0,
	RGATE_ACCESS_REMOTE_WRITE	= 1U << 1,
	RGATE_ACCESS_REMOTE_ATOMIC	= 1U << 2,
	RGATE_ACCESS_READONLY		= 1U << 3,	/* the owner's device writes it neither */
	RGATE_ACCESS_RELAXED		= 1U << 4,	/* relaxed ordering: bulk, no flags in it */
};

#define RGATE_ACCESS_REMOTE \
	(RGATE_ACCESS_REMOTE_READ | RGATE_ACCESS_REMOTE_WRITE | RGATE_ACCESS_REMOTE_ATOMIC)
#define RGATE_ACCESS_ALL \
	(RGATE_ACCESS_REMOTE | RGATE_ACCESS_READONLY | RGATE_ACCESS_RELAXED)

/*
 * Remote descriptor. A reader checks magic and version, that @reserved is 0, that
 * @access has no unknown bit, and that @addr + @length does not wrap; the device
 * of the owner checks the rest on each access.
 */
struct rgate_desc {
	__le16	magic;		/* RGATE_DESC_MAGIC */
	__u8	version;	/* RGATE_DESC_VERSION */
	__u8	access;		/* enum rgate_access, of the region it lies in */
	__le32	rkey;		/* without a device: number of the region + 1 */
	__le64	addr;		/* as the device knows it (iova); without: offset in the region */
	__le64	length;		/* bytes, never 0 */
	__le32	epoch;		/* of the registration: differs after it was made anew */
	__le32	reserved;	/* 0 */
};

RGATE_AT(struct rgate_desc, rkey, 4);
RGATE_AT(struct rgate_desc, addr, 8);
RGATE_AT(struct rgate_desc, length, 16);
RGATE_AT(struct rgate_desc, epoch, 24);
RGATE_ASSERT(sizeof(struct rgate_desc) == 32);

#endif
