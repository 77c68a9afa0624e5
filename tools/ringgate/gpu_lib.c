// SPDX-License-Identifier: MIT OR GPL-2.0
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gpu_lib.h"
#include "util.h"

#define LIB "libringgate-gpu.so.0"

#define NAME(member, name) { name, offsetof(struct gpu_lib, member) }

static const struct {
	const char *name;
	size_t off;
} names[] = {
	NAME(open, "rgate_gpu_open"),
	NAME(close, "rgate_gpu_close"),
	NAME(error, "rgate_gpu_error"),
	NAME(bench, "rgate_gpu_bench"),
};

int gpu_lib_load(struct gpu_lib *l, char *why, size_t len)
{
	const char *error;
	size_t i;

	memset(l, 0, sizeof(*l));
	l->handle = dlopen(LIB, RTLD_NOW | RTLD_LOCAL);
	if (!l->handle) {
		error = dlerror();
		/* not there at all, or something that it needs */
		if (!error || !strncmp(error, LIB ": cannot open", strlen(LIB ": cannot open"))) {
			snprintf(why, len, LIB " is not installed");
			return -ENOENT;
		}
		snprintf(why, len, "%s", error);
		return -ENOEXEC;
	}
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		void *f = dlsym(l->handle, names[i].name);

		if (!f) {
			snprintf(why, len, LIB " has no %s: of another version",
				 names[i].name);
			gpu_lib_unload(l);
			return -ENOEXEC;
		}
		*(void **)((char *)l + names[i].off) = f;
	}
	return 0;
}

/* CUDA leaves threads and handlers behind: what has been used is not taken out again. */
void gpu_lib_unload(struct gpu_lib *l)
{
	if (l->handle && !l->bench)
		dlclose(l->handle);
	l->handle = NULL;
}
