// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate replay: the frames of a capture out of a device. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cmd.h"
#include "fmt.h"
#include "json.h"
#include "number.h"
#include "replay_file.h"
#include "replay_out.h"
#include "util.h"

#define SPEED_MAX	1000000ULL
#define WAIT_MAX_NS	1e18	/* for all of a pass: 30 years */
#define HEADER		14U	/* bytes of an Ethernet header */

enum { KEY_FULL = 256 };

struct replay_args {
	const char *file;
	const char *dev;
	uint64_t speed;		/* times 1e9 */
	uint64_t loops;		/* 0: without end */
	uint64_t count;		/* 0: all */
	bool full;
	bool json;
	bool quiet;
};

static const struct argp_option options[] = {
	{ "speed", 's', "X", 0, "X times as fast as it was captured (default 1)", 0 },
	{ "full", KEY_FULL, NULL, 0, "As fast as the device takes the frames", 0 },
	{ "loop", 'l', "N", 0, "Send the file N times (default 1; 0: until it is stopped)", 0 },
	{ "count", 'c', "N", 0, "End after N frames", 0 },
	{ "quiet", 'q', NULL, 0, "No progress and no summary", 0 },
	OPT_JSON,
	{ 0 }
};

static void parse_speed(struct replay_args *a, const char *arg, struct argp_state *state)
{
	/* a factor is read as seconds are */
	if (number_parse_seconds(arg, &a->speed) || a->speed > SPEED_MAX * NSEC)
		argp_error(state, "--speed: '%s' is not a factor from 0.001 to %llu",
			   arg, SPEED_MAX);
}

