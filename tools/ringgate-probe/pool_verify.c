// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate pool verify: that buffers carved from one region do all that a region does. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "fmt.h"
#include "pool.h"
#include "pool_memory.h"
#include "pool_pattern.h"
#include "probe.h"
#include "util.h"

#define SIZE_DEFAULT	(2ULL << 30)
#define SIZE_MIN	(2ULL << 20)
#define SIZE_MOST	(1ULL << 40)
#define BUFFER_DEFAULT	(512ULL << 10)
#define BUFFERS_MAX	(1ULL << 20)
#define ROUNDS_DEFAULT	4
#define ROUNDS_MAX	1000000
#define TIME_MAX_NS	(3600 * NSEC)
#define TIME_DEFAULT_S	30
#define SLOWEST		(16ULL << 20)	/* bytes that are registered in a second at least */

enum { KEY_SEED = 256, KEY_LOCAL, KEY_PEER, KEY_TIMEOUT };

static const struct argp_option options[] = {
	OPT_JSON,
	{ "size", 's', "BYTES", 0, "Of the region of each process (default 2G)", 0 },
	{ "buffer", 'b', "BYTES", 0, "Of a buffer (default 512K)", 0 },
	{ "device", 'd', "NAME", 0, "RDMA device (default: RGATE_RDMA_DEVICE, or the best)",
	  0 },
	{ "peer-device", KEY_PEER, "NAME", 0, "That of the other process (default: the "
	  "same)", 0 },
	{ "rounds", 'n', "N", 0, "Random places for transfers, besides begin and end of the "
	  "region (default 4)", 0 },
	{ "seed", KEY_SEED, "S", 0, "Places and patterns as in an earlier run", 0 },
	{ "local", KEY_LOCAL, NULL, 0, "Without an RDMA device: two processes, shared "
	  "memory", 0 },
	{ "timeout", KEY_TIMEOUT, "SECONDS", 0, "Of each operation and each answer of the "
	  "peer's (default 30, more for large pools)", 0 },
	{ 0 }
};

static void check(struct verify_opts *o, struct argp_state *state)
{
	if (o->local && (o->device || o->peer_device))
		argp_error(state, "--local is without a device");
	if (o->buffer > o->size)
		argp_error(state, "buffer: larger than the region");
	if (o->size / o->buffer > BUFFERS_MAX)
		argp_error(state, "buffer: more than %llu buffers: give larger ones",
			   BUFFERS_MAX);
	if (!o->time_ns)
		o->time_ns = (TIME_DEFAULT_S + o->size / SLOWEST) * NSEC;
	if (o->time_ns > TIME_MAX_NS)
		o->time_ns = TIME_MAX_NS;
}

