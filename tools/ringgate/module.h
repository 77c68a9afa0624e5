/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The kernel module: where it is, what state it is in, who uses it. */
#ifndef MODULE_H
#define MODULE_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "json.h"

#define MODULE_NAME	"ringgate"

struct kmod_ctx;

bool module_loaded(void);

/* What keeps any module from being loaded here, whatever is done about its file */
enum module_bar {
	MODULE_BAR_NONE,
	MODULE_BAR_KERNEL,	/* built without loadable modules */
	MODULE_BAR_SWITCH,	/* kernel.modules_disabled */
	MODULE_BAR_CONTAINER,	/* root of a container only */
	MODULE_BAR_USER,	/* not root: the last, as sudo mends it */
};

enum module_bar module_bar(void);

/* In words, with what to do; not of MODULE_BAR_NONE */
const char *module_bar_text(enum module_bar bar);

/* Only modules that are signed are taken, and @path is none of them */
bool module_unsigned(const char *path);
#define MODULE_UNSIGNED_WHY	"this kernel takes only modules signed with a key it knows " \
				"(Secure Boot)"
#define MODULE_UNSIGNED_FIX	"sudo mokutil --import /var/lib/dkms/mok.pub && sudo reboot"

/* "`sudo make dkms`", of the tree this program lies in where it does. Static */
const char *module_make(void);

/* Does the error of opening a ring or a control say that there is no module? */
static inline bool is_no_module(int err)
{
	return err == -ENOENT || err == -ENXIO;
}

/* The module is not loaded: says what to do about that; returns EXIT_NO_MODULE. */
int fail_no_module(void);

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
