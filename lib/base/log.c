// SPDX-License-Identifier: MIT OR GPL-2.0
#include <stdarg.h>
#include <stdio.h>

#include "log.h"

static rgate_log_fn log_fn;
static void *log_ctx;

void rgate_log_set(rgate_log_fn fn, void *ctx)
{
	log_fn = fn;
	log_ctx = ctx;
}

void rgate_logf(enum rgate_log_level level, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	if (!log_fn)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	log_fn(log_ctx, level, line);
}
