// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A ring in an event loop of one's own, here with standard input beside it.
 *
 *	epoll eth0 [FILTER]
 *
 * The pattern: take what is there, arm, and sleep only if arming found nothing.
 */
#include <errno.h>
#include <ringgate/ringgate.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static unsigned long frames;

/* Takes all there is and arms the descriptor; 0 or an error */
static int take_and_arm(struct rgate_consumer *c)
{
	const struct rgate_slot *s;
	int r;

	do {
		while ((s = rgate_consumer_next(c))) {
			frames++;
			rgate_consumer_release(c);
		}
		r = rgate_consumer_arm(c);
	} while (r == 1);	/* more came in between */
	return r;
}

static int watch(int ep, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int loop(struct rgate_ring *ring)
{
	struct rgate_consumer c;
	struct epoll_event ev;
	char line[64];
	int err, ep;

	ep = epoll_create1(EPOLL_CLOEXEC);
	if (ep < 0)
		return -errno;
	err = rgate_consumer_init(&c, ring, NULL);
	if (!err)
		err = watch(ep, rgate_ring_fd(ring));
	if (!err)
		err = watch(ep, STDIN_FILENO);
	while (!err && !(err = take_and_arm(&c))) {
		if (epoll_wait(ep, &ev, 1, -1) < 1) {
			err = errno == EINTR ? 0 : -errno;
			continue;
		}
		if (ev.data.fd == STDIN_FILENO) {
			if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
				break;
			printf("%lu frames\n", frames);
		}
		rgate_consumer_disarm(&c);
	}
	close(ep);
	return err;
}

int main(int argc, char **argv)
{
	struct rgate_attach_opts opts = RGATE_OPTS(rgate_attach_opts,
						   .action = RGATE_ACTION_MIRROR);
	struct rgate_ring *ring;
	int err;

	if (argc < 2) {
		fprintf(stderr, "usage: epoll DEVICE [FILTER]\n");
		return 2;
	}
	opts.filter = argc > 2 ? argv[2] : NULL;
	err = rgate_ring_open(&ring, NULL);
	if (!err) {
		err = rgate_ring_attach(ring, argv[1], &opts, NULL);
		if (!err)
			err = loop(ring);
		rgate_ring_close(ring);
	}
	if (err)
		fprintf(stderr, "epoll: %s\n", rgate_strerror("rgate_ring_", err));
	return err ? 1 : 0;
}
