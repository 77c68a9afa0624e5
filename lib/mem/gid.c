// SPDX-License-Identifier: MIT OR GPL-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdbool.h>
#include <string.h>

#include "gid.h"

static bool is_v4(const union ibv_gid *gid)
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid->raw);
}

static bool is_zero(const union ibv_gid *gid)
{
	return !gid->global.subnet_prefix && !gid->global.interface_id;
}

static int rank(const struct ibv_gid_entry *e)
{
	const struct in6_addr *in6 = (const void *)e->gid.raw;

	switch (e->gid_type) {
	case IBV_GID_TYPE_ROCE_V2:
		return is_v4(&e->gid) ? 5 : IN6_IS_ADDR_LINKLOCAL(in6) ? 3 : 4;
	case IBV_GID_TYPE_ROCE_V1:
		return 2;
	default:
		return 1;
	}
}

/* An IP address as it stands in a GID */
static int parse(union ibv_gid *gid, const char *addr)
{
	struct in_addr in4;

	if (inet_pton(AF_INET, addr, &in4) == 1) {
		memset(gid->raw, 0, 10);
		memset(gid->raw + 10, 0xff, 2);
		memcpy(gid->raw + 12, &in4, 4);
		return 0;
	}
	return inet_pton(AF_INET6, addr, gid->raw) == 1 ? 0 : -EINVAL;
}

static void take(struct rgate_device_info *info, const struct ibv_gid_entry *e)
{
	static const uint8_t types[] = {
		[IBV_GID_TYPE_IB] = RGATE_GID_IB,
		[IBV_GID_TYPE_ROCE_V1] = RGATE_GID_ROCE_V1,
		[IBV_GID_TYPE_ROCE_V2] = RGATE_GID_ROCE_V2,
	};
	char name[IF_NAMESIZE];

	memcpy(info->gid, e->gid.raw, sizeof(info->gid));
	info->gid_index = (uint8_t)e->gid_index;
	info->gid_type = types[e->gid_type];
	info->addr[0] = '\0';
	info->netdev[0] = '\0';
	if (e->gid_type == IBV_GID_TYPE_IB)
		return;
	if (is_v4(&e->gid))
		inet_ntop(AF_INET, e->gid.raw + 12, info->addr, sizeof(info->addr));
	else
		inet_ntop(AF_INET6, e->gid.raw, info->addr, sizeof(info->addr));
	if (if_indextoname(e->ndev_ifindex, name))
		memcpy(info->netdev, name, sizeof(info->netdev));
}

int rgate_gid_choose(struct rgate_device_info *info, struct ibv_context *ctx, uint8_t port,
		     unsigned int table_len, const char *addr, int index)
{
	struct ibv_gid_entry e;
	union ibv_gid want;
	unsigned int i;
	int best = 0;

	info->gid_type = RGATE_GID_NONE;
	if (addr && parse(&want, addr))
		return -EINVAL;
	/* gid_index of the path is 8 bits wide. */
	for (i = 0; i < table_len && i < 256; i++) {
		if (index >= 0 && i != (unsigned int)index)
			continue;
		if (ibv_query_gid_ex(ctx, port, i, &e, 0) || is_zero(&e.gid) ||
		    e.gid_type > IBV_GID_TYPE_ROCE_V2)
			continue;
		if (addr && memcmp(e.gid.raw, want.raw, sizeof(want.raw)))
			continue;
		if (rank(&e) > best) {
			best = rank(&e);
			take(info, &e);
		}
	}
	return !best && (addr || index >= 0) ? -ENODEV : 0;
}
