/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The packet ring: what producer and consumers share.
 *
 * One mapping, three page-aligned areas, in this order:
 *
 *	producer area	geometry and producer state	read-only to users
 *	consumer area	wait words, credits, owners	read-write
 *	slots		64-byte header + frame each	read-only, or read-write
 *
 * Every word between producer and consumers has one writer. The producer publishes
 * a slot by storing its lap number in rgate_slot.seq with release; consumers return
 * slots by batches of RGATE_BATCH, storing the lap in the batch's credit word with
 * release. Which of several consumers has a batch they settle by its owner word.
 * In a ring with RGATE_RING_TRANSMIT users are the producer and the module the consumer.
 * Documentation/abi.rst tells the whole protocol.
 */
#ifndef RINGGATE_RING_H
#define RINGGATE_RING_H

#include <linux/types.h>
#include <ringgate/assert.h>

#define RGATE_MAGIC		0x54414752U	/* "RGAT", little endian */
#define RGATE_ABI_VERSION	1

#define RGATE_BATCH_SHIFT	5
#define RGATE_BATCH		(1U << RGATE_BATCH_SHIFT)	/* slots a credit */
#define RGATE_SLOT_HDR		64U	/* bytes before the frame */
#define RGATE_SLOTS_MIN		64U
#define RGATE_SLOTS_MAX		(1U << 20)
#define RGATE_SLOT_SIZE_MIN	256U
#define RGATE_SLOT_SIZE_MAX	(1U << 16)
#define RGATE_SLOTS_DEFAULT	4096U
#define RGATE_SLOT_SIZE_DEFAULT	2048U
#define RGATE_NAME_LEN		32U	/* with the terminating NUL */
#define RGATE_HANDLES_MAX	32U	/* wait words, one an open handle */
#define RGATE_CHAIN_MAX		RGATE_BATCH	/* slots one frame may take */
#define RGATE_CREDITS_OFF	4096U	/* credit words, from the consumer area */

/* rgate_prod.features: what the producer does beyond version 1's basics */
#define RGATE_FEAT_CHAIN	(1ULL << 0)	/* may chain frames over slots */
#define RGATE_FEAT_OVERWRITE	(1ULL << 1)	/* may overwrite unread slots */
#define RGATE_FEAT_RESIZE	(1ULL << 2)	/* may retire this mapping */
#define RGATE_FEAT_OWNERS	(1ULL << 3)	/* consumers that share use owner words */
#define RGATE_FEAT_TRANSMIT	(1ULL << 4)	/* roles turned: the module takes frames */

/* Ring flags, given at creation; unknown ones are refused */
#define RGATE_RING_RW_SLOTS	(1U << 0)	/* slots may be mapped writable */
#define RGATE_RING_CHAIN	(1U << 1)	/* chain long frames, not truncate */
#define RGATE_RING_TRANSMIT	(1U << 2)	/* frames go out: RW_SLOTS too, drop, no CHAIN */
#define RGATE_RING_COARSE	(1U << 3)	/* tstamp as of the clock's last tick */
#define RGATE_RING_FLAGS \
	(RGATE_RING_RW_SLOTS | RGATE_RING_CHAIN | RGATE_RING_TRANSMIT | \
	 RGATE_RING_COARSE)

/*
 * The owner word of a batch: the low 32 bits of the lap, and in the low half who has
 * the batch. A life is 22 bits of rgate_prod.life[handle] as the holder found it; an
 * even one is nobody's. Slots before DONE are done with, whoever goes on there.
 */
#define RGATE_OWNER_LAP_SHIFT	32
#define RGATE_OWNER_LIFE_SHIFT	10
#define RGATE_OWNER_LIFE_MASK	0x3fffffU
#define RGATE_OWNER_DONE_SHIFT	5
#define RGATE_OWNER_DONE_MASK	0x1fU
#define RGATE_OWNER_HANDLE_MASK	0x1fU

/* What happens to a frame that finds no free slot */
enum rgate_policy {
	RGATE_POLICY_DROP = 0,		/* drop the new frame */
	RGATE_POLICY_OVERWRITE = 1,	/* overwrite the oldest slots */
	RGATE_POLICY_PASS = 2,		/* leave the frame to the network stack */
	RGATE_POLICY_SPILL = 3,		/* try the next ring of the attachment */
	RGATE_POLICY_COUNT
};

/* Clock of rgate_slot.tstamp */
enum rgate_clock {
	RGATE_CLOCK_MONOTONIC = 0,
	RGATE_CLOCK_TAI = 1,
	RGATE_CLOCK_REALTIME = 2,
	RGATE_CLOCK_COUNT
};

