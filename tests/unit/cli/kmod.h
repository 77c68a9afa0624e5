/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* libkmod's calls: what the test says of modules, and lines on stderr of what is done. */
#ifndef KMOD_FAKE_H
#define KMOD_FAKE_H

#include <stdbool.h>

extern struct fake_kmod {
	const char *installed;	/* path of the installed one; NULL: there is none */
	const char *vermagic;	/* of any file; NULL: it has no such line */
	const char *depends;	/* its modules, with commas between */
	bool no_context, no_module;	/* calls that fail */
	int insert, remove;	/* what these return; insert > 0: blacklisted */
	unsigned int busy;	/* so many removals fail with EAGAIN before that */
	const char *holder;	/* a module that uses it */
	bool no_device;		/* loading makes no /dev/ringgate */
} fake_kmod;

#endif
