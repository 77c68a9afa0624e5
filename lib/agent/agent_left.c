// SPDX-License-Identifier: MIT OR GPL-2.0
/* What an agent leaves that is killed: the kernel closes its ends, but nobody tells who accepts. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent_priv.h"

static int connect_to(int type, const char *path, struct agent_name *name)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd, err = 0;

	if (strlen(path) >= sizeof(un.sun_path))
		return -ENAMETOOLONG;
	(void)stpcpy(un.sun_path, path);
	fd = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (name)
		err = agent_name_bind(fd, name);
	if (!err && connect(fd, (struct sockaddr *)&un, sizeof(un)) < 0)
		err = -errno;
	/* What waits in a backlog stays there, with its name. */
	close(fd);
	return err;
}

/* As many of those who accept at a listener as there may be; of other sockets it is refused. */
static void tell(const char *path)
{
	struct agent_name name = { .magic = AGENT_MAGIC, .error = ENETDOWN };
	unsigned int n;

	for (n = 0; n < AGENT_LAST_NEWS && !connect_to(SOCK_STREAM, path, &name); n++)
		;
}

/* @control: those where programs ask; else sockets */
static void clear(const char *dir, bool control)
{
	char path[AGENT_PATH_MAX];
	struct dirent *e;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d))) {
		const bool asked = !strncmp(e->d_name, AGENT_CONTROL, sizeof(AGENT_CONTROL) - 1);

		if (e->d_name[0] == '.' || asked != control ||
		    snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >= (int)sizeof(path))
			continue;
		if (!control)
			tell(path);
		(void)unlink(path);
	}
	if (d)
		closedir(d);
}

void agent_left(const char *member)
{
	const char *name = strrchr(member, '/');
	char dir[AGENT_DIR_MAX];

	/* Where somebody answers, or which is gone, nothing was left. */
	if (!name || name == member || name - member >= (ptrdiff_t)sizeof(dir) ||
	    connect_to(SOCK_SEQPACKET, member, NULL) != -ECONNREFUSED)
		return;
	(void)snprintf(dir, sizeof(dir), "%.*s", (int)(name - member), member);
	/* First: who has been told, and finds it gone, does not wait again. */
	clear(dir, true);
	clear(dir, false);
	(void)rmdir(dir);
}
