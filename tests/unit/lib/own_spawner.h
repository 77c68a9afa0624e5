/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A test program that is the spawner, too, so that its linker can put other functions in
 * place of those that the spawner calls. For one file of a program, which has
 * own_spawner_take(). The spawner is known by the name that it is run by; beside that is
 * a file, the memory that both share.
 */
#ifndef OWN_SPAWNER_H
#define OWN_SPAWNER_H

#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OWN_SPAWNER_NAME	"/ringgate-spawner"
#define OWN_SPAWNER_BYTES	4096

/* Of lib/spawn/spawner.h */
int rgate_spawner_main(void);

/* In both: this is what they share, OWN_SPAWNER_BYTES of it */
static void own_spawner_take(void *memory);

static char own_spawner_dir[32];

static inline void *own_spawner_map(const char *dir, int flags)
{
	char path[128];
	void *mem;
	int fd;

	snprintf(path, sizeof(path), "%s/shared", dir);
	fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
	if (fd < 0 || ftruncate(fd, OWN_SPAWNER_BYTES))
		abort();
	mem = mmap(NULL, OWN_SPAWNER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		abort();
	close(fd);
	return mem;
}

/* Before the first server is made */
static inline void own_spawner_setup(void)
{
	char self[512] = "", path[128];

	strcpy(own_spawner_dir, "/tmp/ringgate-test-XXXXXX");
	if (!mkdtemp(own_spawner_dir) || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		abort();
	snprintf(path, sizeof(path), "%s" OWN_SPAWNER_NAME, own_spawner_dir);
	if (symlink(self, path) || setenv("RGATE_SPAWNER", path, 1))
		abort();
	own_spawner_take(own_spawner_map(own_spawner_dir, O_CREAT));
}

static inline void own_spawner_end(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/shared", own_spawner_dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s" OWN_SPAWNER_NAME, own_spawner_dir);
	unlink(path);
	rmdir(own_spawner_dir);
}

/* Before main(), which is the test's */
__attribute__((constructor))
static void own_spawner_run(int argc, char **argv)
{
	char *name = argc == 1 ? strstr(argv[0], OWN_SPAWNER_NAME) : NULL;

	if (!name)
		return;
	*name = '\0';
	own_spawner_take(own_spawner_map(argv[0], 0));
	_exit(rgate_spawner_main());
}

#define OWN_SPAWNER_MAIN(tests) \
	int main(void) \
	{ \
		int ret; \
\
		own_spawner_setup(); \
		ret = unit_run(__FILE__, tests, ARRAY_LEN(tests)); \
		own_spawner_end(); \
		return ret; \
	}

#endif
