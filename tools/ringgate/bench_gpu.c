// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate bench gpu: what a GPU takes out of rings on this machine. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include <ringgate/ring.h>

#include "bench.h"
#include "cmd.h"
#include "fmt.h"
#include "gpu_lib.h"
#include "json.h"
#include "table.h"
#include "util.h"

#define SIZES_MAX	16
#define RINGS_MAX	64	/* RGATE_GPU_RINGS_MAX */
#define TIME_MAX_MS	3600000

struct gpu_args {
	struct rgate_gpu_bench o;
	uint32_t sizes[SIZES_MAX];
	unsigned int nsizes;
	bool json;
};

enum { KEY_SLOTS = 256, KEY_SLOT_SIZE };

static const struct argp_option options[] = {
	OPT_JSON,
	{ "device", 'd', "N", 0, "CUDA's number of the GPU (default 0)", 0 },
	{ "rings", 'r', "N", 0, "Each is filled by a thread (default: one for each CPU "
	  "but two, 8 at most)", 0 },
	{ "size", 's', "BYTES", 0, "Frame size, may be given several times "
	  "(default 64, 256, 1500)", 0 },
	{ "time", 't', "SECONDS", 0, "Of each measurement (default 1)", 0 },
	{ "slots", KEY_SLOTS, "N", 0, "Default 4096", 0 },
	{ "slot-size", KEY_SLOT_SIZE, "BYTES", 0, "Default 2048", 0 },
	{ 0 }
};

static void check(const struct gpu_args *a, struct argp_state *state)
{
	unsigned int i;

	if (a->o.slots & (a->o.slots - 1) || a->o.slot_size & (a->o.slot_size - 1))
		argp_error(state, "slots and slot size must be powers of two");
	for (i = 0; i < a->nsizes; i++)
		if (a->sizes[i] > a->o.slot_size - RGATE_SLOT_HDR)
			argp_error(state, "frames of %u bytes do not fit in slots of %u: give "
				   "--slot-size", a->sizes[i], a->o.slot_size);
}

static uint32_t arg_time_ms(struct argp_state *state, const char *arg)
{
	uint64_t ms = arg_seconds(state, "--time", arg) / 1000000;

	if (!ms || ms > TIME_MAX_MS)
		argp_error(state, "time: '%s' is not from 0.001 to %d seconds", arg,
			   TIME_MAX_MS / 1000);
	return (uint32_t)ms;
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct gpu_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		break;
	case 'd':
		a->o.device = (uint32_t)arg_number(state, "--device", arg, 0, INT32_MAX);
		break;
	case 'r':
		a->o.rings = (uint32_t)arg_number(state, "--rings", arg, 1, RINGS_MAX);
		break;
	case 's':
		if (a->nsizes == SIZES_MAX)
			argp_error(state, "at most %d sizes", SIZES_MAX);
		a->sizes[a->nsizes++] = (uint32_t)arg_number(state, "--size", arg, 1,
							     RGATE_SLOT_SIZE_MAX);
		break;
	case 't':
		a->o.time_ms = arg_time_ms(state, arg);
		break;
	case KEY_SLOTS:
		a->o.slots = (uint32_t)arg_size(state, "--slots", arg, RGATE_SLOTS_MIN,
						RGATE_SLOTS_MAX);
		break;
	case KEY_SLOT_SIZE:
		a->o.slot_size = (uint32_t)arg_size(state, "--slot-size", arg,
						    RGATE_SLOT_SIZE_MIN, RGATE_SLOT_SIZE_MAX);
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "no argument is expected, '%s' is one", arg);
		break;
	case ARGP_KEY_END:
		check(a, state);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.doc = "Time a GPU as the consumer of rings in this machine's memory: frames a second "
	       "by size.\v"
	       "Every byte of every frame is read by the GPU over its link; the share is that "
	       "of what its copy engine moves. Needs libringgate-gpu and an NVIDIA GPU, "
	       "neither module nor privilege.",
};

/* As many as this process has CPUs for, with two left for itself and the runtime */
static uint32_t choose_rings(void)
{
	cpu_set_t set;
	int n = 1;

	if (!sched_getaffinity(0, sizeof(set), &set))
		n = CPU_COUNT(&set) - 2;
	return n < 1 ? 1 : n > 8 ? 8 : (uint32_t)n;
}

