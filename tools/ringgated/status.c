// SPDX-License-Identifier: MIT OR GPL-2.0
/* What the daemon knows, as JSON, as tables, and as lines for `ringgate cluster top`. */
#include <errno.h>
#include <string.h>

#include "errout.h"
#include "fmt.h"
#include "json.h"
#include "ringgated.h"
#include "table.h"
#include "util.h"

/* "down" is a daemon that was here and is not: nothing is wrong with a node that only asks
 * for processes now and then, and has not yet ("unseen"), or has ("away"). */
static const char *state_name(const struct daemon *d, const struct rgate_peer_info *info)
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
	struct rgate_gateway_node g = { .sz = sizeof(g) };
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
	json_str(j, "state", state_name(d, &info));
	json_u64(j, "connections", info.epoch);
	json_str(j, "error", info.error ? strerror(-info.error) : NULL);
	if (info.state == RGATE_PEER_UP)
		json_double(j, "up_s", seconds_since(info.up_ns));
	json_ops(j, peer);
	if (d->gw && !rgate_gateway_node(d->gw, n->id, &g)) {
		json_u64(j, "frames", g.frames);
		json_u64(j, "bytes", g.bytes);
		json_u64(j, "lost", g.lost);
		json_u64(j, "dropped_full", g.dropped_full);
		json_u64(j, "dropped_down", g.dropped_down);
		json_u64(j, "sessions", g.sessions);
	}
	json_object_end(j);
}

static void json_inlet_ring(struct json *j, const struct rgate_inlet_ring *r)
{
	json_object(j, NULL);
	json_str(j, "name", r->name);
	json_u64(j, "slots", r->slots);
	json_u64(j, "slot_size", r->slot_size);
	json_bool(j, "filled", r->filled);
	json_str(j, "error", r->error ? strerror(-r->error) : NULL);
	json_u64(j, "frames", r->stats.delivered);
	json_u64(j, "bytes", r->stats.bytes);
	json_u64(j, "dropped_full", r->stats.dropped_full);
	json_u64(j, "sessions", r->sessions);
	json_u64(j, "found", r->found);
	json_u64(j, "errors", r->errors);
	if (r->tstamp_error != UINT64_MAX) {
		json_i64(j, "clock_offset_ns", r->tstamp_offset);
		json_u64(j, "clock_error_ns", r->tstamp_error);
	}
	json_object_end(j);
}

static void json_gateway_ring(struct json *j, const struct rgate_gateway_ring *r)
{
	json_object(j, NULL);
	json_u64(j, "node", r->node);
	json_str(j, "name", r->name);
	json_u64(j, "slots", r->slots);
	json_u64(j, "slot_size", r->slot_size);
	json_u64(j, "waiting", r->waiting);
	json_u64(j, "frames", r->frames);
	json_u64(j, "bytes", r->bytes);
	json_u64(j, "dropped_full", r->dropped_full);
	json_u64(j, "resteered", r->resteered);
	json_u64(j, "stalls", r->stalls);
	json_u64(j, "posts", r->posts);
	json_u64(j, "writes", r->writes);
	json_u64(j, "notices", r->notices);
	json_object_end(j);
}

