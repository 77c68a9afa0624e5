// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include <stdio.h>

#include <ringgate/rgate_mem.h>

#include "fmt.h"
#include "json.h"
#include "probe_limit.h"
#include "table.h"

static const char *const stop_names[] = {
	[STOP_REFUSED] = "device", [STOP_SET] = "limit", [STOP_MAX] = "max",
	[STOP_TIME] = "time", [STOP_MEMORY] = "memory", [STOP_SIGNAL] = "signal",
};

static void print_stop(const struct limit_result *r)
{
	switch (r->stop) {
	case STOP_REFUSED:
		printf("refused with %s: %s\n", probe_err_name(r->err),
		       *r->said ? r->said : rgate_strerror("rgate_mem_", r->err));
		printf("limit found: %u; the device states %u\n", r->registered,
		       r->info->max_mr);
		break;
	case STOP_SET:
		printf("limit found: %u, set in software (RGATE_MAX_MR), with %s; the "
		       "device states %u\n", r->registered, probe_err_name(r->err),
		       r->info->max_mr);
		break;
	case STOP_MAX:
		printf("no limit found up to --max %u; the device states %u\n",
		       r->registered, r->info->max_mr);
		break;
	case STOP_TIME:
		printf("no limit found in the time; the device states %u: give more "
		       "--seconds\n", r->info->max_mr);
		break;
	case STOP_MEMORY:
		printf("stopped before memory runs out, no limit found; the device states "
		       "%u\n", r->info->max_mr);
		break;
	case STOP_SIGNAL:
		printf("interrupted, no limit found; the device states %u\n",
		       r->info->max_mr);
		break;
	}
}

static void cost_row(struct table *t, const char *name, const struct limit_cost *c)
{
	table_cell(t, "%s", name);
	table_cell(t, "%.1f", c->min / 1e3);
	table_cell(t, "%.1f", c->median / 1e3);
	table_cell(t, "%.1f", c->p99 / 1e3);
	table_cell(t, "%.1f", c->max / 1e3);
}

static void print_text(const struct limit_result *r)
{
	char buf[FMT_LEN], slab[FMT_LEN];
	struct table t;

	printf("%s: %u regions of %s registered in %.1f s, %s\n", r->info->name,
	       r->registered, fmt_bytes(buf, r->opts->size), r->time_ns / 1e9,
	       r->opts->distinct ? "each of its own memory" : "all of the same memory");
	print_stop(r);
	if (r->registered) {
		putchar('\n');
		table_init(&t, "<US MIN MEDIAN P99 MAX");
		cost_row(&t, "register", &r->reg);
		cost_row(&t, "deregister", &r->dereg);
		table_print(&t, stdout);
		table_free(&t);
		printf("\nkernel memory per region: %s slab, %s less available\n",
		       fmt_bytes(slab, r->slab > 0 ? (uint64_t)r->slab : 0),
		       fmt_bytes(buf, r->memory > 0 ? (uint64_t)r->memory : 0));
	}
	printf("%u of %u regions taken back, %u left\n", r->deregistered, r->registered,
	       r->left);
}

static void json_cost(struct json *j, const char *key, const struct limit_cost *c)
{
	json_object(j, key);
	json_double(j, "min", c->min / 1e3);
	json_double(j, "median", c->median / 1e3);
	json_double(j, "p99", c->p99 / 1e3);
	json_double(j, "max", c->max / 1e3);
	json_object_end(j);
}

static void print_json(const struct limit_result *r)
{
	bool found = r->stop == STOP_REFUSED || r->stop == STOP_SET;
	struct json j;

	json_init(&j, stdout, true);
	json_object(&j, NULL);
	json_str(&j, "device", r->info->name);
	json_u64(&j, "port", r->info->port);
	json_u64(&j, "size", r->opts->size);
	json_bool(&j, "distinct", r->opts->distinct);
	json_u64(&j, "registered", r->registered);
	json_str(&j, "stopped_by", stop_names[r->stop]);
	json_bool(&j, "limit_found", found);
	json_str(&j, "error", found ? probe_err_name(r->err) : NULL);
	json_str(&j, "said", found && *r->said ? r->said : NULL);
	json_u64(&j, "set_limit", r->set_limit);
	json_u64(&j, "device_max_mr", r->info->max_mr);
	json_double(&j, "seconds", r->time_ns / 1e9);
	json_cost(&j, "register_us", &r->reg);
	json_cost(&j, "deregister_us", &r->dereg);
	json_double(&j, "slab_bytes_per_region", r->slab);
	json_double(&j, "memory_bytes_per_region", r->memory);
	json_u64(&j, "deregistered", r->deregistered);
	json_u64(&j, "left", r->left);
	json_object_end(&j);
	json_end(&j);
}

void limit_print(const struct limit_result *r)
{
	if (r->opts->json)
		print_json(r);
	else
		print_text(r);
}
