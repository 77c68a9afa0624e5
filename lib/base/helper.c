// SPDX-License-Identifier: MIT OR GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "helper.h"

/* Beside this program, if that is as good a place as its own */
static bool beside(const char *name, char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	struct stat st;
	char *end;

	if (n < 0 || getauxval(AT_SECURE))
		return false;
	path[n] = '\0';
	end = strrchr(path, '/');
	if (!end)
		return false;
	*end = '\0';
	if (stat(path, &st) || st.st_mode & S_ISVTX)
		return false;
	n = snprintf(end, (size_t)(PATH_MAX - (end - path)), "/%s", name);
	return n < PATH_MAX - (end - path) && !access(path, X_OK);
}

const char *rgate_helper_path(const struct rgate_helper *h, char path[PATH_MAX])
{
	const char *env = secure_getenv(h->env);

	if (env && *env)
		return env;
	if (!h->beside || !beside(h->name, path))
		snprintf(path, PATH_MAX, RGATE_LIBEXECDIR "/ringgate/%s", h->name);
	return path;
}
