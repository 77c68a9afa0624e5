/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * RDMA devices: which there are, what they can do, and one of them opened. All
 * users of a device in a process share one context and one protection domain, so
 * that what one registers another can use.
 *
 * All functions are thread-safe. A struct rgate_device is not to be used in a
 * child of fork(2): functions that would act on the device return -EPERM there;
 * the child opens its own.
 */
#ifndef RINGGATE_RGATE_DEVICE_H
#define RINGGATE_RGATE_DEVICE_H

#include <ringgate/rgate.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_context;
struct ibv_pd;
struct rgate_device;

enum rgate_atomic {		/* as enum ibv_atomic_cap */
	RGATE_ATOMIC_NONE,
	RGATE_ATOMIC_HCA,	/* among operations of this device only */
	RGATE_ATOMIC_GLOBAL,	/* with the CPU too */
};

enum rgate_gid_type {
	RGATE_GID_IB,
	RGATE_GID_ROCE_V1,
	RGATE_GID_ROCE_V2,
	RGATE_GID_NONE,		/* no usable entry */
};

/* A port of a device as it is now. New fields come at the end; @sz tells how far
 * this library fills it. */
struct rgate_device_info {
	size_t sz;
	char name[64];			/* as in /sys/class/infiniband */
	char driver[32];		/* kernel driver, "" if not known */
	char netdev[16];		/* network device of the port, "" if none */
	char firmware[64];
	char addr[46];			/* IP address of the chosen GID, "" if none */
	uint8_t gid[16];
	uint8_t gid_index;		/* into the port's table */
	uint8_t gid_type;		/* enum rgate_gid_type */
	uint8_t port;			/* from 1 */
	bool active;			/* port state is ACTIVE */
	bool ethernet;			/* link layer; else InfiniBand */
	uint8_t atomic;			/* enum rgate_atomic */
	bool odp;			/* on-demand paging for RC */
	uint16_t lid;
	int16_t numa_node;		/* -1: unknown */
	uint32_t vendor;
	uint32_t part;
	uint32_t mtu;			/* active path MTU, bytes */
	uint32_t max_mtu;
	uint64_t speed;			/* bit/s; 0: unknown */
	uint64_t max_mr_size;		/* bytes */
	uint32_t max_mr;		/* as the device says; see rgate_device_mr_limit() */
	uint32_t max_qp;
	uint32_t max_qp_wr;
	uint32_t max_sge;
	uint32_t max_cq;
	uint32_t max_cqe;
	uint32_t max_pd;
	uint32_t max_rd_atomic;		/* outstanding reads and atomics of a QP */
	uint32_t max_inline;		/* bytes; 0: not found out (rgate_device_each()) */
};

typedef int (*rgate_device_fn)(void *ctx, const struct rgate_device_info *info);

/*
 * rgate_device_each - every port of every RDMA device
 * @fn: called for each; what it returns other than 0 ends the walk and is returned
 * 0: done (no device is no error); -EACCES: there are devices, none may be opened;
 * -ENOSYS: this kernel has no RDMA.
 */
RGATE_API int rgate_device_each(rgate_device_fn fn, void *ctx);

struct rgate_device_opts {
	size_t sz;
	const char *name;	/* device, NULL: any */
	const char *addr;	/* IPv4 or IPv6 address on one of its ports, NULL: any */
	uint32_t port;		/* 0: the best of the device */
	uint32_t gid_index_plus1; /* 0: found: RoCE v2 of an IPv4 address first */
};

/*
 * rgate_device_open - the device that fits, or one more reference on it
 * @opts: NULL: environment RGATE_RDMA_DEVICE if set, else the best: an active port,
 *	atomics, the higher speed, the lower name
 * -ENODEV: no such device, none at all, or none with that address; -EACCES: no
 * permission on /dev/infiniband/uverbs*; -ENETDOWN: its port is not active;
 * -ENETUNREACH: no usable GID; -ENOSYS: no RDMA in this kernel. What to do is said
 * to the log (rgate_log_set()).
 */
RGATE_API int rgate_device_open(struct rgate_device **dev,
				const struct rgate_device_opts *opts);

/*
 * rgate_device_close - gives the reference back; NULL is allowed
 * With the last one it is closed, or, where memory or a pool is still registered, when the last of
 * these is gone, as the log says. In a process that did not open it nothing is done.
 */
RGATE_API void rgate_device_close(struct rgate_device *dev);

/* Limits and names as they were when it was opened; owned by the device */
RGATE_API const struct rgate_device_info *rgate_device_info(const struct rgate_device *dev);

/*
 * rgate_device_json - @info as one JSON object
 * As snprintf(3): returns the length without the final NUL that a buffer large
 * enough would get; -EINVAL; -ENOMEM.
 */
RGATE_API int rgate_device_json(const struct rgate_device_info *info, char *buf, size_t len);

/* For the user's own verbs calls; owned by the device */
RGATE_API struct ibv_context *rgate_device_context(const struct rgate_device *dev);
RGATE_API struct ibv_pd *rgate_device_pd(const struct rgate_device *dev);

/*
 * rgate_device_check - 0, or -EIO once the device was removed or failed
 * Takes asynchronous events off the context without blocking; others than fatal
 * ones are logged. After -EIO memory stays in use by operations that are under way until
 * their queue pairs are destroyed: the caller's own by himself, those of a peer by the
 * library, which tells of their operations then.
 */
RGATE_API int rgate_device_check(struct rgate_device *dev);

/*
 * rgate_device_mr_limit - how many regions this process may register
 * The device's max_mr, or less: RGATE_MAX_MR in the environment when the device is
 * opened, or rgate_device_set_mr_limit().
 */
RGATE_API uint32_t rgate_device_mr_limit(const struct rgate_device *dev);
/* 0: as the device says. Regions that are there stay. */
RGATE_API void rgate_device_set_mr_limit(struct rgate_device *dev, uint32_t limit);
/* Regions registered now through this library */
RGATE_API uint32_t rgate_device_mr_count(const struct rgate_device *dev);
/*
 * rgate_device_mr_left - how many of these were deregistered, and the device holds them still
 * Memory windows of the caller's own verbs on them do that. Each is gone, and its pages are free,
 * when those are and this is asked, or rgate_device_check(), which a node does with each heartbeat,
 * memory is registered or deregistered, or the device closed.
 */
RGATE_API uint32_t rgate_device_mr_left(struct rgate_device *dev);

#ifdef __cplusplus
}
#endif
#endif
