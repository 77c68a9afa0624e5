/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef FUZZ_CBPF_H
#define FUZZ_CBPF_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Does @prog let the packet pass? @sure: out; false: it read beyond the packet,
 * divided by zero or shifted by more than 31 bits, where what happens is not the same
 * everywhere.
 */
bool fuzz_cbpf(const struct sock_filter *prog, size_t n, const void *packet, uint32_t len,
	       bool *sure);

#endif
