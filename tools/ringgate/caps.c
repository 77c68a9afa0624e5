// SPDX-License-Identifier: MIT OR GPL-2.0
#include <stdint.h>
#include <stdio.h>

#include "caps.h"

bool caps_have(int cap)
{
	unsigned long long eff = 0;
	char line[128];
	FILE *f = fopen("/proc/self/status", "re");

	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &eff) == 1)
			break;
	fclose(f);
	return eff >> cap & 1;
}

bool caps_in_userns(void)
{
	unsigned int inside, outside, count;
	bool first = false;
	FILE *f = fopen("/proc/self/uid_map", "re");

	if (!f)
		return false;
	if (fscanf(f, "%u %u %u", &inside, &outside, &count) == 3)
		first = !inside && !outside && count == UINT32_MAX;
	fclose(f);
	return !first;
}
