/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Numbers for people. Each returns @buf. */
#ifndef FMT_H
#define FMT_H

#include <stdint.h>

#define FMT_LEN	32

/* 999, 12.3k, 4.56M: three figures, thousands */
char *fmt_si(char buf[FMT_LEN], double v);
/* 512 B, 8.0 KiB, 1.5 GiB */
char *fmt_bytes(char buf[FMT_LEN], uint64_t v);

#endif
