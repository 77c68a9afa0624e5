/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What the operations of RGATE_REQ_SOCKET have in their words and in memory: sockets of the
 * network stack of who serves. Documentation/sockets.rst tells what they do.
 */
#ifndef RINGGATE_SOCKET_H
#define RINGGATE_SOCKET_H

#include <linux/types.h>
#include <ringgate/assert.h>

/* As Linux numbers them */
enum rgate_socket_family {
	RGATE_SOCKET_INET = 2,
	RGATE_SOCKET_INET6 = 10,
};

enum rgate_socket_type {
	RGATE_SOCKET_STREAM = 1,	/* TCP */
	RGATE_SOCKET_DGRAM = 2,		/* UDP */
};

/* rgate_request.a0 of SOCKET */
#define RGATE_SOCKET_A0(family, type)	((__u64)(family) | (__u64)(type) << 16)

/* An address in memory, at any offset */
struct rgate_socket_addr {
	__u16 family;		/* enum rgate_socket_family */
	__u16 port;		/* in the machine's byte order */
	__u32 scope;		/* INET6: the index of a device, where who serves has one; or 0 */
	__u32 flow;		/* INET6: flow information, in the machine's byte order */
	__u32 reserved;		/* 0 */
	__u8 addr[16];		/* INET: the first four, the others are 0 */
};

/* Of SEND, SENDTO, RECV, RECVFROM, POLL */
#define RGATE_SOCKET_NOW	(1U << 0)	/* -EAGAIN instead of waiting */
#define RGATE_SOCKET_PEEK	(1U << 1)	/* RECV, RECVFROM: what is read stays */
#define RGATE_SOCKET_ALL	(1U << 2)	/* RECV of a stream: ends when all of it is there */

/* rgate_request.a1 of ACCEPT with RGATE_REQ_MULTI: completions at most */
#define RGATE_SOCKET_ACCEPT_MOST	1024U

/* rgate_request.a0 of SHUTDOWN */
#define RGATE_SOCKET_SHUT_RECV	1U
#define RGATE_SOCKET_SHUT_SEND	2U

/* rgate_request.a0 of POLL, and its value; ERROR and HANGUP are told without being asked for */
#define RGATE_SOCKET_IN		(1U << 0)	/* something to receive, its end, a connection */
#define RGATE_SOCKET_OUT	(1U << 1)	/* room to send, or connected */
#define RGATE_SOCKET_RDHUP	(1U << 2)	/* the peer sends no more */
#define RGATE_SOCKET_ERROR	(1U << 3)
#define RGATE_SOCKET_HANGUP	(1U << 4)
#define RGATE_SOCKET_EVENTS	31U

/*
 * RESOLVE: a name and a service, without an end each, one after the other; one may be empty. In
 * their place come addresses, as many as there is room for, and behind them, if it was asked for
 * and has room, the name's proper form and a byte of 0.
 * @family, @type: 0: any; @flags: RGATE_SOCKET_RESOLVE_*; @name, @service: bytes
 */
#define RGATE_SOCKET_RESOLVE_A0(family, type, flags) \
	((__u64)(family) | (__u64)(type) << 16 | (__u64)(flags) << 32)
#define RGATE_SOCKET_RESOLVE_A1(name, service)	((__u64)(name) | (__u64)(service) << 16)

#define RGATE_SOCKET_NAME_MAX		255U	/* bytes */
#define RGATE_SOCKET_SERVICE_MAX	32U
#define RGATE_SOCKET_FOUND_MAX		64U	/* addresses of an answer */

/* As those of getaddrinfo(3) */
#define RGATE_SOCKET_RESOLVE_PASSIVE	(1U << 0)	/* no name: addresses to be bound to */
#define RGATE_SOCKET_RESOLVE_CANON	(1U << 1)	/* the name's proper form, too */
#define RGATE_SOCKET_RESOLVE_NUMERIC	(1U << 2)	/* the name is an address */
#define RGATE_SOCKET_RESOLVE_PORT	(1U << 3)	/* the service is a number */
#define RGATE_SOCKET_RESOLVE_V4MAPPED	(1U << 4)
#define RGATE_SOCKET_RESOLVE_ALL	(1U << 5)
#define RGATE_SOCKET_RESOLVE_CONFIGURED	(1U << 6)	/* of families that have addresses there */
#define RGATE_SOCKET_RESOLVE_FLAGS	127U

