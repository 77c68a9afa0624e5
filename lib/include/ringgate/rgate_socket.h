/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Sockets by requests: of the network stack of ringgated's machine, or of this process.
 *
 *	rgate_sockets_open(&set, NULL);
 *	rgate_socket_open(set, &s, RGATE_SOCKET_INET, RGATE_SOCKET_STREAM);
 *	rgate_socket_connect(s, &addr);
 *	n = rgate_socket_send(s, buf, len, 0);
 *
 * A set has a session, with memory that is sent from and received into: the kernel of who serves
 * copies straight from and to it. What is done on a socket is either waited for, as above, or
 * begun with rgate_socket_begin() and its end taken with rgate_sockets_next(); both may be mixed
 * on one socket. With RGATE_SOCKET_NOW a call of either kind ends with -EAGAIN instead of waiting.
 *
 * A set and its sockets are one thread's at a time. After fork(2) they are the parent's: in the
 * child all calls but rgate_sockets_close() return -EOWNERDEAD.
 */
#ifndef RINGGATE_RGATE_SOCKET_H
#define RINGGATE_RGATE_SOCKET_H

#include <ringgate/rgate.h>
#include <ringgate/rgate_session.h>
#include <ringgate/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rgate_sockets;
struct rgate_socket;

struct rgate_sockets_opts {
	size_t sz;
	const char *path;	/* as of rgate_session_opts */
	uint32_t where;		/* enum rgate_session_where */
	uint32_t requests;	/* under way at once; 0: RGATE_REQ_PLACES_DEFAULT; rounded up */
	uint64_t memory;	/* bytes of rgate_sockets_memory(); 0: 1 MiB; rounded up */
	uint32_t spin_us;	/* as of rgate_session_opts */
	uint32_t reserved;
};

/*
 * rgate_sockets_open - a set without sockets
 * @opts: NULL: the daemon or this process, 256 requests, 1 MiB of memory
 * As rgate_session_open(); -EACCES: a daemon does not let this user ask for sockets.
 */
RGATE_API int rgate_sockets_open(struct rgate_sockets **set,
				 const struct rgate_sockets_opts *opts);

/* rgate_sockets_close - closes all sockets of the set, too; NULL is allowed */
RGATE_API void rgate_sockets_close(struct rgate_sockets *set);

/* rgate_sockets_memory - what can be sent and received into. @len: out, may be NULL */
RGATE_API void *rgate_sockets_memory(const struct rgate_sockets *set, size_t *len);

/*
 * What can be begun. Each has one end, in any order between sockets; sends of one socket, and
 * receives of one, go one after the other in the order in which they were begun.
 */
enum rgate_socket_do {
	RGATE_SOCKET_DO_SEND = 1,	/* buf, len, flags; addr: of a datagram, may be NULL */
	RGATE_SOCKET_DO_RECV = 2,	/* likewise; the sender is in the end */
	RGATE_SOCKET_DO_ACCEPT = 3,
	RGATE_SOCKET_DO_CONNECT = 4,	/* addr */
	RGATE_SOCKET_DO_POLL = 5,	/* flags: RGATE_SOCKET_NOW; events */
	RGATE_SOCKET_DO_SHUTDOWN = 6,	/* events: RGATE_SOCKET_SHUT_* */
	RGATE_SOCKET_DO_RESOLVE = 7,	/* by rgate_sockets_resolve_begin() alone */
};

struct rgate_socket_io {
	size_t sz;
	uint32_t what;		/* enum rgate_socket_do */
	uint32_t flags;		/* RGATE_SOCKET_NOW, ... */
	void *buf;		/* in rgate_sockets_memory(), the set's until the end */
	uint32_t len;
	uint32_t events;
	const struct rgate_socket_addr *addr; /* is copied */
	uint64_t cookie;	/* comes back with the end */
	uint32_t deadline_us;	/* 0: none */
	uint32_t reserved;
};

/* How one has ended */
struct rgate_socket_end {
	size_t sz;
	struct rgate_socket *socket;	/* that it was begun on; RESOLVE: NULL */
	uint64_t cookie;
	int32_t result;		/* bytes, or 0; RESOLVE: addresses; -errno */
	uint32_t what;		/* enum rgate_socket_do */
	uint64_t value;		/* POLL: events; RECV of a datagram: its whole length; RESOLVE:
				 * RGATE_SOCKET_FOUND(), RGATE_SOCKET_CANON() */
	struct rgate_socket *accepted;	/* ACCEPT; else NULL */
	struct rgate_socket_addr addr;	/* ACCEPT: the peer's; RECV of a datagram: the sender's */
};

