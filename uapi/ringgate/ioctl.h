/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * ioctls of /dev/ringgate.
 *
 * An open file becomes a handle on a ring by RGATE_IOC_CREATE (a new ring) or
 * RGATE_IOC_ATTACH (a further handle on the ring behind another file). The ring
 * lives until its last handle is closed and its last mapping is gone.
 *
 * Reserved fields must be zero and unknown flags are refused, both with EINVAL.
 */
#ifndef RINGGATE_IOCTL_H
#define RINGGATE_IOCTL_H

#include <linux/ioctl.h>
#include <ringgate/ring.h>

#define RGATE_DEVICE	"/dev/ringgate"
#define RGATE_IOC_MAGIC	0xB7

/* What mmap needs to know, as rgate_prod tells it too */
struct rgate_geometry {
	__u32 slots;
	__u32 slot_size;
	__u32 generation;
	__u32 handle;		/* this file's wait word, 0 to RGATE_HANDLES_MAX-1 */
	__aligned_u64 map_len;
	__aligned_u64 cons_off;
	__aligned_u64 credits_off;
	__aligned_u64 slots_off;
};

/*
 * RGATE_IOC_CREATE. EINVAL: bad geometry, policy, clock, node, name or reserved
 * field; EBUSY: this file has a ring already; ENOBUFS: over RLIMIT_MEMLOCK;
 * ENOMEM: no memory, or over the memory cgroup's limit.
 */
struct rgate_create {
	__u32 flags;		/* RGATE_RING_* */
	__u32 slots;		/* power of two, RGATE_SLOTS_MIN to _MAX */
	__u32 slot_size;	/* power of two, RGATE_SLOT_SIZE_MIN to _MAX */
	__u32 policy;		/* enum rgate_policy */
	__u32 clock;		/* enum rgate_clock */
	__s32 node;		/* NUMA node of the memory, -1: any */
	char name[RGATE_NAME_LEN]; /* printable ASCII without blanks; "": "ring<id>" */
	__u32 ring_id;		/* out */
	__u32 reserved0;
	__aligned_u64 cookie;	/* out: who is meant by ring_id, for netlink */
	__aligned_u64 reserved[3];
	struct rgate_geometry geo; /* out; zero on entry */
};

/*
 * RGATE_IOC_ATTACH. EBADF, EINVAL: fd is no ring; EACCES: fd is not open for
 * writing; EMFILE: no wait word left
 */
struct rgate_attach {
	__s32 fd;		/* a file with a ring */
	__u32 flags;		/* 0 */
	__u32 ring_id;		/* out */
	__u32 reserved0;
	__aligned_u64 cookie;	/* out */
	__aligned_u64 reserved;
	struct rgate_geometry geo; /* out; zero on entry */
};

/*
 * RGATE_IOC_RESIZE: replaces the ring's memory while traffic runs. Mappings of
 * the old memory stay valid; its state becomes RGATE_STATE_RETIRED and its head
 * final. Drain it, unmap it, and map the file anew.
 */
struct rgate_resize {
	__u32 slots;
	__u32 slot_size;
	__u32 flags;		/* 0 */
	__u32 reserved0;
	__aligned_u64 reserved[2];
	struct rgate_geometry geo; /* out; zero on entry */
};

/* RGATE_IOC_QUERY: the ring as it is now */
struct rgate_query {
	__u32 flags;		/* out: RGATE_RING_* */
	__u32 policy;
	__u32 clock;
	__s32 node;
	char name[RGATE_NAME_LEN];
	__u32 ring_id;
	__u32 handles;		/* files on this ring */
	__aligned_u64 mem_bytes; /* charged for the current memory */
	__aligned_u64 cookie;
	__aligned_u64 reserved[3];
	struct rgate_geometry geo;
	struct rgate_stats stats;
};

/*
 * RGATE_IOC_SEND: take frames out of a ring with RGATE_RING_TRANSMIT and send them through
 * the device that it is bound to. Ends at the first slot that is not published, after
 * @budget slots, or where something keeps it from going on; that is an error only if no
 * slot was taken. EOPNOTSUPP: no such ring; EBADF: the file is open for reading only;
 * ENOTCONN: not bound; ENETDOWN: the device is down; EAGAIN: as many frames under way as
 * may be, poll for POLLOUT; ENOBUFS: no memory just now; EINTR.
 */
