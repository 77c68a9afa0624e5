// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate pool plan: regions that a region for each buffer would need. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <ringgate/rgate_pool.h>

#include "cmd.h"
#include "fmt.h"
#include "json.h"
#include "pool.h"
#include "probe.h"
#include "table.h"
#include "util.h"

#define BUFFER_SIZES	64	/* kinds whose bytes are given */
#define BYTES_MAX	(1ULL << 50)
#define SIZES_DEFAULT	8
#define PEERS_FIRST	2
#define PEERS_LAST	8

struct plan {
	uint64_t peers, sizes, buffers, directions;
	uint64_t bytes[BUFFER_SIZES];	/* of a buffer of each size */
	unsigned int nbytes;
	uint64_t region;		/* bytes of one of the pool's; 0: not given */
	uint64_t limit;			/* regions; 0: none known */
	const char *source;		/* of the limit */
	const char *device;
	bool json;
	uint64_t each;			/* regions that one peer needs */
	uint64_t need;
	uint64_t pool_bytes;		/* 0: not known */
	uint64_t pool_regions;
	char name[64];			/* of the device that was asked */
};

enum { KEY_LIMIT = 256, KEY_REGION, KEY_BYTES };

static const struct argp_option options[] = {
	OPT_JSON,
	{ "peers", 'p', "N", 0, "Nodes that are talked to", 0 },
	{ "sizes", 's', "N", 0, "Sizes of buffers (default 8)", 0 },
	{ "buffers", 'b', "N", 0, "Of each size, for each peer (default 4)", 0 },
	{ "directions", 'D', "1|2", 0, "2: sending and receiving have buffers of their own "
	  "(default 1)", 0 },
	{ "device", 'd', "NAME", 0, "Take the limit of this RDMA device (default: "
	  "RGATE_RDMA_DEVICE, or the best)", 0 },
	{ "limit", KEY_LIMIT, "N", 0, "Take this limit of regions", 0 },
	{ "buffer-size", KEY_BYTES, "BYTES", 0, "Of one of the sizes; give as many as there "
	  "are, to learn how large the pool has to be", 0 },
	{ "region", KEY_REGION, "BYTES", 0, "The pool has regions of this size (default: one "
	  "for all)", 0 },
	{ 0 }
};

static uint64_t times(struct argp_state *state, uint64_t a, uint64_t b)
{
	uint64_t v;

	if (__builtin_mul_overflow(a, b, &v) || v > INT64_MAX)
		argp_error(state, "peers x buffers x sizes: more than can be counted");
	return v;
}

/* Buffers are padded to cache lines. */
static uint64_t lines(uint64_t bytes)
{
	return (bytes + RGATE_POOL_LINE - 1) / RGATE_POOL_LINE * RGATE_POOL_LINE;
}

/* Regions for @n buffers of each size: no buffer lies in two of them. */
static uint64_t regions(const struct plan *p, uint64_t n)
{
	uint64_t count = 0, left = 0, rest = 0;
	unsigned int i;

	for (i = 0; i < p->nbytes; i++) {
		uint64_t size = lines(p->bytes[i]), per = p->region / size, room;

		/* what the region begun last still takes */
		room = left / size;
		rest = n > room ? n - room : 0;
		if (!rest) {
			left -= n * size;
			continue;
		}
		count += rest / per + !!(rest % per);
		left = p->region - (rest % per ?: per) * size;
	}
	return count;
}

static void compute(struct plan *p, struct argp_state *state)
{
	uint64_t all = 0, n = times(state, times(state, p->buffers, p->peers), p->directions);
	unsigned int i;

	p->each = times(state, times(state, p->sizes, p->buffers), p->directions);
	p->need = times(state, p->each, p->peers);
	times(state, p->each, PEERS_LAST);
	p->pool_regions = 1;
	for (i = 0; i < p->nbytes; i++) {
		if (p->region && lines(p->bytes[i]) > p->region)
			argp_error(state, "region: smaller than a buffer of %llu bytes",
				   (unsigned long long)p->bytes[i]);
		if (__builtin_add_overflow(all, times(state, n, lines(p->bytes[i])), &all))
			argp_error(state, "buffer sizes: more than can be counted");
	}
	p->pool_bytes = all;
	if (p->region && p->nbytes)
		p->pool_regions = regions(p, n);
}