/*
 * rgate_socket_begin - does not wait
 * 0: rgate_sockets_next() tells of its end. -EAGAIN: as many are under way as can be: take ends;
 * -EINVAL; -EFAULT: buf is not in the set's memory; -EPIPE: the session is over; -EOWNERDEAD.
 */
RGATE_API int rgate_socket_begin(struct rgate_socket *s, const struct rgate_socket_io *io);

/*
 * rgate_socket_cancel - ends those of the socket with that cookie, as rgate_session_cancel()
 * What has moved bytes ends with their number. How many were told; -EAGAIN; -EPIPE
 */
RGATE_API int rgate_socket_cancel(struct rgate_socket *s, uint64_t cookie);

/*
 * rgate_sockets_next - the next end of what was begun
 * @end: its sz is set by the caller; @timeout_ms: -1: no limit; 0: only looks
 * 1; 0: none in time; -EINTR; -EPIPE: the session is over, and no end comes any more: what was
 * under way has no known result, and its part of the set's memory may still be in use, see
 * rgate_session.h; -EOWNERDEAD.
 */
RGATE_API int rgate_sockets_next(struct rgate_sockets *set, struct rgate_socket_end *end,
				 int timeout_ms);

/* For poll(2) and epoll(7), as rgate_session_fd(), rgate_session_arm(): 1: there may be an end */
RGATE_API int rgate_sockets_fd(const struct rgate_sockets *set);
RGATE_API int rgate_sockets_arm(struct rgate_sockets *set);

/* ---- Names ---- */

/* What getaddrinfo(3) is asked where sockets are: at the daemon, or its gateway */
struct rgate_socket_query {
	size_t sz;
	const char *name;	/* NULL: none */
	const char *service;	/* likewise: a name, or a port's number */
	uint32_t family;	/* enum rgate_socket_family; 0: any */
	uint32_t type;		/* enum rgate_socket_type; 0: any */
	uint32_t flags;		/* RGATE_SOCKET_RESOLVE_* */
	/*
	 * In the set's memory: addresses come to be there, in the order in which to try them,
	 * and the name's proper form, if asked for, with its 0 behind the last one. The set's
	 * until the end
	 */
	void *buf;
	uint32_t len;		/* at least an address, and as long as name and service are */
	uint32_t deadline_us;	/* 0: none; getaddrinfo() may take half a minute */
	uint64_t cookie;	/* as of rgate_socket_io */
};

/*
 * rgate_sockets_resolve - looks a name up, and waits for it
 * @value: out, may be NULL: RGATE_SOCKET_FOUND(): addresses that there are, though there may be
 * room for fewer; RGATE_SOCKET_CANON(): bytes of the name behind them, 0: none
 * How many addresses are in buf; -ENOENT, -ENODATA, ...: rgate_socket_eai() tells them apart;
 * -EACCES: the policy; -EDQUOT, -ENOBUFS: too many wait, of this user, of all; -ETIMEDOUT;
 * -EINVAL; -ENAMETOOLONG, -EILSEQ: no name is like that; -EFAULT; -EOPNOTSUPP: who serves is of an
 * older version; -EPROTO: what came is no answer; -EAGAIN, -EPIPE, -EOWNERDEAD: as of
 * rgate_socket_begin()
 */
RGATE_API int rgate_sockets_resolve(struct rgate_sockets *set, const struct rgate_socket_query *q,
				    uint64_t *value);

/* The same without waiting, as rgate_socket_begin(): rgate_sockets_next() tells of its end */
RGATE_API int rgate_sockets_resolve_begin(struct rgate_sockets *set,
					  const struct rgate_socket_query *q);

/* Of those begun by it, as rgate_socket_cancel() */
RGATE_API int rgate_sockets_cancel(struct rgate_sockets *set, uint64_t cookie);

/*
 * rgate_socket_eai - EAI_*, of <netdb.h>, for what rgate_sockets_resolve() returned
 * ENOENT is EAI_NONAME, ENODATA EAI_NODATA, EADDRNOTAVAIL EAI_ADDRFAMILY, EHOSTUNREACH EAI_AGAIN,
 * EREMOTEIO EAI_FAIL, EPROTONOSUPPORT EAI_SERVICE; what has no other is EAI_SYSTEM, and errno is
 * set.
 */
