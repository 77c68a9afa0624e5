// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clean.h"
#include "input_remote.h"
#include "util.h"

#define SOON_NS		50000000ULL	/* between looks while nobody fills the ring */
#define PATIENCE_NS	1000000000ULL	/* before it is said that one waits */
#define NAME_NS		500000000ULL	/* for the gateway's answer */
#define CLOCK_NS	500000000ULL
#define STEP_NS		5000000ULL
#define ERROR_LEAST	2000U		/* ns: as close as two clocks can be read */

static int64_t now_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * (int64_t)NSEC + ts.tv_nsec;
}

int remote_look(struct input_remote *r, bool idle, bool quiet)
{
	const uint64_t now = util_now();
	char why[512];
	int ret;

	if (!r->asked)
		r->asked = now;
	/* Who fills it need not be asked whether it does. */
	if (r->filled && !idle)
		return 0;
	ret = rgate_ring_remote_state(r->ring, why, sizeof(why));
	r->filled = ret == 1;
	if (ret == -ECONNRESET)
		say("ringgated has ended, or closed the ring: nothing comes any more");
	else if (ret < 0)
		say(*why ? "no frames will come: %s" : "ringgated does not answer: %s",
		    *why ? why : strerror(-ret));
	if (ret < 0)
		return ret;
	if (!r->filled && !r->told_waiting && !quiet && now - r->asked > PATIENCE_NS) {
		say("the gateway does not fill the ring yet: waiting (ringgate cluster status)");
		r->told_waiting = true;
	}
	return 0;
}

uint64_t remote_next_look(const struct input_remote *r, uint64_t now)
{
	return now + (r->filled ? NSEC : SOON_NS);
}

/*
 * The difference to the gateway's clock is measured when the ring is made, and goes on to
 * be. The one that is used stays until it is wrong by more than the new one may be, so
 * that times do not jitter with it.
 */
static void measure(struct input_remote *r, uint64_t tstamp)
{
	const uint64_t end = util_now() + CLOCK_NS;
	uint64_t error = UINT64_MAX;
	int64_t offset = 0, shift;

	while (rgate_ring_tstamp_offset(r->ring, &offset, &error)) {
		if (r->shifted || util_stop || util_now() >= end)
			break;
		util_sleep(util_now() + STEP_NS);
	}
	if (error == UINT64_MAX) {
		/* No gateway answers: it came just now. */
		if (!r->shifted)
			r->shift = now_of(CLOCK_REALTIME) - (int64_t)tstamp;
		r->error = r->shifted ? r->error : error;
		r->shifted = true;
		return;
	}
	shift = now_of(CLOCK_REALTIME) - now_of(CLOCK_MONOTONIC) - offset;
	if (error < ERROR_LEAST)
		error = ERROR_LEAST;
	if (!r->shifted || r->error == UINT64_MAX || (uint64_t)llabs(shift - r->shift) > error) {
		r->shift = shift;
		r->error = error;
		r->shifted = true;
	}
}

uint64_t remote_time(struct input_remote *r, const struct rgate_slot *s)
{
	const uint64_t now = util_now();

	if (s->clock == RGATE_CLOCK_REALTIME)
		return s->tstamp;
	if (s->clock == RGATE_CLOCK_TAI)
		return s->tstamp - (uint64_t)(now_of(CLOCK_TAI) - now_of(CLOCK_REALTIME));
	if (now >= r->shift_due) {
		measure(r, s->tstamp);
		r->shift_due = now + NSEC;
	}
	return s->tstamp + (uint64_t)r->shift;
}

void remote_device(struct input_remote *r, uint32_t ifindex, char *name, size_t len)
{
	const uint64_t end = util_now() + NAME_NS;
	char raw[RGATE_DEVICE_NAME], *text;
	int err;

	snprintf(name, len, ifindex ? "if%u" : "remote", ifindex);
	if (!ifindex)
		return;
	while ((err = rgate_ring_remote_device(r->ring, ifindex, raw)) == -EAGAIN) {
		if (util_stop || util_now() >= end)
			return;
		util_sleep(util_now() + STEP_NS);
	}
	text = err ? NULL : clean_dup(raw);
	if (text)
		snprintf(name, len, "%s", text);
	free(text);
}
