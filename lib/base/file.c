// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
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

int rgate_file_read(const char *path, size_t most, char **text, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	*text = NULL;
	err = read_all(fd, most, text, len);
	close(fd);
	if (err) {
		free(*text);
		*text = NULL;
	}
	return err;
}
