// SPDX-License-Identifier: MIT OR GPL-2.0
/* The module: there, fit for this kernel, allowed to be loaded, its device. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ringgate/ioctl.h>
#include <ringgate/rgate.h>

#include "caps.h"
#include "doctor.h"
#include "module.h"
#include "util.h"

/* Where ringgate.ko is. False: nowhere */
static bool check_file(struct checks *c, char path[PATH_MAX])
{
	unsigned int need = module_loaded() ? NEED_NOTHING : NEED_MODULE;
	struct check *k = check_add(c, "module file", need);
	char release[80];
	struct utsname u;

	if (!module_built(path) && !module_installed(path)) {
		check_set(k, need ? CHECK_MISSING : CHECK_WARN,
			  "neither built nor installed for the running kernel");
		check_fix(k, "make && make install");
		return false;
	}
	if (!module_release(path, release, sizeof(release)) && !uname(&u) &&
	    strcmp(release, u.release)) {
		check_set(k, need ? CHECK_MISSING : CHECK_WARN,
			  "%.100s is for %.64s", path, release);
		check_fix(k, "make");
		return false;
	}
	check_set(k, CHECK_OK, "%.200s", path);
	return true;
}

static void check_loaded(struct checks *c, bool file)
{
	struct check *k = check_add(c, "module loaded", NEED_MODULE);
	char version[64] = "?";

	if (!module_loaded()) {
		check_set(k, CHECK_MISSING, "no");
		check_fix(k, file ? "ringgate load" :
			  "make && make install && ringgate load");
		return;
	}
	module_attr("version", version, sizeof(version));
	if (strcmp(version, rgate_version())) {
		check_set(k, CHECK_WARN, "version %s, but this program is %s",
			  version, rgate_version());
		check_fix(k, "ringgate unload && ringgate load");
	} else {
		check_set(k, CHECK_OK, "version %s", version);
	}
}

static bool file_has(const char *path, const char *text)
{
	char line[256];

	return !util_read_line(path, line, sizeof(line)) && strstr(line, text);
}

/* What keeps even root from loading an unsigned module */
static void check_loadable(struct checks *c)
{
	struct check *k = check_add(c, "module loading",
				    module_loaded() ? NEED_NOTHING : NEED_MODULE);
	enum check_state bad = module_loaded() ? CHECK_WARN : CHECK_MISSING;

	if (file_has("/proc/sys/kernel/modules_disabled", "1")) {
		check_set(k, bad, "switched off until the next boot "
			  "(kernel.modules_disabled)");
		check_fix(k, "reboot without kernel.modules_disabled=1");
	} else if (file_has("/sys/kernel/security/lockdown", "[integrity]") ||
		   file_has("/sys/kernel/security/lockdown",
			    "[confidentiality]")) {
		check_set(k, bad, "locked down: only signed modules (Secure "
			  "Boot)");
		check_fix(k, "sign the module and enrol the key (mokutil "
			  "--import), or turn Secure Boot off");
	} else if (file_has("/sys/module/module/parameters/sig_enforce", "Y")) {
		check_set(k, bad, "only signed modules (module.sig_enforce)");
		check_fix(k, "sign the module, or boot without "
			  "module.sig_enforce=1");
	} else if (access("/proc/modules", F_OK)) {
		check_set(k, bad, "this kernel has no loadable modules");
		check_fix(k, "boot a kernel with CONFIG_MODULES");
	} else if (!caps_have(CAP_SYS_MODULE)) {
		check_set(k, CHECK_WARN, "allowed, but not to this user "
			  "(CAP_SYS_MODULE)");
		check_fix(k, "sudo ringgate load");
	} else {
		check_set(k, CHECK_OK, "allowed");
	}
}

static void check_device(struct checks *c)
{
	struct check *k = check_add(c, RGATE_DEVICE, NEED_MODULE);
	int fd = open(RGATE_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		check_set(k, CHECK_OK, "can be opened");
		close(fd);
		return;
	}
	switch (errno) {
	case ENOENT:
	case ENXIO:
		check_set(k, CHECK_MISSING, module_loaded() ?
			  "not there though the module is loaded: /dev is no "
			  "devtmpfs" : "not there: the module is not loaded");
		check_fix(k, module_loaded() ? "mknod " RGATE_DEVICE
			  " c 10 $(awk '/ringgate/{print $1}' /proc/misc)" :
			  "ringgate load");
		break;
	case EACCES:
	case EPERM:
		check_set(k, CHECK_MISSING, "no permission to open it");
		check_fix(k, "chmod 666 " RGATE_DEVICE
			  " (or a udev rule for a group)");
		break;
	default:
		check_set(k, CHECK_MISSING, "%s", strerror(errno));
	}
}

void doctor_module(struct checks *c)
{
	char path[PATH_MAX];
	bool file = check_file(c, path);

	check_loadable(c);
	check_loaded(c, file);
	check_device(c);
}