/* rgate_prod.state */
enum rgate_state {
	RGATE_STATE_ACTIVE = 1,
	RGATE_STATE_RETIRED = 2,	/* resized: drain to head, then map anew */
	RGATE_STATE_CLOSED = 3		/* the producer is gone: drain to head */
};

/* rgate_slot.flags */
#define RGATE_SLOT_TRUNC	(1U << 0)	/* frame cut: fewer bytes than wire_len */
#define RGATE_SLOT_PAD		(1U << 1)	/* no frame: filler before a chain */
#define RGATE_SLOT_CONT		(1U << 2)	/* 2nd and later slots of a chain */
#define RGATE_SLOT_VLAN		(1U << 3)	/* vlan_tci, vlan_proto: tag taken off */
#define RGATE_SLOT_HASH		(1U << 4)	/* hash is valid */
#define RGATE_SLOT_CSUM_OK	(1U << 5)	/* transport checksum needs no check */
#define RGATE_SLOT_CSUM_PARTIAL	(1U << 6)	/* local sender: checksum not filled in */
#define RGATE_SLOT_GRO		(1U << 7)	/* several wire frames merged in one */
#define RGATE_SLOT_QUEUE	(1U << 8)	/* queue is valid */
#define RGATE_SLOT_OFFLOAD	(1U << 9)	/* rgate_tx_slot: virtio-net's words are valid */
/* Those that a frame to be sent may have; one with others is skipped */
#define RGATE_SLOT_TX_FLAGS \
	(RGATE_SLOT_PAD | RGATE_SLOT_VLAN | RGATE_SLOT_OFFLOAD)

#define RGATE_OFF_NONE		0xffffU		/* l3_off, l4_off, payload_off: unknown */
#define RGATE_SEQ_BUSY		0ULL		/* seq of a slot being (re)written */

/*
 * Slot header. The frame's bytes follow at RGATE_SLOT_HDR, `len` of them; the
 * rest up to the next multiple of 64 is zero, what lies further is undefined
 * (an older frame of this ring).
 */
struct rgate_slot {
	__aligned_u64 seq;	/* lap; stored last, with release */
	__aligned_u64 tstamp;	/* ns of the ring's clock */
	__u32 len;		/* bytes of the frame in this slot */
	__u32 wire_len;		/* bytes of the whole frame, in every slot of a chain */
	__u32 flags;		/* RGATE_SLOT_* */
	__u32 ifindex;		/* of the receiving device, 0 if none */
	__u32 hash;		/* flow hash */
	__u16 queue;		/* receive queue */
	__u16 cpu;		/* that wrote the slot */
	__u16 vlan_tci;
	__u16 vlan_proto;	/* host byte order, 0x8100 or 0x88a8 */
	__u16 protocol;		/* ethertype, host byte order */
	__u16 dev_type;		/* ARPHRD_*: what the frame begins with */
	__u16 l3_off;		/* from the frame's first byte */
	__u16 l4_off;
	__u16 payload_off;
	__u8 chain_idx;		/* 0 in the first slot */
	__u8 chain_cnt;		/* slots of this frame, 1 to RGATE_CHAIN_MAX */
	__u32 gap;		/* frames this ring lost just before this one */
	__u8 clock;		/* enum rgate_clock */
	__u8 ip_proto;		/* 0 unless l4_off is known */
	__u8 pkt_type;		/* PACKET_HOST, PACKET_BROADCAST, ... */
	__u8 reserved;
};

/*
 * Slot header in a ring with RGATE_RING_TRANSMIT, whose slots users write and the module
 * reads. The frame's bytes follow at RGATE_SLOT_HDR. From vnet_flags on it is struct
 * virtio_net_hdr in the machine's byte order: offsets count from the frame's first byte,
 * a checksum is to be filled in as the kernel does for RGATE_SLOT_CSUM_PARTIAL, a frame
 * with a gso_type is longer than the MTU and is cut into segments. Store 0 in what is
 * reserved.
 */
struct rgate_tx_slot {
	__aligned_u64 seq;	/* lap; stored last, with release */
	__aligned_u64 reserved0;
	__u32 len;		/* bytes of the frame */
	__u32 reserved1;
	__u32 flags;		/* RGATE_SLOT_TX_FLAGS */
	__u32 reserved2[3];
	__u16 vlan_tci;		/* RGATE_SLOT_VLAN: a tag to be put into the frame */
	__u16 vlan_proto;	/* host byte order, 0x8100 or 0x88a8 */
	__u32 reserved3;
	__u8 vnet_flags;	/* VIRTIO_NET_HDR_F_NEEDS_CSUM or 0 */
	__u8 gso_type;		/* VIRTIO_NET_HDR_GSO_* */
	__u16 hdr_len;		/* a hint, not looked at */
	__u16 gso_size;		/* bytes of payload a segment */
	__u16 csum_start;
	__u16 csum_offset;	/* of the checksum, from csum_start */
	__u16 reserved4[3];
};

