// SPDX-License-Identifier: MIT OR GPL-2.0
/* rgate_device_json(): a port's description as a JSON object. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ringgate/rgate_device.h>

#include "json.h"

static void put_gid(struct json *j, const struct rgate_device_info *info)
{
	static const char *const types[] = { "ib", "roce-v1", "roce-v2", "none" };
	char text[3 * sizeof(info->gid)], *at = text;
	unsigned int i;

	for (i = 0; i < sizeof(info->gid); i++)
		at += sprintf(at, "%02x%s", info->gid[i], i % 2 && i < 15 ? ":" : "");
	json_str(j, "gid_type", types[info->gid_type & 3]);
	json_u64(j, "gid_index", info->gid_index);
	json_str(j, "gid", text);
}

static void put_limits(struct json *j, const struct rgate_device_info *info)
{
	static const char *const atomics[] = { "none", "hca", "global" };

	json_str(j, "atomic", atomics[info->atomic % 3]);
	json_bool(j, "on_demand", info->odp);
	json_u64(j, "max_mr", info->max_mr);
	json_u64(j, "max_mr_size", info->max_mr_size);
	json_u64(j, "max_qp", info->max_qp);
	json_u64(j, "max_qp_wr", info->max_qp_wr);
	json_u64(j, "max_sge", info->max_sge);
	json_u64(j, "max_cq", info->max_cq);
	json_u64(j, "max_cqe", info->max_cqe);
	json_u64(j, "max_pd", info->max_pd);
	json_u64(j, "max_rd_atomic", info->max_rd_atomic);
	json_u64(j, "max_inline", info->max_inline);
}

static void put_port(struct json *j, const struct rgate_device_info *info)
{
	char vendor[16];

	snprintf(vendor, sizeof(vendor), "0x%04x", info->vendor);
	json_object(j, NULL);
	json_str(j, "name", info->name);
	json_u64(j, "port", info->port);
	json_bool(j, "active", info->active);
	json_str(j, "link", info->ethernet ? "ethernet" : "infiniband");
	json_str(j, "driver", info->driver);
	json_str(j, "netdev", info->netdev);
	json_str(j, "address", info->addr);
	json_str(j, "firmware", info->firmware);
	put_gid(j, info);
	json_u64(j, "lid", info->lid);
	json_i64(j, "numa_node", info->numa_node);
	json_str(j, "vendor", vendor);
	json_u64(j, "part", info->part);
	json_u64(j, "mtu", info->mtu);
	json_u64(j, "max_mtu", info->max_mtu);
	json_u64(j, "speed", info->speed);
	put_limits(j, info);
	json_object_end(j);
}

int rgate_device_json(const struct rgate_device_info *info, char *buf, size_t len)
{
	char *text = NULL;
	size_t all = 0, n;
	struct json j;
	FILE *f;

	if (!info || (!buf && len))
		return -EINVAL;
	f = open_memstream(&text, &all);
	if (!f)
		return -ENOMEM;
	json_init(&j, f, false);
	put_port(&j, info);
	if (fclose(f)) {
		free(text);
		return -ENOMEM;
	}
	n = all < len ? all : len ? len - 1 : 0;
	if (len) {
		memcpy(buf, text, n);
		buf[n] = '\0';
	}
	free(text);
	return (int)all;
}
