// SPDX-License-Identifier: MIT OR GPL-2.0
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "clean.h"
#include "utf8.h"

/* Of @n bytes: what terminals obey instead of showing it */
static bool obeyed(const unsigned char *s, size_t n)
{
	uint32_t c;

	if (n == 1)
		return *s < 0x20 || *s == 0x7f;
	if (n == 2)
		return *s == 0xc2 && s[1] < 0xa0;	/* C1 */
	if (n != 3)
		return false;
	c = (uint32_t)(s[0] & 0xf) << 12 | (uint32_t)(s[1] & 0x3f) << 6 | (s[2] & 0x3f);
	/* line and paragraph ends, marks, embeddings and isolates of direction */
	return (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
	       c == 0x200e || c == 0x200f || c == 0xfeff;
}

void clean_put(FILE *f, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	while (*s) {
		size_t n = rgate_utf8(s);
		const bool as_it_is = n && !obeyed(s, n);

		if (!n)
			n = 1;
		if (as_it_is)
			fwrite(s, 1, n, f);
		for (; n; n--, s++)
			if (!as_it_is)
				fprintf(f, "\\x%02x", *s);
	}
}

char *clean_dup(const char *text)
{
	char *copy = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&copy, &len);

	if (!f)
		return NULL;
	clean_put(f, text);
	if (!fclose(f))
		return copy;
	free(copy);
	return NULL;
}
