/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Repeating commands: an interval, a count, and a terminal that is redrawn. */
#ifndef WATCH_H
#define WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct watch {
	uint64_t interval;	/* ns */
	uint64_t count;		/* 0: no limit */
	uint64_t done;
	uint64_t next;		/* CLOCK_MONOTONIC ns */
	bool redraw;		/* standard output is a terminal */
};

/* @plain: never redraw, as with JSON */
void watch_start(struct watch *w, bool plain);
/* Before one round is printed: clears the terminal, or sets rounds apart */
void watch_page(struct watch *w);
/* After it: sleeps out the interval. False: that was the last round */
bool watch_next(struct watch *w);
/* Puts the terminal back */
void watch_end(struct watch *w);

#endif
