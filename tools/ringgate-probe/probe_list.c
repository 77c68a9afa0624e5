// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate probe --list: the RDMA devices. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include <ringgate/rgate_mem.h>

#include "cmd.h"
#include "fmt.h"
#include "json.h"
#include "probe.h"
#include "table.h"
#include "util.h"

struct list {
	struct table table;
	struct json json;
	bool is_json;
	unsigned int n;
};

static const char *atomic_name(uint8_t atomic)
{
	return atomic == RGATE_ATOMIC_GLOBAL ? "global" :
	       atomic == RGATE_ATOMIC_HCA ? "device" : "none";
}

static const char *gid_type_name(uint8_t type)
{
	return type == RGATE_GID_IB ? "IB" : type == RGATE_GID_ROCE_V1 ? "RoCEv1" :
	       type == RGATE_GID_ROCE_V2 ? "RoCEv2" : "none";
}

static int add_row(struct table *t, const struct rgate_device_info *d)
{
	char gid[INET6_ADDRSTRLEN] = "-", buf[FMT_LEN];
	int err = 0;

	if (d->gid_type != RGATE_GID_NONE)
		inet_ntop(AF_INET6, d->gid, gid, sizeof(gid));
	err = err ?: table_cell(t, "%s", d->name);
	err = err ?: table_cell(t, "%u", d->port);
	err = err ?: table_cell(t, "%s", d->active ? "active" : "down");
	err = err ?: table_cell(t, "%s", *d->netdev ? d->netdev : "-");
	err = err ?: table_cell(t, "%s", *d->addr ? d->addr : "-");
	err = err ?: table_cell(t, "%s", gid);
	err = err ?: table_cell(t, "%s", gid_type_name(d->gid_type));
	err = err ?: table_cell(t, "%u", d->mtu);
	err = err ?: table_cell(t, "%s", d->speed ? fmt_si(buf, d->speed) : "-");
	err = err ?: table_cell(t, "%u", d->max_mr);
	err = err ?: table_cell(t, "%s", fmt_bytes(buf, d->max_mr_size));
	err = err ?: table_cell(t, "%u", d->max_qp);
	err = err ?: table_cell(t, "%s", atomic_name(d->atomic));
	err = err ?: table_cell(t, "%s", d->odp ? "yes" : "no");
	return err ?: table_cell(t, "%s", *d->driver ? d->driver : "-");
}

static int add_json(struct json *j, const struct rgate_device_info *d)
{
	int n = rgate_device_json(d, NULL, 0);
	char *text;

	if (n < 0)
		return n;
	text = malloc((size_t)n + 1);
	if (!text)
		return -ENOMEM;
	n = rgate_device_json(d, text, (size_t)n + 1);
	if (n > 0)
		json_raw(j, NULL, text);
	free(text);
	return n < 0 ? n : 0;
}

static int add(void *ctx, const struct rgate_device_info *d)
{
	struct list *l = ctx;

	l->n++;
	return l->is_json ? add_json(&l->json, d) : add_row(&l->table, d);
}

/* No device, or none in this kernel, is an empty list and no failure. */
int probe_list(bool is_json)
{
	struct list l = { .is_json = is_json };
	char said[PROBE_TEXT] = "";
	int err;

	probe_catch_log(said);
	if (table_init(&l.table, "<DEVICE PORT <STATE <NETDEV <ADDRESS <GID <TYPE MTU "
				 "BIT/S MAX-MR MR-SIZE MAX-QP <ATOMIC <ODP <DRIVER"))
		return fail(-ENOMEM, "cannot list");
	json_init(&l.json, stdout, true);
	if (is_json) {
		json_object(&l.json, NULL);
		json_array(&l.json, "devices");
	}
	err = rgate_device_each(add, &l);
	if (is_json) {
		json_array_end(&l.json);
		json_str(&l.json, "error", err ? probe_err_name(err) : NULL);
		json_object_end(&l.json);
		json_end(&l.json);
	} else if (l.n) {
		table_print(&l.table, stdout);
	}
	table_free(&l.table);
	if (err && err != -ENOSYS)
		return probe_fail(err, "cannot list the RDMA devices", said);
	if (!l.n && !is_json)
		say("there is no RDMA device; see `ringgate doctor`");
	return EXIT_OK;
}
