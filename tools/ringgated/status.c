// SPDX-License-Identifier: MIT OR GPL-2.0
/* What the daemon knows of itself and its peers, as JSON and as tables; the modules add theirs. */
#include <errno.h>
#include <string.h>

#include "errout.h"
#include "fmt.h"
#include "json.h"
#include "module.h"
#include "status.h"
#include "table.h"
#include "util.h"

/* "down" is a daemon that was here and is not: nothing is wrong with a node that only asks
 * for processes now and then, and has not yet ("unseen"), or has ("away"). */
const char *status_state(const struct daemon *d, const struct rgate_peer_info *info)
{
	static const char *const states[] = { "down", "connecting", "up" };

	if (!info->epoch)
		return "unseen";
	if (info->state != RGATE_PEER_UP && !peers_is_daemon(d, info->id))
		return "away";
	return states[info->state];
}

static const char *role_name(uint32_t role)
{
	return role == RGATE_ROLE_GATEWAY ? "gateway" : "compute";
}

static const char *provider_name(const struct daemon *d)
{
	return rgate_cluster_provider(d->cluster) == RGATE_PROVIDER_LOCAL ? "local" : "verbs";
}

static double seconds_since(uint64_t ns)
{
	return (double)(util_now() - ns) / (double)NSEC;
}

static struct rgate_peer_info peer_info(struct rgate_peer *peer)
{
	struct rgate_peer_info info = { .sz = sizeof(info) };

	(void)rgate_peer_info(peer, &info);
	return info;
}

static void json_ops(struct json *j, struct rgate_peer *peer)
{
	struct rgate_op_stats s;
	uint32_t kind;

	json_object(j, "operations");
	for (kind = 0; kind < RGATE_OP_KINDS; kind++) {
		s.sz = sizeof(s);
		if (rgate_peer_stats(peer, (enum rgate_op_kind)kind, &s) || !s.posted)
			continue;
		json_object(j, rgate_op_name(kind));
		json_u64(j, "posted", s.posted);
		json_u64(j, "bytes", s.bytes);
		json_u64(j, "failed", s.failed);
		json_u64(j, "measured", s.measured);
		json_u64(j, "min_ns", s.min_ns);
		json_u64(j, "p50_ns", s.p50_ns);
		json_u64(j, "p90_ns", s.p90_ns);
		json_u64(j, "p99_ns", s.p99_ns);
		json_u64(j, "p999_ns", s.p999_ns);
		json_u64(j, "max_ns", s.max_ns);
		json_object_end(j);
	}
	json_object_end(j);
}

static void json_peer(struct daemon *d, struct json *j, const struct rgate_cluster_node *n)
{
	struct rgate_peer *peer = rgate_hub_peer(d->hub, n->id);
	struct rgate_peer_info info;

	if (!peer)
		return;
	info = peer_info(peer);
	json_object(j, NULL);
	json_u64(j, "node", n->id);
	json_str(j, "name", n->name);
	json_str(j, "role", role_name(n->role));
	json_str(j, "address", n->addr);
	json_str(j, "state", status_state(d, &info));
	json_u64(j, "connections", info.epoch);
	json_str(j, "error", info.error ? strerror(-info.error) : NULL);
	if (info.state == RGATE_PEER_UP)
		json_double(j, "up_s", seconds_since(info.up_ns));
	json_ops(j, peer);
	modules_peer_json(d, j, n->id);
	json_object_end(j);
}

void status_json(struct daemon *d, FILE *f)
{
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	struct rgate_node_stats s = { .sz = sizeof(s) };
	struct json j;
	unsigned int i;

	(void)rgate_node_stats(d->node, &s);
	json_init(&j, f, true);
	json_object(&j, NULL);
	json_u64(&j, "node", d->self.id);
	json_str(&j, "name", d->self.name);
	json_str(&j, "role", role_name(d->self.role));
	json_str(&j, "provider", provider_name(d));
	json_double(&j, "up_s", seconds_since(d->began_ns));
	json_u64(&j, "accepted", s.accepted);
	json_u64(&j, "bad_key", s.bad_key);
	json_u64(&j, "garbage", s.garbage);
	json_str(&j, "error", s.error ? strerror(-s.error) : NULL);
	json_object(&j, "in_use");
	json_u64(&j, "peers", s.peers);
	json_u64(&j, "shares", s.shares);
	json_u64(&j, "buffers", s.buffers);
	json_object_end(&j);
	json_array(&j, "peers");
	for (i = 0; !rgate_cluster_node(d->cluster, i, &n); i++)
		json_peer(d, &j, &n);
	json_array_end(&j);
	modules_status_json(d, &j);
	json_u64(&j, "lines_left_out", errout_dropped());
	json_object_end(&j);
	json_end(&j);
}

static void text_peers(struct daemon *d, FILE *f)
{
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	struct rgate_op_stats w = { .sz = sizeof(w) };
	char bytes[FMT_LEN];
	struct table t;
	unsigned int i;

	if (table_init(&t, "NODE <NAME <ROLE <STATE CONNECTIONS WRITES BYTES <ERROR"))
		return;
	for (i = 0; !rgate_cluster_node(d->cluster, i, &n); i++) {
		struct rgate_peer *peer = rgate_hub_peer(d->hub, n.id);
		struct rgate_peer_info info;

		if (!peer)
			continue;
		info = peer_info(peer);
		(void)rgate_peer_stats(peer, RGATE_OP_WRITE, &w);
		table_cell(&t, "%u", n.id);
		table_cell(&t, "%s", n.name);
		table_cell(&t, "%s", role_name(n.role));
		table_cell(&t, "%s", status_state(d, &info));
		table_cell(&t, "%u", info.epoch);
		table_cell(&t, "%llu", (unsigned long long)w.posted);
		table_cell(&t, "%s", fmt_bytes(bytes, w.bytes));
		table_cell(&t, "%s", info.error ? strerror(-info.error) : "");
	}
	table_print(&t, f);
	table_free(&t);
}

void status_text(struct daemon *d, FILE *f)
{
	struct rgate_node_stats s = { .sz = sizeof(s) };

	fprintf(f, "node %u (%s), %s, provider %s, up %.0f s\n", d->self.id, d->self.name,
		role_name(d->self.role), provider_name(d), seconds_since(d->began_ns));
	if (!rgate_node_stats(d->node, &s) && s.error)
		fprintf(f, "it has no connections any more: %s; in use are %u peers, %u shares, "
			"%llu buffers\n", strerror(-s.error), s.peers, s.shares,
			(unsigned long long)s.buffers);
	fputc('\n', f);
	text_peers(d, f);
	modules_status_text(d, f);
}