static error_t parse_more(int key, char *arg, struct argp_state *state)
{
	struct verify_opts *o = state->input;

	switch (key) {
	case KEY_SEED:
		o->seed = arg_number(state, "--seed", arg, 0, UINT64_MAX);
		o->seeded = true;
		return 0;
	case KEY_LOCAL:
		o->local = true;
		return 0;
	case KEY_PEER:
		o->peer_device = arg;
		return 0;
	case KEY_TIMEOUT:
		o->time_ns = arg_seconds(state, "--timeout", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct verify_opts *o = state->input;

	switch (key) {
	case 'j':
		o->json = true;
		break;
	case 's':
		o->size = arg_size(state, "--size", arg, SIZE_MIN, SIZE_MOST);
		break;
	case 'b':
		o->buffer = arg_size(state, "--buffer", arg, 1, SIZE_MOST);
		break;
	case 'd':
		o->device = arg;
		break;
	case 'n':
		o->rounds = arg_number(state, "--rounds", arg, 0, ROUNDS_MAX);
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "no argument is expected, '%s' is one", arg);
		break;
	case ARGP_KEY_END:
		check(o, state);
		break;
	default:
		return parse_more(key, arg, state);
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.doc = "Carve a pool's region completely into buffers, transfer between such buffers "
	       "of two processes in every way there is, and prove what the device "
	       "refuses.\v"
	       "After each transfer the contents are compared, and that nothing around them "
	       "was written. Without an RDMA device, or with --local, both processes share "
	       "the memory, and no device is tried. A run can be repeated by its seed. Exit "
	       "status 0: every check passed.",
};

/* Is there any? A look into sysfs, as no verbs may be called before the fork. */
static bool any_device(void)
{
	DIR *d = opendir("/sys/class/infiniband");
	struct dirent *e;
	bool any = false;

	while (d && !any && (e = readdir(d)))
		any = *e->d_name != '.';
	if (d)
		closedir(d);
	return any;
}

static int enough_memory(const struct verify_opts *o)
{
	unsigned int processes = o->local || !any_device() ? 1 : 2;
	uint64_t have = pool_memory_available(), need = o->size * processes;
	char a[FMT_LEN], b[FMT_LEN];

	if (need <= have)
		return EXIT_OK;
	say("%s of memory are needed%s, and %s are available: give a smaller --size",
	    fmt_bytes(a, need), processes > 1 ? ", a region for each of two processes" : "",
	    fmt_bytes(b, have));
	return EXIT_FAIL;
}

/* With a device, or without where there is none and none was asked for */
static int open_device(struct verify *v)
{
	const struct verify_opts *o = v->o;
	struct peer_msg m = { .cmd = PEER_OPEN };
	int err;

	v->side.access = RGATE_ACCESS_REMOTE;
	if (o->local)
		return 0;
	err = side_open(&v->side, o->device);
	if ((err == -ENODEV || err == -ENOSYS) && !o->device && !o->peer_device &&
	    !getenv("RGATE_RDMA_DEVICE"))
		return 0;
	if (err) {
		probe_fail(err, "cannot open the RDMA device (--local goes without)", "");
		return err;
	}
	v->mtu = rgate_device_info(v->side.dev)->mtu;
	m.window = pool_key(v);
	snprintf(m.name, sizeof(m.name), "%s",
		 o->peer_device ?: rgate_device_info(v->side.dev)->name);
	/* The peer makes its pool while this process makes its own. */
	return peer_send(&v->peer, &m, -1);
}

static int run(struct verify *v)
{
	int err = open_device(v);

	if (!err)
		err = pool_carve_checks(v);
	if (err)
		return err;
	if (!v->side.dev)
		return pool_local_checks(v);
	err = pool_peer_open(v);
	if (!err)
		err = pool_xfer_checks(v);
	return err ?: pool_refuse_checks(v);
}

/* Both give everything back; that has to work as well. */
static int finish(struct verify *v)
{
	struct peer_msg m = { .cmd = PEER_CLOSE, .window = pool_key(v) };
	int err = peer_call(&v->peer, &m);

	if (!err)
		report_add(&v->report, "pool destroyed", !m.err, "peer: %s",
			   rgate_strerror("rgate_mem_", m.err));
	return err;
}

static const char isolation[] =
	"The device refuses what leaves a region, and what the region is not registered for.\n"
	"It does not refuse a peer that stays in the region and leaves its buffer: buffers of\n"
	"a pool are kept apart by protocol, not by hardware.";

static const char local_note[] =
	"Without an RDMA device: carving, and two processes that share the memory. No transfer\n"
	"of a device and no refusal was tried.";

/* Before anything can go wrong, so that any run can be repeated */
static void print_head(const struct verify_opts *o)
{
	char a[FMT_LEN], b[FMT_LEN];

	printf("region of %s, buffers of %s, seed %#llx\n", fmt_bytes(a, o->size),
	       fmt_bytes(b, o->buffer), (unsigned long long)o->seed);
	fflush(stdout);
}

static void print_text(const struct verify *v, const char *device, const char *peer,
		       bool passed)
{
	if (!v->report.n)
		return;		/* it did not come to anything; that was said */
	if (*device)
		printf("two processes, on %s and %s\n\n", device, peer);
	else
		printf("%s\n\n", local_note);
	report_print(&v->report);
	if (v->let_through)
		printf("\n%s\n", isolation);
	if (util_stop)
		say("interrupted");
	else if (passed)
		printf("\npassed\n");
	else
		printf("\nFAILED; the same again: --seed %#llx\n",
		       (unsigned long long)v->o->seed);
}

static void print_json(const struct verify *v, const char *device, const char *peer,
		       uint64_t buffers, bool passed)
{
	struct json j;

	json_init(&j, stdout, true);
	json_object(&j, NULL);
	json_bool(&j, "passed", passed);
	json_bool(&j, "local", !*device);
	json_str(&j, "device", *device ? device : NULL);
	json_str(&j, "peer_device", *device ? peer : NULL);
	json_u64(&j, "size", v->o->size);
	json_u64(&j, "buffer", v->o->buffer);
	json_u64(&j, "buffers", buffers);
	json_u64(&j, "rounds", v->o->rounds);
	json_u64(&j, "seed", v->o->seed);
	if (v->let_through)
		json_str(&j, "isolation", "protocol");
	else
		json_str(&j, "isolation", NULL);
	report_json(&v->report, &j);
	json_object_end(&j);
	json_end(&j);
}

static int verify(struct verify *v)
{
	char device[64] = "";
	const char *peer;
	uint64_t buffers;
	bool passed;
	int err, ret;

	err = run(v);
	report_progress(NULL, 0, 0);
	if (v->side.dev)
		snprintf(device, sizeof(device), "%s", rgate_device_info(v->side.dev)->name);
	peer = v->o->peer_device ?: device;
	buffers = v->side.carve.n;
	if (!err)
		err = finish(v);
	ret = side_close(&v->side, v->rng);
	if (!err)
		report_add(&v->report, "pool destroyed", !ret, "%s",
			   rgate_strerror("rgate_mem_", ret));
	passed = !err && report_passed(&v->report);
	if (v->o->json)
		print_json(v, device, peer, buffers, passed);
	else
		print_text(v, device, peer, passed);
	return passed ? EXIT_OK : EXIT_FAIL;
}

int pool_verify(int argc, char **argv)
{
	struct verify_opts o = {
		.size = SIZE_DEFAULT, .buffer = BUFFER_DEFAULT, .rounds = ROUNDS_DEFAULT,
	};
	struct verify v = { .o = &o, .peer.fd = -1 };
	int ret, err;

	cmd_parse(&argp, argc, argv, &o);
	ret = enough_memory(&o);
	if (ret)
		return ret;
	if (!o.seeded)
		o.seed = pattern_seed();
	v.rng = o.seed;
	if (!o.json)
		print_head(&o);
	util_catch_signals();
	err = peer_start(&v.peer, &o);
	if (err)
		return fail(err, "cannot make a second process");
	ret = verify(&v);
	peer_stop(&v.peer);
	return ret;
}
