// SPDX-License-Identifier: MIT OR GPL-2.0
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <libkmod.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <syslog.h>
#include <unistd.h>

#include <ringgate/ioctl.h>

#include "caps.h"
#include "cmd.h"
#include "module.h"
#include "util.h"

#define SYS_MODULE	"/sys/module/" MODULE_NAME

bool module_loaded(void)
{
	return !access(SYS_MODULE, F_OK);
}

static bool file_has(const char *path, const char *text)
{
	char line[256];

	return !util_read_line(path, line, sizeof(line)) && strstr(line, text);
}

enum module_bar module_bar(void)
{
	if (access("/proc/modules", F_OK))
		return MODULE_BAR_KERNEL;
	if (file_has("/proc/sys/kernel/modules_disabled", "1"))
		return MODULE_BAR_SWITCH;
	if (caps_have(CAP_SYS_MODULE) && !caps_in_userns())
		return MODULE_BAR_NONE;
	return geteuid() && !caps_in_userns() ? MODULE_BAR_USER : MODULE_BAR_CONTAINER;
}

const char *module_bar_text(enum module_bar bar)
{
	switch (bar) {
	case MODULE_BAR_KERNEL:
		return "this kernel has no loadable modules: `ringgate capture --userspace` does "
		       "without";
	case MODULE_BAR_SWITCH:
		return "loading modules is switched off until the next boot "
		       "(kernel.modules_disabled): `ringgate capture --userspace` does without";
	case MODULE_BAR_CONTAINER:
		return "this container may not load modules: `sudo ringgate load` on its host, or "
		       "`ringgate capture --userspace`";
	default:
		return "only root may load modules: `sudo ringgate load`";
	}
}

static bool is_signed(const char *path)
{
	static const char mark[] = "~Module signature appended~\n";
	char end[sizeof(mark) - 1];
	FILE *f = fopen(path, "re");
	bool found;

	if (!f)
		return false;
	found = !fseek(f, -(long)sizeof(end), SEEK_END) &&
		fread(end, sizeof(end), 1, f) == 1 && !memcmp(end, mark, sizeof(end));
	fclose(f);
	return found;
}

bool module_unsigned(const char *path)
{
	const size_t len = strlen(path);

	if (!file_has("/sys/kernel/security/lockdown", "[integrity]") &&
	    !file_has("/sys/kernel/security/lockdown", "[confidentiality]") &&
	    !file_has("/sys/module/module/parameters/sig_enforce", "Y"))
		return false;
	/* in a compressed one it does not show */
	return len > 3 && !strcmp(path + len - 3, ".ko") && !is_signed(path);
}

/* The directory of the sources, if this program lies in their build/tools */
static bool source_tree(char path[PATH_MAX])
{
	char exe[PATH_MAX], kbuild[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n < 0)
		return false;
	exe[n] = '\0';
	n = snprintf(path, PATH_MAX, "%s", dirname(dirname(dirname(exe))));
	if (n >= PATH_MAX)
		return false;
	n = snprintf(kbuild, sizeof(kbuild), "%s/kmod/dkms.conf", path);
	return n < (ssize_t)sizeof(kbuild) && !access(kbuild, F_OK);
}

const char *module_make(void)
{
	static char text[PATH_MAX + 32];
	char tree[PATH_MAX];

	if (source_tree(tree))
		snprintf(text, sizeof(text), "sudo make -C %s dkms", tree);
	else
		snprintf(text, sizeof(text), "sudo make dkms");
	return text;
}

int fail_no_module(void)
{
	enum module_bar bar = module_bar();

	say("the ringgate module is not loaded: %s",
	    bar == MODULE_BAR_NONE || bar == MODULE_BAR_USER ?
	    "`sudo ringgate load`" : module_bar_text(bar));
	return EXIT_NO_MODULE;
}

struct kmod_ctx *module_kmod(void)
{
	struct kmod_ctx *ctx = kmod_new(NULL, NULL);

	if (ctx)
		kmod_set_log_priority(ctx, LOG_EMERG);
	return ctx;
}