/* Counters, one writer (the producer); only ever grow */
struct rgate_stats {
	__aligned_u64 delivered;	/* frames published */
	__aligned_u64 bytes;		/* of those, as stored */
	__aligned_u64 dropped_full;	/* frames dropped: no free slot */
	__aligned_u64 dropped_fault;	/* frames dropped: could not be copied */
	__aligned_u64 overwritten;	/* slots overwritten before their credit */
	__aligned_u64 passed;		/* frames left to the stack: no free slot */
	__aligned_u64 spilled;		/* frames sent on to the next ring */
	__aligned_u64 truncated;	/* frames delivered shorter than wire_len */
	__aligned_u64 chained;		/* frames delivered in several slots */
	__aligned_u64 padded;		/* filler slots */
	__aligned_u64 wakeups;		/* sleeping consumers woken */
	__aligned_u64 full_events;	/* times the ring became full */
	__aligned_u64 reserved[4];
};

/* Producer area. The first 128 bytes never change while a mapping lives. */
struct rgate_prod {
	__u32 magic;
	__u16 version;
	__u16 slot_hdr;		/* RGATE_SLOT_HDR */
	__aligned_u64 features;	/* RGATE_FEAT_* */
	__u32 slots;		/* power of two */
	__u32 slot_size;	/* bytes with header, power of two */
	__u32 batch;		/* RGATE_BATCH */
	__u32 flags;		/* RGATE_RING_* */
	__u32 policy;		/* enum rgate_policy */
	__u32 clock;		/* enum rgate_clock */
	__u32 generation;	/* 1, then one more a resize */
	__u32 handles;		/* RGATE_HANDLES_MAX */
	__aligned_u64 map_len;	/* bytes of the whole mapping */
	__aligned_u64 cons_off;	/* consumer area, from the mapping's start */
	__aligned_u64 credits_off; /* credit words, from the mapping's start */
	__aligned_u64 slots_off;
	__u32 ring_id;
	__u32 reserved0;
	char name[RGATE_NAME_LEN];
	__aligned_u64 owners_off; /* owner words, likewise; 0 without RGATE_FEAT_OWNERS */

	__aligned_u64 head;	/* slots published since creation; release */
	__u32 state;		/* enum rgate_state; release */
	__u32 need_wakeup;	/* transmit: nobody looks for frames, so ask: RGATE_IOC_SEND */
	/*
	 * Where another machine's clock stamps the frames: that clock less this one's,
	 * and how wrong that may be, in ns. ~0: not known yet. Else both are 0.
	 */
	__s64 tstamp_offset;
	__aligned_u64 tstamp_error;
	__u32 reserved3[8];

	struct rgate_stats stats;

	/*
	 * Which handles there are: one more each time a handle is given, and each time
	 * one is closed, so odd while somebody has it. `closed` counts the latter, and
	 * is stored after the life, with release.
	 */
	__aligned_u64 closed;
	__aligned_u64 reserved4[7];
	__u32 life[RGATE_HANDLES_MAX];
};

/*
 * The wait word of one handle. 0: awake. P + 1: asleep until slot position P
 * is published. Written by that handle's consumer only.
 */
struct rgate_waiter {
	__aligned_u64 want;
	__aligned_u64 closed;	/* N + 1: or until rgate_prod.closed is not N; 0: no */
	__aligned_u64 reserved[6];
};

/*
 * Consumer area. All but `waiter` and the credits is the consumers' own: the producer
 * never reads it. Credit words (one __u64 a batch) stand at rgate_prod.credits_off,
 * owner words (likewise) at rgate_prod.owners_off.
 */
struct rgate_cons {
	__aligned_u64 claim;	/* next unclaimed batch, where consumers share */
	__aligned_u64 user[7];
	struct rgate_waiter waiter[RGATE_HANDLES_MAX];
	__aligned_u64 orphans;	/* batches taken over from who had died */
	__aligned_u64 skipped;	/* frames of those that nobody read again */
	__aligned_u64 reserved[6];
};

