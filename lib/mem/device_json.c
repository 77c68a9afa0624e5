// SPDX-License-Identifier: MIT OR GPL-2.0
/* rgate_device_json(): a port's description as a JSON object. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include <ringgate/rgate_device.h>

/* As much as fits, and how much there would be */
struct out {
	char *buf;
	size_t len;
	size_t at;
};

__attribute__((format(printf, 2, 3)))
static void put(struct out *o, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(o->at < o->len ? o->buf + o->at : NULL,
		      o->at < o->len ? o->len - o->at : 0, fmt, ap);
	va_end(ap);
	if (n > 0)
		o->at += (size_t)n;
}

/* Names come from the kernel, but are written as if they came from anybody. */
static void put_string(struct out *o, const char *key, const char *text)
{
	const unsigned char *c;

	put(o, "\"%s\": \"", key);
	for (c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			put(o, "\\%c", *c);
		else if (*c < 0x20 || *c >= 0x7f)
			put(o, "\\u%04x", *c);
		else
			put(o, "%c", *c);
	}
	put(o, "\", ");
}

static void put_number(struct out *o, const char *key, uint64_t v)
{
	put(o, "\"%s\": %" PRIu64 ", ", key, v);
}

static void put_bool(struct out *o, const char *key, bool v)
{
	put(o, "\"%s\": %s, ", key, v ? "true" : "false");
}

static void put_gid(struct out *o, const struct rgate_device_info *info)
{
	static const char *const types[] = { "ib", "roce-v1", "roce-v2", "none" };
	unsigned int i;

	put_string(o, "gid_type", types[info->gid_type & 3]);
	put_number(o, "gid_index", info->gid_index);
	put(o, "\"gid\": \"");
	for (i = 0; i < sizeof(info->gid); i++)
		put(o, "%02x%s", info->gid[i], i % 2 && i < 15 ? ":" : "");
	put(o, "\", ");
}

static void put_limits(struct out *o, const struct rgate_device_info *info)
{
	static const char *const atomics[] = { "none", "hca", "global" };

	put_string(o, "atomic", atomics[info->atomic % 3]);
	put_bool(o, "on_demand", info->odp);
	put_number(o, "max_mr", info->max_mr);
	put_number(o, "max_mr_size", info->max_mr_size);
	put_number(o, "max_qp", info->max_qp);
	put_number(o, "max_qp_wr", info->max_qp_wr);
	put_number(o, "max_sge", info->max_sge);
	put_number(o, "max_cq", info->max_cq);
	put_number(o, "max_cqe", info->max_cqe);
	put_number(o, "max_pd", info->max_pd);
	put_number(o, "max_rd_atomic", info->max_rd_atomic);
	put(o, "\"max_inline\": %" PRIu32, info->max_inline);
}

int rgate_device_json(const struct rgate_device_info *info, char *buf, size_t len)
{
	struct out o = { buf, len, 0 };

	if (!info || (!buf && len))
		return -EINVAL;
	put(&o, "{");
	put_string(&o, "name", info->name);
	put_number(&o, "port", info->port);
	put_bool(&o, "active", info->active);
	put_string(&o, "link", info->ethernet ? "ethernet" : "infiniband");
	put_string(&o, "driver", info->driver);
	put_string(&o, "netdev", info->netdev);
	put_string(&o, "address", info->addr);
	put_string(&o, "firmware", info->firmware);
	put_gid(&o, info);
	put_number(&o, "lid", info->lid);
	put(&o, "\"numa_node\": %d, ", info->numa_node);
	put(&o, "\"vendor\": \"0x%04x\", \"part\": %u, ", info->vendor, info->part);
	put_number(&o, "mtu", info->mtu);
	put_number(&o, "max_mtu", info->max_mtu);
	put_number(&o, "speed", info->speed);
	put_limits(&o, info);
	put(&o, "}");
	return (int)o.at;
}
