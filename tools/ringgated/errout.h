/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the daemon says goes to stderr; where nobody reads that, it is left out, not waited for. */
#ifndef ERROUT_H
#define ERROUT_H

#include <stddef.h>
#include <stdint.h>

/* For what stderr is now; once, before there are threads */
void errout_open(void);

/* A line, with its end; for util_set_out(). One call at a time */
void errout_line(const char *line, size_t len);

/* Lines that were left out so far; any thread */
uint64_t errout_dropped(void);

#endif
