/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Sends what an output ring holds: a thread that takes packets, complete with headers,
 * out of a ring and hands them to a socket, many a call (sendmmsg(2)). What is in them was
 * decided by whoever filled the ring: a GPU, through rgate_gpu_bind_output(). In
 * libringgate-gpu.
 */
#ifndef RINGGATE_RGATE_RESPONDER_H
#define RINGGATE_RGATE_RESPONDER_H

#include <ringgate/rgate_ring.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rgate_responder;

struct rgate_responder_opts {
	size_t sz;
	int32_t udp_socket_plus1; /* UDP socket + 1, the caller's: datagrams */
	int32_t cpu_plus1;	/* CPU + 1 to pin the thread to; 0: any */
	const char *ifname;	/* or a device: frames, as they are (CAP_NET_RAW) */
	uint32_t spin_us;	/* polls so long before it sleeps; 0: 200 */
	uint32_t batch;		/* messages a call, 1 to 256; 0: 64 */
};

struct rgate_responder_stats {
	size_t sz;		/* in: sizeof(struct rgate_responder_stats) */
	uint64_t sent;		/* packets */
	uint64_t bytes;		/* of those, as handed to the socket */
	uint64_t calls;		/* of sendmmsg(2) */
	uint64_t malformed;	/* no IPv4 or IPv6 UDP packet, or of the wrong family */
	uint64_t errors;	/* packets that the socket refused */
	uint64_t cpu_ns;	/* of the thread */
};

/*
 * rgate_responder_start - the thread becomes the ring's only consumer
 * @ring: stays the caller's and open until rgate_responder_stop()
 * With udp_socket_plus1 a slot holds an IPv4 or IPv6 packet at l3_off with a UDP header at
 * l4_off, as rgate_source_start_udp() makes them: its payload is sent to its destination. The
 * source is what the socket is bound to: take rgate_source_socket() to answer from the
 * address that was asked. Checksums are the kernel's.
 * With ifname a slot holds a whole frame.
 * A packet is in one slot; chains count as malformed. What a full socket refuses is waited
 * for, 100 ms at most; other errors cost the one packet.
 * -EINVAL: options; or what socket(2), bind(2) say; -ENODEV: no such device.
 */
RGATE_API int rgate_responder_start(struct rgate_responder **resp, struct rgate_ring *ring,
				    const struct rgate_responder_opts *opts);

RGATE_API int rgate_responder_stats(const struct rgate_responder *resp,
				    struct rgate_responder_stats *stats);

/* rgate_responder_stop - sends what is there, a ring full at most, and ends the thread; NULL
 * is allowed */
RGATE_API void rgate_responder_stop(struct rgate_responder *resp);

#ifdef __cplusplus
}
#endif
#endif
