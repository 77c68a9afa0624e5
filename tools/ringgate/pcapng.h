/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Writing pcapng (draft-ietf-opsawg-pcapng): one section, timestamps in ns.
 * Blocks are in the byte order of this machine, as the format allows. One
 * thread at a time.
 */
#ifndef PCAPNG_H
#define PCAPNG_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Link types (LINKTYPE_*) that are written here */
#define LINK_ETHERNET		1
#define LINK_RAW		101	/* begins with an IPv4 or IPv6 header */
#define LINK_IEEE802_11		105
#define LINK_LINUX_SLL		113
#define LINK_PRISM		119
#define LINK_RADIOTAP		127

struct pcapng;

/*
 * pcapng_new - a section header into @fd, which stays the caller's
 * @hardware, @os, @application: for the header; NULL: left out
 * 0 or -ENOMEM. Nothing is written before the buffer is full or flushed.
 */
int pcapng_new(struct pcapng **p, int fd, const char *hardware, const char *os,
	       const char *application);

struct pcapng_interface {
	const char *name;
	const char *description; /* NULL: left out */
	const char *filter;	/* tcpdump expression; NULL: left out */
	uint16_t link;		/* LINK_* */
	uint32_t snaplen;	/* 0: no limit */
};

/* Describes an interface; its packets come after. Returns its number, -errno */
int pcapng_interface(struct pcapng *p, const struct pcapng_interface *i);

/* epb_flags */
#define PCAPNG_INBOUND		1U
#define PCAPNG_OUTBOUND		2U
#define PCAPNG_UNICAST		(1U << 2)
#define PCAPNG_MULTICAST	(2U << 2)
#define PCAPNG_BROADCAST	(3U << 2)
#define PCAPNG_PROMISCUOUS	(4U << 2)

struct pcapng_packet {
	uint32_t interface;	/* as pcapng_interface() returned it */
	uint32_t orig_len;	/* bytes on the wire */
	uint64_t time_ns;	/* since 1970 */
	uint32_t flags;		/* PCAPNG_*; 0: left out */
	int32_t queue;		/* receive queue; -1: left out */
	uint64_t dropped;	/* packets lost just before; 0: left out */
	const struct iovec *iov; /* what was captured of it */
	unsigned int iovcnt;
};

int pcapng_packet(struct pcapng *p, const struct pcapng_packet *pkt);

struct pcapng_stats {
	uint64_t time_ns;	/* of these figures */
	uint64_t start_ns;	/* of the capture */
	uint64_t received;	/* by the interface */
	uint64_t dropped;	/* for lack of room */
	uint64_t accepted;	/* by the filter */
	uint64_t delivered;	/* written to the file */
};

int pcapng_stats(struct pcapng *p, uint32_t interface,
		 const struct pcapng_stats *s);

/* Writes out what is buffered. 0 or -errno; an error stays (-EPIPE: the reader
 * is gone) */
int pcapng_flush(struct pcapng *p);

/* Bytes written and buffered so far */
uint64_t pcapng_bytes(const struct pcapng *p);

/* Flushes and frees. 0 or -errno; NULL is allowed */
int pcapng_free(struct pcapng *p);

#endif
