// SPDX-License-Identifier: MIT OR GPL-2.0
/* The running kernel and what is there to build for it. */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor.h"
#include "module.h"
#include "util.h"

#define KERNEL_MIN_MAJOR	6
#define KERNEL_MIN_MINOR	1

/* "install this" in the words of the distribution; @deb, @rpm: packages */
static void fix_install(struct check *k, const char *deb, const char *rpm)
{
	if (!access("/usr/bin/apt-get", X_OK))
		check_fix(k, "sudo apt-get install %s", deb);
	else if (!access("/usr/bin/dnf", X_OK))
		check_fix(k, "sudo dnf install %s", rpm);
	else if (!access("/usr/bin/zypper", X_OK))
		check_fix(k, "sudo zypper install %s", rpm);
	else
		check_fix(k, "install the package %s (Debian) or %s (Fedora)",
			  deb, rpm);
}

static void check_version(struct checks *c, const struct utsname *u)
{
	struct check *k = check_add(c, "kernel", NEED_MODULE);
	unsigned int major = 0, minor = 0;

	sscanf(u->release, "%u.%u", &major, &minor);
	if (major > KERNEL_MIN_MAJOR ||
	    (major == KERNEL_MIN_MAJOR && minor >= KERNEL_MIN_MINOR)) {
		check_set(k, CHECK_OK, "%.64s", u->release);
		return;
	}
	check_set(k, CHECK_MISSING, "%.64s is older than %d.%d", u->release,
		  KERNEL_MIN_MAJOR, KERNEL_MIN_MINOR);
	check_fix(k, "boot Linux %d.%d or later", KERNEL_MIN_MAJOR,
		  KERNEL_MIN_MINOR);
}

/* 'y', 'm', 'n', or 0 where the configuration cannot be read */
static int config_of(const struct utsname *u, const char *name)
{
	char path[300], line[256], want[80];
	int found = 'n';
	FILE *f;

	snprintf(path, sizeof(path), "/boot/config-%s", u->release);
	f = fopen(path, "re");
	if (!f) {
		snprintf(path, sizeof(path), "/lib/modules/%s/build/.config",
			 u->release);
		f = fopen(path, "re");
	}
	if (!f)
		return 0;
	snprintf(want, sizeof(want), "%s=", name);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, want, strlen(want)))
			found = (unsigned char)line[strlen(want)];
	fclose(f);
	return found;
}

static void check_ingress(struct checks *c, const struct utsname *u)
{
	struct check *k = check_add(c, "netfilter ingress", NEED_MODULE);
	int v = config_of(u, "CONFIG_NETFILTER_INGRESS");

	if (module_loaded()) {
		check_set(k, CHECK_OK, "there, as the module is loaded");
	} else if (v == 'y') {
		check_set(k, CHECK_OK, "CONFIG_NETFILTER_INGRESS=y");
	} else if (!v) {
		check_set(k, CHECK_WARN,
			  "the kernel's configuration is not readable here");
	} else {
		check_set(k, CHECK_MISSING,
			  "the kernel has no CONFIG_NETFILTER_INGRESS");
		check_fix(k, "boot a kernel built with it");
	}
}

void doctor_fix_headers(struct check *k, const char *release)
{
	char deb[128], rpm[128];

	snprintf(deb, sizeof(deb), "linux-headers-%.64s", release);
	snprintf(rpm, sizeof(rpm), "kernel-devel-%.64s", release);
	fix_install(k, deb, rpm);
}

void doctor_kernel(struct checks *c)
{
	struct utsname u;

	if (uname(&u))
		return;
	check_version(c, &u);
	/* of a kernel that takes no module it does not matter */
	if (module_loaded() || module_bar() != MODULE_BAR_KERNEL)
		check_ingress(c, &u);
}
