// SPDX-License-Identifier: MIT OR GPL-2.0
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "clock.h"
#include "device.h"
#include "log.h"
#include "opts.h"
#include "rc.h"

#define DEFAULT_DEPTH	64
#define DEFAULT_MS	1000
#define SPIN		2000	/* looks before it sleeps between them */
#define ACK_EVERY	64	/* events */
#define PSN_MASK	0xffffff

struct rgate_rc {
	struct rgate_device *dev;
	struct ibv_comp_channel *channel;	/* NULL: no events wanted */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint32_t psn;
	uint32_t send_wr;
	uint32_t posted;	/* sends since the beginning */
	uint32_t freed;		/* of these, known to be done */
	uint32_t *at;		/* what is freed by each signalled send to come, in order */
	uint32_t at_in;
	uint32_t at_out;
	uint32_t recv_wr;
	uint32_t recvs;		/* posted and not completed */
	uint32_t max_inline;
	uint32_t sge;
	uint32_t unacked;	/* events taken from the channel */
	uint32_t timeout_ms;
	uint32_t access;
	uint8_t rd_atomic;
	bool failed;
};

static int create_queues(struct rgate_rc *rc, const struct rgate_rc_opts *opts)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = rc->send_wr, .max_recv_wr = rc->recv_wr,
			.max_send_sge = rc->sge, .max_recv_sge = 1,
			.max_inline_data = opts->inline_data,
		},
	};

	if (attr.cap.max_inline_data > rc->dev->info.max_inline)
		attr.cap.max_inline_data = rc->dev->info.max_inline;
	errno = 0;
	if (opts->events) {
		rc->channel = ibv_create_comp_channel(rc->dev->ctx);
		if (!rc->channel)
			return errno ? -errno : -ENOMEM;
		if (fcntl(rc->channel->fd, F_SETFL, O_NONBLOCK))
			return -errno;
	}
	rc->cq = ibv_create_cq(rc->dev->ctx, (int)(rc->send_wr + rc->recv_wr), NULL,
			       rc->channel, 0);
	if (!rc->cq)
		return errno ? -errno : -ENOMEM;
	attr.send_cq = rc->cq;
	attr.recv_cq = rc->cq;
	rc->qp = ibv_create_qp(rc->dev->pd, &attr);
	if (!rc->qp)
		return errno ? -errno : -ENOMEM;
	rc->max_inline = attr.cap.max_inline_data;
	return 0;
}

unsigned int rgate_rc_qp_access(uint32_t access)
{
	unsigned int flags = 0;

	if (access & RGATE_ACCESS_REMOTE_READ)
		flags |= IBV_ACCESS_REMOTE_READ;
	if (access & RGATE_ACCESS_REMOTE_WRITE)
		flags |= IBV_ACCESS_REMOTE_WRITE;
	if (access & RGATE_ACCESS_REMOTE_ATOMIC)
		flags |= IBV_ACCESS_REMOTE_ATOMIC;
	return flags;
}

static int to_init(struct rgate_rc *rc)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = rc->dev->info.port,
		.qp_access_flags = rgate_rc_qp_access(rc->access),
	};

	return -ibv_modify_qp(rc->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			      IBV_QP_ACCESS_FLAGS);
}

static int check_depth(struct rgate_rc *rc)
{
	const struct rgate_device_info *info = &rc->dev->info;

	if (rc->send_wr > info->max_qp_wr || rc->recv_wr > info->max_qp_wr ||
	    (uint64_t)rc->send_wr + rc->recv_wr > info->max_cqe) {
		rgate_err("%s has queues of %u operations at most", info->name, info->max_qp_wr);
		return -EINVAL;
	}
	return 0;
}

