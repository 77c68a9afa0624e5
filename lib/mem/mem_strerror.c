// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <limits.h>

#include <ringgate/rgate_mem.h>

/* What errors of devices, registered memory and pools mean, and what mends them */
static const struct {
	int err;
	const char *text;
} texts[] = {
	{ EPERM, "belongs to another process: what a parent opened cannot be used after fork(); "
		 "open it anew" },
	{ ENOENT, "there is none of that number, or no held buffer at that address" },
	{ EIO, "the RDMA device was removed or failed: close everything of it and open it anew" },
	{ EBADF, "the descriptor is not a dma-buf" },
	{ ENOMEM, "out of memory, or no huge pages of the size asked for" },
	{ EACCES, "no permission: on /dev/infiniband/uverbs* (join its group or run as root), or "
		  "the memory was not registered for that access" },
	{ EFAULT, "memory that cannot be registered: not mapped, not writable, a device's own, or "
		  "outside of the pool; `ringgate probe` shows what can" },
	{ EBUSY, "still in use: release its buffers, or deregister the memory, first" },
	{ ENODEV, "no such RDMA device, or none at all; `ringgate probe --list`, and for soft-RoCE "
		  "`rdma link add rxe0 type rxe netdev DEVICE`" },
	{ EINVAL, "invalid argument: a size of 0, flags that contradict each other, or an alignment "
		  "that is no power of two" },
	{ ENOSPC, "the device's limit of memory regions (or of the size of one) is reached: use one "
		  "pool instead of many regions, or raise RGATE_MAX_MR" },
	{ ERANGE, "outside of the memory" },
	{ ENOSYS, "this kernel has no RDMA: load ib_uverbs and the driver of the device" },
	{ EPROTO, "not a descriptor of remote memory, or a damaged one" },
	{ EPROTONOSUPPORT, "a descriptor of another version: install the same version on both "
			   "sides" },
	{ EOVERFLOW, "a buffer was written beyond its end, or the range wraps around" },
	{ EMSGSIZE, "larger than a region of the pool: make the pool with a larger region_size" },
	{ EOPNOTSUPP, "this device, driver or pool cannot do that; see the log" },
	{ ENETDOWN, "the port of the RDMA device is not active; see `rdma link`" },
	{ ENETUNREACH, "the RDMA device has no usable GID: give its network device an IP address" },
	{ ENOBUFS, "the pool is exhausted, or the limit of locked memory is too small: raise "
		   "max_size of the pool, or `ulimit -l`" },
	{ ETIMEDOUT, "nothing came in time" },
	{ EALREADY, "the buffer was released before" },
	{ EREMOTEIO, "the peer's device refused the access" },
	{ ENOTCONN, "the connection failed before" },
	{ ECANCELED, "given up, as the connection failed" },
};

const char *rgate_mem_strerror(int err)
{
	size_t i;

	if (err < 0 && err != INT_MIN)
		err = -err;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].err == err)
			return texts[i].text;
	return rgate_strerror(err);
}
