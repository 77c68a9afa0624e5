// SPDX-License-Identifier: MIT OR GPL-2.0
#include "unit.h"
#include "mock_verbs.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define QUEUE	1024
#define MRS	4096

struct mock mock;

/* A test takes the device away from a thread that looks. */
static bool is_gone(void)
{
	return __atomic_load_n(&mock.gone, __ATOMIC_RELAXED);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct mock_cq {
	struct ibv_cq cq;
	struct ibv_wc wc[QUEUE];
	unsigned int in, out;
	bool armed;
};

struct mock_qp {
	struct ibv_qp qp;
	struct mock_qp *next;
	uint32_t dest, access;
	struct ibv_recv_wr recv[QUEUE];
	struct ibv_sge recv_sge[QUEUE];
	unsigned int recv_in, recv_out, recv_max;
	bool failed;
};

/* A key is the place in this table, times 256 and a number that changes */
static struct mock_mr {
	struct ibv_mr mr;
	uint64_t iova;
	int access;
	bool there;
	uint8_t generation;
} mrs[MRS];

static struct ibv_device devices[MOCK_DEVICES];
static struct mock_qp *qps;
static uint32_t next_qpn = 17;

/* Does this call fail? */
static bool fails(unsigned int *count)
{
	if (!*count || --*count)
		return false;
	errno = mock.fail_errno ? mock.fail_errno : ENOMEM;
	return true;
}

static const struct mock_device *device_of(const struct ibv_context *ctx)
{
	return &mock.dev[ctx->device - devices];
}

struct ibv_device **ibv_get_device_list(int *num)
{
	struct ibv_device **list = calloc(MOCK_DEVICES + 1, sizeof(*list));
	int n = 0;

	if (mock.list_errno) {
		free(list);
		errno = mock.list_errno;
		return NULL;
	}
	for (; n < MOCK_DEVICES && mock.dev[n].name && !is_gone(); n++) {
		snprintf(devices[n].name, sizeof(devices[n].name), "%s", mock.dev[n].name);
		list[n] = &devices[n];
	}
	if (num)
		*num = n;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

static int post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static int post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
static int poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc);
static int req_notify_cq(struct ibv_cq *cq, int solicited);

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *ctx;
	int pipes[2];

	if (mock.dev[device - devices].open_errno) {
		errno = mock.dev[device - devices].open_errno;
		return NULL;
	}
	ctx = calloc(1, sizeof(*ctx));
	if (pipe2(pipes, O_CLOEXEC)) {
		free(ctx);
		return NULL;
	}
	ctx->device = device;
	ctx->async_fd = pipes[0];
	ctx->cmd_fd = pipes[1];
	ctx->ops.post_send = post_send;
	ctx->ops.post_recv = post_recv;
	ctx->ops.poll_cq = poll_cq;
	ctx->ops.req_notify_cq = req_notify_cq;
	__atomic_add_fetch(&mock.contexts, 1, __ATOMIC_RELAXED);
	return ctx;
}