int rgate_rc_create(struct rgate_rc **out, struct rgate_device *dev,
		    const struct rgate_rc_opts *user)
{
	struct rgate_rc_opts opts;
	struct rgate_rc *rc;
	int err;

	err = rgate_opts_copy(&opts, sizeof(opts), user);
	if (!err)
		err = rgate_device_own(dev);
	if (err)
		return err;
	rc = calloc(1, sizeof(*rc));
	if (!rc)
		return -ENOMEM;
	rc->dev = dev;
	rc->send_wr = opts.send_wr ? opts.send_wr : DEFAULT_DEPTH;
	rc->recv_wr = opts.recv_wr ? opts.recv_wr : DEFAULT_DEPTH;
	rc->timeout_ms = opts.timeout_ms ? opts.timeout_ms : DEFAULT_MS;
	rc->access = opts.access;
	rc->sge = opts.sge ? opts.sge : 1;
	rc->rd_atomic = (uint8_t)(dev->info.max_rd_atomic > 16 ? 16 : dev->info.max_rd_atomic);
	err = rc->sge > RGATE_RC_SGE ? -EINVAL : check_depth(rc);
	if (err)
		goto destroy;
	err = -ENOMEM;
	rc->at = calloc(rc->send_wr, sizeof(*rc->at));
	if (!rc->at)
		goto destroy;
	if (getrandom(&rc->psn, sizeof(rc->psn), 0) != sizeof(rc->psn))
		rc->psn = (uint32_t)rgate_clock_now(CLOCK_MONOTONIC);
	rc->psn &= PSN_MASK;
	err = create_queues(rc, &opts);
	if (!err)
		err = to_init(rc);
	if (err)
		goto destroy;
	*out = rc;
	return 0;

destroy:
	rgate_rc_destroy(rc);
	return err;
}

void rgate_rc_destroy(struct rgate_rc *rc)
{
	if (!rc)
		return;
	if (rc->qp)
		ibv_destroy_qp(rc->qp);
	if (rc->cq) {
		ibv_ack_cq_events(rc->cq, rc->unacked);
		ibv_destroy_cq(rc->cq);
	}
	if (rc->channel)
		ibv_destroy_comp_channel(rc->channel);
	free(rc->at);
	free(rc);
}

static enum ibv_mtu mtu_of(uint32_t bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && 128U << (mtu + 1) <= bytes)
		mtu++;
	return mtu;
}

void rgate_rc_addr(const struct rgate_rc *rc, struct rgate_rc_addr *addr)
{
	*addr = (struct rgate_rc_addr){
		.qpn = htole32(rc->qp->qp_num),
		.psn = htole32(rc->psn),
		.lid = htole16(rc->dev->info.lid),
		.mtu = (uint8_t)mtu_of(rc->dev->info.mtu),
		.rd_atomic = rc->rd_atomic,
	};
	memcpy(addr->gid, rc->dev->info.gid, sizeof(addr->gid));
}

/* An answer is waited for 4.096 us x 2^n, RGATE_RC_RETRIES times more: IBTA, 9.7.6.1.3 */
uint8_t rgate_rc_ack_timeout(uint32_t ms)
{
	uint64_t ns = (uint64_t)ms * 1000000 / (RGATE_RC_RETRIES + 1);
	uint8_t n = 1;

	while (n < 31 && 4096ULL << n < ns)
		n++;
	return n;
}

