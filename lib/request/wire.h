/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * How a client gets its session from a daemon: over a SOCK_SEQPACKET socket of AF_UNIX it
 * sends one struct rgate_hello and gets one struct rgate_welcome, with descriptors if that
 * says 0. From then on nothing is sent: the connection is the session's life. When the client's
 * end closes, however that came about, the session is over, and likewise the other way.
 *
 * Both are of one machine, and in its byte order. Later versions append fields: who reads takes
 * as many bytes as it knows, and what a shorter message lacks is 0.
 */
#ifndef RGATE_REQUEST_WIRE_H
#define RGATE_REQUEST_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include <ringgate/assert.h>

#define RGATE_HELLO_MAGIC	0x48524752U	/* "RGRH" */
#define RGATE_WELCOME_MAGIC	0x57524752U	/* "RGRW" */
#define RGATE_WIRE_MAX		512U		/* bytes of a message */

/* Client to daemon */
struct rgate_hello {
	uint32_t magic;
	uint16_t version_min;	/* of the area (RGATE_REQ_VERSION) that the client speaks */
	uint16_t version_max;
	uint64_t features;	/* that it knows */
	uint32_t requests;	/* places, power of two */
	uint32_t completions;	/* likewise */
	uint64_t memory;	/* bytes, whole pages; 0: none */
	uint64_t reserved[4];
};

/* What came with a welcome, in this order */
enum rgate_welcome_fd {
	RGATE_FD_AREA,		/* memfd: the area, see <ringgate/request.h> */
	RGATE_FD_KICK,		/* eventfd: 8 bytes written wake the engine */
	RGATE_FD_WAIT,		/* epoll: readable by the edge that a want asked for */
	RGATE_FD_MEMORY,	/* memfd: RGATE_REQ_MEM_SESSION; not there if memory is 0 */
	RGATE_FDS
};

/* Daemon to client. The descriptors are the receiver's. */
struct rgate_welcome {
	uint32_t magic;
	uint16_t version;	/* of the area; with an error: the highest the daemon speaks */
	uint16_t version_min;	/* the lowest */
	int32_t error;		/* 0, or -errno: as rgate_session_open(); nothing comes with it */
	uint32_t owner;		/* rgate_req_head.owner */
	uint64_t features;	/* of both */
	uint64_t area_len;	/* bytes */
	uint32_t requests;	/* places, at most what was asked for */
	uint32_t completions;
	uint64_t memory;	/* bytes of the file */
	uint64_t memory_off;	/* where in it the session's begins; whole pages */
	uint32_t max_requests;	/* completions to come, of the user; 0: as places allow */
	uint32_t max_handles;	/* of the user; 0: no limit */
	uint64_t services;	/* bit N: the user may ask service N */
	uint64_t reserved[3];
};

RGATE_ASSERT(sizeof(struct rgate_hello) == 64);
RGATE_ASSERT(sizeof(struct rgate_welcome) == 96);

/*
 * rgate_wire_send - one message, with @nfds descriptors, which stay the caller's
 * Never raises SIGPIPE. 0; -EAGAIN; -EPIPE; -EMSGSIZE; -errno of sendmsg(2). Thread-safe.
 */
int rgate_wire_send(int sock, const void *msg, size_t len, const int *fds, unsigned int nfds,
		    int flags);

/*
 * rgate_wire_recv - one message of at most @len bytes; beyond what came @msg is zeroed
 * @fds: out, room for RGATE_FDS; those that came are the caller's, close-on-exec. NULL: none
 *	are taken, which matters: to close one's own descriptor of what somebody sent can take
 *	as long as he likes
 * @nfds: out, how many; NULL with @fds
 * Returns the bytes that came, at most @len: a longer message is cut; -EPIPE: the other end is
 * closed; -EPROTO: more descriptors than fit; -errno of recvmsg(2). Then no descriptor stays.
 */
int rgate_wire_recv(int sock, void *msg, size_t len, int *fds, unsigned int *nfds, int flags);

#endif
