// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "local.h"

void local_fail(struct rgate_conn *conn)
{
	conn->failed = true;
	shutdown(conn->sock, SHUT_RDWR);
	if (conn->in_sock != conn->sock)
		shutdown(conn->in_sock, SHUT_RDWR);
}

static void ring(struct rgate_conn *conn)
{
	events_wake(&conn->ev);
	conn->rung = true;
}

static void complete(struct rgate_conn *conn, uint64_t id, int status)
{
	/* There is room for all that may be outstanding; more is the caller's mistake. */
	if (conn->done_in - conn->done_out == conn->done_depth)
		return;
	conn->done[conn->done_in++ % conn->done_depth] = (struct rgate_prov_done){
		.kind = RGATE_PROV_SENT, .status = status, .id = id,
	};
	if (conn->armed)
		ring(conn);
	conn->armed = false;
}

static uint32_t needed(uint8_t kind)
{
	switch (kind) {
	case RGATE_OP_READ:
		return RGATE_ACCESS_REMOTE_READ;
	case RGATE_OP_FETCH_ADD:
	case RGATE_OP_COMPARE_SWAP:
		return RGATE_ACCESS_REMOTE_ATOMIC;
	default:
		return RGATE_ACCESS_REMOTE_WRITE;
	}
}

/* A word that somebody polls is written and read in one piece. */
static bool is_word(const void *at, const struct rgate_op *op)
{
	return op->nsge == 1 && op->sge[0].length == 8 && (uintptr_t)at % 8 == 0;
}

static void copy_out(unsigned char *to, const struct rgate_op *op)
{
	unsigned int i;
	uint64_t v;

	/* What was written before is visible first; pairs with the reader's acquire. */
	if (is_word(to, op)) {
		memcpy(&v, op->sge[0].addr, sizeof(v));
		__atomic_store_n((uint64_t *)to, v, __ATOMIC_RELEASE);
		return;
	}
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (i = 0; i < op->nsge; i++) {
		memcpy(to, op->sge[i].addr, op->sge[i].length);
		to += op->sge[i].length;
	}
}