RGATE_AT(struct rgate_slot, seq, 0);
RGATE_AT(struct rgate_slot, tstamp, 8);
RGATE_AT(struct rgate_slot, len, 16);
RGATE_AT(struct rgate_slot, wire_len, 20);
RGATE_AT(struct rgate_slot, flags, 24);
RGATE_AT(struct rgate_slot, ifindex, 28);
RGATE_AT(struct rgate_slot, hash, 32);
RGATE_AT(struct rgate_slot, queue, 36);
RGATE_AT(struct rgate_slot, cpu, 38);
RGATE_AT(struct rgate_slot, vlan_tci, 40);
RGATE_AT(struct rgate_slot, vlan_proto, 42);
RGATE_AT(struct rgate_slot, protocol, 44);
RGATE_AT(struct rgate_slot, dev_type, 46);
RGATE_AT(struct rgate_slot, l3_off, 48);
RGATE_AT(struct rgate_slot, l4_off, 50);
RGATE_AT(struct rgate_slot, payload_off, 52);
RGATE_AT(struct rgate_slot, chain_idx, 54);
RGATE_AT(struct rgate_slot, chain_cnt, 55);
RGATE_AT(struct rgate_slot, gap, 56);
RGATE_AT(struct rgate_slot, clock, 60);
RGATE_AT(struct rgate_slot, ip_proto, 61);
RGATE_AT(struct rgate_slot, pkt_type, 62);
RGATE_AT(struct rgate_slot, reserved, 63);
RGATE_ASSERT(sizeof(struct rgate_slot) == 64);

RGATE_AT(struct rgate_tx_slot, len, 16);
RGATE_AT(struct rgate_tx_slot, flags, 24);
RGATE_AT(struct rgate_tx_slot, vlan_tci, 40);
RGATE_AT(struct rgate_tx_slot, vlan_proto, 42);
RGATE_AT(struct rgate_tx_slot, vnet_flags, 48);
RGATE_AT(struct rgate_tx_slot, gso_type, 49);
RGATE_AT(struct rgate_tx_slot, hdr_len, 50);
RGATE_AT(struct rgate_tx_slot, gso_size, 52);
RGATE_AT(struct rgate_tx_slot, csum_start, 54);
RGATE_AT(struct rgate_tx_slot, csum_offset, 56);
RGATE_ASSERT(sizeof(struct rgate_tx_slot) == 64);

RGATE_AT(struct rgate_stats, full_events, 88);
RGATE_ASSERT(sizeof(struct rgate_stats) == 128);

RGATE_AT(struct rgate_prod, magic, 0);
RGATE_AT(struct rgate_prod, version, 4);
RGATE_AT(struct rgate_prod, slot_hdr, 6);
RGATE_AT(struct rgate_prod, features, 8);
RGATE_AT(struct rgate_prod, slots, 16);
RGATE_AT(struct rgate_prod, slot_size, 20);
RGATE_AT(struct rgate_prod, batch, 24);
RGATE_AT(struct rgate_prod, flags, 28);
RGATE_AT(struct rgate_prod, policy, 32);
RGATE_AT(struct rgate_prod, clock, 36);
RGATE_AT(struct rgate_prod, generation, 40);
RGATE_AT(struct rgate_prod, handles, 44);
RGATE_AT(struct rgate_prod, map_len, 48);
RGATE_AT(struct rgate_prod, cons_off, 56);
RGATE_AT(struct rgate_prod, credits_off, 64);
RGATE_AT(struct rgate_prod, slots_off, 72);
RGATE_AT(struct rgate_prod, ring_id, 80);
RGATE_AT(struct rgate_prod, name, 88);
RGATE_AT(struct rgate_prod, owners_off, 120);
RGATE_AT(struct rgate_prod, head, 128);
RGATE_AT(struct rgate_prod, state, 136);
RGATE_AT(struct rgate_prod, need_wakeup, 140);
RGATE_AT(struct rgate_prod, tstamp_offset, 144);
RGATE_AT(struct rgate_prod, tstamp_error, 152);
RGATE_AT(struct rgate_prod, stats, 192);
RGATE_AT(struct rgate_prod, closed, 320);
RGATE_AT(struct rgate_prod, life, 384);
RGATE_ASSERT(sizeof(struct rgate_prod) == 512);

RGATE_AT(struct rgate_waiter, want, 0);
RGATE_AT(struct rgate_waiter, closed, 8);
RGATE_ASSERT(sizeof(struct rgate_waiter) == 64);
RGATE_AT(struct rgate_cons, claim, 0);
RGATE_AT(struct rgate_cons, waiter, 64);
RGATE_AT(struct rgate_cons, orphans, 2112);
RGATE_ASSERT(sizeof(struct rgate_cons) == 2176);
RGATE_ASSERT(sizeof(struct rgate_cons) <= RGATE_CREDITS_OFF);

#endif /* RINGGATE_RING_H */