static uint8_t min_u8(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static int to_rtr(struct rgate_rc *rc, const struct rgate_rc_addr *peer)
{
	const struct rgate_device_info *info = &rc->dev->info;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = min_u8(peer->mtu, (uint8_t)mtu_of(info->mtu)),
		.dest_qp_num = le32toh(peer->qpn),
		.rq_psn = le32toh(peer->psn),
		.max_dest_rd_atomic = rc->rd_atomic,
		.min_rnr_timer = RGATE_RC_MIN_RNR,
		.ah_attr = {
			.is_global = info->ethernet,
			.dlid = le16toh(peer->lid),
			.port_num = info->port,
			.grh = { .sgid_index = info->gid_index, .hop_limit = 64 },
		},
	};

	memcpy(a.ah_attr.grh.dgid.raw, peer->gid, sizeof(peer->gid));
	return -ibv_modify_qp(rc->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			      IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct rgate_rc *rc, const struct rgate_rc_addr *peer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = rc->psn,
		.timeout = rgate_rc_ack_timeout(rc->timeout_ms),
		.retry_cnt = RGATE_RC_RETRIES,
		.rnr_retry = RGATE_RC_RETRIES,
		.max_rd_atomic = min_u8(peer->rd_atomic, rc->rd_atomic),
	};

	return -ibv_modify_qp(rc->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
			      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

int rgate_rc_connect(struct rgate_rc *rc, const struct rgate_rc_addr *peer)
{
	static const uint8_t zero[sizeof(peer->reserved)];
	int err;

	if (le32toh(peer->qpn) > PSN_MASK || le32toh(peer->psn) > PSN_MASK ||
	    peer->mtu < IBV_MTU_256 || peer->mtu > IBV_MTU_4096 ||
	    memcmp(peer->reserved, zero, sizeof(zero)))
		return -EPROTO;
	err = to_rtr(rc, peer);
	if (!err)
		err = to_rts(rc, peer);
	return err == -EINVAL ? -ENETUNREACH : err;
}

static const enum ibv_wr_opcode opcodes[] = {
	[RGATE_RC_SEND] = IBV_WR_SEND,
	[RGATE_RC_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
	[RGATE_RC_WRITE] = IBV_WR_RDMA_WRITE,
	[RGATE_RC_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[RGATE_RC_READ] = IBV_WR_RDMA_READ,
	[RGATE_RC_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	[RGATE_RC_COMPARE_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
};

static void fill(struct ibv_send_wr *wr, struct ibv_sge *sge, const struct rgate_rc_work *w)
{
	*sge = (struct ibv_sge){ (uintptr_t)w->addr, w->length, w->lkey };
	*wr = (struct ibv_send_wr){
		.wr_id = w->id,
		/* Verbs do not write it, though they have no const for it. */
		.sg_list = w->sge ? (struct ibv_sge *)w->sge : sge,
		.num_sge = w->sge ? (int)w->nsge : w->length ? 1 : 0,
		.opcode = opcodes[w->op],
		.send_flags = (w->fence ? IBV_SEND_FENCE : 0) |
			      (w->quiet ? 0 : IBV_SEND_SIGNALED) |
			      (w->inlined ? IBV_SEND_INLINE : 0),
		.imm_data = htobe32(w->imm),
	};
	switch (w->op) {
	case RGATE_RC_WRITE:
	case RGATE_RC_WRITE_IMM:
	case RGATE_RC_READ:
		wr->wr.rdma.remote_addr = w->remote;
		wr->wr.rdma.rkey = w->rkey;
		break;
	case RGATE_RC_FETCH_ADD:
	case RGATE_RC_COMPARE_SWAP:
		wr->wr.atomic.remote_addr = w->remote;
		wr->wr.atomic.rkey = w->rkey;
		wr->wr.atomic.compare_add = w->operand;
		wr->wr.atomic.swap = w->swap;
		break;
	default:
		break;
	}
}

/* A signalled completion tells that all posted before it are done too. */
static void posted(struct rgate_rc *rc, const struct ibv_send_wr *wr, const struct ibv_send_wr *end)
{
	for (; wr && wr != end; wr = wr->next) {
		rc->posted++;
		if (wr->send_flags & IBV_SEND_SIGNALED)
			rc->at[rc->at_in++ % rc->send_wr] = rc->posted;
	}
}

int rgate_rc_post_wr(struct rgate_rc *rc, struct ibv_send_wr *wr, unsigned int n)
{
	const uint32_t before = rc->posted;
	struct ibv_send_wr *bad = NULL;
	int err;

	if (rc->failed)
		return -ENOTCONN;
	if (n > rc->send_wr - (rc->posted - rc->freed))
		return -ENOBUFS;
	err = ibv_post_send(rc->qp, wr, &bad);
	posted(rc, wr, err ? bad : NULL);
	if (err && rc->posted != before) {
		/* Some are under way: never as if none had begun. */
		rc->failed = true;
		return -EIO;
	}
	return err == ENOMEM ? -ENOBUFS : -err;
}

static uint64_t bytes_of(const struct rgate_rc_work *w)
{
	uint64_t sum = 0;
	uint32_t i;

	if (!w->sge)
		return w->length;
	for (i = 0; i < w->nsge; i++)
		sum += w->sge[i].length;
	return sum;
}

static bool valid(const struct rgate_rc *rc, const struct rgate_rc_work *w)
{
	const bool atomic = w->op == RGATE_RC_FETCH_ADD || w->op == RGATE_RC_COMPARE_SWAP;

	if ((unsigned int)w->op > RGATE_RC_COMPARE_SWAP)
		return false;
	if (w->sge && w->nsge > rc->sge)
		return false;
	if (atomic && (bytes_of(w) != 8 || w->remote % 8))
		return false;
	return !w->inlined || (bytes_of(w) <= rc->max_inline && !atomic && w->op != RGATE_RC_READ);
}

int rgate_rc_post(struct rgate_rc *rc, const struct rgate_rc_work *work, unsigned int n)
{
	struct ibv_send_wr wr[RGATE_RC_POST];
	struct ibv_sge sge[RGATE_RC_POST];
	unsigned int i;

	if (!n || n > RGATE_RC_POST)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		if (!valid(rc, &work[i]))
			return -EINVAL;
		fill(&wr[i], &sge[i], &work[i]);
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	return rgate_rc_post_wr(rc, wr, n);
}

int rgate_rc_recv(struct rgate_rc *rc, uint64_t id, void *addr, uint32_t length, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)addr, length, lkey };
	struct ibv_recv_wr *bad, wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = length ? 1 : 0,
	};
	int err;

	if (rc->failed)
		return -ENOTCONN;
	if (rc->recvs == rc->recv_wr)
		return -ENOBUFS;
	err = ibv_post_recv(rc->qp, &wr, &bad);
	if (!err)
		rc->recvs++;
	return err == ENOMEM ? -ENOBUFS : -err;
}

static void completed(struct rgate_rc *rc, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		rc->failed = true;	/* what is outstanding will be flushed */
	else if (wc->opcode & IBV_WC_RECV)
		rc->recvs--;
	else if (rc->at_out != rc->at_in)
		rc->freed = rc->at[rc->at_out++ % rc->send_wr];
}

int rgate_rc_poll(struct rgate_rc *rc, struct ibv_wc *wc, int timeout_ms)
{
	const struct timespec nap = { .tv_nsec = 50000 };
	uint64_t end = 0;
	unsigned int looks = 0;
	int n;

	for (;;) {
		n = ibv_poll_cq(rc->cq, 1, wc);
		if (n > 0) {
			completed(rc, wc);
			return 1;
		}
		if (n < 0)
			return -EIO;
		if (timeout_ms <= 0)
			return 0;
		if (++looks < SPIN) {
			rgate_cpu_relax();
			continue;
		}
		if (!end)
			end = rgate_clock_now(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000;
		else if (rgate_clock_now(CLOCK_MONOTONIC) > end)
			return 0;
		nanosleep(&nap, NULL);
	}
}

int rgate_rc_poll_n(struct rgate_rc *rc, struct ibv_wc *wc, int n)
{
	int got = ibv_poll_cq(rc->cq, n, wc), i;

	for (i = 0; i < got; i++)
		completed(rc, &wc[i]);
	return got < 0 ? -EIO : got;
}

int rgate_rc_fd(const struct rgate_rc *rc)
{
	return rc->channel ? rc->channel->fd : -EINVAL;
}

int rgate_rc_arm(struct rgate_rc *rc)
{
	struct ibv_cq *cq;
	void *ctx;

	if (!rc->channel)
		return -EINVAL;
	while (!ibv_get_cq_event(rc->channel, &cq, &ctx))
		if (++rc->unacked == ACK_EVERY) {	/* it takes a lock */
			ibv_ack_cq_events(rc->cq, rc->unacked);
			rc->unacked = 0;
		}
	return ibv_req_notify_cq(rc->cq, 0) ? -EIO : 0;
}

uint32_t rgate_rc_inline(const struct rgate_rc *rc)
{
	return rc->max_inline;
}

int rgate_rc_do(struct rgate_rc *rc, const struct rgate_rc_work *work, int timeout_ms)
{
	struct rgate_rc_work w = *work;
	struct ibv_wc wc;
	int err;

	w.quiet = false;
	err = rgate_rc_post(rc, &w, 1);
	if (err)
		return err;
	err = rgate_rc_poll(rc, &wc, timeout_ms > 0 ? timeout_ms : 1);
	if (err <= 0) {
		/* Its completion may still come, and would be taken for another's. */
		rc->failed = true;
		return err ? err : -ETIMEDOUT;
	}
	return rgate_rc_status(wc.status);
}

struct ibv_qp *rgate_rc_qp(const struct rgate_rc *rc)
{
	return rc->qp;
}

int rgate_rc_status(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return 0;
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_ACCESS_ERR:
	case IBV_WC_MW_BIND_ERR:
		return -EPERM;
	case IBV_WC_LOC_LEN_ERR:
		return -EMSGSIZE;
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_INV_RD_REQ_ERR:
		return -EREMOTEIO;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		return -ETIMEDOUT;
	case IBV_WC_WR_FLUSH_ERR:
		return -ECANCELED;
	default:
		return -EIO;
	}
}