int ibv_close_device(struct ibv_context *ctx)
{
	close(ctx->async_fd);
	close(ctx->cmd_fd);
	free(ctx);
	__atomic_sub_fetch(&mock.contexts, 1, __ATOMIC_RELAXED);
	return 0;
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *a)
{
	const struct mock_device *d = device_of(ctx);

	if (is_gone())
		return EIO;
	memset(a, 0, sizeof(*a));
	strcpy(a->fw_ver, "1.2.3");
	a->vendor_id = 0x1234;
	a->max_mr_size = d->max_mr_size ? d->max_mr_size : UINT64_MAX;
	a->max_mr = d->max_mr ? d->max_mr : 1000;
	a->max_qp = 64;
	a->max_qp_wr = QUEUE / 2;
	a->max_sge = 4;
	a->max_cq = 64;
	a->max_cqe = QUEUE;
	a->max_pd = 8;
	a->max_qp_rd_atom = d->max_rd_atomic ? d->max_rd_atomic : 16;
	a->atomic_cap = d->no_atomics ? IBV_ATOMIC_NONE : IBV_ATOMIC_HCA;
	a->phys_port_cnt = 1;
	return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *compat)
{
	struct ibv_port_attr *a = (struct ibv_port_attr *)compat;
	const struct mock_device *d = device_of(ctx);

	if (is_gone())
		return EIO;
	if (port != 1)
		return EINVAL;
	a->state = d->down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
	a->max_mtu = IBV_MTU_4096;
	a->active_mtu = IBV_MTU_1024;
	a->gid_tbl_len = MOCK_GIDS;
	a->lid = d->infiniband ? 7 : 0;
	a->active_width = d->width ? d->width : 2;
	a->active_speed = d->speed ? d->speed : 32;
	a->link_layer = d->infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	const struct mock_gid *g = &device_of(ctx)->gid[index];

	(void)flags;
	(void)size;
	if (port != 1 || index >= MOCK_GIDS || !g->addr)
		return ENODATA;
	memset(entry, 0, sizeof(*entry));
	entry->gid_index = index;
	entry->port_num = port;
	entry->gid_type = g->type;
	if (inet_pton(AF_INET6, g->addr, entry->gid.raw) == 1)
		return 0;
	memset(entry->gid.raw + 10, 0xff, 2);
	return inet_pton(AF_INET, g->addr, entry->gid.raw + 12) == 1 ? 0 : EINVAL;
}

int ibv_fork_init(void)
{
	mock.fork_inits++;
	return mock.fork_errno;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return mock.fork_disabled ? IBV_FORK_DISABLED : IBV_FORK_UNNEEDED;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	struct ibv_pd *pd;

	if (fails(&mock.fail_pd))
		return NULL;
	pd = calloc(1, sizeof(*pd));
	pd->context = ctx;
	__atomic_add_fetch(&mock.pds, 1, __ATOMIC_RELAXED);
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	__atomic_sub_fetch(&mock.pds, 1, __ATOMIC_RELAXED);
	return 0;
}

/* As the kernel, which pins the pages for writing */
static bool writable(void *addr)
{
	int fds[2];
	bool may;

	if (pipe2(fds, O_CLOEXEC))
		return true;
	may = write(fds[1], addr, 1) != 1 || read(fds[0], addr, 1) == 1;
	close(fds[0]);
	close(fds[1]);
	return may;
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int access)
{
	const struct mock_device *d = device_of(pd->context);
	struct ibv_mr *mr = NULL;
	unsigned int i;

	pthread_mutex_lock(&lock);
	mock.access = access;
	if (is_gone()) {
		errno = EIO;
	} else if (fails(&mock.fail_mr)) {
		mr = NULL;
	} else if (access & IBV_ACCESS_LOCAL_WRITE && !writable(addr)) {
		errno = EFAULT;
	} else if (d->max_mr_size && len > d->max_mr_size) {
		errno = EINVAL;
	} else if (mock.mrs >= (unsigned int)(d->max_mr ? d->max_mr : 1000)) {
		errno = mock.full_errno ? mock.full_errno : ENOMEM;
	} else {
		for (i = 1; mrs[i].there; i++)
			;
		mrs[i].there = true;
		mrs[i].iova = iova;
		mrs[i].access = access;
		mr = &mrs[i].mr;
		mr->context = pd->context;
		mr->pd = pd;
		mr->addr = addr;
		mr->length = len;
		mr->lkey = i << 8 | ++mrs[i].generation;
		mr->rkey = mr->lkey;
		mock.mrs++;
	}
	pthread_mutex_unlock(&lock);
	return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
				unsigned int access)
{
	return reg(pd, addr, len, iova, (int)access);
}

