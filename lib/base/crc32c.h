/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_BASE_CRC32C_H
#define RGATE_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/*
 * crc32c - of @len bytes: Castagnoli's polynomial, as iSCSI and btrfs have it
 * @seed: 0 at first; what it returned, to go on with more bytes
 */
uint32_t crc32c(uint32_t seed, const void *bytes, size_t len);

/* The same without the CPU's own instruction, which not all have */
uint32_t crc32c_plain(uint32_t seed, const void *bytes, size_t len);

#endif
