/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Which entry of a port's GID table to use. */
#ifndef RGATE_MEM_GID_H
#define RGATE_MEM_GID_H

#include <infiniband/verbs.h>

#include <ringgate/rgate_device.h>

/*
 * Chooses by type and address, never by position: RoCE v2 of an IPv4 address, then of
 * a global IPv6 one, of a link-local one, then RoCE v1 and InfiniBand. Fills gid,
 * gid_index, gid_type, addr and netdev of @info; RGATE_GID_NONE if there is none.
 * @addr: only an entry of this IP address; @index: only this entry, -1: any.
 * 0; -ENODEV: no such entry; -EINVAL: @addr is no address.
 */
int rgate_gid_choose(struct rgate_device_info *info, struct ibv_context *ctx, uint8_t port,
		     unsigned int table_len, const char *addr, int index);

#endif
