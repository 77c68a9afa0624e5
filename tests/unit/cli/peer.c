// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The other process of `ringgate pool verify` as a thread where there are devices: those of
 * mock_verbs.c know no other processes.
 */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mock_verbs.h"
#include <stdbool.h>
/* not that of lib/mem */
#include "../../../tools/ringgate-probe/pool.h"

int __real_peer_start(struct peer *p, const struct verify_opts *o);
int __wrap_peer_start(struct peer *p, const struct verify_opts *o);

static struct {
	int fd;
	const struct verify_opts *o;
} job;

static void *serve(void *arg)
{
	(void)arg;
	peer_serve(job.fd, job.o);
	return NULL;
}

int __wrap_peer_start(struct peer *p, const struct verify_opts *o)
{
	pthread_t thread;
	int fds[2];

	if (!mock.dev[0].name)
		return __real_peer_start(p, o);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	job.fd = fds[1];
	job.o = o;
	p->pid = 0;
	p->fd = fds[0];
	p->time_ns = o->time_ns;
	return -pthread_create(&thread, NULL, serve, NULL) ?: -pthread_detach(thread);
}
