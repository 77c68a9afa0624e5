// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device_info.h"
#include "gid.h"

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128U << mtu : 0;
}

/* Bits a second of a lane, by the bit of active_speed (IBTA, PortInfo), in Mbit/s */
static uint64_t lane_speed(unsigned int speed)
{
	static const struct {
		unsigned int code;
		uint32_t mbit;
	} speeds[] = {
		{ 1, 2500 }, { 2, 5000 }, { 4, 10000 }, { 8, 10000 }, { 16, 14000 },
		{ 32, 25000 }, { 64, 50000 }, { 128, 100000 },
	};
	size_t i;

	for (i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
		if (speeds[i].code == speed)
			return speeds[i].mbit * 1000000ULL;
	return 0;
}

static unsigned int lanes(unsigned int width)
{
	switch (width) {
	case 1: return 1;
	case 2: return 4;
	case 4: return 8;
	case 8: return 12;
	case 16: return 2;
	default: return 0;
	}
}

/* First line of a file in sysfs below @class */
static int sysfs_line(const char *class, const char *dev, const char *file, char *buf,
		      size_t len)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/%s/%s/%s", class, dev, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, len - 1);
	close(fd);
	if (n < 0)
		return -EIO;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}

bool rgate_info_in_sysfs(struct ibv_device *dev)
{
	char name[IBV_SYSFS_NAME_MAX];
	int err = sysfs_line("infiniband_verbs", dev->dev_name, "ibdev", name, sizeof(name));

	/* Who may open no file, for want of descriptors, does not know it to be gone. */
	if (err)
		return err != -ENOENT && err != -EIO;
	/* The number of one that is gone may already be another's. */
	return !strcmp(name, dev->name);
}

bool rgate_info_may_not_open(struct ibv_device *dev)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/dev/infiniband/%s", dev->dev_name);
	return faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) && errno == EACCES;
}

/*
 * The kernel driver, as the link of the parent device says; software devices have no
 * parent, but tell the network device they sit on.
 */
static void read_driver(struct rgate_device_info *info)
{
	char path[PATH_MAX], link[PATH_MAX], parent[64];
	const char *base;
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/driver", info->name);
	n = readlink(path, link, sizeof(link) - 1);
	if (n > 0) {
		link[n] = '\0';
		base = strrchr(link, '/');
		snprintf(info->driver, sizeof(info->driver), "%.31s", base ? base + 1 : link);
	} else if (!sysfs_line("infiniband", info->name, "parent", parent, sizeof(parent))) {
		/* An attribute that only soft-RoCE has */
		snprintf(info->driver, sizeof(info->driver), "rdma_rxe");
	}
}

static void read_numa_node(struct rgate_device_info *info)
{
	char text[32];

	info->numa_node = -1;
	if (!sysfs_line("infiniband", info->name, "device/numa_node", text, sizeof(text)))
		info->numa_node = (int16_t)atoi(text);
}

static int read_device(struct rgate_device_info *info, struct ibv_context *ctx)
{
	struct ibv_device_attr_ex ex = { 0 };
	const struct ibv_device_attr *a = &ex.orig_attr;
	const uint32_t rc = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
	int err = ibv_query_device_ex(ctx, NULL, &ex);

	if (err)
		return -err;
	snprintf(info->firmware, sizeof(info->firmware), "%s", a->fw_ver);
	info->vendor = a->vendor_id;
	info->part = a->vendor_part_id;
	info->max_mr_size = a->max_mr_size;
	info->max_mr = (uint32_t)a->max_mr;
	info->max_qp = (uint32_t)a->max_qp;
	info->max_qp_wr = (uint32_t)a->max_qp_wr;
	info->max_sge = (uint32_t)a->max_sge;
	info->max_cq = (uint32_t)a->max_cq;
	info->max_cqe = (uint32_t)a->max_cqe;
	info->max_pd = (uint32_t)a->max_pd;
	info->max_rd_atomic = (uint32_t)a->max_qp_rd_atom;
	info->atomic = (uint8_t)a->atomic_cap;
	info->odp = ex.odp_caps.general_caps & IBV_ODP_SUPPORT &&
		(ex.odp_caps.per_transport_caps.rc_odp_caps & rc) == rc;
	return 0;
}

int rgate_info_ports(struct ibv_context *ctx)
{
	struct ibv_device_attr_ex ex = { 0 };
	int err = ibv_query_device_ex(ctx, NULL, &ex);

	return err ? -err : ex.orig_attr.phys_port_cnt;
}

static int read_port(struct rgate_device_info *info, struct ibv_context *ctx,
		     uint8_t port, struct ibv_port_attr *attr)
{
	int err = ibv_query_port(ctx, port, attr);

	if (err)
		return -err;
	info->port = port;
	info->active = attr->state == IBV_PORT_ACTIVE;
	info->ethernet = attr->link_layer == IBV_LINK_LAYER_ETHERNET;
	info->lid = attr->lid;
	info->mtu = mtu_bytes(attr->active_mtu);
	info->max_mtu = mtu_bytes(attr->max_mtu);
	info->speed = lane_speed(attr->active_speed) * lanes(attr->active_width);
	return 0;
}

int rgate_info_read(struct rgate_device_info *info, struct ibv_context *ctx, uint8_t port,
		    const char *addr, int gid_index)
{
	struct ibv_port_attr attr = { 0 };
	int err;

	memset(info, 0, sizeof(*info));
	info->sz = sizeof(*info);
	snprintf(info->name, sizeof(info->name), "%s", ibv_get_device_name(ctx->device));
	err = read_device(info, ctx);
	if (!err)
		err = read_port(info, ctx, port, &attr);
	if (err)
		return err;
	read_driver(info);
	read_numa_node(info);
	return rgate_gid_choose(info, ctx, port, (unsigned int)attr.gid_tbl_len, addr,
				gid_index);
}

static bool has_gid(const struct rgate_device_info *info)
{
	return info->gid_type != RGATE_GID_NONE;
}

int rgate_info_compare(const struct rgate_device_info *a, const struct rgate_device_info *b)
{
	if (a->active != b->active)
		return a->active ? 1 : -1;
	if (has_gid(a) != has_gid(b))
		return has_gid(a) ? 1 : -1;
	if (!a->atomic != !b->atomic)
		return a->atomic ? 1 : -1;
	if (a->speed != b->speed)
		return a->speed > b->speed ? 1 : -1;
	if (strcmp(a->name, b->name))
		return strcmp(a->name, b->name) < 0 ? 1 : -1;
	return (int)b->port - (int)a->port;
}
