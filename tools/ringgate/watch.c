// SPDX-License-Identifier: MIT OR GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util.h"
#include "watch.h"

void watch_start(struct watch *w, bool plain)
{
	const char *term = getenv("TERM");

	w->done = 0;
	w->next = util_now();
	w->redraw = !plain && isatty(STDOUT_FILENO) && term &&
		    strcmp(term, "dumb");
	util_catch_signals();
	if (w->redraw)
		fputs("\033[?25l\033[2J", stdout);	/* no cursor, empty screen */
}

void watch_page(struct watch *w)
{
	if (w->redraw)
		fputs("\033[H\033[J", stdout);	/* top left, clear from there */
	else if (w->done)
		putchar('\n');
}

bool watch_next(struct watch *w)
{
	uint64_t now;

	w->done++;
	if (util_stdout_dead() || (w->count && w->done >= w->count))
		return false;
	w->next += w->interval;
	now = util_now();
	if (w->next < now)
		w->next = now;	/* was stopped, or is too slow: no catching up */
	util_sleep(w->next);
	return !util_stop;
}

void watch_end(struct watch *w)
{
	if (w->redraw)
		fputs("\033[?25h", stdout);
}
