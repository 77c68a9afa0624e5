// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate events: what happens to rings and attachments, as it happens. */
#define _GNU_SOURCE
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "cmd.h"
#include "names.h"
#include "snapshot.h"
#include "util.h"

struct events_args {
	bool json;
	uint64_t count;
	uint64_t time_ns;
};

static const struct argp_option options[] = {
	{ "json", 'j', NULL, 0, "Print JSON, one object a line", 0 },
	{ "count", 'n', "N", 0, "End after N events", 0 },
	{ "time", 't', "SECONDS", 0, "End after this time", 0 },
	{ 0 }
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct events_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		break;
	case 'n':
		a->count = arg_number(state, "--count", arg, 1, UINT32_MAX);
		break;
	case 't':
		a->time_ns = arg_seconds(state, "--time", arg);
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
	.doc = "Print events of this network namespace as they happen: "
	       "ring-full, ring-room, device-gone, ring-gone.\v"
	       "Full and room events are coalesced by the module; the counters "
	       "in them are exact.",
};

static void print_json(const struct rgate_event_info *ev,
		       const struct timespec *ts)
{
	struct json j;

	json_init(&j, stdout, false);
	json_object(&j, NULL);
	json_u64(&j, "time_ns", ts->tv_sec * NSEC + ts->tv_nsec);
	json_str(&j, "event", event_name(ev->type));
	json_u64(&j, "ring", ev->ring_id);
	json_u64(&j, "attachment", ev->att_id);
	json_u64(&j, "ifindex", ev->ifindex);
	json_u64(&j, "full_events", ev->full_events);
	json_u64(&j, "dropped", ev->dropped);
	json_object_end(&j);
	json_end(&j);
}

static void print_line(const struct rgate_event_info *ev,
		       const struct timespec *ts)
{
	char when[16], dev[IF_NAMESIZE] = "";
	struct tm tm;

	localtime_r(&ts->tv_sec, &tm);
	strftime(when, sizeof(when), "%H:%M:%S", &tm);
	printf("%s.%06ld %-11s", when, ts->tv_nsec / 1000,
	       event_name(ev->type));
	switch (ev->type) {
	case RGATE_EVENT_DEVICE_GONE:
		if_indextoname(ev->ifindex, dev);
		printf(" attachment %u, device %s%s%u\n", ev->att_id, dev,
		       *dev ? " " : "", ev->ifindex);
		break;
	case RGATE_EVENT_RING_GONE:
		printf(" ring %u\n", ev->ring_id);
		break;
	default:
		printf(" ring %u, %llu times full, %llu dropped\n", ev->ring_id,
		       (unsigned long long)ev->full_events,
		       (unsigned long long)ev->dropped);
	}
}

static void print_event(const struct rgate_event_info *ev, bool json)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (json)
		print_json(ev, &ts);
	else
		print_line(ev, &ts);
}

/* Until the socket is readable. 1: it is; 0: time is up; -errno */
static int wait_for(struct rgate_ctl *ctl, uint64_t end)
{
	struct pollfd pfd = { .fd = rgate_ctl_fd(ctl), .events = POLLIN };
	struct timespec ts, *tp = NULL;
	sigset_t old;
	uint64_t now = util_now();
	int n;

	if (end) {
		if (now >= end)
			return 0;
		ts.tv_sec = (end - now) / NSEC;
		ts.tv_nsec = (end - now) % NSEC;
		tp = &ts;
	}
	util_block_signals(&old);
	n = util_stop ? -1 : ppoll(&pfd, 1, tp, &old);
	if (n < 0)
		n = util_stop ? -EINTR : -errno;
	sigprocmask(SIG_SETMASK, &old, NULL);
	return n;
}

static int listen_on(struct rgate_ctl *ctl, const struct events_args *a)
{
	uint64_t end = a->time_ns ? util_now() + a->time_ns : 0, n = 0;
	struct rgate_event_info ev;
	int r;

	while (!util_stop) {
		r = wait_for(ctl, end);
		if (r == 0 || r == -EINTR)
			return EXIT_OK;
		if (r > 0)
			r = rgate_ctl_event(ctl, &ev, 0);
		if (r == -ENOBUFS) {
			say("some events were lost: they came faster than they "
			    "were read");
			continue;
		}
		if (r < 0 && r != -EINTR)
			return fail(r, "cannot read events");
		if (r <= 0)
			continue;
		print_event(&ev, a->json);
		if (util_stdout_dead() || ++n == a->count)
			break;
	}
	return EXIT_OK;
}

int cmd_events(int argc, char **argv)
{
	struct events_args a = { 0 };
	struct rgate_ctl *ctl;
	int err, ret;

	cmd_parse(&argp, argc, argv, &a);
	ret = ctl_open(&ctl);
	if (ret)
		return ret;
	util_catch_signals();
	err = rgate_ctl_subscribe(ctl);
	if (err)
		ret = fail(err, "cannot subscribe to events");
	else
		ret = listen_on(ctl, &a);
	rgate_ctl_close(ctl);
	return ret;
}
