// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include "left_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"
#include "agent_wire.h"

/* In a session of its own, so that what ends the command's group leaves it; with nothing open */
static void watch(int fd)
{
	char path[AGENT_PATH_MAX] = "";
	size_t len = 0;
	ssize_t n;

	(void)setsid();
	if (dup2(fd, STDIN_FILENO) < 0 || syscall(SYS_close_range, STDIN_FILENO + 1, ~0U, 0) < 0)
		return;
	do {
		n = read(STDIN_FILENO, path + len, sizeof(path) - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	} while (n > 0 || (n < 0 && errno == EINTR));
	agent_left(path);
}

/* Nobody's child that waits for those it has: it would be waited for as well. */
static void leave(int fd)
{
	const pid_t pid = fork();

	if (!pid)
		watch(fd);
	_exit(pid < 0 ? errno : 0);
}

int left_watch_begin(int *fd)
{
	int ends[2], status, err = 0;
	pid_t pid, ret;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (!pid)
		leave(ends[0]);
	if (pid < 0)
		err = -errno;
	close(ends[0]);
	do {
		ret = err ? 0 : waitpid(pid, &status, 0);
	} while (ret < 0 && errno == EINTR);
	if (!err && (ret < 0 || !WIFEXITED(status) || WEXITSTATUS(status)))
		err = ret > 0 && WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
	if (err)
		close(ends[1]);
	else
		*fd = ends[1];
	return err;
}

int left_watch_tell(int fd, const char *path)
{
	const size_t len = strlen(path);

	return write(fd, path, len) == (ssize_t)len ? 0 : -EIO;
}
