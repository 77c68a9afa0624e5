// SPDX-License-Identifier: MIT OR GPL-2.0
#include "why.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "strerror.h"

/* One cause, and behind it what to do: in each context the likeliest alone */
static const struct {
	const char *call;
	int err;
	const char *text;
} texts[] = {
	{ WHY_WRITE, ENOSPC, "the disk is full: `df -h` shows which" },
	{ WHY_WRITE, ENOENT, "its directory does not exist" },
	{ WHY_WRITE, EACCES, "no permission to write there" },
	{ WHY_WRITE, EISDIR, "it is a directory" },
	{ WHY_WRITE, EFBIG, "larger than a file may be: `ulimit -f unlimited`" },
	{ WHY_READ, ENOENT, "there is no such file: `ls` lists those that are there" },
	{ WHY_READ, EACCES, "no permission to read it: run it with sudo" },
	{ WHY_READ, EISDIR, "it is a directory" },
};

const char *why_text(const char *call, int err, bool *whole)
{
	size_t i;

	*whole = true;
	if (!call || err > 0 || err < -4095)
		return NULL;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!strcmp(texts[i].call, call) && texts[i].err == -err)
			return texts[i].text;
	return rgate_error_of(call, err, whole);
}