static void json_rules(struct daemon *d, struct json *j, const char *key)
{
	char line[2048];
	uint64_t hits;
	unsigned int i;

	json_array(j, key);
	for (i = 0; !rgate_gateway_rule(d->gw, i, line, sizeof(line), &hits); i++) {
		json_object(j, NULL);
		json_str(j, "rule", line);
		json_u64(j, "frames", hits);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_sources(struct daemon *d, struct json *j)
{
	struct rgate_stats s;
	unsigned int i;

	json_array(j, "sources");
	for (i = 0; i < d->conf.nsources; i++) {
		if (!d->sources[i].ring || rgate_ring_stats(d->sources[i].ring, &s))
			continue;
		json_object(j, NULL);
		json_str(j, "at", d->conf.sources[i].at);
		json_u64(j, "frames", s.delivered);
		json_u64(j, "bytes", s.bytes);
		json_u64(j, "dropped_full", s.dropped_full);
		json_u64(j, "passed", s.passed);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_gateway(struct daemon *d, struct json *j)
{
	struct rgate_gateway_stats s = { .sz = sizeof(s) };
	struct rgate_gateway_ring r = { .sz = sizeof(r) };
	unsigned int i;

	(void)rgate_gateway_stats(d->gw, &s);
	json_object(j, "gateway");
	json_u64(j, "frames", s.frames);
	json_u64(j, "bytes", s.bytes);
	json_u64(j, "unmatched", s.unmatched);
	json_u64(j, "dropped_rule", s.dropped_rule);
	json_u64(j, "dropped_down", s.dropped_down);
	json_u64(j, "refused", s.refused);
	json_u64(j, "busy_ns", s.busy_ns);
	json_sources(d, j);
	json_array(j, "rings");
	for (i = 0; !rgate_gateway_ring(d->gw, i, &r); i++)
		json_gateway_ring(j, &r);
	json_array_end(j);
	json_rules(d, j, "rules");
	json_object_end(j);
}

static void json_spawn(struct daemon *d, struct json *j)
{
	struct rgate_spawnd_stats s = { .sz = sizeof(s) };

	(void)rgate_spawnd_stats(d->spawnd, &s);
	json_object(j, "spawn");
	json_u64(j, "requests", s.requests);
	json_u64(j, "refused", s.refused);
	json_u64(j, "failed", s.failed);
	json_u64(j, "started", s.started);
	json_u64(j, "completed", s.completed);
	json_u64(j, "killed", s.killed);
	json_u64(j, "timed_out", s.timed_out);
	json_u64(j, "garbage", s.garbage);
	json_u64(j, "jobs", s.jobs);
	json_u64(j, "queued", s.queued);
	json_u64(j, "running", s.running);
	json_u64(j, "bytes_out", s.bytes_out);
	json_u64(j, "bytes_in", s.bytes_in);
	json_object_end(j);
}

void status_json(struct daemon *d, FILE *f)
{
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	struct rgate_inlet_ring r = { .sz = sizeof(r) };
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
	json_array(&j, "peers");
	for (i = 0; !rgate_cluster_node(d->cluster, i, &n); i++)
		json_peer(d, &j, &n);
	json_array_end(&j);
	if (d->inlet) {
		json_array(&j, "rings");
		for (i = 0; !rgate_inlet_info(d->inlet, i, &r); i++)
			json_inlet_ring(&j, &r);
		json_array_end(&j);
	}
	if (d->gw)
		json_gateway(d, &j);
	if (d->spawnd)
		json_spawn(d, &j);
	requests_json(d, &j);
	json_u64(&j, "lines_left_out", errout_dropped());
	json_object_end(&j);
	json_end(&j);
}

static void text_spawn(struct daemon *d, FILE *f)
{
	struct rgate_spawnd_stats s = { .sz = sizeof(s) };

	(void)rgate_spawnd_stats(d->spawnd, &s);
	fprintf(f, "\nprocesses: running %llu, waiting %llu, ended %llu, refused %llu, not started %llu\n",
		(unsigned long long)s.running, (unsigned long long)s.queued,
		(unsigned long long)s.completed, (unsigned long long)s.refused,
		(unsigned long long)s.failed);
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
		table_cell(&t, "%s", state_name(d, &info));
		table_cell(&t, "%u", info.epoch);
		table_cell(&t, "%llu", (unsigned long long)w.posted);
		table_cell(&t, "%s", fmt_bytes(bytes, w.bytes));
		table_cell(&t, "%s", info.error ? strerror(-info.error) : "");
	}
	table_print(&t, f);
	table_free(&t);
}

static void text_inlet(struct daemon *d, FILE *f)
{
	struct rgate_inlet_ring r = { .sz = sizeof(r) };
	char bytes[FMT_LEN];
	struct table t;
	unsigned int i;

	if (table_init(&t, "<RING SLOTS SIZE <STATE FRAMES BYTES SESSIONS OFFSET_US"))
		return;
	for (i = 0; !rgate_inlet_info(d->inlet, i, &r); i++) {
		table_cell(&t, "%s", r.name);
		table_cell(&t, "%u", r.slots);
		table_cell(&t, "%u", r.slot_size);
		table_cell(&t, "%s", r.filled ? "filled" : r.error ? "refused" : "waiting");
		table_cell(&t, "%llu", (unsigned long long)r.stats.delivered);
		table_cell(&t, "%s", fmt_bytes(bytes, r.stats.bytes));
		table_cell(&t, "%llu", (unsigned long long)r.sessions);
		if (r.tstamp_error == UINT64_MAX)
			table_cell(&t, "-");
		else
			table_cell(&t, "%.1f", (double)r.tstamp_offset / 1000);
	}
	fputc('\n', f);
	table_print(&t, f);
	table_free(&t);
}

static void text_rings(struct daemon *d, FILE *f)
{
	struct rgate_gateway_ring r = { .sz = sizeof(r) };
	char bytes[FMT_LEN];
	struct table t;
	unsigned int i;

	if (table_init(&t, "NODE <RING FRAMES BYTES WAITING STALLS DROPPED WRITES/POST"))
		return;
	for (i = 0; !rgate_gateway_ring(d->gw, i, &r); i++) {
		table_cell(&t, "%u", r.node);
		table_cell(&t, "%s", r.name);
		table_cell(&t, "%llu", (unsigned long long)r.frames);
		table_cell(&t, "%s", fmt_bytes(bytes, r.bytes));
		table_cell(&t, "%u", r.waiting);
		table_cell(&t, "%llu", (unsigned long long)r.stalls);
		table_cell(&t, "%llu", (unsigned long long)r.dropped_full);
		table_cell(&t, "%.1f", r.posts ? (double)r.writes / (double)r.posts : 0.0);
	}
	fputc('\n', f);
	table_print(&t, f);
	table_free(&t);
}

static void text_gateway(struct daemon *d, FILE *f)
{
	struct rgate_gateway_stats s = { .sz = sizeof(s) };

	(void)rgate_gateway_stats(d->gw, &s);
	text_rings(d, f);
	fprintf(f, "\nframes %llu, without a rule %llu, dropped by rule %llu, for want of a node %llu\n",
		(unsigned long long)s.frames, (unsigned long long)s.unmatched,
		(unsigned long long)s.dropped_rule, (unsigned long long)s.dropped_down);
}

void status_text(struct daemon *d, FILE *f)
{
	fprintf(f, "node %u (%s), %s, provider %s, up %.0f s\n\n", d->self.id, d->self.name,
		role_name(d->self.role), provider_name(d), seconds_since(d->began_ns));
	text_peers(d, f);
	if (d->inlet)
		text_inlet(d, f);
	if (d->gw)
		text_gateway(d, f);
	if (d->spawnd)
		text_spawn(d, f);
	requests_text(d, f);
}

/* "NAME STATE FRAMES BYTES LOST DROPPED" of each node, or of each ring here */
void status_counters(struct daemon *d, FILE *f)
{
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	struct rgate_inlet_ring r = { .sz = sizeof(r) };
	struct rgate_gateway_node g = { .sz = sizeof(g) };
	unsigned int i;

	for (i = 0; d->gw && !rgate_cluster_node(d->cluster, i, &n); i++) {
		struct rgate_peer *peer = rgate_hub_peer(d->hub, n.id);
		struct rgate_peer_info info;

		if (!peer || rgate_gateway_node(d->gw, n.id, &g))
			continue;
		info = peer_info(peer);
		fprintf(f, "%s %s %llu %llu %llu %llu\n", n.name,
			state_name(d, &info), (unsigned long long)g.frames,
			(unsigned long long)g.bytes, (unsigned long long)g.lost,
			(unsigned long long)g.dropped_full + g.dropped_down);
	}
	for (i = 0; d->inlet && !rgate_inlet_info(d->inlet, i, &r); i++)
		fprintf(f, "%s %s %llu %llu %llu %llu\n", r.name,
			r.filled ? "filled" : "waiting", (unsigned long long)r.stats.delivered,
			(unsigned long long)r.stats.bytes, 0ULL,
			(unsigned long long)r.stats.dropped_full);
}

void steer_json(struct daemon *d, FILE *f)
{
	struct json j;

	json_init(&j, f, true);
	json_rules(d, &j, NULL);
	json_end(&j);
}

void steer_text(struct daemon *d, FILE *f)
{
	char line[2048];
	struct table t;
	uint64_t hits;
	unsigned int i;

	if (table_init(&t, "FRAMES <RULE"))
		return;
	for (i = 0; !rgate_gateway_rule(d->gw, i, line, sizeof(line), &hits); i++) {
		table_cell(&t, "%llu", (unsigned long long)hits);
		table_cell(&t, "%s", line);
	}
	table_print(&t, f);
	table_free(&t);
}
