/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What an error means where it came, and what to type next. */
#ifndef WHY_H
#define WHY_H

#include <stdbool.h>

/*
 * What was tried: the library's function, as rgate_strerror() has it, or one of these, whose
 * errors are the system's. An errno alone says little: -ENOENT is a module that is not loaded,
 * a ring that is gone, or a file.
 */
#define WHY_SYSTEM	((const char *)0)	/* what the system says is all there is to say */
#define WHY_WRITE	"write"			/* writing a file */
#define WHY_READ	"read"			/* reading one */

/*
 * why_text - words for -errno @err, static; NULL: nothing is known of it there
 * @whole: out: nothing that was logged says more
 */
const char *why_text(const char *call, int err, bool *whole);

#endif
