/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Included before all else where lines are counted, and so without headers: _exit(), by which
 * children end, does not write what gcov counted, and who was begun without an environment,
 * as the spawner is, would write it where nobody looks.
 */
#ifndef MUTATE_COUNT_EXIT_H
#define MUTATE_COUNT_EXIT_H

void __gcov_dump(void);
extern void _exit(int status) __attribute__((__noreturn__));

static inline void mutate_exit(int status) __attribute__((__noreturn__));
static inline void mutate_exit(int status)
{
	__gcov_dump();
	_exit(status);
}

#define _exit(status) mutate_exit(status)

extern char *getenv(const char *name);
extern int setenv(const char *name, const char *value, int overwrite);
extern int snprintf(char *to, __SIZE_TYPE__ len, const char *fmt, ...);
extern __SIZE_TYPE__ strlen(const char *text);
extern int strncmp(const char *a, const char *b, __SIZE_TYPE__ n);
extern int getppid(void);
extern int open(const char *path, int flags, ...);
extern long read(int fd, void *buf, __SIZE_TYPE__ n);
extern int close(int fd);

/* Where to write is what the parent was told. */
__attribute__((__constructor__, __unused__))
static void mutate_prefix(void)
{
	static const char name[] = "GCOV_PREFIX=";
	char path[32], text[65536];
	long n, part = 1;
	const char *at;
	int fd;

	if (getenv("GCOV_PREFIX"))
		return;
	snprintf(path, sizeof(path), "/proc/%d/environ", getppid());
	fd = open(path, 0);
	if (fd < 0)
		return;
	for (n = 0; part > 0 && n < (long)sizeof(text) - 1; n += part) {
		part = read(fd, text + n, sizeof(text) - 1 - (__SIZE_TYPE__)n);
		if (part < 0)
			part = 0;
	}
	close(fd);
	text[n] = '\0';
	for (at = text; at < text + n; at += strlen(at) + 1)
		if (!strncmp(at, name, sizeof(name) - 1))
			setenv("GCOV_PREFIX", at + sizeof(name) - 1, 1);
}

#endif
