/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A kernel module that is not there: rings and attachments of the test's, told to the
 * command line by what would have told those of netlink; what it changes is written down.
 */
#ifndef MODULE_FAKE_H
#define MODULE_FAKE_H

#include <ringgate/rgate_ctl.h>

#define FAKE_RINGS	3
#define FAKE_ATTS	6
#define FAKE_EVENTS	6

struct fake_module {
	/* -errno of these calls; 0: they work */
	int open, rings, atts, att, attach, detach, join, leave, set, subscribe, ring_open;
	unsigned int good;	/* so many readings of rings work before `rings` does not */
	unsigned int nrings, natts, nevents;
	struct rgate_ring_info ring[FAKE_RINGS];
	struct rgate_att_info a[FAKE_ATTS];
	struct rgate_event_info event[FAKE_EVENTS];
	int event_err[FAKE_EVENTS];	/* instead of it */
	uint64_t step;		/* what all counters grow by with each reading */
	unsigned int frames;	/* that a ring gets once it is attached */
	bool ends;		/* attachments end by themselves, behind the frames */
	/* What happened, a line each */
	char log[4096];
};

/* Shared with the children */
extern struct fake_module *fake;

/* cli_begin(), and a loaded module with rings 1 and 2, and attachments 7 and 8 */
int fake_begin(void **state);
int fake_end(void **state);

#endif
