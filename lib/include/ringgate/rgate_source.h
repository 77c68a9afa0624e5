/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The userspace receive thread: fills memfd rings from a UDP or a packet socket
 * with recvmmsg(2), straight into the slots. No module; UDP needs no privilege.
 */
#ifndef RINGGATE_RGATE_SOURCE_H
#define RINGGATE_RGATE_SOURCE_H

#include <ringgate/rgate_ring.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rgate_source;

struct rgate_source_opts {
	size_t sz;
	uint32_t batch;		/* messages a recvmmsg, 1 to 256; 0: 32 */
	uint32_t rcvbuf;	/* SO_RCVBUF(FORCE) in bytes; 0: as the system has it */
	uint32_t busy_poll_us;	/* SO_BUSY_POLL; 0: off */
	int32_t cpu_plus1;	/* CPU + 1 to pin the thread to; 0: any */
	const char *filter;	/* packet sockets: tcpdump expression, or NULL */
	uint32_t promisc;	/* packet sockets: 1: promiscuous */
	uint32_t reserved;
};

/* Counters of a source beside those of its rings */
struct rgate_source_stats {
	uint64_t received;	/* messages read from the socket */
	uint64_t bytes;
	uint64_t syscalls;	/* recvmmsg calls */
	uint64_t socket_drops;	/* dropped by the kernel: socket buffer full */
	uint64_t ring_drops;	/* read and dropped: no free slot */
	uint64_t errors;	/* failed receives that were survived */
};

/*
 * rgate_source_udp - receive datagrams into a ring
 * @rings: @nrings memfd rings of this process, the source becomes their
 *	producer; the 2nd and later are used by RGATE_POLICY_SPILL
 * @addr: where to bind, AF_INET or AF_INET6
 * A slot holds an IPv4 or IPv6 header and a UDP header, made from the message's
 * addresses (dev_type ARPHRD_NONE, l3_off 0), and the datagram; so consumers
 * and capture files see packets whatever the source. Datagrams longer than a
 * slot are chained or truncated as the ring's flags say.
 * RGATE_POLICY_PASS has no meaning here: -EOPNOTSUPP.
 */
RGATE_API int rgate_source_udp(struct rgate_source **src,
			       struct rgate_ring *const *rings, unsigned int nrings,
			       const struct sockaddr *addr, socklen_t addrlen,
			       const struct rgate_source_opts *opts);

/*
 * rgate_source_packet - receive a device's frames (AF_PACKET; CAP_NET_RAW)
 * @ifname: device, or NULL: all of this network namespace
 * The stack gets the frames too, so RGATE_POLICY_PASS counts a frame that found
 * no slot as passed.
 */
RGATE_API int rgate_source_packet(struct rgate_source **src,
				  struct rgate_ring *const *rings,
				  unsigned int nrings, const char *ifname,
				  const struct rgate_source_opts *opts);

/* rgate_source_addr - where the UDP socket is bound (port 0 resolved) */
RGATE_API int rgate_source_addr(const struct rgate_source *src,
				struct sockaddr *addr, socklen_t *addrlen);

RGATE_API int rgate_source_stats(const struct rgate_source *src,
				 struct rgate_source_stats *stats);

/*
 * rgate_source_stop - ends the thread and closes the socket; the rings stay
 * open, in RGATE_STATE_CLOSED. Returns what ended the thread early (-errno), or 0.
 */
RGATE_API int rgate_source_stop(struct rgate_source *src);

#ifdef __cplusplus
}
#endif
#endif
