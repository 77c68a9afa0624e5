/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The Internet checksum (RFC 1071) */
#ifndef RGATE_LIB_CSUM_H
#define RGATE_LIB_CSUM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Adds @len bytes to a running sum; all parts but the last of even length. */
static inline uint64_t rgate_csum_add(uint64_t sum, const void *data, size_t len)
{
	const unsigned char *p = data;
	uint16_t last = 0;
	uint32_t w;
	uint16_t h;

	for (; len >= 4; len -= 4, p += 4) {
		memcpy(&w, p, 4);
		sum += w;
	}
	if (len & 2) {
		memcpy(&h, p, 2);
		sum += h;
		p += 2;
	}
	if (len & 1) {
		memcpy(&last, p, 1);
		sum += last;
	}
	return sum;
}

/* As it goes into a header: in memory order, whatever the machine's */
static inline uint16_t rgate_csum_fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

#endif
