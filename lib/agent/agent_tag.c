// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Files that say from whom a datagram is. Datagrams of few are most of them, so the last ones are
 * kept: one costs three calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent_priv.h"

#define SEALS	(F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int make(const struct rgate_socket_addr *addr)
{
	const struct agent_head head = { .addr = *addr };
	int fd = memfd_create("ringgate-from", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err = 0;

	if (fd < 0)
		return -errno;
	/* A program may get at it, and others of the agent have the same. */
	if (pwrite(fd, &head, sizeof(head), 0) != sizeof(head))
		err = -ENOMEM;
	else if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int tag_of(struct agent *a, const struct rgate_socket_addr *addr)
{
	struct tag *t;
	int fd;

	for (t = a->tags; t < a->tags + TAGS; t++)
		if (t->made && !memcmp(&t->addr, addr, sizeof(*addr)))
			return t->fd;
	fd = make(addr);
	if (fd < 0)
		return fd;
	t = a->tags + a->next_tag++ % TAGS;
	if (t->made)
		close(t->fd);
	*t = (struct tag){ .addr = *addr, .fd = fd, .made = true };
	return fd;
}

void tags_close(struct agent *a)
{
	struct tag *t;

	for (t = a->tags; t < a->tags + TAGS; t++)
		if (t->made)
			close(t->fd);
}
