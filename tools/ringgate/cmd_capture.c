// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate capture: frames to a pcapng file, or as lines to the terminal. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "address.h"
#include "att_filter.h"
#include "cmd.h"
#include "fmt.h"
#include "input.h"
#include "json.h"
#include "names.h"
#include "output.h"
#include "util.h"

#define BURST	256	/* frames between two looks at clock and signals */

enum {
	KEY_STEAL = 256, KEY_SLOTS, KEY_SLOT_SIZE, KEY_CHAIN, KEY_USERSPACE,
	KEY_UDP, KEY_RINGS, KEY_PRINT, KEY_FANOUT, KEY_REMOTE, KEY_ALL,
};

static const struct argp_option options[] = {
	{ "write", 'w', "FILE", 0, "Write pcapng to FILE, - for standard output",
	  1 },
	{ "print", KEY_PRINT, NULL, 0, "Print lines, too, with --write", 1 },
	{ "json", 'j', NULL, 0, "Print packets and the summary as JSON, one "
	  "object a line", 1 },
	{ "quiet", 'q', NULL, 0, "No progress and no summary", 1 },
	{ "count", 'c', "N", 0, "End after N packets", 2 },
	{ "time", 't', "SECONDS", 0, "End after this time", 2 },
	{ "steal", KEY_STEAL, NULL, 0, "The network stack does not see what is "
	  "captured (default: it does); needs a filter, or --all", 3 },
	{ "all", KEY_ALL, NULL, 0, "Steal every frame of the devices", 3 },
	{ "promisc", 'p', NULL, 0, "Frames to other machines, too", 3 },
	{ "userspace", KEY_USERSPACE, NULL, 0, "Packet socket instead of the "
	  "kernel module; DEVICE may be any", 3 },
	{ "udp", KEY_UDP, "ADDRESS:PORT", 0, "Datagrams of a UDP socket instead "
	  "of a device's frames; needs no privilege", 3 },
	{ "remote", KEY_REMOTE, "SOCKET", OPTION_ARG_OPTIONAL, "Frames that the "
	  "cluster's gateway sends to this node, from ringgated; the filter is "
	  "applied here", 3 },
	{ "slots", KEY_SLOTS, "N", 0, "Slots of a ring, a power of two (default "
	  "4096; 16K, 1M)", 4 },
	{ "slot-size", KEY_SLOT_SIZE, "BYTES", 0, "With 64 bytes of header, a "
	  "power of two (default 2048)", 4 },
	{ "chain", KEY_CHAIN, NULL, 0, "Frames longer than a slot take several, "
	  "instead of being cut", 4 },
	{ "rings", KEY_RINGS, "N", 0, "Spread over N rings (module only)", 4 },
	{ "fanout", KEY_FANOUT, "RULE", 0, "Which of them: cpu (default), queue, "
	  "hash, rollover", 4 },
	{ 0 }
};

static void add_devs(struct capture_opts *o, const char *arg,
		     struct argp_state *state)
{
	char *list, *name, *save;

	/* A name may hold a comma, however unlikely. */
	if (if_nametoindex(arg)) {
		snprintf(o->devs[o->ndevs++], IF_NAMESIZE, "%s", arg);
		return;
	}
	list = strdup(arg);
	for (name = strtok_r(list, ",", &save); name;
	     name = strtok_r(NULL, ",", &save)) {
		if (strlen(name) >= IF_NAMESIZE)
			argp_error(state, "'%s' is too long for a device", name);
		if (o->ndevs == CAPTURE_DEVS_MAX)
			argp_error(state, "at most %d devices", CAPTURE_DEVS_MAX);
		snprintf(o->devs[o->ndevs++], IF_NAMESIZE, "%s", name);
	}
	free(list);
	if (!o->ndevs)
		argp_error(state, "'%s' names no device", arg);
}

/* The rest of the line is one expression, as with tcpdump. */
static void add_filter(struct capture_opts *o, const char *arg,
		       struct argp_state *state)
{
	char *all;

	if (asprintf(&all, "%s%s%s", o->filter ?: "", o->filter ? " " : "",
		     arg) < 0)
		argp_failure(state, EXIT_FAIL, ENOMEM, "filter");
	free(o->filter);
	o->filter = all;
}

static void parse_addr(struct capture_opts *o, const char *arg,
		       struct argp_state *state)
{
	const char *why;

	if (address_parse(arg, &o->addr, &o->addrlen, &why))
		argp_error(state, "--udp: '%s' is no ADDRESS:PORT: %s", arg, why);
	o->addr_text = arg;
	o->udp = true;
}

static uint32_t power_of_two(struct argp_state *state, const char *what,
			     const char *arg, uint32_t min, uint32_t max)
{
	uint32_t v = arg_size(state, what, arg, min, max);

	if (v & (v - 1))
		argp_error(state, "%s: %s is not a power of two", what, arg);
	return v;
}

