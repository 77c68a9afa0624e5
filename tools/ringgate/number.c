// SPDX-License-Identifier: MIT OR GPL-2.0
#include "number.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_MIN	0.001
#define SECONDS_MAX	1e9

/* How far to the left, and where the text goes on */
static unsigned int unit(const char **at)
{
	static const char units[] = "KMG";
	const char *u = **at ? strchr(units, toupper((unsigned char)**at)) : NULL;

	if (!u)
		return 0;
	(*at)++;
	return 10 * (unsigned int)(u - units + 1);
}

int number_parse(const char *text, bool suffix, uint64_t min, uint64_t max, uint64_t *v)
{
	const bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text, *end;
	const size_t n = strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789");
	unsigned long long got;
	unsigned int shift;

	end = digits + n;
	shift = suffix ? unit(&end) : 0;
	if (!n || *end)
		return -EINVAL;
	errno = 0;
	got = strtoull(digits, NULL, hex ? 16 : 10);
	if (errno || got > UINT64_MAX >> shift)
		return -ERANGE;
	got <<= shift;
	if (got < min || got > max)
		return -ERANGE;
	*v = got;
	return 0;
}

int number_parse_signed(const char *text, int32_t min, int32_t max, int32_t *v)
{
	const bool minus = *text == '-';
	uint64_t magnitude;
	int64_t got;
	int err;

	err = number_parse(text + minus, false, 0, (uint64_t)INT32_MAX + minus, &magnitude);
	if (err)
		return err;
	got = minus ? -(int64_t)magnitude : (int64_t)magnitude;
	if (got < min || got > max)
		return -ERANGE;
	*v = (int32_t)got;
	return 0;
}

int number_parse_seconds(const char *text, uint64_t *ns)
{
	char *end;
	double v;

	/* neither blanks nor signs, exponents, infinity, hexadecimal fractions */
	if (!*text || text[strspn(text, "0123456789.")])
		return -EINVAL;
	v = strtod(text, &end);
	if (end == text || *end)
		return -EINVAL;
	if (v < SECONDS_MIN || v > SECONDS_MAX)
		return -ERANGE;
	*ns = (uint64_t)(v * 1e9);
	return 0;
}
