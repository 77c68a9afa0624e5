/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Sized option structs: older and newer callers than this library. */
#ifndef RGATE_LIB_OPTS_H
#define RGATE_LIB_OPTS_H

#include <stddef.h>

/*
 * Copies the caller's options over the zeroed @dst of @len bytes; both begin with
 * size_t sz. -EINVAL: sz too small. What the caller has beyond @len must be zero,
 * or it asks for something unknown here: -E2BIG.
 */
int rgate_opts_copy(void *dst, size_t len, const void *src);

#endif
