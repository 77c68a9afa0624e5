/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What a result of the table means, and what to do. */
#ifndef PROBE_WHY_H
#define PROBE_WHY_H

#include "probe_types.h"

/* Of a cell that failed */
const char *probe_why(const struct probe_type *t, const struct probe_env *env,
		      enum probe_col col, const struct probe_cell *c);

/* How the child ended, if it was not as it should: "SIGBUS while ..."; else "" */
void probe_why_ended(const struct probe_row *row, char *buf, size_t len);

#endif
