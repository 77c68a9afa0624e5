// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate bench: what a ring in memory does on this machine. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/ring.h>

#include "bench.h"
#include "cmd.h"
#include "fmt.h"
#include "json.h"
#include "number.h"
#include "table.h"
#include "util.h"

#define SIZES_MAX	16
#define SIZE_MIN	16	/* two numbers */

struct bench_args {
	struct bench_opts o;
	bool cpus_given;
	uint32_t sizes[SIZES_MAX];
	unsigned int nsizes;
	bool json;
};

enum { KEY_SLOTS = 256, KEY_SLOT_SIZE };

static const struct argp_option options[] = {
	OPT_JSON,
	{ "size", 's', "BYTES", 0, "Frame size, may be given several times "
	  "(default 64, 256, 1500)", 0 },
	{ "time", 't', "SECONDS", 0, "Of each measurement (default 1)", 0 },
	{ "cpus", 'c', "A,B", 0, "CPUs of producer and consumer", 0 },
	{ "slots", KEY_SLOTS, "N", 0, "Default 4096", 0 },
	{ "slot-size", KEY_SLOT_SIZE, "BYTES", 0, "Default 2048", 0 },
	{ 0 }
};

static void parse_cpus(struct bench_args *a, const char *arg,
		       struct argp_state *state)
{
	const char *comma = strchr(arg, ',');
	char first[16] = "";
	uint64_t cpu[2] = { 0 };

	if (comma && comma - arg < (ptrdiff_t)sizeof(first))
		memcpy(first, arg, (size_t)(comma - arg));
	if (!comma || number_parse(first, false, 0, CPU_SETSIZE - 1, &cpu[0]) ||
	    number_parse(comma + 1, false, 0, CPU_SETSIZE - 1, &cpu[1]))
		argp_error(state, "--cpus: '%s' is not two numbers from 0 to %d, such as 0,1", arg,
			   CPU_SETSIZE - 1);
	a->o.cpu[0] = (int)cpu[0];
	a->o.cpu[1] = (int)cpu[1];
	a->cpus_given = true;
}

static void check(struct bench_args *a, struct argp_state *state)
{
	unsigned int i;

	if (a->o.slots & (a->o.slots - 1) || a->o.slot_size & (a->o.slot_size - 1))
		argp_error(state, "slots and slot size must be powers of two");
	for (i = 0; i < a->nsizes; i++)
		if (a->sizes[i] > a->o.slot_size - RGATE_SLOT_HDR)
			argp_error(state, "frames of %u bytes do not fit in "
				   "slots of %u: give --slot-size", a->sizes[i],
				   a->o.slot_size);
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct bench_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		break;
	case 's':
		if (a->nsizes == SIZES_MAX)
			argp_error(state, "at most %d sizes", SIZES_MAX);
		a->sizes[a->nsizes++] = arg_number(state, "--size", arg, SIZE_MIN,
						   RGATE_SLOT_SIZE_MAX);
		break;
	case 't':
		a->o.time_ns = arg_seconds(state, "--time", arg);
		break;
	case 'c':
		parse_cpus(a, arg, state);
		break;
	case KEY_SLOTS:
		a->o.slots = arg_size(state, "--slots", arg, RGATE_SLOTS_MIN,
				      RGATE_SLOTS_MAX);
		break;
	case KEY_SLOT_SIZE:
		a->o.slot_size = arg_size(state, "--slot-size", arg,
					  RGATE_SLOT_SIZE_MIN,
					  RGATE_SLOT_SIZE_MAX);
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "'%s': only gpu can be measured besides, as the first "
			   "argument", arg);
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
	.doc = "Time a ring in memory between two threads: frames a second by "
	       "size, and how long one hand-over takes.\v"
	       "Every frame is copied in, copied out and checked. Needs neither "
	       "module nor privilege. The latency includes one reading of the "
	       "clock. `ringgate bench gpu` times a GPU as the consumer; see "
	       "`ringgate bench gpu --help`.",
};

/* The first two CPUs that this process may use */
static int choose_cpus(struct bench_args *a)
{
	unsigned int i, n = 0;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return fail(-errno, "cannot read the CPUs");
	if (a->cpus_given) {
		if (!CPU_ISSET(a->o.cpu[0], &set) || !CPU_ISSET(a->o.cpu[1], &set)) {
			say("this process may not use CPUs %d and %d",
			    a->o.cpu[0], a->o.cpu[1]);
			return EXIT_FAIL;
		}
	} else {
		for (i = 0; i < CPU_SETSIZE && n < 2; i++)
			if (CPU_ISSET(i, &set))
				a->o.cpu[n++] = i;
		if (n == 1)
			a->o.cpu[1] = a->o.cpu[0];
	}
	a->o.yield = a->o.cpu[0] == a->o.cpu[1];
	if (a->o.yield)
		say("producer and consumer share one CPU: the figures are those "
		    "of the scheduler");
	return EXIT_OK;
}

static void progress(const char *what, uint32_t size)
{
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K");
	if (what)
		fprintf(stderr, "%s %u bytes...", what, size);
}

