// SPDX-License-Identifier: MIT OR GPL-2.0
#include "crc32c.h"

#include <string.h>

/* Of four bits */
static const uint32_t table[16] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
	0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
	0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
	0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t crc32c_plain(uint32_t seed, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint32_t c = ~seed;

	while (len--) {
		c ^= *p++;
		c = c >> 4 ^ table[c & 15];
		c = c >> 4 ^ table[c & 15];
	}
	return ~c;
}

#ifdef __x86_64__
__attribute__((target("sse4.2")))
static uint32_t by_cpu(uint32_t seed, const unsigned char *p, size_t len)
{
	uint64_t c = (uint32_t)~seed, word;

	for (; len >= sizeof(word); len -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		c = __builtin_ia32_crc32di(c, word);
	}
	while (len--)
		c = __builtin_ia32_crc32qi((uint32_t)c, *p++);
	return ~(uint32_t)c;
}

static int has_it(void)
{
	return __builtin_cpu_supports("sse4.2");
}
#else
static uint32_t by_cpu(uint32_t seed, const unsigned char *p, size_t len)
{
	return crc32c_plain(seed, p, len);
}

static int has_it(void)
{
	return 0;
}
#endif

uint32_t crc32c(uint32_t seed, const void *bytes, size_t len)
{
	return has_it() ? by_cpu(seed, bytes, len) : crc32c_plain(seed, bytes, len);
}