/* What the GPU reads for a frame: its slot's header, and the frame in whole 16 bytes */
static double link_bytes(const struct rgate_gpu_bench *r)
{
	uint32_t bytes = RGATE_SLOT_HDR + ((r->size + 15) & ~15U);

	return r->packets_per_s * bytes;
}

static double share(const struct rgate_gpu_bench *r)
{
	return r->copy_bytes_per_s > 0 ? link_bytes(r) / r->copy_bytes_per_s : 0;
}

static void print_text(const struct rgate_gpu_bench *r, unsigned int n)
{
	char buf[FMT_LEN];
	struct table t;
	unsigned int i;

	printf("%s; %u rings of %u slots of %u bytes; copy engine %sB/s\n\n",
	       r[0].device_name, r[0].rings, r[0].slots, r[0].slot_size,
	       fmt_si(buf, r[0].copy_bytes_per_s));
	table_init(&t, "BYTES FRAMES/S BYTES/S LINK/S SHARE");
	for (i = 0; i < n; i++) {
		table_cell(&t, "%u", r[i].size);
		table_cell(&t, "%s", fmt_si(buf, r[i].packets_per_s));
		table_cell(&t, "%s", fmt_si(buf, r[i].packets_per_s * r[i].size));
		table_cell(&t, "%s", fmt_si(buf, link_bytes(&r[i])));
		table_cell(&t, "%.2f", share(&r[i]));
	}
	table_print(&t, stdout);
	table_free(&t);
}

static void print_json(const struct rgate_gpu_bench *r, unsigned int n)
{
	struct json j;
	unsigned int i;

	json_init(&j, stdout, true);
	json_object(&j, NULL);
	json_str(&j, "device", r[0].device_name);
	json_u64(&j, "rings", r[0].rings);
	json_u64(&j, "slots", r[0].slots);
	json_u64(&j, "slot_size", r[0].slot_size);
	json_array(&j, "rates");
	for (i = 0; i < n; i++) {
		json_object(&j, NULL);
		json_u64(&j, "size", r[i].size);
		json_double(&j, "frames_per_second", r[i].packets_per_s);
		json_double(&j, "bytes_per_second", r[i].packets_per_s * r[i].size);
		json_double(&j, "link_bytes_per_second", link_bytes(&r[i]));
		json_double(&j, "copy_bytes_per_second", r[i].copy_bytes_per_s);
		json_double(&j, "share", share(&r[i]));
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	json_end(&j);
}

static int measure(const struct gpu_lib *l, const struct gpu_args *a, struct rgate_gpu_bench *r)
{
	unsigned int i;
	int err;

	for (i = 0; i < a->nsizes && !util_stop; i++) {
		r[i] = a->o;
		r[i].sz = sizeof(r[i]);
		r[i].size = a->sizes[i];
		err = l->bench(&r[i]);
		if (!err)
			continue;
		if (*l->error(NULL)) {
			say("%s", l->error(NULL));
			return EXIT_FAIL;
		}
		return fail(err, "cannot measure");
	}
	return util_stop ? EXIT_FAIL : EXIT_OK;
}

static void choose_sizes(struct gpu_args *a)
{
	static const uint32_t sizes[] = { 64, 256, 1500 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		if (sizes[i] <= a->o.slot_size - RGATE_SLOT_HDR)
			a->sizes[a->nsizes++] = sizes[i];
}

int bench_gpu(int argc, char **argv)
{
	struct rgate_gpu_bench r[SIZES_MAX];
	struct gpu_args a = {
		.o = {
			.slots = RGATE_SLOTS_DEFAULT,
			.slot_size = RGATE_SLOT_SIZE_DEFAULT,
			.time_ms = 1000,
		},
	};
	struct gpu_lib l;
	char why[256];
	int ret;

	cmd_parse(&argp, argc, argv, &a);
	if (!a.nsizes)
		choose_sizes(&a);
	if (!a.o.rings)
		a.o.rings = choose_rings();
	if (gpu_lib_load(&l, why, sizeof(why))) {
		say("%s: it is built and installed where nvcc is (make gpu, make install); "
		    "`ringgate doctor` says more", why);
		return EXIT_FAIL;
	}
	util_catch_signals();
	ret = measure(&l, &a, r);
	if (!ret && a.json)
		print_json(r, a.nsizes);
	else if (!ret)
		print_text(r, a.nsizes);
	gpu_lib_unload(&l);
	return ret;
}
