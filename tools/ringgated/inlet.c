// SPDX-License-Identifier: MIT OR GPL-2.0
/* The rings that a compute node offers to its programs */
#include <errno.h>
#include <string.h>

#include "fmt.h"
#include "json.h"
#include "module.h"
#include "table.h"
#include "util.h"

static int inlet_check(struct daemon *d)
{
	const struct config *c = &d->conf;
	const char *what = c->nsources ? "source" : c->steer ? "steer" : c->spin_us ? "spin" :
			   c->pack ? "pack" : NULL;

	if (d->self.role == RGATE_ROLE_GATEWAY || !what)
		return 0;
	say("%s is for the gateway, and this is a compute node", what);
	return -EINVAL;
}

static int inlet_start(struct daemon *d)
{
	int err;

	if (d->self.role == RGATE_ROLE_GATEWAY)
		return 0;
	err = rgate_inlet_create(&d->inlet, d->hub);
	if (err)
		say("cannot offer rings: %s", strerror(-err));
	return err;
}

static void inlet_stop(struct daemon *d)
{
	rgate_inlet_destroy(d->inlet);
}

static void json_ring(struct json *j, const struct rgate_inlet_ring *r)
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

static void inlet_json(struct daemon *d, struct json *j)
{
	struct rgate_inlet_ring r = { .sz = sizeof(r) };
	unsigned int i;

	if (!d->inlet)
		return;
	json_array(j, "rings");
	for (i = 0; !rgate_inlet_info(d->inlet, i, &r); i++)
		json_ring(j, &r);
	json_array_end(j);
}

static void inlet_text(struct daemon *d, FILE *f)
{
	struct rgate_inlet_ring r = { .sz = sizeof(r) };
	char bytes[FMT_LEN];
	struct table t;
	unsigned int i;

	if (!d->inlet || table_init(&t, "<RING SLOTS SIZE <STATE FRAMES BYTES SESSIONS OFFSET_US"))
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

static void inlet_counters(struct daemon *d, FILE *f)
{
	struct rgate_inlet_ring r = { .sz = sizeof(r) };
	unsigned int i;

	for (i = 0; d->inlet && !rgate_inlet_info(d->inlet, i, &r); i++)
		fprintf(f, "%s %s %llu %llu %llu %llu\n", r.name,
			r.filled ? "filled" : "waiting", (unsigned long long)r.stats.delivered,
			(unsigned long long)r.stats.bytes, 0ULL,
			(unsigned long long)r.stats.dropped_full);
}

const struct module inlet_module = {
	.check = inlet_check,
	.start = inlet_start,
	.stop = inlet_stop,
	.status_json = inlet_json,
	.status_text = inlet_text,
	.counters = inlet_counters,
};