/* rgate_completion.value of RESOLVE: addresses that there are; bytes of the name, without its 0 */
#define RGATE_SOCKET_FOUND(value)	((__u32)(value))
#define RGATE_SOCKET_CANON(value)	((__u32)((value) >> 32))

/* rgate_request.a0 of SETSOCKOPT and GETSOCKOPT. Values are what Linux has for them: __s32, unless
 * said otherwise.
 */
enum rgate_socket_option {
	RGATE_SOCKET_ERROR_CODE = 1,	/* get; and clears it */
	RGATE_SOCKET_TYPE = 2,		/* get */
	RGATE_SOCKET_DOMAIN = 3,	/* get */
	RGATE_SOCKET_PROTOCOL = 4,	/* get */
	RGATE_SOCKET_ACCEPTCONN = 5,	/* get */
	RGATE_SOCKET_REUSEADDR = 6,
	RGATE_SOCKET_REUSEPORT = 7,
	RGATE_SOCKET_KEEPALIVE = 8,
	RGATE_SOCKET_LINGER = 9,	/* struct rgate_socket_linger */
	RGATE_SOCKET_SNDBUF = 10,
	RGATE_SOCKET_RCVBUF = 11,
	RGATE_SOCKET_BROADCAST = 12,

	RGATE_SOCKET_TCP_NODELAY = 20,
	RGATE_SOCKET_TCP_CORK = 21,
	RGATE_SOCKET_TCP_KEEPIDLE = 22,
	RGATE_SOCKET_TCP_KEEPINTVL = 23,
	RGATE_SOCKET_TCP_KEEPCNT = 24,
	RGATE_SOCKET_TCP_SYNCNT = 25,
	RGATE_SOCKET_TCP_USER_TIMEOUT = 26,
	RGATE_SOCKET_TCP_DEFER_ACCEPT = 27,
	RGATE_SOCKET_TCP_QUICKACK = 28,
	RGATE_SOCKET_TCP_MAXSEG = 29,
	RGATE_SOCKET_TCP_NOTSENT_LOWAT = 30,
	RGATE_SOCKET_TCP_CONGESTION = 31, /* up to 16 bytes: a name */
	RGATE_SOCKET_TCP_INFO = 32,	/* get: struct tcp_info, as much as there is room for */

	RGATE_SOCKET_IP_TTL = 40,
	RGATE_SOCKET_IP_TOS = 41,
	RGATE_SOCKET_IP_MTU_DISCOVER = 42,

	RGATE_SOCKET_IPV6_V6ONLY = 50,
	RGATE_SOCKET_IPV6_HOPS = 51,
	RGATE_SOCKET_IPV6_TCLASS = 52,
};

#define RGATE_SOCKET_OPTION_MAX	256U	/* bytes of a value */

struct rgate_socket_linger {
	__s32 on;
	__s32 seconds;
};

RGATE_AT(struct rgate_socket_addr, family, 0);
RGATE_AT(struct rgate_socket_addr, port, 2);
RGATE_AT(struct rgate_socket_addr, scope, 4);
RGATE_AT(struct rgate_socket_addr, flow, 8);
RGATE_AT(struct rgate_socket_addr, reserved, 12);
RGATE_AT(struct rgate_socket_addr, addr, 16);
RGATE_ASSERT(sizeof(struct rgate_socket_addr) == 32);
RGATE_AT(struct rgate_socket_linger, on, 0);
RGATE_AT(struct rgate_socket_linger, seconds, 4);
RGATE_ASSERT(sizeof(struct rgate_socket_linger) == 8);

#endif /* RINGGATE_SOCKET_H */
