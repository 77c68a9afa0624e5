/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What a port can do: read from the device, compared, written as JSON. */
#ifndef RGATE_MEM_DEVICE_INFO_H
#define RGATE_MEM_DEVICE_INFO_H

#include <stdbool.h>
#include <infiniband/verbs.h>

#include <ringgate/rgate_device.h>

/* How many ports @ctx has, or -errno */
int rgate_info_ports(struct ibv_context *ctx);
/*
 * Fills @info for one port. @addr: IP address whose GID is wanted, or NULL;
 * @gid_index: from the user, or -1. -ENODEV: the port has no GID of @addr.
 */
int rgate_info_read(struct rgate_device_info *info, struct ibv_context *ctx, uint8_t port,
		    const char *addr, int gid_index);
/* False: sysfs has no uverbs device of @dev, or under another name */
bool rgate_info_in_sysfs(struct ibv_device *dev);
/* Whether the file that @dev is opened by is there, but not for this user */
bool rgate_info_may_not_open(struct ibv_device *dev);
/* > 0: @a is the better choice of the two */
int rgate_info_compare(const struct rgate_device_info *a, const struct rgate_device_info *b);

#endif
