/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* How much memory there is to be had before the kernel kills for it. */
#ifndef RGATE_MEM_AVAILABLE_H
#define RGATE_MEM_AVAILABLE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of ordinary pages that this process can get now; UINT64_MAX: nobody says. Less of
 * what the machine has available, and of what this process's control group (version 2)
 * and each one above it leave of their memory.max. @where, @cap: what it was, for a message
 */
uint64_t rgate_available(char *where, size_t cap);

#endif
