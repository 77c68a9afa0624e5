// SPDX-License-Identifier: MIT OR GPL-2.0
/* Where the agent of a program is, which may ask before the library has begun */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "../../lib/shim/shim.h"

/* A constructor of another library is earlier, and makes a socket: that is the agent's, too. */
static void early(void **state)
{
	(void)state;
	assert_int_equal(unsetenv(AGENT_ENV), 0);
	assert_false(shim_active());
	assert_int_equal(setenv(AGENT_ENV, "/run/agent/agent1", 1), 0);
	assert_true(shim_active());
	shim_begin(NULL);
	assert_true(shim_active());
}

/* A program of the same agent is a number, whatever it is. */
static void paths(void **state)
{
	static const uint64_t ids[] = { 0, 7, 9, 10, 99, 100, 4294967296, UINT64_MAX };
	struct sockaddr_un un;
	char path[64];
	unsigned int i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(ids); i++) {
		snprintf(path, sizeof(path), "/run/agent/%llu", (unsigned long long)ids[i]);
		shim_path(ids[i], &un);
		assert_int_equal(un.sun_family, AF_UNIX);
		assert_string_equal(un.sun_path, path);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(early), cmocka_unit_test(paths),
};

UNIT_MAIN(tests)
