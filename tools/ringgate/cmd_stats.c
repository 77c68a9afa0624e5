// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate stats: all counters of rings and attachments. */
#include <stdio.h>
#include <time.h>

#include "cmd.h"
#include "snapshot.h"
#include "table.h"
#include "util.h"
#include "watch.h"

struct stats_args {
	const char *ring;
	bool json;
	bool repeat;
	struct watch watch;
};

static const struct argp_option options[] = {
	OPT_JSON,
	{ "watch", 'w', NULL, 0, "Again and again; JSON: one line each time", 0 },
	{ "interval", 'd', "SECONDS", 0, "How often (default 1); implies --watch", 0 },
	{ "count", 'n', "N", 0, "How many times; implies --watch", 0 },
	{ 0 }
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct stats_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		break;
	case 'w':
		a->repeat = true;
		break;
	case 'd':
		a->repeat = true;
		a->watch.interval = arg_seconds(state, "--interval", arg);
		break;
	case 'n':
		a->repeat = true;
		a->watch.count = arg_number(state, "--count", arg, 1, UINT32_MAX);
		break;
	case ARGP_KEY_ARG:
		if (a->ring)
			argp_error(state, "one ring is expected");
		a->ring = arg;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.args_doc = "[RING]",
	.doc = "Show all counters since creation, of one ring and its "
	       "attachments or of all.",
};

static bool wanted(const struct rgate_ring_info *only,
		   const struct rgate_att_info *a)
{
	return !only || att_has_ring(a, only->ring_id);
}

static void print_json(const struct snapshot *s,
		       const struct rgate_ring_info *only, bool pretty)
{
	struct timespec ts;
	struct json j;
	size_t i;

	clock_gettime(CLOCK_REALTIME, &ts);
	json_init(&j, stdout, pretty);
	json_object(&j, NULL);
	json_u64(&j, "time_ns", ts.tv_sec * NSEC + ts.tv_nsec);
	json_array(&j, "rings");
	for (i = 0; i < s->nrings; i++) {
		if (only && only != &s->rings[i])
			continue;
		json_object(&j, NULL);
		json_ring(&j, &s->rings[i]);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_array(&j, "attachments");
	for (i = 0; i < s->natts; i++) {
		if (!wanted(only, &s->atts[i]))
			continue;
		json_object(&j, NULL);
		json_att(&j, &s->atts[i]);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	json_end(&j);
}

static void cell(struct table *t, uint64_t v)
{
	table_cell(t, "%llu", (unsigned long long)v);
}

static void print_rings(const struct snapshot *s,
			const struct rgate_ring_info *only)
{
	struct table t;
	size_t i;

	table_init(&t, "RING <NAME DELIVERED BYTES FULL-DROP FAULT-DROP "
		   "OVERWRITTEN PASSED SPILLED TRUNCATED CHAINED PADDED WAKEUPS "
		   "FULL-EVENTS");
	for (i = 0; i < s->nrings; i++) {
		const struct rgate_ring_info *r = &s->rings[i];

		if (only && only != r)
			continue;
		table_cell(&t, "%u", r->ring_id);
		table_cell(&t, "%s", r->name);
		cell(&t, r->stats.delivered);
		cell(&t, r->stats.bytes);
		cell(&t, r->stats.dropped_full);
		cell(&t, r->stats.dropped_fault);
		cell(&t, r->stats.overwritten);
		cell(&t, r->stats.passed);
		cell(&t, r->stats.spilled);
		cell(&t, r->stats.truncated);
		cell(&t, r->stats.chained);
		cell(&t, r->stats.padded);
		cell(&t, r->stats.wakeups);
		cell(&t, r->stats.full_events);
	}
	table_print(&t, stdout);
	table_free(&t);
}

static void print_atts(const struct snapshot *s,
		       const struct rgate_ring_info *only)
{
	struct table t;
	size_t i;

	table_init(&t, "ATTACHMENT <DEVICE SEEN FILTERED SAMPLED-OUT DELIVERED "
		   "BYTES FULL-DROP FAULT-DROP PASSED SPILLED BAD-LENGTH BAD-FLAGS "
		   "REFUSED");
	for (i = 0; i < s->natts; i++) {
		const struct rgate_att_info *a = &s->atts[i];

		if (!wanted(only, a))
			continue;
		table_cell(&t, "%u", a->att_id);
		table_cell(&t, "%s", a->ifname);
		cell(&t, a->seen);
		cell(&t, a->filtered);
		cell(&t, a->sampled_out);
		cell(&t, a->delivered);
		cell(&t, a->bytes);
		cell(&t, a->dropped_full);
		cell(&t, a->dropped_fault);
		cell(&t, a->passed);
		cell(&t, a->spilled);
		cell(&t, a->bad_length);
		cell(&t, a->bad_flags);
		cell(&t, a->refused);
	}
	putchar('\n');
	table_print(&t, stdout);
	table_free(&t);
}

static int round_of(struct rgate_ctl *ctl, struct stats_args *a)
{
	const struct rgate_ring_info *only = NULL;
	struct snapshot s;
	int ret = EXIT_OK;
	int err = snapshot_get(&s, ctl);

	if (err) {
		ret = fail(err, "cannot read the counters");
		goto out;
	}
	if (a->ring) {
		only = snapshot_find(&s, a->ring);
		if (!only) {
			ret = EXIT_FAIL;
			goto out;
		}
	}
	if (a->json) {
		print_json(&s, only, !a->repeat);
		goto out;
	}
	if (a->repeat)
		watch_page(&a->watch);
	print_rings(&s, only);
	print_atts(&s, only);
out:
	snapshot_free(&s);
	return ret;
}

int cmd_stats(int argc, char **argv)
{
	struct stats_args a = { .watch = { .interval = NSEC } };
	struct rgate_ctl *ctl;
	int ret;

	cmd_parse(&argp, argc, argv, &a);
	ret = ctl_open(&ctl);
	if (ret)
		return ret;
	watch_start(&a.watch, a.json || !a.repeat);
	do {
		ret = round_of(ctl, &a);
	} while (!ret && a.repeat && watch_next(&a.watch));
	watch_end(&a.watch);
	rgate_ctl_close(ctl);
	return ret;
}