static void check(struct plan *p, struct argp_state *state)
{
	if (!p->peers)
		argp_error(state, "how many peers? Give --peers");
	if (p->limit && p->device)
		argp_error(state, "--limit and --device exclude each other");
	/* as many as sizes are given, else 8 */
	if (!p->sizes)
		p->sizes = p->nbytes ?: SIZES_DEFAULT;
	if (p->nbytes && p->sizes != p->nbytes)
		argp_error(state, "buffer sizes: %u are given, and there are %llu sizes",
			   p->nbytes, (unsigned long long)p->sizes);
	if (p->region && !p->nbytes)
		argp_error(state, "--region needs every --buffer-size");
	compute(p, state);
}

static error_t parse_pool(int key, char *arg, struct argp_state *state, struct plan *p)
{
	switch (key) {
	case KEY_LIMIT:
		p->limit = arg_number(state, "--limit", arg, 1, UINT32_MAX);
		p->source = "--limit";
		return 0;
	case KEY_REGION:
		p->region = arg_size(state, "--region", arg, 2ULL << 20, BYTES_MAX);
		return 0;
	case KEY_BYTES:
		if (p->nbytes == BUFFER_SIZES)
			argp_error(state, "at most %d buffer sizes", BUFFER_SIZES);
		p->bytes[p->nbytes++] = arg_size(state, "--buffer-size", arg, 1, BYTES_MAX);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct plan *p = state->input;

	switch (key) {
	case 'j':
		p->json = true;
		break;
	case 'p':
		p->peers = arg_number(state, "--peers", arg, 1, UINT32_MAX);
		break;
	case 's':
		p->sizes = arg_number(state, "--sizes", arg, 1, UINT32_MAX);
		break;
	case 'b':
		p->buffers = arg_number(state, "--buffers", arg, 1, UINT32_MAX);
		break;
	case 'D':
		p->directions = arg_number(state, "--directions", arg, 1, 2);
		break;
	case 'd':
		p->device = arg;
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "no argument is expected, '%s' is one", arg);
		break;
	case ARGP_KEY_END:
		check(p, state);
		break;
	default:
		return parse_pool(key, arg, state, p);
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.doc = "Count the memory regions that a transport needs which registers each buffer: "
	       "sizes x buffers x peers x directions. Against what a device allows, and "
	       "against a pool, which needs one.\v"
	       "Without --limit the device is asked (RGATE_MAX_MR lowers what it says). Size "
	       "classes of a pool can make buffers larger than cache lines do: leave some "
	       "room where sizes are no powers of two.",
};

/* The limit of the device: exit code */
static int ask_device(struct plan *p)
{
	struct rgate_device_opts o = { .sz = sizeof(o), .name = p->device };
	struct rgate_device *dev;
	int err;

	if (p->limit)
		return EXIT_OK;
	err = rgate_device_open(&dev, p->device ? &o : NULL);
	if (err && (p->device || getenv("RGATE_RDMA_DEVICE")))
		return probe_fail(err, "cannot open the RDMA device", "");
	if (err) {
		say("no RDMA device can be asked for its limit: give --limit");
		return EXIT_OK;
	}
	snprintf(p->name, sizeof(p->name), "%s", rgate_device_info(dev)->name);
	p->limit = rgate_device_mr_limit(dev);
	p->source = p->limit < rgate_device_info(dev)->max_mr ? "RGATE_MAX_MR" : p->name;
	rgate_device_close(dev);
	return EXIT_OK;
}

static int64_t headroom(const struct plan *p, uint64_t peers)
{
	return (int64_t)p->limit - (int64_t)(p->each * peers);
}

static double percent(const struct plan *p, uint64_t peers)
{
	return 100.0 * (double)headroom(p, peers) / (double)p->limit;
}

/* The table has 2 to 8 peers, and those asked for. */
static uint64_t next_row(const struct plan *p, uint64_t peers)
{
	if (!peers)
		return p->peers < PEERS_FIRST ? p->peers : PEERS_FIRST;
	if (peers < PEERS_FIRST)
		return PEERS_FIRST;
	if (peers < PEERS_LAST)
		return peers + 1;
	return peers == PEERS_LAST && p->peers > PEERS_LAST ? p->peers : 0;
}

static void print_table(const struct plan *p)
{
	uint64_t n;
	struct table t;

	if (table_init(&t, "PEERS REGIONS HEADROOM PERCENT <FITS"))
		return;
	for (n = next_row(p, 0); n; n = next_row(p, n)) {
		unsigned long long need = p->each * n;

		table_cell(&t, "%llu", (unsigned long long)n);
		table_cell(&t, "%llu", need);
		if (p->limit) {
			table_cell(&t, "%lld", (long long)headroom(p, n));
			table_cell(&t, "%.1f", percent(p, n));
			table_cell(&t, "%s", headroom(p, n) < 0 ? "no" : "yes");
		} else {
			table_cell(&t, "-");
			table_cell(&t, "-");
			table_cell(&t, "-");
		}
	}
	table_print(&t, stdout);
	table_free(&t);
}

static void print_pool(const struct plan *p)
{
	char buf[FMT_LEN];

	printf("a pool:                %llu", (unsigned long long)p->pool_regions);
	if (p->region)
		printf(" of %s", fmt_bytes(buf, p->region));
	if (p->pool_bytes)
		printf(", %s (%llu bytes) in buffers", fmt_bytes(buf, p->pool_bytes),
		       (unsigned long long)p->pool_bytes);
	if (p->limit && p->pool_regions > p->limit)
		printf(", over the limit: give a larger --region");
	printf("\n\n");
}

static void print_text(const struct plan *p)
{
	printf("a region per buffer:   %llu = %llu sizes x %llu buffers x %llu peers x %llu "
	       "direction%s\n", (unsigned long long)p->need, (unsigned long long)p->sizes,
	       (unsigned long long)p->buffers, (unsigned long long)p->peers,
	       (unsigned long long)p->directions, p->directions > 1 ? "s" : "");
	if (p->limit) {
		printf("limit:                 %llu (%s)\n", (unsigned long long)p->limit,
		       p->source);
		printf("headroom:              %lld (%.1f %%)%s\n",
		       (long long)headroom(p, p->peers), percent(p, p->peers),
		       headroom(p, p->peers) < 0 ? ": does not fit" : "");
		printf("most peers that fit:   %llu\n",
		       (unsigned long long)(p->limit / p->each));
	} else {
		printf("limit:                 not known: no RDMA device, no --limit\n");
	}
	print_pool(p);
	print_table(p);
}

static void json_headroom(struct json *j, const struct plan *p, uint64_t peers)
{
	json_u64(j, "regions", p->each * peers);
	if (!p->limit) {
		json_str(j, "headroom", NULL);
		json_str(j, "headroom_percent", NULL);
		json_str(j, "fits", NULL);
		return;
	}
	json_i64(j, "headroom", headroom(p, peers));
	json_double(j, "headroom_percent", percent(p, peers));
	json_bool(j, "fits", headroom(p, peers) >= 0);
}

static void json_known(struct json *j, const char *key, uint64_t v)
{
	if (v)
		json_u64(j, key, v);
	else
		json_str(j, key, NULL);
}

static void print_json(const struct plan *p)
{
	struct json j;
	uint64_t n;

	json_init(&j, stdout, true);
	json_object(&j, NULL);
	json_u64(&j, "sizes", p->sizes);
	json_u64(&j, "buffers", p->buffers);
	json_u64(&j, "peers", p->peers);
	json_u64(&j, "directions", p->directions);
	json_str(&j, "device", *p->name ? p->name : NULL);
	json_known(&j, "limit", p->limit);
	json_str(&j, "limit_source", p->source);
	json_headroom(&j, p, p->peers);
	if (p->limit)
		json_u64(&j, "max_peers", p->limit / p->each);
	else
		json_str(&j, "max_peers", NULL);
	json_object(&j, "pool");
	json_u64(&j, "regions", p->pool_regions);
	json_known(&j, "region_size", p->region);
	json_known(&j, "bytes", p->pool_bytes);
	json_object_end(&j);
	json_array(&j, "table");
	for (n = next_row(p, 0); n; n = next_row(p, n)) {
		json_object(&j, NULL);
		json_u64(&j, "peers", n);
		json_headroom(&j, p, n);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	json_end(&j);
}

int pool_plan(int argc, char **argv)
{
	struct plan p = { .buffers = 4, .directions = 1 };
	int ret;

	cmd_parse(&argp, argc, argv, &p);
	ret = ask_device(&p);
	if (ret)
		return ret;
	if (p.json)
		print_json(&p);
	else
		print_text(&p);
	return EXIT_OK;
}
