// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "json.h"
#include "queue_watch.h"
#include "util.h"

#define MEMORY	0.7	/* of the rate that was, in that which is told */

struct progress {
	uint64_t done, left, running, buried;
	double rate;		/* tasks a second; below 0: not known yet */
	uint64_t at;		/* ns */
};

/* Tasks that are not over */
static uint64_t left_of(const struct rgate_queue_info *info)
{
	return (uint64_t)info->now[RGATE_TASK_READY] + info->now[RGATE_TASK_CLAIMED] +
	       info->now[RGATE_TASK_RUNNING] + info->now[RGATE_TASK_DELAYED];
}

/* @p is what was before. The rate follows slowly, so that one long task does not stop the clock. */
static void look(struct progress *p, const struct rgate_queue_info *info)
{
	const uint64_t at = util_now();
	double now;

	if (p->at && at > p->at && info->done >= p->done) {
		now = (double)(info->done - p->done) * NSEC / (double)(at - p->at);
		p->rate = p->rate < 0 ? now : MEMORY * p->rate + (1 - MEMORY) * now;
	}
	p->at = at;
	p->done = info->done;
	p->left = left_of(info);
	p->running = info->now[RGATE_TASK_RUNNING];
	p->buried = info->now[RGATE_TASK_BURIED];
}

/* Seconds; below 0: nobody can say */
static double eta(const struct progress *p)
{
	if (!p->left)
		return 0;
	return p->rate > 0 ? (double)p->left / p->rate : -1;
}

static void tell_json(const struct progress *p)
{
	struct json j;

	json_init(&j, stdout, false);
	json_object(&j, NULL);
	json_u64(&j, "completed", p->done);
	json_u64(&j, "left", p->left);
	json_u64(&j, "running", p->running);
	json_u64(&j, "buried", p->buried);
	if (p->rate >= 0)
		json_double(&j, "rate", p->rate);
	if (eta(p) >= 0)
		json_double(&j, "eta", eta(p));
	json_object_end(&j);
	json_end(&j);
}

static void tell_time(double s)
{
	if (s < 0)
		printf(", nobody knows how long");
	else if (s < 120)
		printf(", %.0f s left", s);
	else if (s < 7200)
		printf(", %.0f min left", s / 60);
	else
		printf(", %.1f h left", s / 3600);
}

static void tell_text(const struct progress *p, bool redraw)
{
	const uint64_t all = p->done + p->left + p->buried;

	if (redraw)
		printf("\r\033[K");
	printf("%3.0f%% %" PRIu64 " of %" PRIu64 " done, %" PRIu64 " running, %" PRIu64 " buried",
	       all ? 100.0 * (double)p->done / (double)all : 100.0, p->done, all, p->running,
	       p->buried);
	if (p->rate >= 0)
		printf(", %.1f/s", p->rate);
	if (p->rate >= 0 && p->left)
		tell_time(eta(p));
	if (!redraw)
		putchar('\n');
	fflush(stdout);
}

int queue_watch(struct rgate_queue *q, const struct queue_watch *w)
{
	const bool redraw = !w->json && isatty(STDOUT_FILENO);
	struct progress p = { .rate = -1 };
	struct rgate_queue_info info;
	int err;

	util_catch_signals();
	for (;;) {
		err = rgate_queue_info(q, &info);
		if (err)
			break;
		look(&p, &info);
		if (w->json)
			tell_json(&p);
		else
			tell_text(&p, redraw);
		if ((!p.left && !w->follow) || util_stop || util_stdout_dead())
			break;
		util_sleep(p.at + w->interval_ns);
		if (util_stop)
			break;
	}
	if (redraw)
		putchar('\n');
	if (err && err != -EINTR)
		return fail_in("rgate_queue_info", err, "%s", w->name);
	if (p.left || err)
		return w->follow ? EXIT_OK : EXIT_FAIL;
	if (!p.buried)
		return EXIT_OK;
	say("%s: %" PRIu64 " tasks are buried: `ringgate queue peek %s` says why", w->name,
	    p.buried, w->name);
	return EXIT_FAIL;
}