#undef ibv_reg_mr_iova
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
			       int access)
{
	return reg(pd, addr, len, iova, access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova,
				 int fd, int access)
{
	if (fcntl(fd, F_GETFD) < 0)
		return NULL;
	return reg(pd, (void *)offset, len, iova, access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	if (mock.windows)
		return EBUSY;
	pthread_mutex_lock(&lock);
	((struct mock_mr *)mr)->there = false;
	mock.mrs--;
	pthread_mutex_unlock(&lock);
	return is_gone() ? EIO : 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *user,
			     struct ibv_comp_channel *channel, int vector)
{
	struct mock_cq *cq;

	(void)vector;
	if (fails(&mock.fail_cq))
		return NULL;
	cq = calloc(1, sizeof(*cq));
	cq->cq.context = ctx;
	cq->cq.cq_context = user;
	cq->cq.cqe = cqe;
	cq->cq.channel = channel;
	__atomic_add_fetch(&mock.cqs, 1, __ATOMIC_RELAXED);
	return &cq->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	free(cq);
	__atomic_sub_fetch(&mock.cqs, 1, __ATOMIC_RELAXED);
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *ch = calloc(1, sizeof(*ch));

	ch->context = ctx;
	ch->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	return ch;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ch)
{
	close(ch->fd);
	free(ch);
	return 0;
}

/* There is one queue for each channel. */
int ibv_get_cq_event(struct ibv_comp_channel *ch, struct ibv_cq **cq, void **user)
{
	uint64_t v;

	*cq = NULL;
	*user = NULL;
	return read(ch->fd, &v, sizeof(v)) == sizeof(v) ? 0 : -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	(void)cq;
	(void)n;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	(void)solicited;
	pthread_mutex_lock(&lock);
	((struct mock_cq *)cq)->armed = true;
	pthread_mutex_unlock(&lock);
	return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	const struct mock_device *d = device_of(pd->context);
	struct mock_qp *qp;

	if (fails(&mock.fail_qp))
		return NULL;
	if (attr->cap.max_inline_data > (uint32_t)d->max_inline) {
		errno = EINVAL;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	qp->qp.context = pd->context;
	qp->qp.pd = pd;
	qp->qp.send_cq = attr->send_cq;
	qp->qp.recv_cq = attr->recv_cq;
	qp->recv_max = attr->cap.max_recv_wr;
	pthread_mutex_lock(&lock);
	qp->qp.qp_num = next_qpn++;
	qp->next = qps;
	qps = qp;
	mock.qps++;
	pthread_mutex_unlock(&lock);
	return &qp->qp;
}

int ibv_destroy_qp(struct ibv_qp *ibqp)
{
	struct mock_qp **at;

	pthread_mutex_lock(&lock);
	for (at = &qps; *at != (struct mock_qp *)ibqp; at = &(*at)->next)
		;
	*at = (*at)->next;
	mock.qps--;
	pthread_mutex_unlock(&lock);
	free(ibqp);
	return 0;
}

int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct mock_qp *qp = (struct mock_qp *)ibqp;

	if (fails(&mock.fail_modify))
		return mock.fail_errno ? mock.fail_errno : ENOMEM;
	if (mask & IBV_QP_ACCESS_FLAGS)
		qp->access = attr->qp_access_flags;
	if (mask & IBV_QP_DEST_QPN)
		qp->dest = attr->dest_qp_num;
	if (attr->qp_state < IBV_QPS_ERR)
		mock.modified[attr->qp_state] = *attr;
	ibqp->state = attr->qp_state;
	return 0;
}

static void complete(struct mock_qp *qp, struct ibv_cq *ibcq, uint64_t id,
		     enum ibv_wc_status status, enum ibv_wc_opcode opcode, const uint32_t *imm,
		     uint32_t len)
{
	struct mock_cq *cq = (struct mock_cq *)ibcq;

	cq->wc[cq->in++ % QUEUE] = (struct ibv_wc){
		.wr_id = id, .status = status, .opcode = opcode, .imm_data = imm ? *imm : 0,
		.byte_len = len, .qp_num = qp->qp.qp_num,
		.wc_flags = imm ? IBV_WC_WITH_IMM : 0,
	};
	if (cq->armed)
		eventfd_write(cq->cq.channel->fd, 1);
	cq->armed = false;
}

/* Memory behind a key of @qp's protection domain, or NULL */
static void *reach(const struct mock_qp *qp, uint32_t key, uint64_t addr, uint64_t len, int need)
{
	const struct mock_mr *m = &mrs[key >> 8 & (MRS - 1)];

	if (!m->there || m->mr.pd != qp->qp.pd || m->mr.lkey != key || (m->access & need) != need ||
	    addr < m->iova || addr - m->iova > m->mr.length ||
	    len > m->mr.length - (addr - m->iova))
		return NULL;
	return (char *)m->mr.addr + (addr - m->iova);
}

static struct mock_qp *peer_of(const struct mock_qp *qp)
{
	struct mock_qp *p;

	for (p = qps; p && p->qp.qp_num != qp->dest; p = p->next)
		;
	return p;
}

static enum ibv_wc_status deliver(struct mock_qp *peer, const void *data, uint32_t len,
				  bool into, const uint32_t *imm, enum ibv_wc_opcode opcode)
{
	struct ibv_recv_wr *r;
	struct ibv_sge *sge;
	void *to;

	if (peer->recv_in == peer->recv_out)
		return IBV_WC_RNR_RETRY_EXC_ERR;
	r = &peer->recv[peer->recv_out % QUEUE];
	sge = &peer->recv_sge[peer->recv_out++ % QUEUE];
	if (into && len) {
		to = reach(peer, sge->lkey, sge->addr, len, IBV_ACCESS_LOCAL_WRITE);
		if (!to || sge->length < len)
			return IBV_WC_REM_INV_REQ_ERR;
		memcpy(to, data, len);
	}
	complete(peer, peer->qp.recv_cq, r->wr_id, IBV_WC_SUCCESS, opcode, imm, len);
	return IBV_WC_SUCCESS;
}

static enum ibv_wc_status atomic(const struct ibv_send_wr *wr, struct mock_qp *peer, void *local)
{
	uint64_t *word, old;

	word = reach(peer, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr, 8,
		     IBV_ACCESS_REMOTE_ATOMIC);
	if (!word || !(peer->access & IBV_ACCESS_REMOTE_ATOMIC))
		return IBV_WC_REM_ACCESS_ERR;
	old = *word;
	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		*word += wr->wr.atomic.compare_add;
	else if (old == wr->wr.atomic.compare_add)
		*word = wr->wr.atomic.swap;
	memcpy(local, &old, 8);
	return IBV_WC_SUCCESS;
}

static unsigned int let, spoilt;	/* accesses that were to be refused; writes */

static enum ibv_wc_status rdma(const struct ibv_send_wr *wr, struct mock_qp *peer, void *local,
			       uint32_t len)
{
	const bool read = wr->opcode == IBV_WR_RDMA_READ;
	const int need = read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
	void *remote = reach(peer, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, len, need);

	if (!remote || !(peer->access & (uint32_t)need))
		return mock.lets && !(++let % mock.lets) ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
	if (read)
		memmove(local, remote, len);
	else
		memmove(remote, local, len);
	if (!read && len && mock.spoils && !(++spoilt % mock.spoils))
		((char *)remote)[len - 1] ^= 1;
	if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		return deliver(peer, NULL, len, false, &wr->imm_data, IBV_WC_RECV_RDMA_WITH_IMM);
	return IBV_WC_SUCCESS;
}

/* All pieces one after another in memory of its own, or NULL: one cannot be reached */
static void *gather(const struct mock_qp *qp, const struct ibv_send_wr *wr, bool writes,
		    uint32_t *len)
{
	char *all;
	int i;

	for (i = 0, *len = 0; i < wr->num_sge; i++)
		*len += wr->sg_list[i].length;
	all = malloc(*len + 1);
	for (i = 0, *len = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];
		const void *from = (void *)sge->addr;

		if (!(wr->send_flags & IBV_SEND_INLINE))
			from = reach(qp, sge->lkey, sge->addr, sge->length,
				     writes ? IBV_ACCESS_LOCAL_WRITE : 0);
		if (!from) {
			free(all);
			return NULL;
		}
		memcpy(all + *len, from, sge->length);
		*len += sge->length;
	}
	return all;
}

static void scatter(const struct ibv_send_wr *wr, const char *all)
{
	int i;

	for (i = 0; i < wr->num_sge; all += wr->sg_list[i++].length)
		memcpy((void *)wr->sg_list[i].addr, all, wr->sg_list[i].length);
}

static enum ibv_wc_status act(const struct ibv_send_wr *wr, struct mock_qp *peer, void *local,
			      uint32_t len)
{
	switch (wr->opcode) {
	case IBV_WR_SEND:
		return deliver(peer, local, len, true, NULL, IBV_WC_RECV);
	case IBV_WR_SEND_WITH_IMM:
		return deliver(peer, local, len, true, &wr->imm_data, IBV_WC_RECV);
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return atomic(wr, peer, local);
	default:
		return rdma(wr, peer, local, len);
	}
}

static enum ibv_wc_status execute(struct mock_qp *qp, const struct ibv_send_wr *wr)
{
	const bool writes = wr->opcode == IBV_WR_RDMA_READ ||
			    wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
			    wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
	struct mock_qp *peer = peer_of(qp);
	enum ibv_wc_status status;
	uint32_t len;
	void *local;

	if (!peer)
		return IBV_WC_RETRY_EXC_ERR;
	local = gather(qp, wr, writes, &len);
	if (!local)
		return IBV_WC_LOC_PROT_ERR;
	status = act(wr, peer, local, len);
	if (writes && status == IBV_WC_SUCCESS)
		scatter(wr, local);
	free(local);
	return status;
}

static int post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct mock_qp *qp = (struct mock_qp *)ibqp;
	enum ibv_wc_status st;
	bool full = false;
	int err = 0;

	pthread_mutex_lock(&lock);
	for (; wr; wr = wr->next) {
		if (full) {
			*bad = wr;
			err = ENOMEM;
			break;
		}
		full = mock.takes && !--mock.takes;
		mock.send_flags = wr->send_flags;
		if (mock.silent)
			continue;
		st = qp->failed ? IBV_WC_WR_FLUSH_ERR : execute(qp, wr);
		if (st != IBV_WC_SUCCESS)
			qp->failed = true;
		if (st != IBV_WC_SUCCESS || wr->send_flags & IBV_SEND_SIGNALED)
			complete(qp, qp->qp.send_cq, wr->wr_id, st, IBV_WC_SEND, NULL, 0);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static int post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct mock_qp *qp = (struct mock_qp *)ibqp;
	int err = 0;

	pthread_mutex_lock(&lock);
	if (qp->recv_in - qp->recv_out >= qp->recv_max) {
		*bad = wr;
		err = ENOMEM;
	} else {
		qp->recv[qp->recv_in % QUEUE] = *wr;
		if (wr->num_sge)
			qp->recv_sge[qp->recv_in % QUEUE] = wr->sg_list[0];
		qp->recv_in++;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static int poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct mock_cq *cq = (struct mock_cq *)ibcq;
	int got = 0;

	if (is_gone())
		return -1;
	pthread_mutex_lock(&lock);
	while (got < n && cq->out != cq->in)
		wc[got++] = cq->wc[cq->out++ % QUEUE];
	pthread_mutex_unlock(&lock);
	return got;
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	(void)ctx;
	if (mock.event) {
		event->event_type = (enum ibv_event_type)mock.event;
		mock.event = 0;
		return 0;
	}
	errno = is_gone() ? EIO : EAGAIN;
	return -1;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

int mock_setup(void **state)
{
	(void)state;
	memset(&mock, 0, sizeof(mock));
	mock.dev[0] = (struct mock_device){
		.name = "mock0", .max_inline = 128,
		.gid = { { "fe80::1", IBV_GID_TYPE_ROCE_V1 },
			 { "fe80::1", IBV_GID_TYPE_ROCE_V2 },
			 { "192.0.2.1", IBV_GID_TYPE_ROCE_V1 },
			 { "192.0.2.1", IBV_GID_TYPE_ROCE_V2 } },
	};
	unsetenv("RGATE_MAX_MR");
	unsetenv("RGATE_RDMA_DEVICE");
	unsetenv("RGATE_POOL_DEBUG");
	return 0;
}

int mock_teardown(void **state)
{
	(void)state;
	return mock.contexts || mock.pds || mock.mrs || mock.cqs || mock.qps ? -1 : 0;
}
