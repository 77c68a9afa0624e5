/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What was checked how often, and what came out. */
#ifndef POOL_REPORT_H
#define POOL_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "json.h"

#define REPORT_CHECKS	48
#define REPORT_TEXT	192

struct check_result {
	const char *name;
	uint64_t count;
	uint64_t failed;
	bool skipped;
	char text[REPORT_TEXT];	/* of the first failure, or why it was skipped */
};

struct report {
	struct check_result checks[REPORT_CHECKS];
	unsigned int n;
};

/* report_add - once more @name; @name has to stay. @fmt: what is wrong, if not @ok */
void report_add(struct report *r, const char *name, bool ok, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void report_skip(struct report *r, const char *name, const char *why);
bool report_passed(const struct report *r);
void report_print(const struct report *r);
void report_json(const struct report *r, struct json *j);

/* On a terminal: how far it is. @what NULL: the line is cleared */
void report_progress(const char *what, uint64_t done, uint64_t total);

#endif
