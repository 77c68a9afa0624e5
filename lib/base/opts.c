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
