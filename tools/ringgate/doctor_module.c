// SPDX-License-Identifier: MIT OR GPL-2.0
/* The module: what keeps it from being used, the first cause alone. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ringgate/ioctl.h>
#include <ringgate/rgate.h>

#include "doctor.h"
#include "module.h"

/* The words of module_bar_text() are cause and cure in one. */
static void check_bar(struct check *k, enum module_bar bar)
{
	const char *text = module_bar_text(bar), *fix = strstr(text, ": ");

	check_set(k, CHECK_MISSING, "%.*s", (int)(fix - text), text);
	check_fix(k, "%s", fix + 2);
}

/* A cause found so far that keeps the module from working: more would only follow it. */
static bool missing(const struct checks *c)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (c->v[i].need & NEED_MODULE && c->v[i].state == CHECK_MISSING)
			return true;
	return false;
}

static bool is_built_for(const char *path, const struct utsname *u)
{
	char release[80];

	return module_release(path, release, sizeof(release)) || !strcmp(release, u->release);
}

/* Not loaded: the first thing in the way of that */
static void explain_not_loaded(struct check *k)
{
	enum module_bar bar = module_bar();
	char path[PATH_MAX], headers[128];
	struct utsname u;

	if (bar != MODULE_BAR_NONE && bar != MODULE_BAR_USER) {
		check_bar(k, bar);
		return;
	}
	if (uname(&u))
		return;
	snprintf(headers, sizeof(headers), "/lib/modules/%.64s/build/Makefile", u.release);
	if ((module_built(path) || module_installed(path)) && is_built_for(path, &u)) {
		if (module_unsigned(path)) {
			check_set(k, CHECK_MISSING, "%s", MODULE_UNSIGNED_WHY);
			check_fix(k, "%s", MODULE_UNSIGNED_FIX);
		} else {
			check_set(k, CHECK_MISSING, "not loaded");
			check_fix(k, "sudo ringgate load");
		}
	} else if (access(headers, R_OK)) {
		check_set(k, CHECK_MISSING, "none for this kernel, and no headers to build it");
		doctor_fix_headers(k, u.release);
	} else {
		check_set(k, CHECK_MISSING, "none for this kernel");
		check_fix(k, "%s", module_make());
	}
}

/* Loaded: it is of this version, and its device can be opened */
static void check_device(struct check *k)
{
	char version[64] = "?";
	int fd = open(RGATE_DEVICE, O_RDWR | O_CLOEXEC);

	module_attr("version", version, sizeof(version));
	if (fd >= 0) {
		close(fd);
		if (!strcmp(version, rgate_version())) {
			check_set(k, CHECK_OK, "version %s, " RGATE_DEVICE " can be opened",
				  version);
			return;
		}
		check_set(k, CHECK_WARN, "version %s is loaded, and this program is %s", version,
			  rgate_version());
		check_fix(k, "sudo ringgate unload && sudo ringgate load");
		return;
	}
	switch (errno) {
	case ENOENT:
	case ENXIO:
		check_set(k, CHECK_MISSING, "loaded, and no " RGATE_DEVICE ": /dev is no devtmpfs");
		check_fix(k, "sudo mknod -m 666 " RGATE_DEVICE
			  " c 10 $(awk '/ringgate/{print $1}' /proc/misc)");
		break;
	case EACCES:
	case EPERM:
		check_set(k, CHECK_MISSING, "no permission to open " RGATE_DEVICE);
		check_fix(k, "sudo chmod 666 " RGATE_DEVICE);
		break;
	default:
		check_set(k, CHECK_MISSING, RGATE_DEVICE ": %s", strerror(errno));
		check_fix(k, "sudo dmesg | tail");
	}
}

/* Registering a function for XDP programs succeeds without types, too: so look for them. */
static void check_xdp(struct check *k)
{
	if (!access("/sys/kernel/btf/" MODULE_NAME, F_OK)) {
		check_set(k, CHECK_OK, "XDP programs can call the module");
		return;
	}
	if (access("/sys/kernel/btf/vmlinux", F_OK)) {
		check_set(k, CHECK_WARN, "no `attach --xdp`: this kernel has no types (BTF) for "
			  "programs");
		return;
	}
	check_set(k, CHECK_WARN, "no `attach --xdp`: the module was built without types (BTF)");
	if (!access("/usr/bin/pahole", X_OK))
		check_fix(k, "%s && sudo ringgate unload && sudo ringgate load", module_make());
	else
		check_fix(k, "sudo apt-get install pahole && %s && sudo ringgate unload && "
			  "sudo ringgate load", module_make());
}

void doctor_module(struct checks *c)
{
	struct check *k;

	if (missing(c))
		return;
	k = check_add(c, "module", NEED_MODULE);
	if (!module_loaded()) {
		explain_not_loaded(k);
		return;
	}
	check_device(k);
	check_xdp(check_add(c, "xdp", NEED_NOTHING));
}
