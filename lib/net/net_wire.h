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
};

#define NET_OFFER_BELL	(1U << 0)	/* in an offer's value: see below */
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
	struct net_hdr hdr;	/* value: NET_OFFER_BELL; others are not looked at */
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
	struct rgate_desc credit_at; /* 8 bytes: position up to which slots are free */
	__le32 slot_size;	/* bytes that slots need at least */
	__le32 reserved;
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

RGATE_ASSERT(sizeof(struct net_hdr) == 8);
RGATE_ASSERT(sizeof(struct net_ready) == 16);
RGATE_ASSERT(sizeof(struct net_offer) == 128);
RGATE_ASSERT(sizeof(struct net_taken) == 48);
RGATE_ASSERT(sizeof(struct net_name) == 24);
RGATE_ASSERT(sizeof(struct net_ping) == 32);
RGATE_ASSERT(sizeof(struct net_mail) == 136);

#endif
