// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probe_rdma.h"
#include "rc.h"

#define WAIT_MS	10000

static int connect_self(struct probe_rdma *r)
{
	struct rgate_rc_opts o = {
		.sz = sizeof(o), .send_wr = 4, .recv_wr = 4,
		.access = RGATE_ACCESS_REMOTE, .timeout_ms = 4000,
	};
	struct rgate_rc_addr addr;
	int err;

	if (rgate_device_info(r->dev)->atomic == RGATE_ATOMIC_NONE)
		o.access &= ~RGATE_ACCESS_REMOTE_ATOMIC;
	err = rgate_rc_create(&r->rc, r->dev, &o);
	if (err)
		return err;
	rgate_rc_addr(r->rc, &addr);
	return rgate_rc_connect(r->rc, &addr);
}

int probe_rdma_open(struct probe_rdma *r, struct rgate_device *dev)
{
	int err = -ENOMEM;

	*r = (struct probe_rdma){ .dev = dev };
	if (posix_memalign(&r->buf, 4096, PROBE_RDMA_MAX)) {
		r->buf = NULL;
		return -ENOMEM;
	}
	memset(r->buf, 0, PROBE_RDMA_MAX);
	err = rgate_mem_register(&r->buf_mem, dev, r->buf, PROBE_RDMA_MAX, NULL);
	if (!err)
		err = connect_self(r);
	if (err)
		probe_rdma_close(r);
	return err;
}

void probe_rdma_close(struct probe_rdma *r)
{
	if (r->rc)
		rgate_rc_destroy(r->rc);
	rgate_mem_deregister(r->buf_mem);
	free(r->buf);
	*r = (struct probe_rdma){ 0 };
}

static int operate(struct probe_rdma *r, enum rgate_rc_op op, size_t off, size_t len,
		   uint64_t operand)
{
	struct rgate_rc_work w = {
		.op = op, .addr = r->buf, .length = (uint32_t)len,
		.lkey = rgate_mem_lkey(r->buf_mem),
		.remote = rgate_mem_iova(r->target) + off,
		.rkey = rgate_mem_rkey(r->target), .operand = operand,
	};

	if (len > PROBE_RDMA_MAX)
		return -EINVAL;
	return rgate_rc_do(r->rc, &w, WAIT_MS);
}

int probe_rdma_write(struct probe_rdma *r, size_t off, const void *buf, size_t len)
{
	if (len > PROBE_RDMA_MAX)
		return -EINVAL;
	memcpy(r->buf, buf, len);
	return operate(r, RGATE_RC_WRITE, off, len, 0);
}

int probe_rdma_read(struct probe_rdma *r, size_t off, void *buf, size_t len)
{
	int err = operate(r, RGATE_RC_READ, off, len, 0);

	if (!err)
		memcpy(buf, r->buf, len);
	return err;
}

int probe_rdma_fetch_add(struct probe_rdma *r, size_t off, uint64_t add, uint64_t *old)
{
	int err = operate(r, RGATE_RC_FETCH_ADD, off, sizeof(*old), add);

	if (!err)
		memcpy(old, r->buf, sizeof(*old));
	return err;
}
