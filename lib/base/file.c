// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"

#define FIRST	4096

/* By what is read and not by what the file is said to have: it may grow, or be no file. */
static int read_all(int fd, size_t most, char **text, size_t *len)
{
	size_t size = 0;
	ssize_t n;
	char *more;

	for (*len = 0;; *len += (size_t)n) {
		if (*len == size) {
			if (size > most)
				return -EFBIG;
			size = size ? size * 2 : FIRST;
			/* One more than may be there shows that more is there. */
			if (size > most)
				size = most + 1;
			more = realloc(*text, size + 1);
			if (!more)
				return -ENOMEM;
			*text = more;
		}
		n = read(fd, *text + *len, size - *len);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n < 0)
			return -errno;
		else if (!n)
			break;
	}
	(*text)[*len] = '\0';
	return 0;
}

/* Of the file that is open, as the path may be another one the next time */
static int check_owner(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	return S_ISREG(st.st_mode) && !(st.st_mode & 0022) &&
	       (!st.st_uid || st.st_uid == geteuid()) ? 0 : -EPERM;
}

static int read_path(const char *path, bool own, size_t most, char **text, size_t *len)
{
	/* Not blocking: it may be a FIFO that nobody writes to. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | (own ? O_NONBLOCK : 0)), err;

	if (fd < 0)
		return -errno;
	*text = NULL;
	err = own ? check_owner(fd) : 0;
	if (!err)
		err = read_all(fd, most, text, len);
	close(fd);
	if (err) {
		free(*text);
		*text = NULL;
	}
	return err;
}

int rgate_file_read(const char *path, size_t most, char **text, size_t *len)
{
	return read_path(path, false, most, text, len);
}

int rgate_file_read_own(const char *path, size_t most, char **text, size_t *len)
{
	return read_path(path, true, most, text, len);
}