static void copy_in(const unsigned char *from, const struct rgate_op *op)
{
	unsigned int i;
	uint64_t v;

	/* A read makes earlier writes visible to the peer, as it does on a device. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (is_word(from, op)) {
		v = __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE);
		memcpy(op->sge[0].addr, &v, sizeof(v));
		return;
	}
	for (i = 0; i < op->nsge; i++) {
		memcpy(op->sge[i].addr, from, op->sge[i].length);
		from += op->sge[i].length;
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static void change(uint64_t *word, const struct rgate_op *op)
{
	uint64_t old = op->operand;

	if (op->kind == RGATE_OP_FETCH_ADD)
		old = __atomic_fetch_add(word, op->operand, __ATOMIC_SEQ_CST);
	else
		__atomic_compare_exchange_n(word, &old, op->swap, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	memcpy(op->sge[0].addr, &old, sizeof(old));
}

/* @wait: for the peer, which has to tell where its memory is; else -EAGAIN */
static int move(struct rgate_conn *conn, const struct rgate_op *op, bool wait)
{
	const uint64_t bytes = rgate_op_bytes(op);
	struct local_place place;
	unsigned char *at;
	int err;

	/* A notice without bytes may name no memory. */
	if (!bytes)
		return 0;
	err = local_reach(conn, op->rkey, op->remote, bytes, needed(op->kind), wait, &place);
	if (err)
		return err;
	at = place.at;
	switch (op->kind) {
	case RGATE_OP_READ:
		copy_in(at, op);
		return 0;
	case RGATE_OP_FETCH_ADD:
	case RGATE_OP_COMPARE_SWAP:
		if ((uintptr_t)at % 8)
			return -EREMOTEIO;
		change((uint64_t *)at, op);
		return 0;
	default:
		copy_out(at, op);
		/* The system call comes after the stores. EAGAIN: it was rung often enough. */
		if (op->flags & RGATE_OP_BELL && place.bell >= 0)
			(void)eventfd_write(place.bell, 1);
		return 0;
	}
}

/* A packet; @wait: others of the same post went before it, so it may not be refused */
static int speak(struct rgate_conn *conn, const struct rgate_op *op, bool wait)
{
	const struct local_packet p = {
		.type = op->kind == RGATE_OP_SEND ? LOCAL_MESSAGE : LOCAL_NOTICE,
		.arg = (int32_t)op->imm,
	};
	struct iovec iov[RGATE_SGE_MAX + 1];
	unsigned int i, n = op->kind == RGATE_OP_SEND ? op->nsge : 0;
	int err;

	for (i = 0; i < n; i++)
		iov[i] = (struct iovec){ op->sge[i].addr, op->sge[i].length };
	/* The socket's locks order the packet after what was written. */
	for (;;) {
		err = local_send(conn->sock, &p, iov, n, NULL, 0);
		if (err != -EAGAIN || !wait)
			return err;
		err = local_wait(conn->sock, POLLOUT, conn->ep->opts.timeout_ms);
		if (err)
			return err;
	}
}

int local_perform(struct rgate_conn *conn, const struct rgate_op *op, bool first)
{
	int err = 0;

	if (op->kind == RGATE_OP_SEND)
		return speak(conn, op, !first);
	err = move(conn, op, !first || !(op->flags & RGATE_OP_AT_ONCE));
	if (!err && op->kind == RGATE_OP_WRITE_IMM)
		err = speak(conn, op, true);
	return err;
}

void local_performed(struct rgate_conn *conn, uint64_t id, bool signal, int err)
{
	if (err) {
		complete(conn, id, err == -EREMOTEIO || err == -ETIMEDOUT ? err : -ECANCELED);
		conn->flushing = true;
		local_fail(conn);
	} else if (signal) {
		complete(conn, id, 0);
	}
}

static int post_now(struct rgate_conn *conn, const struct rgate_prov_work *work, unsigned int n)
{
	unsigned int i;
	int err;

	if (conn->failed || !conn->up)
		return -ENOTCONN;
	/* Each may have a completion, which needs a place. */
	if (n > conn->done_depth - (conn->done_in - conn->done_out))
		return -EAGAIN;
	for (i = 0; i < n; i++) {
		if (conn->failed) {
			complete(conn, work[i].id, -ECANCELED);
			continue;
		}
		err = local_perform(conn, work[i].op, !i);
		if (err == -EAGAIN)
			return err;
		local_performed(conn, work[i].id, work[i].signal, err);
	}
	return 0;
}

int local_post(struct rgate_conn *conn, const struct rgate_prov_work *work, unsigned int n)
{
	int err;

	if (!conn->late)
		return post_now(conn, work, n);
	local_lock(conn);
	err = local_late_post(conn, work, n);
	local_unlock(conn);
	return err;
}

int local_recv(struct rgate_conn *conn, uint64_t id, void *addr, uint32_t len, uint32_t lkey)
{
	const uint32_t depth = conn->ep->opts.recv_depth;

	(void)lkey;
	if (conn->recv_in - conn->recv_out == depth)
		return -EAGAIN;
	conn->recv[conn->recv_in++ % depth] = (struct local_recv){ id, addr, len };
	return 0;
}

/* 1: one came; 0: none; -errno: the connection has ended */
static int listen_once(struct rgate_conn *conn, struct rgate_prov_done *done)
{
	const struct local_recv *r = &conn->recv[conn->recv_out % conn->ep->opts.recv_depth];
	struct local_packet p;
	struct iovec iov[2] = { { &p, sizeof(p) }, { r->addr, r->len } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t n;

	if (conn->recv_in == conn->recv_out)
		return 0;
	/* Descriptors that somebody sends along have no room here, and are closed. */
	n = recvmsg(conn->in_sock, &msg, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -ECONNRESET;
	if (!n)
		return -ECONNRESET;
	if (n < (ssize_t)sizeof(p) || msg.msg_flags & MSG_TRUNC ||
	    (p.type != LOCAL_MESSAGE && (p.type != LOCAL_NOTICE || n != sizeof(p))))
		return -EPROTO;
	conn->recv_out++;
	*done = (struct rgate_prov_done){
		.kind = p.type == LOCAL_NOTICE ? RGATE_PROV_RECV_IMM : RGATE_PROV_RECV,
		.id = r->id, .len = (uint32_t)(n - (ssize_t)sizeof(p)), .imm = (uint32_t)p.arg,
	};
	return 1;
}

int local_poll(struct rgate_conn *conn, struct rgate_prov_done *done, unsigned int n)
{
	unsigned int got = 0;
	int ret = 0;

	local_lock(conn);
	while (got < n && conn->done_out != conn->done_in)
		done[got++] = conn->done[conn->done_out++ % conn->done_depth];
	while (got < n && conn->up) {
		ret = listen_once(conn, &done[got]);
		if (ret <= 0)
			break;
		got++;
	}
	if (ret < 0)
		local_fail(conn);
	local_unlock(conn);
	return got ? (int)got : ret;
}

static void disarm(struct rgate_conn *conn)
{
	if (conn->rung)
		events_woken(&conn->ev);
	conn->rung = conn->armed = false;
}

int local_arm_recv(struct rgate_conn *conn)
{
	local_lock(conn);
	disarm(conn);
	local_unlock(conn);
	return 1;
}

int local_arm(struct rgate_conn *conn)
{
	bool some;

	local_lock(conn);
	disarm(conn);
	conn->armed = true;
	some = conn->done_in != conn->done_out;
	if (some)
		ring(conn);
	local_unlock(conn);
	return some;
}
