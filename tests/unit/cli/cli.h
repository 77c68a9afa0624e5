/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The command line in a child of the test, on a machine of the test's own: what it reads of
 * /proc, /sys, /dev, /boot, /lib/modules and /usr/bin lies in a directory that is made for
 * it, and the kernel's release, the user, the time and the GPU's driver are the test's (the
 * Makefile wraps the calls).
 */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#define CLI_RELEASE	"6.6.6-test"

extern struct cli {
	/* What the next runs find */
	char root[64];		/* where the files are */
	const char *release;	/* NULL: CLI_RELEASE */
	unsigned int uid;
	struct rlimit memlock;
	bool processes;		/* those of that machine's /proc, not the real ones */
	bool tty;		/* standard output is a terminal */
	bool tty_err;		/* standard error is one */
	bool cuda;		/* libcuda.so.1 is there, and has a GPU (cuda.c) */
	bool still;		/* the clock stands, but for sleeping */
	uint64_t tick;		/* ns that it goes on when it is read, 1 % more each time */
	/* What the last one left */
	int status;		/* -1: killed by a signal */
	char out[131072], err[16384];
} cli;

/* A setup and a teardown: the empty machine, of root with all capabilities */
int cli_begin(void **state);
int cli_end(void **state);

/* A file of that machine, @path as on a real one; its directories are made. */
void cli_file(const char *path, const char *text);
void cli_link(const char *path, const char *to);
void cli_gone(const char *path);
/* Where it really is */
const char *cli_path(const char *path);

/* `ringgate WORD...`, the words split at blanks, one in '...' kept whole. Fills cli. */
void cli_run(const char *line);

/* cli.status, all of cli.out, and all of cli.err */
void cli_is(const char *line, int status, const char *out, const char *err);
/* ... and @text is part of what it printed, to either */
void cli_says(const char *line, int status, const char *text);

#endif
