/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Lines that users write into the daemon's log. A thread writes them, as who reads the log
 * may stop reading it; each user has so many lines in a time, and the queue has an end.
 */
#ifndef REQUESTS_LOG_H
#define REQUESTS_LOG_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine.h"

#define REQUEST_LOG_TEXT	RGATE_ENGINE_LINE	/* bytes of a line as the user has it */

struct request_log;

struct request_log_stats {
	uint64_t written;
	uint64_t dropped;	/* beyond a user's share, or nobody read the log */
};

int request_log_open(struct request_log **log, int fd);

/*
 * request_log_line - takes a copy of it
 * @text: @len bytes, any; a line end behind it is left out
 * 0; -EMSGSIZE: longer than REQUEST_LOG_TEXT; -EAGAIN: not now, see request_log_stats.dropped;
 * -ENOMEM. Does not wait. Any thread.
 */
int request_log_line(struct request_log *log, uid_t uid, const char *text, size_t len);
void request_log_stats(struct request_log *log, struct request_log_stats *stats);

/* Writes what is queued, for a second at most. Nobody calls request_log_line() any more. */
void request_log_close(struct request_log *log);

#endif
