/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef POOL_MEMORY_H
#define POOL_MEMORY_H

#include <stdint.h>

/* Bytes that could be used now without pushing others out: of the machine, or what is
 * left to the control group of this process */
uint64_t pool_memory_available(void);

#endif
