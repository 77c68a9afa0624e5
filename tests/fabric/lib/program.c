// SPDX-License-Identifier: MIT OR GPL-2.0
/* Tests run the spawner of their own build, and not one that is installed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor))
static void find_spawner(void)
{
	char self[512] = "", path[600], *at;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return;
	/* BUILD/tests/GROUP/PROGRAM */
	at = strstr(self, "/tests/");
	while (at && strstr(at + 1, "/tests/"))
		at = strstr(at + 1, "/tests/");
	if (!at)
		return;
	*at = '\0';
	snprintf(path, sizeof(path), "%s/tools/ringgate-spawner", self);
	(void)setenv("RGATE_SPAWNER", path, 0);
}
