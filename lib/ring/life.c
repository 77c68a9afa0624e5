// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ringgate/ring.h>

#include "life.h"

static struct flock lock_of(short type, uint32_t handle)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = handle, .l_len = 1,
	};
}

/* Read-only, so that who gets it can lock no other out */
static int open_again(int file)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int rgate_life_new(void)
{
	int err, probe, file = memfd_create("ringgate-life", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (file < 0)
		return -errno;
	err = fchmod(file, 0400) < 0 ||
	      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE |
		    F_SEAL_SEAL) < 0 ? -errno : 0;
	probe = err ? err : open_again(file);
	if (probe < 0) {
		close(file);
		return probe;
	}
	close(probe);
	return file;
}

int rgate_life_open(int file, uint32_t handle)
{
	/* shared: who locks the bytes of others cannot keep them from being given again */
	struct flock lock = lock_of(F_RDLCK, handle);
	int err, fd = open_again(file);

	if (fd < 0)
		return fd;
	if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

/* Only files in memory have seals; one of FUSE or NFS could let us wait for ever. */
bool rgate_life_valid(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

bool rgate_life_over(int fd, uint32_t handle)
{
	struct flock lock = lock_of(F_WRLCK, handle);

	/* a question that fails says nothing, and so nobody is taken for dead */
	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}
