/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The userspace receive thread: fills memfd rings from a UDP or a packet socket
 * with recvmmsg(2), straight into the slots. No module; UDP needs no privilege.
 *
 * A source owns one thread, which sleeps while nothing arrives; one that is driven has
 * none, and its owner's thread calls rgate_source_turn(). Functions on one source may be
 * called from several threads, rgate_source_turn() from one at a time, rgate_source_stop()
 * once and last.
 * rgate_slot.tstamp is when the thread took the message, by the ring's clock, one
 * reading a message; rgate_slot.gap and the ring's counters tell of frames that
 * found no slot, rgate_source_stats.socket_drops of those lost before.
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
	uint32_t driven;	/* 1: no thread, see rgate_source_turn(); cpu_plus1 is 0 then */
};

/* Counters of a source beside those of its rings */
struct rgate_source_stats {
	uint64_t received;	/* messages read from the socket */
	uint64_t bytes;		/* of those, as sent */
	uint64_t syscalls;	/* recvmmsg calls */
	uint64_t socket_drops;	/* dropped by the kernel: socket buffer full */
	uint64_t ring_drops;	/* read and dropped: no free slot */
	uint64_t errors;	/* failed receives that were survived */
	int64_t error;		/* -errno: what ended it early; 0 */
	uint64_t reserved[3];	/* 0 */
};

/*
 * rgate_source_start_udp - receive datagrams into a ring
 * @rings: @nrings memfd rings of this process, the source becomes their
 *	producer; the 2nd and later are used by RGATE_POLICY_SPILL
 * @src: out; end it with rgate_source_stop()
 * @addr: where to bind, AF_INET or AF_INET6 (IPv6 only: no IPv4 through it)
 * A slot holds an IPv4 or IPv6 header and a UDP header, made from the message's
 * addresses (dev_type ARPHRD_NONE, l3_off 0), and the datagram; so consumers
 * and capture files see packets whatever the source. Datagrams longer than a
 * slot are chained or truncated as the ring's flags say.
 * In the headers made here checksums are right (0, none, for UDP over IPv4; 0 in
 * datagrams over IPv6 that are cut to one slot), TTL and hop limit are 64, and the
 * destination is the address the socket is bound to; one bound to the wildcard
 * address learns the true one, and ifindex, with each message.
 * Where all is full the message is read and counted as dropped, so that newer ones
 * are not stale; RGATE_POLICY_PASS has no meaning here: -EOPNOTSUPP.
 * -EBUSY: a ring has a producer; -EOPNOTSUPP: not a memfd ring of this process;
 * -EINVAL: options; or what socket(2), setsockopt(2), bind(2) say.
 */
RGATE_API int rgate_source_start_udp(struct rgate_source **src,
				     struct rgate_ring *const *rings, unsigned int nrings,
				     const struct sockaddr *addr, socklen_t addrlen,
				     const struct rgate_source_opts *opts);

/*
 * rgate_source_start_packet - receive a device's frames (AF_PACKET; CAP_NET_RAW)
 * @ifname: device, or NULL: all of this network namespace
 * The stack gets the frames too, so RGATE_POLICY_PASS counts a frame that found
 * no slot as passed. Frames sent by this machine are left out. A frame's VLAN tag
 * is in the slot's header. Ends with -ENODEV when its device is removed.
 * -EPERM: no CAP_NET_RAW; -ENODEV: no such device; -EINVAL: options or filter; and
 * as rgate_source_start_udp().
 */
RGATE_API int rgate_source_start_packet(struct rgate_source **src,
					struct rgate_ring *const *rings,
					unsigned int nrings, const char *ifname,
					const struct rgate_source_opts *opts);

/*
 * rgate_source_addr - where the UDP socket is bound (port 0 resolved)
 * @addrlen: in: bytes at @addr; out: bytes of the address, more than that if cut
 * -EOPNOTSUPP: not a UDP source
 */
RGATE_API int rgate_source_addr(const struct rgate_source *src,
				struct sockaddr *addr, socklen_t *addrlen);

/*
 * rgate_source_socket - the socket, to answer from the address that was written to
 * Owned by the source, valid until rgate_source_stop(). Send through it; what is
 * received or set on it here is taken from the source.
 */
RGATE_API int rgate_source_socket(const struct rgate_source *src);

/*
 * rgate_source_turn - one receive of a driven source, of a batch at most, into its rings
 * Who consumes them in the same thread needs no wakeup: one thread may drive several
 * sources, and a gateway does (rgate_gateway_add_source()). Consumers elsewhere are woken
 * once a batch, when the socket is empty.
 * Returns 1: there may be more; 0: there is nothing, sleep until rgate_source_socket() is
 * readable, but not for ever: the resize of a ring takes effect here; -errno: the source has
 * ended, and so have its rings. -EOPNOTSUPP: not driven. An error that may last, as a lack
 * of memory, costs 1 ms.
 */
RGATE_API int rgate_source_turn(struct rgate_source *src);

/* rgate_source_stats - a snapshot of the counters; one getsockopt(2) */
RGATE_API int rgate_source_stats(const struct rgate_source *src,
				 struct rgate_source_stats *stats);

/*
 * rgate_source_stop - ends the thread and closes the socket; the rings stay
 * open, in RGATE_STATE_CLOSED. NULL is allowed. What ended the source early is told by
 * rgate_source_stats() before. Nobody may drive it any more.
 */
RGATE_API void rgate_source_stop(struct rgate_source *src);

#ifdef __cplusplus
}
#endif
#endif