bool module_attr(const char *file, char *buf, size_t len)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), SYS_MODULE "/%s", file);
	return !util_read_line(path, buf, len);
}

bool module_built(char path[PATH_MAX])
{
	char exe[PATH_MAX];
	struct utsname u;
	ssize_t n;

	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n < 0 || uname(&u))
		return false;
	exe[n] = '\0';
	/* build/tools/ringgate -> build/kmod-RELEASE/ringgate.ko */
	n = snprintf(path, PATH_MAX, "%s/kmod-%s/%s.ko", dirname(dirname(exe)),
		     u.release, MODULE_NAME);
	return n < PATH_MAX && !access(path, R_OK);
}

bool module_installed(char path[PATH_MAX])
{
	struct kmod_list *list = NULL;
	struct kmod_ctx *ctx;
	bool found = false;

	ctx = module_kmod();
	if (!ctx)
		return false;
	if (!kmod_module_new_from_lookup(ctx, MODULE_NAME, &list) && list) {
		struct kmod_module *mod = kmod_module_get_module(list);
		const char *p = kmod_module_get_path(mod);

		if (p) {
			snprintf(path, PATH_MAX, "%s", p);
			found = true;
		}
		kmod_module_unref(mod);
	}
	kmod_module_unref_list(list);
	kmod_unref(ctx);
	return found;
}

int module_release(const char *path, char *buf, size_t len)
{
	struct kmod_list *info = NULL, *l;
	struct kmod_module *mod = NULL;
	struct kmod_ctx *ctx;
	int err;

	ctx = module_kmod();
	if (!ctx)
		return -ENOMEM;
	err = kmod_module_new_from_path(ctx, path, &mod);
	if (err)
		goto unref;
	err = kmod_module_get_info(mod, &info);
	if (err < 0)
		goto unref_mod;
	err = -ENODATA;
	kmod_list_foreach(l, info) {
		if (strcmp(kmod_module_info_get_key(l), "vermagic"))
			continue;
		snprintf(buf, len, "%s", kmod_module_info_get_value(l));
		buf[strcspn(buf, " ")] = '\0';
		err = 0;
	}
	kmod_module_info_free_list(info);
unref_mod:
	kmod_module_unref(mod);
unref:
	kmod_unref(ctx);
	return err;
}

static bool fds_hold(const char *pid, bool *hidden)
{
	char path[300], to[PATH_MAX];
	struct dirent *e;
	bool held = false;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	d = opendir(path);
	if (!d) {
		if (errno != ENOENT)
			*hidden = true;
		return false;
	}
	while (!held && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, to, sizeof(to) - 1);

		if (n < 0)
			continue;
		to[n] = '\0';
		held = !strcmp(to, RGATE_DEVICE);
	}
	closedir(d);
	return held;
}

static bool maps_hold(const char *pid)
{
	char path[300], *line = NULL;
	size_t cap = 0;
	bool held = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!held && getline(&line, &cap, f) > 0)
		held = strstr(line, " " RGATE_DEVICE);
	free(line);
	fclose(f);
	return held;
}

int module_users(struct module_user **users, bool *hidden)
{
	struct module_user *v = NULL, *w, u;
	struct dirent *e;
	char path[64];
	int n = 0;
	DIR *d;

	*hidden = false;
	*users = NULL;
	d = opendir("/proc");
	if (!d)
		return -errno;
	while ((e = readdir(d))) {
		if (!isdigit((unsigned char)*e->d_name))
			continue;
		u = (struct module_user){ .pid = atoi(e->d_name) };
		u.open = fds_hold(e->d_name, hidden);
		u.mapped = maps_hold(e->d_name);
		if (!u.open && !u.mapped)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/comm", u.pid);
		if (util_read_line(path, u.comm, sizeof(u.comm)))
			snprintf(u.comm, sizeof(u.comm), "?");
		w = reallocarray(v, n + 1, sizeof(*v));
		if (!w) {
			free(v);
			closedir(d);
			return -ENOMEM;
		}
		v = w;
		v[n++] = u;
	}
	closedir(d);
	*users = v;
	return n;
}
