// SPDX-License-Identifier: MIT OR GPL-2.0
/* NUMA, GPU and libpcap: good to have. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "util.h"

/* Entries of a directory whose name begins with @prefix, and a digit after it
 * if @numbered; the names go to @names */
static unsigned int entries(const char *dir, const char *prefix, bool numbered,
			    char *names, size_t len)
{
	unsigned int count = 0;
	struct dirent *e;
	size_t n = 0;
	DIR *d = opendir(dir);

	*names = '\0';
	while (d && (e = readdir(d))) {
		const char *rest = e->d_name + strlen(prefix);

		if (*e->d_name == '.' || strncmp(e->d_name, prefix, strlen(prefix)))
			continue;
		if (numbered && (*rest < '0' || *rest > '9'))
			continue;
		if (n < len)
			n += snprintf(names + n, len - n, "%s%s",
				      count ? " " : "", e->d_name);
		count++;
	}
	if (d)
		closedir(d);
	return count;
}

static void check_numa(struct checks *c)
{
	struct check *k = check_add(c, "NUMA", NEED_NOTHING);
	char names[128];
	unsigned int n = entries("/sys/devices/system/node", "node", true, names,
				 sizeof(names));

	if (n > 1)
		check_set(k, CHECK_OK, "%u nodes: put a ring on that of its "
			  "device (/sys/class/net/DEVICE/device/numa_node)", n);
	else
		check_set(k, CHECK_OK, "one node");
}

static bool in_path(const char *program)
{
	char *path = strdup(getenv("PATH") ?: ""), *dir, *save, full[600];
	bool found = false;

	for (dir = strtok_r(path, ":", &save); dir && !found;
	     dir = strtok_r(NULL, ":", &save)) {
		snprintf(full, sizeof(full), "%s/%s", dir, program);
		found = !access(full, X_OK);
	}
	free(path);
	return found;
}

static void check_cuda(struct checks *c)
{
	struct check *k = check_add(c, "CUDA", NEED_NOTHING);
	void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	bool nvcc = in_path("nvcc") || !access("/usr/local/cuda/bin/nvcc", X_OK);
	char gpus[128];
	unsigned int n = entries("/dev", "nvidia", true, gpus, sizeof(gpus));

	if (lib && n) {
		check_set(k, CHECK_OK, "driver, %u GPU%s, %s", n, n > 1 ? "s" : "",
			  nvcc ? "nvcc" : "no nvcc (GPU code cannot be built)");
		if (!nvcc)
			check_fix(k, "install the CUDA toolkit");
	} else if (n) {
		check_set(k, CHECK_WARN, "%s, but no libcuda.so.1", gpus);
		check_fix(k, "install the user part of the NVIDIA driver "
			  "(libcuda1)");
	} else {
		check_set(k, CHECK_WARN, "no GPU%s: needed for GPU consumers only",
			  lib ? " (/dev/nvidia*)" : " and no driver");
		check_fix(k, "%s", lib ? "nvidia-modprobe -c 0" :
			  "install the NVIDIA driver, where there is a GPU");
	}
	if (lib)
		dlclose(lib);
}

/* It is linked into the library; which one is there is known at run time. */
static void check_pcap(struct checks *c)
{
	struct check *k = check_add(c, "libpcap", NEED_NOTHING);
	static const char *const names[] = { "libpcap.so.0.8", "libpcap.so.1" };
	const char *(*version)(void) = NULL;
	void *lib = NULL;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names) && !lib; i++)
		lib = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
	if (lib)
		*(void **)&version = dlsym(lib, "pcap_lib_version");
	if (version) {
		check_set(k, CHECK_OK, "%s", version());
	} else {
		check_set(k, CHECK_WARN, "not there: no filters");
		check_fix(k, "install libpcap (libpcap0.8)");
	}
	if (lib)
		dlclose(lib);
}

void doctor_hardware(struct checks *c)
{
	check_pcap(c);
	check_numa(c);
	check_cuda(c);
}
