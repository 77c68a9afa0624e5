/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Why the kernel would not pin memory. */
#ifndef RGATE_MEM_MEMLOCK_H
#define RGATE_MEM_MEMLOCK_H

#include <stdbool.h>
#include <stddef.h>

/* Would pinning @len more bytes go over RLIMIT_MEMLOCK? Says so to the log, with the
 * line that mends it. */
bool rgate_memlock_short(const void *addr, size_t len);

#endif
