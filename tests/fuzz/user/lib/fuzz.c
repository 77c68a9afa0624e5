// SPDX-License-Identifier: MIT OR GPL-2.0
#include <dirent.h>
#include <unistd.h>

#include "fuzz.h"

void fuzz_broken(const char *file, int line, const char *what)
{
	dprintf(STDERR_FILENO, "%s:%d: not so: %s\n", file, line, what);
	abort();
}

uint64_t fuzz_take(struct fuzz_in *in, size_t bytes)
{
	uint64_t v = 0;

	fuzz_bytes(in, &v, bytes);
	return v;
}

size_t fuzz_bytes(struct fuzz_in *in, void *buf, size_t len)
{
	size_t n = len < in->len ? len : in->len;

	if (n)
		memcpy(buf, in->p, n);
	memset((char *)buf + n, 0, len - n);
	in->p += n;
	in->len -= n;
	return n;
}

void *fuzz_copy(struct fuzz_in *in, size_t max, size_t *len)
{
	size_t n = max < in->len ? max : in->len;
	void *copy = malloc(n ? n : 1);

	FUZZ_CHECK(copy);
	*len = fuzz_bytes(in, copy, n);
	return copy;
}

unsigned int fuzz_open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	FUZZ_CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}
