/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_LIB_LOG_H
#define RGATE_LIB_LOG_H

#include <ringgate/rgate.h>

#include "within.h"

/* One line to the user's callback; nothing is formatted when there is none. */
RGATE_WITHIN void rgate_logf(enum rgate_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#define rgate_err(...)	rgate_logf(RGATE_LOG_ERROR, __VA_ARGS__)
#define rgate_warn(...)	rgate_logf(RGATE_LOG_WARN, __VA_ARGS__)
#define rgate_info(...)	rgate_logf(RGATE_LOG_INFO, __VA_ARGS__)
#define rgate_dbg(...)	rgate_logf(RGATE_LOG_DEBUG, __VA_ARGS__)

#endif
