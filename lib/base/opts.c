// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <string.h>

#include "opts.h"

int rgate_opts_copy(void *dst, size_t len, const void *src)
{
	size_t sz, i;

	memset(dst, 0, len);
	if (!src)
		return 0;
	memcpy(&sz, src, sizeof(sz));
	if (sz < sizeof(size_t))
		return -EINVAL;
	for (i = len; i < sz; i++)
		if (((const unsigned char *)src)[i])
			return -E2BIG;
	memcpy(dst, src, sz < len ? sz : len);
	return 0;
}

int rgate_info_copy(void *dst, const void *src, size_t len)
{
	size_t sz;

	memcpy(&sz, dst, sizeof(sz));
	if (sz < sizeof(size_t))
		return -EINVAL;
	if (sz > len)
		memset((char *)dst + len, 0, sz - len);
	memcpy((char *)dst + sizeof(sz), (const char *)src + sizeof(sz),
	       (sz < len ? sz : len) - sizeof(sz));
	return 0;
}