static void parse_arg(struct replay_args *a, const char *arg, struct argp_state *state)
{
	if (!a->file) {
		a->file = arg;
		return;
	}
	if (a->dev)
		argp_error(state, "'%s' is one too many: a file and a device are expected", arg);
	if (!*arg || strlen(arg) >= IF_NAMESIZE)
		argp_error(state, "'%s' is %s for a device", arg, *arg ? "too long" : "no name");
	a->dev = arg;
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct replay_args *a = state->input;

	switch (key) {
	case 's':
		parse_speed(a, arg, state);
		break;
	case KEY_FULL:
		a->full = true;
		break;
	case 'l':
		a->loops = arg_number(state, "--loop", arg, 0, INT64_MAX);
		break;
	case 'c':
		a->count = arg_number(state, "--count", arg, 1, INT64_MAX);
		break;
	case 'q':
		a->quiet = true;
		break;
	case 'j':
		a->json = true;
		break;
	case ARGP_KEY_ARG:
		parse_arg(a, arg, state);
		break;
	case ARGP_KEY_END:
		if (!a->file)
			argp_error(state, "which file, and which device?");
		if (!a->dev)
			argp_error(state, "which device?");
		if (a->full && a->speed)
			argp_error(state, "--full and --speed exclude each other");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.args_doc = "FILE DEVICE",
	.doc = "Send the frames of a capture file, pcap or pcapng, through a device: as they are, in "
	       "their order, and none earlier than its time says.\v"
	       "FILE may be - for standard input. The frames leave through a transmit ring of the "
	       "kernel module. Needs CAP_NET_ADMIN and CAP_NET_RAW. Ctrl-C ends it.",
};

struct replay {
	const struct replay_args *a;
	struct replay_file *file;
	struct replay_out out;
	uint64_t frames;	/* put into the ring */
	uint64_t passes;	/* that were finished */
	uint64_t cut;		/* left out: their end is not in the file */
	uint64_t small;		/* without a whole header */
	uint64_t large;		/* larger than a slot, which holds what the device sends */
	uint32_t longest;	/* of all that were whole */
	uint64_t start;		/* CLOCK_MONOTONIC ns */
	uint64_t time_ns;	/* it took */
	uint64_t next_look;
	bool progress;
};

/* Of a pass: when its first frame was sent, and what time the file has for that one */
struct pace {
	uint64_t start;
	uint64_t first;
	bool begun;
};

static void show(struct replay *r)
{
	uint64_t now = util_now();
	char n[FMT_LEN];

	if (!r->progress || now < r->next_look)
		return;
	r->next_look = now + NSEC;
	fprintf(stderr, "\r%llu frames, %s a second ", (unsigned long long)r->frames,
		fmt_si(n, (double)r->frames * 1e9 / (double)(now - r->start + 1)));
}

/* Until the frame may go; what was put before it goes now, if there is time. 0, -errno */
static int wait_for(struct replay *r, struct pace *p, uint64_t time_ns)
{
	double wait;
	uint64_t due;
	int err;

	if (!p->begun) {
		*p = (struct pace){ .start = util_now(), .first = time_ns, .begun = true };
		return 0;
	}
	wait = time_ns > p->first ? (double)(time_ns - p->first) * 1e9 / (double)r->a->speed : 0;
	/* A file may have any time. */
	due = p->start + (uint64_t)(wait < WAIT_MAX_NS ? wait : WAIT_MAX_NS);
	if (util_now() >= due)
		return 0;
	err = replay_out_flush(&r->out);
	while (!err && !util_stop && util_now() < due) {
		uint64_t look = util_now() + NSEC;

		show(r);
		util_sleep(due < look ? due : look);
	}
	return err;
}

/* Can it be sent? Those that cannot are counted by reason. */
static bool sendable(struct replay *r, const struct replay_frame *f)
{
	if (f->cut) {
		r->cut++;
		return false;
	}
	if (f->len > r->longest)
		r->longest = f->len;
	r->small += f->len < HEADER;
	r->large += f->len > r->out.room;
	return f->len >= HEADER && f->len <= r->out.room;
}

static bool enough(const struct replay *r)
{
	return util_stop || (r->a->count && r->frames >= r->a->count);
}

/* The file once. 0, -errno */
static int pass(struct replay *r)
{
	struct replay_frame f;
	struct pace pace = { 0 };
	int got = 0, err = 0;

	while (!err && !enough(r)) {
		got = replay_file_next(r->file, &f);
		if (got <= 0)
			break;
		if (!sendable(r, &f))
			continue;
		if (!r->a->full)
			err = wait_for(r, &pace, f.time_ns);
		if (err || util_stop)
			break;
		err = replay_out_put(&r->out, f.data, f.len);
		r->frames += !err;
		if (!(r->frames & 63))
			show(r);
	}
	if (!err)
		err = replay_out_flush(&r->out);
	return err ?: got < 0 ? got : 0;
}

/* All passes. 0, -errno; -EBADMSG: the file's fault, which was said */
static int run(struct replay *r)
{
	uint64_t before;
	int err;

	for (;;) {
		before = r->frames;
		err = pass(r);
		if (err || enough(r))
			return err;
		r->passes++;
		/* one that has nothing to send has nothing the next time either */
		if (r->passes == r->a->loops || r->frames == before)
			return 0;
		if (replay_file_rewind(r->file))
			return -EBADMSG;
	}
}

static double per_second(const struct replay *r, uint64_t n)
{
	return r->time_ns ? (double)n * 1e9 / (double)r->time_ns : 0;
}

static void summary_json(const struct replay *r, const struct rgate_stats *st)
{
	struct json j;

	json_init(&j, stdout, false);
	json_object(&j, NULL);
	json_str(&j, "device", r->out.dev);
	json_u64(&j, "frames", st->delivered);
	json_u64(&j, "bytes", st->bytes);
	json_u64(&j, "passes", r->passes);
	json_object(&j, "refused");
	json_u64(&j, "cut", r->cut);
	json_u64(&j, "too_short", r->small);
	json_u64(&j, "too_long", r->large + st->dropped_fault);
	json_u64(&j, "queue", st->dropped_full);
	json_object_end(&j);
	json_u64(&j, "time_ns", r->time_ns);
	json_double(&j, "frames_per_second", per_second(r, st->delivered));
	json_double(&j, "bits_per_second", per_second(r, st->bytes * 8));
	json_object_end(&j);
	json_end(&j);
}

static void summary_text(const struct replay *r, const struct rgate_stats *st)
{
	char bytes[FMT_LEN], fps[FMT_LEN], bps[FMT_LEN];

	printf("%llu frames sent through %s (%s) in %.3f s: %s frames/s, %sbit/s\n",
	       (unsigned long long)st->delivered, r->out.dev, fmt_bytes(bytes, st->bytes),
	       (double)r->time_ns / 1e9, fmt_si(fps, per_second(r, st->delivered)),
	       fmt_si(bps, per_second(r, st->bytes * 8)));
}

/* One line for each reason why frames were not sent. An exit code */
static int refused(const struct replay *r, const struct rgate_stats *st)
{
	const uint64_t large = r->large + st->dropped_fault;

	if (r->cut)
		say("%llu frames were left out, their end is not in %s: capture them whole, "
		    "`ringgate capture --chain -w FILE DEVICE`", (unsigned long long)r->cut,
		    r->a->file);
	if (r->small)
		say("%llu frames were left out, they have no whole Ethernet header: `tcpdump -er %s less "
		    "13` shows them", (unsigned long long)r->small, r->a->file);
	if (large)
		say("%llu frames were left out, they are longer than %s sends: `sudo ip link set %s mtu "
		    "%u`", (unsigned long long)large, r->out.dev, r->out.dev, r->longest - HEADER);
	if (st->dropped_full)
		say("%llu frames were dropped by the queue of %s: `tc -s qdisc show dev %s` tells more",
		    (unsigned long long)st->dropped_full, r->out.dev, r->out.dev);
	return r->cut || r->small || large || st->dropped_full ? EXIT_FAIL : EXIT_OK;
}

static int finish(const struct replay *r, int err)
{
	struct rgate_stats st;
	int ret;

	if (r->progress)
		fputs("\r\033[K", stderr);
	replay_out_stats(&r->out, &st);
	if (!r->a->quiet && r->a->json)
		summary_json(r, &st);
	else if (!r->a->quiet)
		summary_text(r, &st);
	ret = refused(r, &st);
	if (err == -EBADMSG)
		return EXIT_FAIL;
	if (err && err != -EINTR)
		return fail_in("rgate_ctl_attach:transmit", err, "sending through %s ended",
			       r->out.dev);
	if (!r->frames && !ret && !util_stop) {
		say("%s has no frames: `ringgate capture -w FILE DEVICE` makes one with some",
		    r->a->file);
		return EXIT_FAIL;
	}
	return ret;
}

int cmd_replay(int argc, char **argv)
{
	struct replay_args a = { .loops = 1 };
	struct replay r = { .a = &a };
	int ret, err;

	cmd_parse(&argp, argc, argv, &a);
	if (!a.speed)
		a.speed = NSEC;
	util_catch_signals();
	/* The kernel would sleep 50 us longer than it is asked to. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	ret = replay_file_open(&r.file, a.file, a.loops != 1);
	if (ret)
		return ret;
	ret = replay_out_open(&r.out, a.dev);
	if (!ret) {
		r.progress = !a.quiet && isatty(STDERR_FILENO);
		r.start = util_now();
		err = run(&r);
		r.time_ns = util_now() - r.start;
		ret = finish(&r, err);
	}
	replay_out_close(&r.out);
	replay_file_close(r.file);
	return ret;
}
