/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A warp of a GPU that uses a socket (<ringgate/socket.h>): the kernel of who serves the session
 * accepts, receives and sends for it, from and to a part of the session's memory that is the warp's.
 *
 *	rgate_dsocket_init(&s, &ask, off, len);
 *	while (!rgate_dsocket_accept(&s, listener, 1000000)) {
 *		while ((n = rgate_dsocket_recv(&s, 0, len, 0, 1000000)) > 0)
 *			if (rgate_dsocket_send(&s, 0, n, 1000000) != n)
 *				break;
 *		rgate_dsocket_close(&s);
 *	}
 *	rgate_dsocket_fini(&s);
 *
 * All of it is called by the whole warp, with the same arguments in each lane, and returns the same
 * in each. Sockets that the host has made, a listener or one for datagrams, are named by their
 * handles; several warps may have one. When the session ends its sockets are closed.
 */
#ifndef RINGGATE_GPU_SOCKETS_CUH
#define RINGGATE_GPU_SOCKETS_CUH

#include <ringgate/gpu/ask.cuh>
#include <ringgate/socket.h>

/* Each lane's own */
struct rgate_dsocket {
	struct rgate_dasker me;
	uint64_t off;
	uint32_t len;
	uint32_t handle;	/* 0: none */
};

/*
 * rgate_dsocket_init - a part of memory, and no socket so far
 * @ask: of rgate_gpu_session_view(); stays where it is
 * @off, @len: where in the session's memory the warp's own part lies, a multiple of 16
 * -EINVAL: it does not.
 */
RGATE_DEV int rgate_dsocket_init(struct rgate_dsocket *s, const struct rgate_dask *ask, uint64_t off,
				 uint32_t len)
{
	rgate_dasker_init(&s->me, ask, 0);
	s->off = off;
	s->len = len;
	s->handle = 0;
	return off % 16 || len > ask->memory_len || off > ask->memory_len - len ? -EINVAL : 0;
}

/* rgate_dsocket_fini - the last of this warp; what it has for a socket is not closed */
RGATE_DEV void rgate_dsocket_fini(struct rgate_dsocket *s)
{
	rgate_dasker_fini(&s->me);
}

/* rgate_dsocket_use - from now on the socket of @handle, which nobody has to close here */
RGATE_DEV void rgate_dsocket_use(struct rgate_dsocket *s, uint32_t handle)
{
	s->handle = handle;
}

/* @op of the first lane, and its answer in each; result, or what went wrong on the way */
RGATE_DEV int rgate_dsocket_ask(struct rgate_dsocket *s, struct rgate_request *q, uint16_t op,
				uint32_t handle, uint32_t limit_us, uint64_t *value)
{
	struct rgate_danswer a = { 0, 0, 0 };
	int err;

	q->op = op;
	q->handle = handle;
	q->deadline_us = limit_us;
	err = rgate_dask_call_warp(&s->me, q, rgate_dlane() == 0, &a);
	*value = rgate_dwarp_first(a.value);
	return (int)rgate_dwarp_first((uint64_t)(err ? err : a.result));
}

/* Bytes @at of the part, as a request's */
RGATE_DEV int rgate_dsocket_part(const struct rgate_dsocket *s, struct rgate_request *q, uint32_t at,
				 uint32_t n)
{
	memset(q, 0, sizeof(*q));
	q->off = s->off + at;
	q->len = n;
	return n > s->len || at > s->len - n ? -ERANGE : 0;
}

/*
 * rgate_dsocket_accept - a connection that came to @listener; it is the warp's until it is closed
 * @limit_us: how long at most, 1 at least: 4294 s are the most that can be
 * 0; -ETIMEDOUT: none has come; -EMFILE, -EDQUOT, -ENFILE: too many; -EBADF: no such listener; or
 * another error of accept(2); -EPIPE: the session is over.
 */
RGATE_DEV int rgate_dsocket_accept(struct rgate_dsocket *s, uint32_t listener, uint32_t limit_us)
{
	struct rgate_request q;
	uint64_t handle;
	int err;

	memset(&q, 0, sizeof(q));
	err = rgate_dsocket_ask(s, &q, RGATE_REQ_SOCKET_ACCEPT, listener, limit_us, &handle);
	s->handle = err ? 0 : (uint32_t)handle;
	return err;
}