RGATE_API int rgate_socket_eai(int err);

/* ---- One socket ---- */

/*
 * rgate_socket_open - as socket(2); -EMFILE, -EDQUOT, -ENFILE: too many; -EUSERS: at a gateway,
 * sessions of this node come too fast; -EAFNOSUPPORT; -EINVAL
 * This and all below wait until it is done: what else has ended meanwhile is kept for
 * rgate_sockets_next(). -EPIPE: the session is over. -EAGAIN: as of rgate_socket_begin()
 */
RGATE_API int rgate_socket_open(struct rgate_sockets *set, struct rgate_socket **s,
				uint32_t family, uint32_t type);

/*
 * rgate_socket_close - what is under way ends with -ECANCELED, and is not told. NULL is allowed
 * Its buffers are the caller's again, and it is closed, whatever this returns, and however much is
 * under way: -ETIMEDOUT: RGATE_SOCKET_LINGER took longer than rgate_socket_timeout(), the kernel
 * goes on; -EPIPE: the session is over, and buffers of what was under way may still be in use.
 */
RGATE_API int rgate_socket_close(struct rgate_socket *s);

/* rgate_socket_timeout - of the calls that wait, in ms, which then say -ETIMEDOUT; 0: none */
RGATE_API void rgate_socket_timeout(struct rgate_socket *s, uint32_t ms);

/* As the calls of those names; errors are theirs, and -EACCES is also the policy's */
RGATE_API int rgate_socket_bind(struct rgate_socket *s, const struct rgate_socket_addr *addr);
RGATE_API int rgate_socket_listen(struct rgate_socket *s, int backlog);
/* @addr: one of family 0 disconnects a socket of datagrams */
RGATE_API int rgate_socket_connect(struct rgate_socket *s, const struct rgate_socket_addr *addr);
/* @peer: may be NULL */
RGATE_API int rgate_socket_accept(struct rgate_socket *s, struct rgate_socket **accepted,
				  struct rgate_socket_addr *peer);
RGATE_API int rgate_socket_shutdown(struct rgate_socket *s, uint32_t how);
RGATE_API int rgate_socket_name(struct rgate_socket *s, struct rgate_socket_addr *addr);
RGATE_API int rgate_socket_peer(struct rgate_socket *s, struct rgate_socket_addr *addr);
/* @option: enum rgate_socket_option. _getopt(): how many bytes */
RGATE_API int rgate_socket_setopt(struct rgate_socket *s, uint32_t option, const void *value,
				  uint32_t len);
RGATE_API int rgate_socket_getopt(struct rgate_socket *s, uint32_t option, void *value,
				  uint32_t len);

/* @buf: in the set's memory. How many bytes; of a stream all of them, or up to an error */
RGATE_API int rgate_socket_send(struct rgate_socket *s, const void *buf, uint32_t len,
				uint32_t flags);
/* 0: the end of the stream */
RGATE_API int rgate_socket_recv(struct rgate_socket *s, void *buf, uint32_t len, uint32_t flags);
RGATE_API int rgate_socket_sendto(struct rgate_socket *s, const void *buf, uint32_t len,
				  uint32_t flags, const struct rgate_socket_addr *addr);
/* @addr: out, may be NULL; @full: out, may be NULL: the datagram's own length */
RGATE_API int rgate_socket_recvfrom(struct rgate_socket *s, void *buf, uint32_t len,
				    uint32_t flags, struct rgate_socket_addr *addr,
				    uint32_t *full);
/* Which of @events, and errors, are there; 0: none within @timeout_ms, -1: no limit */
RGATE_API int rgate_socket_poll(struct rgate_socket *s, uint32_t events, int timeout_ms);

/*
 * rgate_socket_addr_parse - 10.0.0.1:80, [2001:db8::1]:80; numbers alone. -EINVAL
 * rgate_socket_addr_print - the other way; @len: 64 is enough. Returns @text
 */
RGATE_API int rgate_socket_addr_parse(const char *text, struct rgate_socket_addr *addr);
RGATE_API char *rgate_socket_addr_print(const struct rgate_socket_addr *addr, char *text,
					size_t len);

#ifdef __cplusplus
}
#endif
#endif
