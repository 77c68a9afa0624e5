// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate top: the rates of all rings. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cmd.h"
#include "fmt.h"
#include "names.h"
#include "snapshot.h"
#include "table.h"
#include "util.h"
#include "watch.h"

struct top_args {
	bool json;
	struct watch watch;
};

static const struct argp_option options[] = {
	{ "json", 'j', NULL, 0, "Print JSON, one object a line and interval", 0 },
	{ "interval", 'd', "SECONDS", 0, "How often (default 1)", 0 },
	{ "count", 'n', "N", 0, "End after N intervals", 0 },
	{ 0 }
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct top_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		break;
	case 'd':
		a->watch.interval = arg_seconds(state, "--interval", arg);
		break;
	case 'n':
		a->watch.count = arg_number(state, "--count", arg, 1, UINT32_MAX);
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "no argument is expected, '%s' is one", arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.doc = "Show the rates of all rings of this network namespace, again "
	       "every second.\vOn a terminal the table is redrawn; else one "
	       "table an interval is printed. Ctrl-C ends it.",
};

/* What happened a second */
struct rates {
	double frames, bytes, dropped, overwritten, passed, wakeups;
};

static double rate(uint64_t now, uint64_t before, double seconds)
{
	return now > before ? (now - before) / seconds : 0;
}

static uint64_t drops(const struct rgate_stats *s)
{
	return s->dropped_full + s->dropped_fault;
}

static struct rates rates_of(const struct rgate_ring_info *r,
			     const struct snapshot *before, double seconds)
{
	static const struct rgate_stats zero;
	const struct rgate_ring_info *o = snapshot_ring(before, r->ring_id);
	const struct rgate_stats *n = &r->stats;
	/* Was not there before: all that it counted came since. */
	const struct rgate_stats *b = o ? &o->stats : &zero;

	return (struct rates){
		.frames = rate(n->delivered, b->delivered, seconds),
		.bytes = rate(n->bytes, b->bytes, seconds),
		.dropped = rate(drops(n), drops(b), seconds),
		.overwritten = rate(n->overwritten, b->overwritten, seconds),
		.passed = rate(n->passed, b->passed, seconds),
		.wakeups = rate(n->wakeups, b->wakeups, seconds),
	};
}

static void add(struct rates *sum, const struct rates *r)
{
	sum->frames += r->frames;
	sum->bytes += r->bytes;
	sum->dropped += r->dropped;
	sum->overwritten += r->overwritten;
	sum->passed += r->passed;
	sum->wakeups += r->wakeups;
}

static void cell_devices(struct table *t, const struct snapshot *s,
			 uint32_t ring_id)
{
	char text[64] = "";
	size_t i, n = 0;

	for (i = 0; i < s->natts && n < sizeof(text); i++)
		if (att_has_ring(&s->atts[i], ring_id))
			n += snprintf(text + n, sizeof(text) - n, "%s%s",
				      n ? "," : "", s->atts[i].ifname);
	if (n >= sizeof(text))
		memcpy(text + sizeof(text) - 4, "...", 4);
	table_cell(t, "%s", n ? text : "-");
}

static void cell_rates(struct table *t, const struct rates *r)
{
	char buf[FMT_LEN];

	table_cell(t, "%s", fmt_si(buf, r->frames));
	table_cell(t, "%s", fmt_si(buf, r->bytes));
	table_cell(t, "%s", fmt_si(buf, r->dropped));
	table_cell(t, "%s", fmt_si(buf, r->overwritten));
	table_cell(t, "%s", fmt_si(buf, r->passed));
	table_cell(t, "%s", fmt_si(buf, r->wakeups));
}

