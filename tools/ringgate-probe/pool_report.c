// SPDX-License-Identifier: MIT OR GPL-2.0
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pool_report.h"
#include "table.h"
#include "util.h"

#define PROGRESS_NS	(NSEC / 10)

static struct check_result *find(struct report *r, const char *name)
{
	unsigned int i;

	for (i = 0; i < r->n; i++)
		if (!strcmp(r->checks[i].name, name))
			return &r->checks[i];
	/* The last one collects what finds no room: nothing that fails is lost. */
	if (r->n == REPORT_CHECKS)
		return &r->checks[r->n - 1];
	r->checks[r->n] = (struct check_result){ .name = name };
	return &r->checks[r->n++];
}

void report_add(struct report *r, const char *name, bool ok, const char *fmt, ...)
{
	struct check_result *c = find(r, name);
	va_list ap;

	c->count++;
	if (ok || c->failed++)
		return;
	va_start(ap, fmt);
	vsnprintf(c->text, sizeof(c->text), fmt, ap);
	va_end(ap);
}

void report_skip(struct report *r, const char *name, const char *why)
{
	struct check_result *c = find(r, name);

	c->skipped = true;
	snprintf(c->text, sizeof(c->text), "%s", why);
}

bool report_passed(const struct report *r)
{
	unsigned int i;

	for (i = 0; i < r->n; i++)
		if (r->checks[i].failed)
			return false;
	return r->n;
}

static const char *result(const struct check_result *c)
{
	if (c->failed)
		return "failed";
	return c->skipped ? "skipped" : "ok";
}

void report_print(const struct report *r)
{
	struct table t;
	unsigned int i;

	if (table_init(&t, "<CHECK COUNT FAILED <RESULT"))
		return;
	for (i = 0; i < r->n; i++) {
		const struct check_result *c = &r->checks[i];

		table_cell(&t, "%s", c->name);
		table_cell(&t, "%llu", (unsigned long long)c->count);
		table_cell(&t, "%llu", (unsigned long long)c->failed);
		if (*c->text)
			table_cell(&t, "%s: %s", result(c), c->text);
		else
			table_cell(&t, "%s", result(c));
	}
	table_print(&t, stdout);
	table_free(&t);
}

void report_json(const struct report *r, struct json *j)
{
	unsigned int i;

	json_array(j, "checks");
	for (i = 0; i < r->n; i++) {
		const struct check_result *c = &r->checks[i];

		json_object(j, NULL);
		json_str(j, "name", c->name);
		json_u64(j, "count", c->count);
		json_u64(j, "failed", c->failed);
		json_str(j, "result", result(c));
		json_str(j, "text", *c->text ? c->text : NULL);
		json_object_end(j);
	}
	json_array_end(j);
}

void report_progress(const char *what, uint64_t done, uint64_t total)
{
	static uint64_t last;
	uint64_t now = util_now();

	if (!isatty(STDERR_FILENO))
		return;
	if (!what) {
		fprintf(stderr, "\r\033[K");
	} else if (now - last >= PROGRESS_NS || done == total) {
		last = now;
		fprintf(stderr, "\r\033[K%s: %u %%", what,
			(unsigned int)(total ? 100.0 * done / total : 0));
	}
	fflush(stderr);
}
