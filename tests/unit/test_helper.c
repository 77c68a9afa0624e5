// SPDX-License-Identifier: MIT OR GPL-2.0
/* Where programs are found that belong to ringgate */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper.h"

static char dir[64], file[128];
static const char *self;	/* where this program is; NULL: nobody knows */
static unsigned long secure;

static const struct rgate_helper installed = { .name = "assistant", .env = "RGATE_ASSISTANT" };
static const struct rgate_helper near = {
	.name = "assistant", .env = "RGATE_ASSISTANT", .beside = true,
};

ssize_t __wrap_readlink(const char *path, char *buf, size_t len);
ssize_t __wrap_readlink(const char *path, char *buf, size_t len)
{
	assert_string_equal(path, "/proc/self/exe");
	if (!self)
		return -1;
	/* as readlink(2) does: cut, and not ended */
	return (ssize_t)strlen(strncpy(buf, self, len));
}

unsigned long __real_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type)
{
	return type == AT_SECURE ? secure : __real_getauxval(type);
}

static int up(void **state)
{
	FILE *f;

	(void)state;
	strcpy(dir, "/tmp/ringgate-unit.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(file, sizeof(file), "%s/assistant", dir);
	f = fopen(file, "we");
	unsetenv("RGATE_ASSISTANT");
	secure = 0;
	return !f || fclose(f) || chmod(file, 0755);
}

static int down(void **state)
{
	(void)state;
	(void)unlink(file);
	return rmdir(dir);
}

static void finds(const struct rgate_helper *h, const char *wanted)
{
	char path[PATH_MAX];
	const char *got = rgate_helper_path(h, path), *end = strrchr(got, '/');

	/* Wherever it would be installed */
	if (!wanted) {
		assert_non_null(end);
		assert_string_equal(end, "/assistant");
		assert_true(end - got > 9 && !strncmp(end - 9, "/ringgate", 9));
		assert_string_not_equal(got, file);
		return;
	}
	assert_string_equal(got, wanted);
}

static void of_environment(void **state)
{
	(void)state;
	self = "/nowhere/program";
	setenv("RGATE_ASSISTANT", "some/where", 1);
	finds(&installed, "some/where");
	finds(&near, "some/where");
	setenv("RGATE_ASSISTANT", "", 1);
	finds(&installed, NULL);
	finds(&near, NULL);
}

static void of_own_directory(void **state)
{
	char name[160];

	(void)state;
	snprintf(name, sizeof(name), "%s/program", dir);
	self = name;
	finds(&installed, NULL);
	finds(&near, file);
	/* The environment knows better. */
	setenv("RGATE_ASSISTANT", "/other", 1);
	finds(&near, "/other");
	unsetenv("RGATE_ASSISTANT");
	/* More rights than who runs it: its own directory may be a link's. */
	secure = 1;
	finds(&near, NULL);
	secure = 0;
	/* Whoever writes there cannot replace the program, but put something beside it. */
	assert_int_equal(chmod(dir, 01777), 0);
	finds(&near, NULL);
	assert_int_equal(chmod(dir, 0700), 0);
	finds(&near, file);
	assert_int_equal(chmod(file, 0644), 0);
	finds(&near, NULL);
	assert_int_equal(unlink(file), 0);
	finds(&near, NULL);
	self = NULL;
	finds(&near, NULL);
	self = "program";
	finds(&near, NULL);
}

/* A path that has no room for another name is none, and nothing is written behind it. */
static void of_long_paths(void **state)
{
	static char name[PATH_MAX + 1];
	size_t len;

	(void)state;
	self = name;
	for (len = PATH_MAX - 12; len <= PATH_MAX; len++) {
		memset(name, 0, sizeof(name));
		for (size_t i = 0; i < len; i++)
			name[i] = i % 2 ? '.' : '/';
		finds(&near, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(of_environment, up, down),
		cmocka_unit_test_setup_teardown(of_own_directory, up, down),
		cmocka_unit_test_setup_teardown(of_long_paths, up, down),
	};

	return unit_run(__FILE__, tests, ARRAY_LEN(tests));
}