static void print_table(const struct snapshot *s, const struct snapshot *before,
			double seconds)
{
	struct rates sum = { 0 }, r;
	char when[16], buf[FMT_LEN];
	time_t now = time(NULL);
	struct table t;
	struct tm tm;
	size_t i;

	localtime_r(&now, &tm);
	strftime(when, sizeof(when), "%H:%M:%S", &tm);
	printf("ringgate %s  rings: %zu  attachments: %zu  per second over %.1f s:\n",
	       when, s->nrings, s->natts, seconds);
	table_init(&t, "RING <NAME <DEVICES SLOTS SIZE <POLICY FRAMES BYTES "
		   "DROPPED OVERWRITTEN PASSED WAKEUPS TOTAL");
	for (i = 0; i < s->nrings; i++) {
		const struct rgate_ring_info *info = &s->rings[i];

		r = rates_of(info, before, seconds);
		add(&sum, &r);
		table_cell(&t, "%u", info->ring_id);
		table_cell(&t, "%s", info->name);
		cell_devices(&t, s, info->ring_id);
		table_cell(&t, "%u", info->slots);
		table_cell(&t, "%u", info->slot_size);
		table_cell(&t, "%s", policy_name(info->policy));
		cell_rates(&t, &r);
		table_cell(&t, "%s", fmt_si(buf, info->stats.delivered));
	}
	if (s->nrings > 1) {
		for (i = 0; i < 6; i++)
			table_cell(&t, i == 1 ? "all" : "%s", "");
		cell_rates(&t, &sum);
		table_cell(&t, "%s", "");
	}
	table_print(&t, stdout);
	table_free(&t);
}

static void json_rates(struct json *j, const struct rates *r)
{
	json_object(j, "per_second");
	json_double(j, "frames", r->frames);
	json_double(j, "bytes", r->bytes);
	json_double(j, "dropped", r->dropped);
	json_double(j, "overwritten", r->overwritten);
	json_double(j, "passed", r->passed);
	json_double(j, "wakeups", r->wakeups);
	json_object_end(j);
}

static void print_json(const struct snapshot *s, const struct snapshot *before,
		       double seconds)
{
	struct timespec ts;
	struct json j;
	size_t i;

	clock_gettime(CLOCK_REALTIME, &ts);
	json_init(&j, stdout, false);
	json_object(&j, NULL);
	json_u64(&j, "time_ns", ts.tv_sec * NSEC + ts.tv_nsec);
	json_double(&j, "interval_s", seconds);
	json_array(&j, "rings");
	for (i = 0; i < s->nrings; i++) {
		struct rates r = rates_of(&s->rings[i], before, seconds);

		json_object(&j, NULL);
		json_ring(&j, &s->rings[i]);
		json_rates(&j, &r);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_array(&j, "attachments");
	for (i = 0; i < s->natts; i++) {
		json_object(&j, NULL);
		json_att(&j, &s->atts[i]);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	json_end(&j);
}

static int run(struct rgate_ctl *ctl, struct top_args *a)
{
	struct snapshot before, now;
	uint64_t t0, t1;
	int err;

	err = snapshot_get(&before, ctl);
	t0 = util_now();
	watch_start(&a->watch, a->json);
	a->watch.next += a->watch.interval;
	if (!err)
		util_sleep(a->watch.next);	/* rates need two readings */
	while (!err && !util_stop) {
		err = snapshot_get(&now, ctl);
		t1 = util_now();
		if (err) {
			snapshot_free(&now);
			break;
		}
		if (a->json) {
			print_json(&now, &before, (t1 - t0) / 1e9);
		} else {
			watch_page(&a->watch);
			print_table(&now, &before, (t1 - t0) / 1e9);
		}
		snapshot_free(&before);
		before = now;
		t0 = t1;
		if (!watch_next(&a->watch))
			break;
	}
	watch_end(&a->watch);
	snapshot_free(&before);
	return err ? fail(err, "cannot read the counters") : EXIT_OK;
}

int cmd_top(int argc, char **argv)
{
	struct top_args a = { .watch = { .interval = NSEC } };
	struct rgate_ctl *ctl;
	int ret;

	cmd_parse(&argp, argc, argv, &a);
	ret = ctl_open(&ctl);
	if (ret)
		return ret;
	ret = run(ctl, &a);
	rgate_ctl_close(ctl);
	return ret;
}