static int measure(struct bench_args *a, struct bench_rate *rates,
		   struct bench_latency *l)
{
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < a->nsizes && !util_stop; i++) {
		rates[i].size = a->sizes[i];
		progress("rate at", a->sizes[i]);
		err = bench_rate(&a->o, &rates[i]);
	}
	if (!err && !util_stop) {
		progress("latency at", 64);
		err = bench_latency(&a->o, l);
	}
	progress(NULL, 0);
	return err;
}

static double per_second(const struct bench_rate *r)
{
	return r->seconds > 0 ? r->frames / r->seconds : 0;
}

static void print_text(const struct bench_args *a,
		       const struct bench_rate *rates,
		       const struct bench_latency *l)
{
	char buf[FMT_LEN];
	struct table t;
	unsigned int i;

	printf("ring of %u slots of %u bytes, producer on CPU %d, consumer on "
	       "CPU %d\n\n", a->o.slots, a->o.slot_size, a->o.cpu[0],
	       a->o.cpu[1]);
	table_init(&t, "BYTES FRAMES/S BYTES/S NS/FRAME FULL");
	for (i = 0; i < a->nsizes; i++) {
		double fps = per_second(&rates[i]);

		table_cell(&t, "%u", rates[i].size);
		table_cell(&t, "%s", fmt_si(buf, fps));
		table_cell(&t, "%s", fmt_si(buf, fps * rates[i].size));
		table_cell(&t, "%.1f", fps > 0 ? 1e9 / fps : 0);
		table_cell(&t, "%s", fmt_si(buf, rates[i].full));
	}
	table_print(&t, stdout);
	table_free(&t);
	printf("\nhand-over of one frame, ns over %llu samples: p50 %u  p90 %u  "
	       "p99 %u  p99.9 %u  max %u  (the clock itself: %u)\n",
	       (unsigned long long)l->samples, l->p50, l->p90, l->p99, l->p999,
	       l->max, l->clock);
}

static void print_json(const struct bench_args *a,
		       const struct bench_rate *rates,
		       const struct bench_latency *l)
{
	struct json j;
	unsigned int i;

	json_init(&j, stdout, true);
	json_object(&j, NULL);
	json_u64(&j, "slots", a->o.slots);
	json_u64(&j, "slot_size", a->o.slot_size);
	json_i64(&j, "producer_cpu", a->o.cpu[0]);
	json_i64(&j, "consumer_cpu", a->o.cpu[1]);
	json_array(&j, "rates");
	for (i = 0; i < a->nsizes; i++) {
		json_object(&j, NULL);
		json_u64(&j, "size", rates[i].size);
		json_u64(&j, "frames", rates[i].frames);
		json_double(&j, "seconds", rates[i].seconds);
		json_double(&j, "frames_per_second", per_second(&rates[i]));
		json_double(&j, "bytes_per_second",
			    per_second(&rates[i]) * rates[i].size);
		json_u64(&j, "full", rates[i].full);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object(&j, "latency_ns");
	json_u64(&j, "samples", l->samples);
	json_u64(&j, "p50", l->p50);
	json_u64(&j, "p90", l->p90);
	json_u64(&j, "p99", l->p99);
	json_u64(&j, "p99_9", l->p999);
	json_u64(&j, "max", l->max);
	json_u64(&j, "clock", l->clock);
	json_object_end(&j);
	json_object_end(&j);
	json_end(&j);
}

int cmd_bench(int argc, char **argv)
{
	struct bench_args a = {
		.o = {
			.slots = RGATE_SLOTS_DEFAULT,
			.slot_size = RGATE_SLOT_SIZE_DEFAULT,
			.time_ns = NSEC,
		},
	};
	static const uint32_t sizes[] = { 64, 256, 1500 };
	struct bench_rate rates[SIZES_MAX] = { 0 };
	struct bench_latency l = { 0 };
	unsigned int i;
	int err, ret;

	if (argc > 1 && !strcmp(argv[1], "gpu")) {
		argv[1] = "ringgate bench gpu";
		util_set_name(argv[1]);
		return bench_gpu(argc - 1, argv + 1);
	}
	cmd_parse(&argp, argc, argv, &a);
	for (i = 0; !a.nsizes && i < ARRAY_SIZE(sizes); i++)
		if (sizes[i] <= a.o.slot_size - RGATE_SLOT_HDR)
			a.sizes[i] = sizes[i];
		else
			break;
	a.nsizes = a.nsizes ?: i;
	ret = choose_cpus(&a);
	if (ret)
		return ret;
	util_catch_signals();
	err = measure(&a, rates, &l);
	if (err == -EBADMSG) {
		say("a frame came out of the ring other than it went in: this "
		    "is a fault, please report it");
		return EXIT_FAIL;
	}
	if (err)
		return fail(err, "cannot measure");
	if (util_stop)
		return EXIT_FAIL;
	if (a.json)
		print_json(&a, rates, &l);
	else
		print_text(&a, rates, &l);
	return EXIT_OK;
}
