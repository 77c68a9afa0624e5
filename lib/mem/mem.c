// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/rgate_mem.h>

#include "desc.h"
#include "device.h"
#include "log.h"
#include "memlock.h"
#include "opts.h"

struct rgate_mem {
	struct rgate_mr mr;	/* of the device, once it is deregistered */
	struct rgate_device *dev;
	void *addr;
	size_t len;
	uint64_t iova;
	uint32_t access;
	uint32_t epoch;
};

/* Differs from one registration of this process to the next */
static uint32_t epochs;

static int verbs_access(const struct rgate_mem_opts *opts)
{
	int a = opts->access & RGATE_ACCESS_READONLY ? 0 : IBV_ACCESS_LOCAL_WRITE;

	if (opts->access & RGATE_ACCESS_REMOTE_READ)
		a |= IBV_ACCESS_REMOTE_READ;
	if (opts->access & RGATE_ACCESS_REMOTE_WRITE)
		a |= IBV_ACCESS_REMOTE_WRITE;
	if (opts->access & RGATE_ACCESS_REMOTE_ATOMIC)
		a |= IBV_ACCESS_REMOTE_ATOMIC;
	if (opts->access & RGATE_ACCESS_RELAXED)
		a |= IBV_ACCESS_RELAXED_ORDERING;
	if (opts->flags & RGATE_MEM_ON_DEMAND)
		a |= IBV_ACCESS_ON_DEMAND;
	return a;
}

/* What cannot be, whatever the memory is like */
static int check_opts(const struct rgate_device *dev, const struct rgate_mem_opts *opts)
{
	const uint32_t writes = RGATE_ACCESS_REMOTE_WRITE | RGATE_ACCESS_REMOTE_ATOMIC;

	if (opts->access & ~RGATE_ACCESS_ALL ||
	    opts->flags & ~(RGATE_MEM_IOVA | RGATE_MEM_ON_DEMAND))
		return -EINVAL;
	if (opts->access & RGATE_ACCESS_READONLY && opts->access & writes)
		return -EINVAL;
	if (!(opts->flags & RGATE_MEM_IOVA) && opts->iova)
		return -EINVAL;
	if (opts->access & RGATE_ACCESS_REMOTE_ATOMIC && !dev->info.atomic) {
		rgate_err("%s has no atomic operations", dev->info.name);
		return -EOPNOTSUPP;
	}
	if (opts->flags & RGATE_MEM_ON_DEMAND && !dev->info.odp) {
		rgate_err("%s has no on-demand paging", dev->info.name);
		return -EOPNOTSUPP;
	}
	/* Seen on Linux 7.2: data silently went elsewhere. */
	if (opts->flags & RGATE_MEM_ON_DEMAND && !strcmp(dev->info.driver, "rdma_rxe")) {
		rgate_err("on-demand paging is not safe on soft-RoCE");
		return -EOPNOTSUPP;
	}
	return 0;
}

static int check_range(uint64_t start, uint64_t len, const struct rgate_mem_opts *opts)
{
	if (!len || start + len - 1 < start)
		return -EINVAL;
	if (opts->flags & RGATE_MEM_IOVA && opts->iova + len - 1 < opts->iova)
		return -EINVAL;
	return 0;
}

/*
 * Which of the limits it was: verbs say ENOMEM for most of them, and soft-RoCE EINVAL
 * for a table that is full.
 */
static int explain(struct rgate_device *dev, int err, const void *addr, size_t len)
{
	if (err == ENOMEM && rgate_memlock_short(addr, len))
		return -ENOBUFS;
	if (rgate_device_check(dev) == -EIO) {
		rgate_err("%s was removed", dev->info.name);
		return -EIO;
	}
	if (len > dev->info.max_mr_size) {
		rgate_err("%s takes regions of %llu bytes at most", dev->info.name,
			  (unsigned long long)dev->info.max_mr_size);
		return -ENOSPC;
	}
	/* Others have regions too, so the count here need not be there yet. */
	if ((err == ENOMEM || err == EINVAL || err == ENOSPC) &&
	    dev->mrs + dev->mrs / 16 + 16 >= dev->info.max_mr) {
		rgate_err("%s has no room for another memory region (%u here, %u in all): use "
			  "a pool, rgate_pool_create()", dev->info.name, dev->mrs - 1,
			  dev->info.max_mr);
		return -ENOSPC;
	}
	if (err == EFAULT)
		rgate_err("memory at %p cannot be pinned: it is not mapped, is read-only "
			  "(RGATE_ACCESS_READONLY), is a device's own (PFN mapping), or a "
			  "shared writable mapping of a file; `ringgate probe` lists what can",
			  addr);
	return -err;
}

static int begin(struct rgate_mem **mem, struct rgate_device *dev,
		 struct rgate_mem_opts *opts, const struct rgate_mem_opts *user)
{
	int err;

	if (!mem || !dev)
		return -EINVAL;
	err = rgate_device_own(dev);
	if (!err)
		err = rgate_opts_copy(opts, sizeof(*opts), user);
	if (!err)
		err = check_opts(dev, opts);
	return err;
}

