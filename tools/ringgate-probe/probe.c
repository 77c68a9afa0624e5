// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate probe: what memory the RDMA device, the kernel and the GPU can reach. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ringgate/rgate_mem.h>

#include "cmd.h"
#include "probe.h"
#include "util.h"

#define SIZE_DEFAULT	(512U << 10)
#define SIZE_MAX_	(1ULL << 40)
#define SECONDS_DEFAULT	60

enum { KEY_LIST = 256, KEY_MR_LIMIT, KEY_MAX, KEY_DISTINCT, KEY_DIR };

struct probe_args {
	bool json, list, mr_limit;
	const char *limit_only;	/* an option that goes with --mr-limit only */
	const char *table_only;
	struct probe_opts table;
	struct probe_limit_opts limit;
};

static const struct argp_option options[] = {
	OPT_JSON,
	{ "device", 'd', "NAME", 0, "RDMA device (default: RGATE_RDMA_DEVICE, or "
	  "the best)", 0 },
	{ "memory", 'm', "KIND", 0, "Probe this kind only", 0 },
	{ "dir", KEY_DIR, "DIRECTORY", 0, "Where files are probed (default: TMPDIR, "
	  "or /var/tmp)", 0 },
	{ "list", KEY_LIST, NULL, 0, "List the RDMA devices and their limits", 1 },
	{ "mr-limit", KEY_MR_LIMIT, NULL, 0, "Register regions until the device "
	  "refuses, and take them back", 2 },
	{ "size", 's', "BYTES", 0, "Of each region (default 512K)", 2 },
	{ "max", KEY_MAX, "N", 0, "At most so many regions", 2 },
	{ "seconds", 't', "S", 0, "At most so long (default 60)", 2 },
	{ "distinct", KEY_DISTINCT, NULL, 0, "Each region has memory of its own", 2 },
	{ 0 }
};

static void check(struct probe_args *a, struct argp_state *state)
{
	if (a->list && a->mr_limit)
		argp_error(state, "--list and --mr-limit exclude each other");
	if (a->limit_only && !a->mr_limit)
		argp_error(state, "%s goes with --mr-limit", a->limit_only);
	if (a->table_only && (a->list || a->mr_limit))
		argp_error(state, "%s goes with the table only", a->table_only);
	if (a->list && a->table.device)
		argp_error(state, "--list shows all devices: no --device");
}

static error_t parse_limit(int key, char *arg, struct argp_state *state,
			   struct probe_args *a)
{
	switch (key) {
	case KEY_MR_LIMIT:
		a->mr_limit = true;
		return 0;
	case 's':
		a->limit.size = arg_size(state, "--size", arg, 1, SIZE_MAX_);
		a->limit_only = "--size";
		return 0;
	case KEY_MAX:
		a->limit.max = arg_number(state, "--max", arg, 1, UINT32_MAX);
		a->limit_only = "--max";
		return 0;
	case 't':
		a->limit.time_ns = arg_seconds(state, "--seconds", arg);
		a->limit_only = "--seconds";
		return 0;
	case KEY_DISTINCT:
		a->limit.distinct = true;
		a->limit_only = "--distinct";
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct probe_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		break;
	case 'd':
		a->table.device = arg;
		break;
	case 'm':
		a->table.only = arg;
		a->table_only = "--memory";
		break;
	case KEY_DIR:
		a->table.dir = arg;
		a->table_only = "--dir";
		break;
	case KEY_LIST:
		a->list = true;
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "no argument is expected, '%s' is one", arg);
		break;
	case ARGP_KEY_END:
		check(a, state);
		break;
	default:
		return parse_limit(key, arg, state, a);
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.doc = "Find out what memory can be registered with the RDMA device, and "
	       "whether device, kernel, CPU and GPU see the same bytes in it.\v"
	       "Each kind of memory is probed in a process of its own; what cannot be "
	       "made here is told with the reason. Nothing is left behind. Without an "
	       "RDMA device the rest is probed. --mr-limit registers the same memory "
	       "over and over, unless --distinct is given, so that only the kernel's "
	       "own memory bounds it; it stops before that runs out.",
};

const char *probe_err_name(int err)
{
	if (err == -EBADMSG)
		return "differs";
	return strerrorname_np(-err) ?: "unknown";
}

static void on_log(void *ctx, enum rgate_log_level level, const char *msg)
{
	if (level <= RGATE_LOG_WARN)
		snprintf(ctx, PROBE_TEXT, "%s", msg);
}

void probe_catch_log(char buf[PROBE_TEXT])
{
	rgate_log_set(on_log, buf);
}

int probe_fail(int err, const char *what, const char *why)
{
	say("%s: %s (%s)", what, *why ? why : rgate_strerror("rgate_mem_", err),
	    strerrorname_np(-err) ?: "unknown");
	return EXIT_FAIL;
}

int probe_main(int argc, char **argv)
{
	struct probe_args a = {
		.limit = { .size = SIZE_DEFAULT, .time_ns = SECONDS_DEFAULT * NSEC },
	};

	cmd_parse(&argp, argc, argv, &a);
	if (a.list)
		return probe_list(a.json);
	if (a.mr_limit) {
		a.limit.json = a.json;
		a.limit.device = a.table.device;
		return probe_limit(&a.limit);
	}
	a.table.json = a.json;
	if (!a.table.dir)
		a.table.dir = getenv("TMPDIR") ?: "/var/tmp";
	return probe_table(&a.table);
}