struct rgate_send {
	__u32 budget;		/* slots; 0: all that are published, one lap at most */
	__u32 flags;		/* 0 */
	__u32 taken;		/* out: slots */
	__u32 sent;		/* out: frames of those that the device's queue took */
	__u32 in_flight;	/* out: frames of the ring that are not sent or dropped yet */
	__u32 reserved0;
	__aligned_u64 head;	/* out: position of the next slot to be taken */
	__aligned_u64 reserved[2];
};

/* Parts of a ring's memory that can be had as a dma-buf; never the producer area */
enum rgate_ring_area {
	RGATE_AREA_CONSUMER = 0,	/* from cons_off: wait words, credits, owner words */
	RGATE_AREA_SLOTS = 1,		/* from slots_off to the end */
	RGATE_AREA_COUNT
};

/*
 * RGATE_IOC_EXPORT: a descriptor of an area's present memory as a dma-buf. There is one
 * dma-buf for each area and generation, so all who ask get the same. It is open for reading
 * and writing, or for reading alone where the area may not be mapped writable: the slots of
 * a ring without RGATE_RING_RW_SLOTS. It keeps the memory, and its charge, after resizes and
 * after the ring's end. EBADF: this file was not opened for what the dma-buf can do;
 * EOPNOTSUPP: a kernel without dma-bufs; EMFILE; ENOMEM; EINTR.
 */
struct rgate_export {
	__u32 area;		/* enum rgate_ring_area */
	__u32 flags;		/* 0 */
	__s32 fd;		/* out; 0 on entry. Closed by execve(2) */
	__u32 generation;	/* out: of the memory */
	__aligned_u64 len;	/* out: bytes */
	__aligned_u64 reserved[2];
};

#define RGATE_IOC_CREATE	_IOWR(RGATE_IOC_MAGIC, 0, struct rgate_create)
#define RGATE_IOC_ATTACH	_IOWR(RGATE_IOC_MAGIC, 1, struct rgate_attach)
#define RGATE_IOC_RESIZE	_IOWR(RGATE_IOC_MAGIC, 2, struct rgate_resize)
#define RGATE_IOC_QUERY		_IOR(RGATE_IOC_MAGIC, 3, struct rgate_query)
#define RGATE_IOC_SEND		_IOWR(RGATE_IOC_MAGIC, 4, struct rgate_send)
#define RGATE_IOC_EXPORT	_IOWR(RGATE_IOC_MAGIC, 5, struct rgate_export)

RGATE_AT(struct rgate_geometry, handle, 12);
RGATE_AT(struct rgate_geometry, map_len, 16);
RGATE_AT(struct rgate_geometry, slots_off, 40);
RGATE_ASSERT(sizeof(struct rgate_geometry) == 48);
RGATE_AT(struct rgate_create, node, 20);
RGATE_AT(struct rgate_create, name, 24);
RGATE_AT(struct rgate_create, ring_id, 56);
RGATE_AT(struct rgate_create, cookie, 64);
RGATE_AT(struct rgate_create, reserved, 72);
RGATE_AT(struct rgate_create, geo, 96);
RGATE_ASSERT(sizeof(struct rgate_create) == 144);
RGATE_AT(struct rgate_attach, cookie, 16);
RGATE_AT(struct rgate_attach, reserved, 24);
RGATE_AT(struct rgate_attach, geo, 32);
RGATE_ASSERT(sizeof(struct rgate_attach) == 80);
RGATE_AT(struct rgate_resize, reserved, 16);
RGATE_AT(struct rgate_resize, geo, 32);
RGATE_ASSERT(sizeof(struct rgate_resize) == 80);
RGATE_AT(struct rgate_query, name, 16);
RGATE_AT(struct rgate_query, ring_id, 48);
RGATE_AT(struct rgate_query, mem_bytes, 56);
RGATE_AT(struct rgate_query, cookie, 64);
RGATE_AT(struct rgate_query, geo, 96);
RGATE_AT(struct rgate_query, stats, 144);
RGATE_ASSERT(sizeof(struct rgate_query) == 272);
RGATE_AT(struct rgate_send, taken, 8);
RGATE_AT(struct rgate_send, head, 24);
RGATE_ASSERT(sizeof(struct rgate_send) == 48);
RGATE_AT(struct rgate_export, fd, 8);
RGATE_AT(struct rgate_export, len, 16);
RGATE_ASSERT(sizeof(struct rgate_export) == 40);

#endif /* RINGGATE_IOCTL_H */
