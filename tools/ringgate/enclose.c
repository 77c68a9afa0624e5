// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include "enclose.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "agent_wire.h"

#define NAMES	"/etc/resolv.conf"
#define PLACE	"/etc"
#define PLAIN	(MS_NOSUID | MS_NODEV | MS_NOEXEC)

static int write_file(const char *path, int flags, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0644);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	if (n < 0)
		n = -errno;
	close(fd);
	return n < 0 ? (int)n : 0;
}

/* ---- Its network ---- */

/* The same user, in a namespace where he may make one of the network */
static int new_user(void)
{
	const uid_t uid = geteuid();
	const gid_t gid = getegid();
	char map[64];
	int err;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return -errno;
	(void)write_file("/proc/self/setgroups", 0, "deny");
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	err = write_file("/proc/self/uid_map", 0, map);
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	return err ? err : write_file("/proc/self/gid_map", 0, map);
}

int enclose_network(void)
{
	if (!unshare(CLONE_NEWNET))
		return 0;
	return errno == EPERM ? new_user() : -errno;
}

/* ---- Its names ---- */

/* In front of @target: a file of a file system that is gone from there by the end. */
static int put_in_front(const char *target)
{
	static const uint8_t at[4] = AGENT_DOMAIN;
	char text[96];
	int err;

	(void)snprintf(text, sizeof(text),
		       "# ringgate run: names are looked up where the sockets are\nnameserver %u.%u.%u.%u\n",
		       at[0], at[1], at[2], at[3]);
	if (mount("ringgate", PLACE, "tmpfs", PLAIN, "mode=755,size=64k"))
		return -errno;
	err = write_file(NAMES, O_CREAT | O_EXCL, text);
	if (!err && mount(NAMES, target, NULL, MS_BIND, NULL))
		err = -errno;
	if (umount2(PLACE, MNT_DETACH))
		err = -errno;
	return err;
}

int enclose_names(void)
{
	char target[32];
	int fd, err = 0;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL))
		return -errno;
	/* A link may lead elsewhere: to what it is now, also behind what is put over it. */
	fd = open(NAMES, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	(void)snprintf(target, sizeof(target), "/proc/self/fd/%d", fd);
	err = put_in_front(target);
	close(fd);
	/* It is the user's own, who could write what he likes. */
	if (!err && mount(NULL, NAMES, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | PLAIN, NULL))
		err = -errno;
	return err;
}
