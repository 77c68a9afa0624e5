// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Several processes on one ring. The parent owns the ring and gives each worker a
 * handle of its own over a socket; who is free claims the next batch of slots, so each
 * frame is seen by one of them. The workers need no access to /dev/ringgate, and may be
 * programs of their own. Kill one: the others read again what it had in hand, and the
 * parent starts another in its place.
 *
 *	workers eth0 4 [FILTER]
 */
#include <errno.h>
#include <ringgate/ringgate.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS_MAX 16

static int worker(int sock, unsigned int id)
{
	struct rgate_consumer_opts o = RGATE_OPTS(rgate_consumer_opts,
						  .take = RGATE_TAKE_SHARED);
	const struct rgate_slot *s;
	struct rgate_consumer c;
	struct rgate_ring *ring;
	int err;

	err = rgate_ring_recv(&ring, sock);
	if (err)
		return err;
	err = rgate_consumer_init(&c, ring, &o);
	while (err >= 0) {
		while ((s = rgate_consumer_next(&c))) {
			printf("worker %u: %u bytes\n", id, s->wire_len);
			rgate_consumer_release(&c);
		}
		fflush(stdout);
		err = rgate_consumer_wait(&c, -1);
	}
	rgate_ring_close(ring);
	return err;
}

static pid_t pids[WORKERS_MAX];

static int start(struct rgate_ring *ring, unsigned int id)
{
	int sv[2], err;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
		return -errno;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		close(sv[0]);
		err = worker(sv[1], id);
		fprintf(stderr, "worker %u: %s\n", id, rgate_strerror("rgate_ring_recv", err));
		_exit(1);
	}
	close(sv[1]);
	pids[id] = pid;
	err = pid < 0 ? -errno : rgate_ring_send(ring, sv[0]);
	close(sv[0]);
	return err;
}

/* One that was killed gets a successor; one that gave up said why, and does not. */
static int look_after(struct rgate_ring *ring, int n)
{
	int err = 0, status, i;
	pid_t pid;

	while (!err && (pid = wait(&status)) > 0)
		for (i = 0; i < n && WIFSIGNALED(status) && !err; i++)
			if (pids[i] == pid)
				err = start(ring, (unsigned int)i);
	return err;
}

int main(int argc, char **argv)
{
	struct rgate_attach_opts opts = RGATE_OPTS(rgate_attach_opts,
						   .action = RGATE_ACTION_MIRROR);
	struct rgate_ring *ring;
	int err = 0, i, n;

	n = argc > 2 ? atoi(argv[2]) : 0;
	if (n < 1 || n > WORKERS_MAX) {
		fprintf(stderr, "usage: workers DEVICE 1..%d [FILTER]\n", WORKERS_MAX);
		return 2;
	}
	opts.filter = argc > 3 ? argv[3] : NULL;
	err = rgate_ring_open(&ring, NULL);
	if (err)
		goto fail;
	for (i = 0; i < n && !err; i++)
		err = start(ring, (unsigned int)i);
	if (!err)
		err = rgate_ring_attach(ring, argv[1], &opts, NULL);
	if (!err)
		err = look_after(ring, n);
	rgate_ring_close(ring);
fail:
	if (err)
		fprintf(stderr, "workers: %s\n", rgate_strerror("rgate_ring_", err));
	return err ? 1 : 0;
}
