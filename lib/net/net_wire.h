/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What gateway and compute nodes say to each other about rings. Little-endian, no holes.
 *
 *	compute node				gateway
 *	HELLO, on each connection ->
 *						<- READY, also when a gateway begins
 *	OFFER, for each ring ->
 *						<- TAKEN, or why not
 *			<- slots, their sequences, the mail, and a notice
 *	credit word, with a notice if asked ->
 *	WITHDRAW ->
 *						<- LEFT: nothing is written any more
 *	DEVICE, when somebody asks ->
 *						<- NAME
 *
 * A notice has the ring's number, and NET_ASK where the gateway waits for slots. Where the
 * slots' memory has a bell (RGATE_OP_BELL), writes that ring it wake the ring's consumers, past
 * the node's daemon. Notices only bring the mail then, now and then.
 *
 * Packed, where the gateway wants it so:
 *
 *	OFFER, with NET_OFFER_PACKS ->
 *						<- TAKEN, with the bytes of an inbox
 *	INBOX, or why not; then it is filled as above ->
 *			<- chunks, one write each
 *	both credit words ->
 *
 * The inbox is a ring of bytes. A chunk has what the slots from the ring's head on shall be,
 * each from its second word to a multiple of 64 bytes of its frame, and the mail. The node's
 * daemon lays them into the ring. A chunk with NET_CHUNK_NOTICE has a notice, and all before it
 * are there with it.
 */
#ifndef RGATE_NET_WIRE_H
#define RGATE_NET_WIRE_H

#include <linux/types.h>

#include <ringgate/desc.h>
#include <ringgate/ring.h>

enum net_type {
	NET_OFFER = 1,
	NET_TAKEN = 2,
	NET_WITHDRAW = 3,
	NET_LEFT = 4,
	NET_PING = 5,
	NET_PONG = 6,
	NET_HELLO = 7,
	NET_READY = 8,
	NET_DEVICE = 9,		/* a struct net_hdr; value: ifindex of the gateway's */
	NET_NAME = 10,
	NET_INBOX = 11,
};

/* In an offer's value; others are not looked at */
#define NET_OFFER_BELL	(1U << 0)	/* the slots' memory has one */
#define NET_OFFER_PACKS	(1U << 1)	/* the node can do without writes to the slots */

#define NET_RINGS_MAX	64		/* of a node */
#define NET_ASK		(1U << 16)	/* in a notice: tell me when slots come free */
#define NET_RING_MASK	0xffffU

struct net_hdr {
	__u8 service;		/* RGATE_SERVICE_NET */
	__u8 type;		/* enum net_type */
	__le16 ring;		/* the compute node's number of it; else 0 */
	__le32 value;
};

struct net_ready {
	struct net_hdr hdr;
	__le64 instance;	/* of the gateway: another one knows none of the rings */
};

struct net_offer {
	struct net_hdr hdr;	/* value: NET_OFFER_* */
	__le32 slots;
	__le32 slot_size;
	__le64 head;		/* position to go on from */
	__le64 free;		/* position up to which slots are free */
	char name[RGATE_NAME_LEN];
	struct rgate_desc slots_at; /* slots x slot_size bytes */
	struct rgate_desc mail_at;  /* a struct net_mail */
};

struct net_taken {
	struct net_hdr hdr;	/* value: errno, 0: taken */
	/* Up to which position slots are free; and, packed, the inbox was read: 8 bytes each */
	struct rgate_desc credit_at;
	__le32 slot_size;	/* bytes that slots need at least */
	__le32 inbox;		/* bytes that it is to have, a power of two; 0: not packed */
};

struct net_inbox {		/* hdr.value: errno, 0: it is there */
	struct net_hdr hdr;
	struct rgate_desc at;
};

struct net_ping {		/* and NET_PONG; hdr.value: enum rgate_clock */
	struct net_hdr hdr;
	__le64 sent;		/* by the compute node's clock */
	__le64 seen;		/* NET_PONG: by the gateway's */
	__le64 answered;
};

struct net_name {		/* hdr.value: ifindex */
	struct net_hdr hdr;
	char name[16];		/* ended by a NUL; empty: there is no such device */
};

/* Written by the gateway; words of the host's order, each by itself */
struct net_mail {
	__le64 head;
	__le64 stats[sizeof(struct rgate_stats) / 8];
};

#define NET_INBOX_MIN	(1U << 16)
#define NET_INBOX_MAX	(1U << 24)
#define NET_CHUNK_NOTICE (1U << 0)

struct net_chunk {		/* then the slots */
	__le64 mark;		/* its position in the inbox, + 1 */
	__le32 flags;		/* NET_CHUNK_* */
	__le32 slots;
	__le32 bytes;		/* of the slots, a multiple of 8 */
	__le32 reserved;
	struct net_mail mail;	/* as it is with this chunk's slots */
	__le64 reserved2[2];
};

/* Bytes of a chunk at most: any has room where one may begin */
static inline __u32 net_chunk_max(__u32 inbox)
{
	return inbox / 4;
}

/* Where the chunk after position @pos begins: none goes past the inbox's end */
static inline __u64 net_chunk_at(__u64 pos, __u32 inbox)
{
	const __u64 left = inbox - (pos & (inbox - 1));

	return left < net_chunk_max(inbox) ? pos + left : pos;
}

/* And where it ends */
static inline __u64 net_chunk_end(__u64 at, __u32 bytes)
{
	return (at + sizeof(struct net_chunk) + bytes + 63) & ~63ULL;
}

/* Bytes of a slot in a chunk with @len bytes of a frame, of @room that there are in a slot */
static inline __u32 net_packed(__u32 len, __u32 room)
{
	const __u32 whole = len < room ? (len + 63) & ~63U : room;

	return whole < room ? whole : room;
}

RGATE_ASSERT(sizeof(struct net_chunk) == 176);
RGATE_ASSERT(sizeof(struct net_inbox) == 40);
RGATE_ASSERT(sizeof(struct net_hdr) == 8);
RGATE_ASSERT(sizeof(struct net_ready) == 16);
RGATE_ASSERT(sizeof(struct net_offer) == 128);
RGATE_ASSERT(sizeof(struct net_taken) == 48);
RGATE_ASSERT(sizeof(struct net_name) == 24);
RGATE_ASSERT(sizeof(struct net_ping) == 32);
RGATE_ASSERT(sizeof(struct net_mail) == 136);

#endif