static int finish(struct rgate_mem **out, struct rgate_device *dev, struct ibv_mr *mr,
		  void *addr, size_t len, uint64_t iova, uint32_t access)
{
	struct rgate_mem *mem = malloc(sizeof(*mem));

	if (!mem) {
		ibv_dereg_mr(mr);
		return -ENOMEM;
	}
	*mem = (struct rgate_mem){
		.mr.mr = mr, .dev = dev, .addr = addr, .len = len, .iova = iova,
		.access = access,
		.epoch = __atomic_add_fetch(&epochs, 1, __ATOMIC_RELAXED),
	};
	*out = mem;
	return 0;
}

int rgate_mem_register(struct rgate_mem **mem, struct rgate_device *dev, void *addr,
		       size_t len, const struct rgate_mem_opts *user)
{
	struct rgate_mem_opts opts;
	struct ibv_mr *mr;
	uint64_t iova;
	int err;

	err = begin(mem, dev, &opts, user);
	if (!err)
		err = check_range((uintptr_t)addr, len, &opts);
	if (!err)
		err = rgate_device_take_mr(dev);
	if (err)
		return err;
	iova = opts.flags & RGATE_MEM_IOVA ? opts.iova : (uintptr_t)addr;
	errno = 0;
	mr = ibv_reg_mr_iova(dev->pd, addr, len, iova, verbs_access(&opts));
	if (!mr) {
		err = explain(dev, errno ? errno : ENOMEM, addr, len);
		goto give;
	}
	err = finish(mem, dev, mr, addr, len, iova, opts.access);
	if (err)
		goto give;
	return 0;

give:
	rgate_device_give_mr(dev);
	return err;
}

static int explain_dmabuf(struct rgate_device *dev, int err, size_t len)
{
	if (err == EOPNOTSUPP || err == ENOSYS || err == EPROTONOSUPPORT) {
		rgate_err("%s cannot reach dma-bufs%s", dev->info.name,
			  strcmp(dev->info.driver, "rdma_rxe") ? "" :
			  ": soft-RoCE never can; map the buffer's memory instead");
		return -EOPNOTSUPP;
	}
	return explain(dev, err, NULL, len);
}

int rgate_mem_register_dmabuf(struct rgate_mem **mem, struct rgate_device *dev, int fd,
			      uint64_t offset, size_t len, const struct rgate_mem_opts *user)
{
	struct rgate_mem_opts opts;
	struct ibv_mr *mr;
	uint64_t iova;
	int err;

	err = begin(mem, dev, &opts, user);
	if (!err && opts.flags & RGATE_MEM_ON_DEMAND)
		err = -EINVAL;
	if (!err)
		err = fd < 0 ? -EBADF : check_range(offset, len, &opts);
	if (!err)
		err = rgate_device_take_mr(dev);
	if (err)
		return err;
	iova = opts.flags & RGATE_MEM_IOVA ? opts.iova : offset;
	errno = 0;
	mr = ibv_reg_dmabuf_mr(dev->pd, offset, len, iova, fd, verbs_access(&opts));
	if (!mr) {
		err = explain_dmabuf(dev, errno ? errno : ENOMEM, len);
		goto give;
	}
	err = finish(mem, dev, mr, NULL, len, iova, opts.access);
	if (err)
		goto give;
	return 0;

give:
	rgate_device_give_mr(dev);
	return err;
}

void rgate_mem_deregister(struct rgate_mem *mem)
{
	if (!mem)
		return;
	/* A child of fork() has a copy of what describes it, and no region. */
	if (rgate_device_own(mem->dev))
		free(mem);
	else
		rgate_device_drop_mr(mem->dev, &mem->mr);
}

void *rgate_mem_addr(const struct rgate_mem *mem)
{
	return mem->addr;
}

size_t rgate_mem_length(const struct rgate_mem *mem)
{
	return mem->len;
}

uint64_t rgate_mem_iova(const struct rgate_mem *mem)
{
	return mem->iova;
}

uint32_t rgate_mem_lkey(const struct rgate_mem *mem)
{
	return mem->mr.mr->lkey;
}

uint32_t rgate_mem_rkey(const struct rgate_mem *mem)
{
	return mem->mr.mr->rkey;
}

uint32_t rgate_mem_access(const struct rgate_mem *mem)
{
	return mem->access;
}

struct rgate_device *rgate_mem_device(const struct rgate_mem *mem)
{
	return mem->dev;
}

int rgate_mem_desc(const struct rgate_mem *mem, size_t offset, size_t len,
		   struct rgate_desc *desc)
{
	if (!len || offset > mem->len || len > mem->len - offset)
		return -ERANGE;
	if (!(mem->access & RGATE_ACCESS_REMOTE))
		return -EACCES;
	rgate_desc_fill(desc, mem->mr.mr->rkey, mem->iova + offset, len, mem->access, mem->epoch);
	return 0;
}
