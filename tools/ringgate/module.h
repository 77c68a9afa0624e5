/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The kernel module: where it is, what state it is in, who uses it. */
#ifndef MODULE_H
#define MODULE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "json.h"

#define MODULE_NAME	"ringgate"

struct kmod_ctx;

bool module_loaded(void);

/* libkmod, silent: its callers say what is wrong. NULL: no memory */
struct kmod_ctx *module_kmod(void);

/* A line of /sys/module/ringgate/@file; false: not there */
bool module_attr(const char *file, char *buf, size_t len);

/*
 * module_built - ringgate.ko for the running kernel in the build tree this
 * program lies in. False: not in a build tree, or not built.
 */
bool module_built(char path[PATH_MAX]);

/* module_installed - ringgate.ko in /lib/modules of the running kernel */
bool module_installed(char path[PATH_MAX]);

/* module_release - the kernel release that the file was built for. 0 or -errno */
int module_release(const char *path, char *buf, size_t len);

struct module_user {
	pid_t pid;
	char comm[32];
	bool open;	/* has /dev/ringgate open */
	bool mapped;	/* has ring memory mapped */
};

/*
 * module_users - the processes that hold the device, of those /proc shows
 * @users: out, free() it
 * @hidden: out, some processes could not be looked into
 * Returns how many, or -errno.
 */
int module_users(struct module_user **users, bool *hidden);

#endif
