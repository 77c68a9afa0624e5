// SPDX-License-Identifier: MIT OR GPL-2.0
#include <stddef.h>
#include <stdio.h>

#include "fmt.h"

char *fmt_si(char buf[FMT_LEN], double v)
{
	static const char units[] = " kMGTPE";
	size_t i = 0;

	/* 999.5 would be printed as 1000 */
	while (v >= 999.5 && i < sizeof(units) - 2) {
		v /= 1000;
		i++;
	}
	if (!i)
		snprintf(buf, FMT_LEN, "%.0f", v);
	else
		snprintf(buf, FMT_LEN, "%.*f%c", v < 9.995 ? 2 : v < 99.95 ? 1 : 0,
			 v, units[i]);
	return buf;
}

char *fmt_bytes(char buf[FMT_LEN], uint64_t v)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB",
					     "EiB" };
	double d = (double)v / 1024;
	int i = 0;

	if (v < 1024) {
		snprintf(buf, FMT_LEN, "%u B", (unsigned int)v);
		return buf;
	}
	while (d >= 1023.95 && i < 5) {
		d /= 1024;
		i++;
	}
	snprintf(buf, FMT_LEN, "%.1f %s", d, units[i]);
	return buf;
}