static void check(struct capture_opts *o, struct argp_state *state)
{
	if (o->ndevs == 1 && !strcmp(o->devs[0], "any") && !if_nametoindex("any"))
		o->any = true;
	if (o->udp && (o->ndevs || o->filter))
		argp_error(state, "--udp takes neither device nor filter");
	if (o->remote && (o->udp || o->userspace || o->ndevs || o->steal || o->rings > 1))
		argp_error(state, "--remote takes no device, and neither --udp, "
			   "--userspace, --steal nor --rings");
	if (!o->udp && !o->remote && !o->ndevs)
		argp_error(state, "which device? (or give --udp or --remote)");
	if (o->udp && o->userspace)
		argp_error(state, "--udp and --userspace exclude each other");
	if ((o->udp || o->userspace) && (o->steal || o->rings > 1))
		argp_error(state, "--steal and --rings need the module: leave "
			   "out --userspace or --udp");
	if (o->promisc && (o->udp || o->remote))
		argp_error(state, "--promisc is for devices: it takes neither --udp nor --remote");
	if (o->fanout && o->rings < 2)
		argp_error(state, "--fanout spreads over several rings: --rings N");
	if (o->any && !o->userspace)
		argp_error(state, "any needs --userspace; with the module name "
			   "the devices, with commas between");
	if (o->print && !o->file)
		argp_error(state, "--print is for use with --write");
	if (o->file && !strcmp(o->file, "-") && o->print)
		argp_error(state, "--print and -w - would mix on standard "
			   "output");
	arg_steal(state, o->steal, o->filter && arg_filter(o->filter), o->all);
	if (!o->file)
		o->print = true;
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct capture_opts *o = state->input;

	switch (key) {
	case 'w':
		o->file = arg;
		break;
	case KEY_PRINT:
		o->print = true;
		break;
	case 'j':
		o->json = true;
		break;
	case 'q':
		o->quiet = true;
		break;
	case 'c':
		o->count = arg_number(state, "--count", arg, 1, INT64_MAX);
		break;
	case 't':
		o->time_ns = arg_seconds(state, "--time", arg);
		break;
	case KEY_STEAL:
		o->steal = true;
		break;
	case KEY_ALL:
		o->all = true;
		break;
	case 'p':
		o->promisc = true;
		break;
	case KEY_USERSPACE:
		o->userspace = true;
		break;
	case KEY_UDP:
		parse_addr(o, arg, state);
		break;
	case KEY_REMOTE:
		o->remote = true;
		o->daemon = arg;
		break;
	case KEY_SLOTS:
		o->slots = power_of_two(state, "--slots", arg, RGATE_SLOTS_MIN,
					RGATE_SLOTS_MAX);
		break;
	case KEY_SLOT_SIZE:
		o->slot_size = power_of_two(state, "--slot-size", arg,
					    RGATE_SLOT_SIZE_MIN,
					    RGATE_SLOT_SIZE_MAX);
		break;
	case KEY_CHAIN:
		o->chain = true;
		break;
	case KEY_RINGS:
		o->rings = arg_number(state, "--rings", arg, 1,
				      RGATE_ATT_RINGS_MAX);
		break;
	case KEY_FANOUT:
		o->fanout = arg_fanout(state, arg);
		break;
	case ARGP_KEY_ARG:
		if (!state->arg_num && !o->udp &&
		    (!o->remote || if_nametoindex(arg)))
			add_devs(o, arg, state);
		else
			add_filter(o, arg, state);
		break;
	case ARGP_KEY_END:
		check(o, state);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.args_doc = "DEVICE[,DEVICE...] [FILTER...]\n--udp ADDRESS:PORT\n"
		    "--remote [FILTER...]",
	.doc = "Capture frames: to a pcapng file with nanosecond timestamps, or "
	       "as one line each.\v"
	       "FILTER is a tcpdump expression. Through the kernel module, "
	       "unless --userspace or --udp is given. Ctrl-C ends it and "
	       "completes the file.",
};

struct capture {
	const struct capture_opts *o;
	struct inputs in;
	struct output out;
	uint64_t end;		/* CLOCK_MONOTONIC ns; UINT64_MAX: none */
	uint64_t next_look;	/* at counters and devices, and progress */
	uint64_t taken;		/* frames, also those that the filter left out */
	uint64_t looked;	/* c.taken at the last look */
	bool progress;
};

static bool enough(const struct capture *c)
{
	return c->o->count && c->out.frames >= c->o->count;
}

/* Up to @max frames. Returns how many, -errno */
static int take(struct capture *c, unsigned int max)
{
	const struct rgate_slot *s;
	struct input_ring *r;
	unsigned int n;
	int err;

	for (n = 0; n < max && !enough(c); n++) {
		r = inputs_next(&c->in, &s);
		if (!r)
			break;
		err = output_frame(&c->out, r, s);
		rgate_consumer_release(&r->c);
		c->taken++;
		if (err)
			return err;
	}
	return n;
}

static uint64_t total_dropped(const struct inputs *in)
{
	uint64_t n = 0;
	unsigned int i;

	for (i = 0; i < in->ndevs; i++)
		n += in->devs[i].dropped;
	return n;
}

/* Once a second. 0; -ENODEV: all devices are gone; else why nothing more will come, said */
static int look(struct capture *c, uint64_t now)
{
	int alive;

	if (now < c->next_look)
		return 0;
	alive = inputs_update(&c->in, c->taken == c->looked);
	c->looked = c->taken;
	c->next_look = inputs_next_update(&c->in, now);
	if (alive < 0)
		return alive;
	if (c->progress)
		fprintf(stderr, "\r%llu packets, %llu dropped ",
			(unsigned long long)c->out.frames,
			(unsigned long long)total_dropped(&c->in));
	return alive ? 0 : -ENODEV;
}

static int loop(struct capture *c)
{
	while (!util_stop && !enough(c)) {
		uint64_t now = util_now();
		int n, err;

		if (now >= c->end)
			return 0;
		err = look(c, now);
		if (err)
			return err;
		n = take(c, BURST);
		if (n < 0)
			return n;
		if (n == BURST)
			continue;
		err = output_flush(&c->out);
		if (err)
			return err;
		err = inputs_wait(&c->in, c->end < c->next_look ?
				  c->end : c->next_look);
		/* who has ended says more than that it has */
		if (err == -EPIPE && c->o->remote) {
			err = inputs_update(&c->in, true);
			err = err < 0 ? err : -ENODEV;
		}
		if (err)
			return err;
	}
	return 0;
}

/* What was captured before the end is still in the rings. */
static int drain(struct capture *c)
{
	int n;

	do
		n = take(c, BURST);
	while (n > 0);
	return n;
}

static void summary_json(const struct capture *c)
{
	unsigned int i;
	struct json j;

	json_init(&j, stderr, false);
	json_object(&j, NULL);
	json_u64(&j, "packets", c->out.frames);
	json_u64(&j, "bytes", c->out.bytes);
	json_u64(&j, "truncated", c->out.cut);
	json_u64(&j, "misfits", c->out.misfits);
	json_array(&j, "sources");
	for (i = 0; i < c->in.ndevs; i++) {
		const struct input_dev *d = &c->in.devs[i];

		json_object(&j, NULL);
		json_str(&j, "name", d->name);
		json_u64(&j, "received", d->received);
		json_u64(&j, "filtered", d->filtered + c->out.filtered);
		json_u64(&j, "dropped", d->dropped);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	json_end(&j);
}

static void summary(const struct capture *c)
{
	char bytes[FMT_LEN];
	unsigned int i;

	if (c->progress)
		fputs("\r\033[K", stderr);
	if (c->o->quiet)
		return;
	if (c->o->json) {
		summary_json(c);
		return;
	}
	fprintf(stderr, "%llu packets captured (%s), %llu of them cut short\n",
		(unsigned long long)c->out.frames,
		fmt_bytes(bytes, c->out.bytes),
		(unsigned long long)c->out.cut);
	if (c->out.misfits)
		fprintf(stderr, "%llu left out: their link type is not that of the file\n",
			(unsigned long long)c->out.misfits);
	for (i = 0; i < c->in.ndevs; i++) {
		const struct input_dev *d = &c->in.devs[i];
		const unsigned long long filtered = d->filtered + c->out.filtered;

		fprintf(stderr, "%s: %llu received, %llu filtered out, %llu "
			"dropped%s\n", d->name,
			(unsigned long long)d->received, filtered,
			(unsigned long long)d->dropped,
			d->dropped ? " (more --slots would help)" : "");
	}
}

static int explain(const struct capture *c, int err)
{
	if (err && err == c->in.ended)	/* that has been said */
		return EXIT_FAIL;
	switch (err) {
	case 0:
	case -EPIPE:		/* the reader has seen enough */
		return EXIT_OK;
	case -ENODEV:
		say("no device is left to capture from");
		return EXIT_FAIL;
	default:
		return fail_in(c->o->file ? WHY_WRITE : WHY_SYSTEM, err,
			       "capture to %s ended", c->o->file ?: "terminal");
	}
}

static int run(struct capture *c)
{
	int err, e;

	err = output_begin(&c->out, &c->in);
	if (!err)
		err = loop(c);
	e = inputs_stop(&c->in);
	if (!e && (!err || err == -ENODEV || err == c->in.ended))
		e = drain(c);
	/* -EPIPE of the input: its thread ended, for the reason just got */
	if (!err || (err == -EPIPE && e))
		err = e;
	return err;
}

int cmd_capture(int argc, char **argv)
{
	struct capture_opts o = { .rings = 1 };
	struct capture c = { .o = &o };
	int err, ret;

	cmd_parse(&argp, argc, argv, &o);
	util_catch_signals();
	ret = output_open(&c.out, &o);
	if (ret)
		goto free;
	ret = inputs_open(&c.in, &o);
	if (ret)
		goto close;
	c.progress = o.file && !o.print && !o.quiet && isatty(STDERR_FILENO);
	c.end = o.time_ns ? util_now() + o.time_ns : UINT64_MAX;
	err = run(&c);
	summary(&c);
	ret = explain(&c, err);
close:
	err = output_close(&c.out);
	if (!ret && err && err != -EPIPE)
		ret = fail_in(WHY_WRITE, err, "cannot complete %s", o.file);
	inputs_close(&c.in);
free:
	free(o.filter);
	return ret;
}
