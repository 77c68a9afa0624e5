// SPDX-License-Identifier: MIT OR GPL-2.0
/* What the gateway knows, as JSON, as tables, and as lines for `ringgate cluster top` */
#include "fmt.h"
#include "gateway.h"
#include "json.h"
#include "status.h"
#include "table.h"

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
	json_bool(j, "packed", r->packed);
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

void gateway_json(struct daemon *d, struct json *j)
{
	struct rgate_gateway_stats s = { .sz = sizeof(s) };
	struct rgate_gateway_ring r = { .sz = sizeof(r) };
	unsigned int i;

	if (!d->gw)
		return;
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

void gateway_peer_json(struct daemon *d, struct json *j, uint32_t node)
{
	struct rgate_gateway_node g = { .sz = sizeof(g) };

	if (!d->gw || rgate_gateway_node(d->gw, node, &g))
		return;
	json_u64(j, "frames", g.frames);
	json_u64(j, "bytes", g.bytes);
	json_u64(j, "lost", g.lost);
	json_u64(j, "dropped_full", g.dropped_full);
	json_u64(j, "dropped_down", g.dropped_down);
	json_u64(j, "sessions", g.sessions);
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

void gateway_text(struct daemon *d, FILE *f)
{
	struct rgate_gateway_stats s = { .sz = sizeof(s) };

	if (!d->gw)
		return;
	(void)rgate_gateway_stats(d->gw, &s);
	text_rings(d, f);
	fprintf(f, "\nframes %llu, without a rule %llu, dropped by rule %llu, for want of a node %llu\n",
		(unsigned long long)s.frames, (unsigned long long)s.unmatched,
		(unsigned long long)s.dropped_rule, (unsigned long long)s.dropped_down);
}

void gateway_counters(struct daemon *d, FILE *f)
{
	struct rgate_cluster_node n = { .sz = sizeof(n) };
	struct rgate_gateway_node g = { .sz = sizeof(g) };
	struct rgate_peer_info info;
	unsigned int i;

	for (i = 0; d->gw && !rgate_cluster_node(d->cluster, i, &n); i++) {
		struct rgate_peer *peer = rgate_hub_peer(d->hub, n.id);

		if (!peer || rgate_gateway_node(d->gw, n.id, &g))
			continue;
		info = (struct rgate_peer_info){ .sz = sizeof(info) };
		(void)rgate_peer_info(peer, &info);
		fprintf(f, "%s %s %llu %llu %llu %llu\n", n.name,
			status_state(d, &info), (unsigned long long)g.frames,
			(unsigned long long)g.bytes, (unsigned long long)g.lost,
			(unsigned long long)g.dropped_full + g.dropped_down);
	}
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