/*
 * rgate_dsocket_recv - into the part, from @at on, up to @n bytes
 * @flags: RGATE_SOCKET_NOW, RGATE_SOCKET_PEEK, RGATE_SOCKET_ALL
 * Bytes, 0: the peer sends no more; -ETIMEDOUT: nothing has come in @limit_us; -ERANGE: the part is
 * shorter; -ECONNRESET or another error of recv(2); -EPIPE: the session is over. All lanes may read
 * what has come: rgate_dask_fetch() brings it near.
 */
RGATE_DEV int rgate_dsocket_recv(struct rgate_dsocket *s, uint32_t at, uint32_t n, uint32_t flags,
				 uint32_t limit_us)
{
	struct rgate_request q;
	uint64_t none;
	int err = rgate_dsocket_part(s, &q, at, n);

	q.a0 = flags;
	return err ? err : rgate_dsocket_ask(s, &q, RGATE_REQ_SOCKET_RECV, s->handle, limit_us, &none);
}

/*
 * rgate_dsocket_send - @n bytes of the part, from @at on, which any lane may have written
 * How many were sent: fewer than @n when the time was over or an error came in between, which the
 * next call tells; -EPIPE: the peer takes no more, or the session is over; else likewise
 */
RGATE_DEV int rgate_dsocket_send(struct rgate_dsocket *s, uint32_t at, uint32_t n, uint32_t limit_us)
{
	struct rgate_request q;
	uint64_t none;
	int err = rgate_dsocket_part(s, &q, at, n);

	return err ? err : rgate_dsocket_ask(s, &q, RGATE_REQ_SOCKET_SEND, s->handle, limit_us, &none);
}

/* @op, whose address lies @addr bytes into the part */
RGATE_DEV int rgate_dsocket_datagram(struct rgate_dsocket *s, uint16_t op, uint32_t at, uint32_t n,
				     uint32_t addr, uint32_t limit_us, uint64_t *whole)
{
	struct rgate_request q;
	int err = rgate_dsocket_part(s, &q, addr, sizeof(struct rgate_socket_addr));

	if (!err)
		err = rgate_dsocket_part(s, &q, at, n);
	q.a1 = s->off + addr;
	return err ? err : rgate_dsocket_ask(s, &q, op, s->handle, limit_us, whole);
}

/*
 * rgate_dsocket_recvfrom - a datagram, likewise
 * @from: where in the part the sender's address goes, a struct rgate_socket_addr
 * @whole: out: all its bytes, which may be more than came
 */
RGATE_DEV int rgate_dsocket_recvfrom(struct rgate_dsocket *s, uint32_t at, uint32_t n, uint32_t from,
				     uint32_t limit_us, uint64_t *whole)
{
	return rgate_dsocket_datagram(s, RGATE_REQ_SOCKET_RECVFROM, at, n, from, limit_us, whole);
}

/* rgate_dsocket_sendto - a datagram, to the address that lies @to bytes into the part */
RGATE_DEV int rgate_dsocket_sendto(struct rgate_dsocket *s, uint32_t at, uint32_t n, uint32_t to,
				   uint32_t limit_us)
{
	uint64_t none;

	return rgate_dsocket_datagram(s, RGATE_REQ_SOCKET_SENDTO, at, n, to, limit_us, &none);
}

/* rgate_dsocket_shutdown - @how: RGATE_SOCKET_SHUT_*; behind what is being sent */
RGATE_DEV int rgate_dsocket_shutdown(struct rgate_dsocket *s, uint32_t how, uint32_t limit_us)
{
	struct rgate_request q;
	uint64_t none;

	memset(&q, 0, sizeof(q));
	q.a0 = how;
	return rgate_dsocket_ask(s, &q, RGATE_REQ_SOCKET_SHUTDOWN, s->handle, limit_us, &none);
}

/* rgate_dsocket_close - the warp has no socket then, whatever it returns; 0, also if it had none */
RGATE_DEV int rgate_dsocket_close(struct rgate_dsocket *s)
{
	uint32_t handle = s->handle;
	struct rgate_request q;
	uint64_t none;

	s->handle = 0;
	memset(&q, 0, sizeof(q));
	return handle ? rgate_dsocket_ask(s, &q, RGATE_REQ_SOCKET_CLOSE, handle, 0, &none) : 0;
}

#endif
