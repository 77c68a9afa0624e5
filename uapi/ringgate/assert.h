/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* Layouts that cross a boundary are checked by every compiler that sees them. */
#ifndef RINGGATE_ASSERT_H
#define RINGGATE_ASSERT_H

#ifdef __cplusplus
#define RGATE_ASSERT(c)	static_assert(c, #c)
#else
#define RGATE_ASSERT(c)	_Static_assert(c, #c)
#endif
#define RGATE_AT(t, f, o)	RGATE_ASSERT(__builtin_offsetof(t, f) == (o))

#endif
