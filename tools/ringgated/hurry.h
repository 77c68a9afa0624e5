/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What others send can be slow to close: a TCP connection that lingers makes the thread wait
 * that closes it last, as long as the sender likes, and be it by closing the socket that the
 * descriptor was on its way through. In between these two such a wait is interrupted, and ends.
 */
#ifndef HURRY_H
#define HURRY_H

#include <stdbool.h>
#include <time.h>

struct hurry {
	timer_t timer;
	bool on;
};

/* From now on the thread is interrupted again and again. Without a timer it may have to wait. */
void hurry_begin(struct hurry *h);
/* The same thread */
void hurry_end(struct hurry *h);

/* close(2) in a hurry: with whatever was sent to that socket and nobody has read */
void hurry_close(int sock);

#endif
