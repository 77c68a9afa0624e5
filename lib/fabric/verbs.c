// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * RDMA: connections by rdma_cm, transfers by verbs. rdma_cm opens the device a second
 * time for itself; queue pairs are made on the library's own context, where memory is
 * registered, and brought up with what rdma_cm says of the path.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "verbs.h"

#define BACKLOG		16

int rgate_verbs_sockaddr(struct sockaddr_storage *sa, const struct rgate_cluster_node *node,
			 bool with_port)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)sa;
	struct sockaddr_in *in = (struct sockaddr_in *)sa;
	const uint16_t port = htobe16(with_port ? node->port : 0);

	memset(sa, 0, sizeof(*sa));
	if (inet_pton(AF_INET, node->addr, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = port;
		return 0;
	}
	if (inet_pton(AF_INET6, node->addr, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = port;
		return 0;
	}
	return -EINVAL;
}

static int verbs_listen(struct rgate_ep *ep)
{
	struct sockaddr_storage sa;
	int err;

	err = rgate_verbs_sockaddr(&sa, &ep->self, true);
	if (err)
		return err;
	if (rdma_create_id(ep->channel, &ep->listener, NULL, RDMA_PS_TCP))
		return -errno;
	if (rdma_bind_addr(ep->listener, (struct sockaddr *)&sa) ||
	    rdma_listen(ep->listener, BACKLOG)) {
		err = -errno;
		rgate_err("cannot listen on %s port %u: %s", ep->self.addr, ep->self.port,
			  strerror(errno));
		rdma_destroy_id(ep->listener);
		ep->listener = NULL;
		return err;
	}
	return 0;
}

static int verbs_open(struct rgate_ep **out, const struct rgate_ep_opts *opts)
{
	struct rgate_device_opts dev = RGATE_OPTS(rgate_device_opts, .name = opts->device,
						  .addr = opts->self->addr);
	struct rgate_ep *ep = calloc(1, sizeof(*ep));
	int err;

	if (!ep)
		return -ENOMEM;
	ep->self = *opts->self;
	ep->opts = *opts;
	ep->opts.self = &ep->self;
	err = rgate_device_open(&ep->dev, &dev);
	if (err)
		goto free_ep;
	ep->channel = rdma_create_event_channel();
	if (!ep->channel) {
		err = errno ? -errno : -ENOMEM;
		rgate_err("no rdma_cm: %s; `modprobe rdma_ucm`", strerror(-err));
		goto close_dev;
	}
	if (fcntl(ep->channel->fd, F_SETFL, O_NONBLOCK)) {
		err = -errno;
		goto close_channel;
	}
	if (opts->listen)
		err = verbs_listen(ep);
	if (err)
		goto close_channel;
	*out = ep;
	return 0;

close_channel:
	rdma_destroy_event_channel(ep->channel);
close_dev:
	rgate_device_close(ep->dev);
free_ep:
	free(ep);
	return err;
}

static void verbs_close(struct rgate_ep *ep)
{
	if (ep->listener)
		rdma_destroy_id(ep->listener);
	rdma_destroy_event_channel(ep->channel);
	rgate_device_close(ep->dev);
	free(ep);
}

static struct rgate_device *verbs_device(struct rgate_ep *ep)
{
	return ep->dev;
}

/* Its regions are registered with the device, which checks what peers do. */
static int verbs_use_pool(struct rgate_ep *ep, enum rgate_prov_pool which,
			  const struct rgate_pool *pool)
{
	(void)ep;
	(void)which;
	(void)pool;
	return 0;
}

static int verbs_share(struct rgate_ep *ep, void *addr, size_t len, int fd, uint64_t fd_off,
		       uint32_t access, struct rgate_prov_share *share)
{
	struct rgate_mem_opts opts = RGATE_OPTS(rgate_mem_opts, .access = access);
	struct rgate_mem *mem;
	int err;

	(void)fd;
	(void)fd_off;
	err = rgate_mem_register(&mem, ep->dev, addr, len, &opts);
	if (err)
		return err;
	*share = (struct rgate_prov_share){
		.lkey = rgate_mem_lkey(mem), .rkey = rgate_mem_rkey(mem),
		.addr = rgate_mem_iova(mem), .priv = mem,
	};
	return 0;
}

static void verbs_unshare(struct rgate_ep *ep, struct rgate_prov_share *share)
{
	(void)ep;
	rgate_mem_deregister(share->priv);
}

static int verbs_fd(struct rgate_ep *ep)
{
	return ep->channel->fd;
}

/* Behind a fence the bytes may be what the read before it has yet to bring. */
static bool may_inline(const struct rgate_conn *conn, const struct rgate_op *op)
{
	return op->kind != RGATE_OP_READ && op->kind != RGATE_OP_FETCH_ADD &&
	       op->kind != RGATE_OP_COMPARE_SWAP && !(op->flags & RGATE_OP_FENCE) &&
	       rgate_op_bytes(op) <= conn->inline_size;
}

static void fill(struct rgate_conn *conn, struct ibv_send_wr *wr, struct ibv_sge *sge,
		 const struct rgate_prov_work *work)
{
	static const enum ibv_wr_opcode opcodes[] = {
		[RGATE_OP_WRITE] = IBV_WR_RDMA_WRITE,
		[RGATE_OP_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[RGATE_OP_READ] = IBV_WR_RDMA_READ,
		[RGATE_OP_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
		[RGATE_OP_COMPARE_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
		[RGATE_OP_SEND] = IBV_WR_SEND,
	};
	const struct rgate_op *op = work->op;
	unsigned int k;

	for (k = 0; k < op->nsge; k++)
		sge[k] = (struct ibv_sge){ (uintptr_t)op->sge[k].addr, op->sge[k].length,
					   op->sge[k].lkey };
	wr->wr_id = work->id;
	wr->sg_list = sge;
	wr->num_sge = op->nsge;
	wr->opcode = opcodes[op->kind];
	wr->send_flags = (op->flags & RGATE_OP_FENCE ? IBV_SEND_FENCE : 0) |
			 (work->signal ? IBV_SEND_SIGNALED : 0) |
			 (may_inline(conn, op) ? IBV_SEND_INLINE : 0);
	wr->imm_data = htobe32(op->imm);
	if (op->kind == RGATE_OP_FETCH_ADD || op->kind == RGATE_OP_COMPARE_SWAP) {
		wr->wr.atomic.remote_addr = op->remote;
		wr->wr.atomic.rkey = op->rkey;
		wr->wr.atomic.compare_add = op->operand;
		wr->wr.atomic.swap = op->swap;
	} else {
		wr->wr.rdma.remote_addr = op->remote;
		wr->wr.rdma.rkey = op->rkey;
	}
}

static int verbs_post(struct rgate_conn *conn, const struct rgate_prov_work *work,
		      unsigned int n)
{
	struct ibv_sge sge[POST_MAX][RGATE_VERBS_SGE];
	struct ibv_send_wr wr[POST_MAX];
	unsigned int i;
	int err;

	if (!n || n > POST_MAX)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		fill(conn, &wr[i], sge[i], &work[i]);
		wr[i].next = &wr[i + 1];
	}
	wr[n - 1].next = NULL;
	err = rgate_rc_post_wr(conn->rc, wr, n);
	return err == -ENOBUFS ? -EAGAIN : err;
}

static int verbs_recv(struct rgate_conn *conn, uint64_t id, void *addr, uint32_t len,
		      uint32_t lkey)
{
	return rgate_rc_recv(conn->rc, id | RECV_BIT, addr, len, lkey);
}

static int verbs_poll(struct rgate_conn *conn, struct rgate_prov_done *done, unsigned int n)
{
	struct ibv_wc wc[POST_MAX];
	int got, i;

	got = rgate_rc_poll_n(conn->rc, wc, (int)(n < POST_MAX ? n : POST_MAX));
	for (i = 0; i < got; i++) {
		/* The opcode is void where the status is bad; the number is not. */
		const bool recv = wc[i].wr_id & RECV_BIT;

		done[i] = (struct rgate_prov_done){
			.kind = recv ? RGATE_PROV_RECV : RGATE_PROV_SENT,
			.status = rgate_rc_status(wc[i].status),
			.id = wc[i].wr_id & ~RECV_BIT,
		};
		if (!recv || done[i].status)
			continue;
		done[i].len = wc[i].byte_len;
		if (wc[i].wc_flags & IBV_WC_WITH_IMM) {
			done[i].kind = RGATE_PROV_RECV_IMM;
			done[i].imm = be32toh(wc[i].imm_data);
		}
	}
	return got;
}

static int verbs_conn_fd(const struct rgate_conn *conn)
{
	return rgate_rc_fd(conn->rc);
}

static int verbs_arm(struct rgate_conn *conn)
{
	/* What came before this stays in the queue: the caller polls once more. */
	return rgate_rc_arm(conn->rc);
}

static uint32_t verbs_inline_size(const struct rgate_conn *conn)
{
	return conn->inline_size;
}

static void verbs_whence(const struct rgate_conn *conn, char *text, size_t len)
{
	const struct sockaddr *sa = conn->id ? rdma_get_peer_addr(conn->id) : NULL;
	const void *at = NULL;

	if (sa && sa->sa_family == AF_INET)
		at = &((const struct sockaddr_in *)(const void *)sa)->sin_addr;
	else if (sa && sa->sa_family == AF_INET6)
		at = &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
	if (!at || !inet_ntop(sa->sa_family, at, text, (socklen_t)len))
		snprintf(text, len, "an unknown address");
}

const struct rgate_prov_ops rgate_prov_verbs = {
	.name = "verbs",
	.open = verbs_open,
	.close = verbs_close,
	.device = verbs_device,
	.use_pool = verbs_use_pool,
	.share = verbs_share,
	.unshare = verbs_unshare,
	.fd = verbs_fd,
	.event = rgate_verbs_event,
	.connect = rgate_verbs_connect,
	.loopback = rgate_verbs_loopback,
	.accept = rgate_verbs_accept,
	.reject = rgate_verbs_reject,
	.establish = rgate_verbs_establish,
	.prepare = rgate_verbs_prepare,
	.allow = rgate_verbs_allow,
	.owner = rgate_verbs_owner,
	.destroy = rgate_verbs_destroy,
	.post = verbs_post,
	.recv = verbs_recv,
	.poll = verbs_poll,
	.conn_fd = verbs_conn_fd,
	.arm = verbs_arm,
	.arm_recv = verbs_arm,
	.inline_size = verbs_inline_size,
	.is_from = rgate_verbs_is_from,
	.whence = verbs_whence,
};
