// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <ringgate/rgate_daemon.h>
#include <ringgate/rgate_inlet.h>

#include "opts.h"
#include "ring.h"

#define SECONDS		10
#define REQUEST_MAX	4096

static int dial(const char *path)
{
	const struct timeval tv = { .tv_sec = SECONDS };
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int sock, err;

	if (!path)
		path = getenv("RGATE_SOCKET");
	if (!path)
		path = RGATE_DAEMON_SOCKET;
	if (strlen(path) >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	memcpy(sun.sun_path, path, strlen(path) + 1);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	if (setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) < 0 ||
	    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) < 0 ||
	    connect(sock, (struct sockaddr *)&sun, sizeof(sun)) < 0) {
		err = errno == EAGAIN ? -ETIMEDOUT : -errno;
		close(sock);
		return err;
	}
	return sock;
}

/* "ok TEXT" or "err NUMBER TEXT"; the text stays in @answer */
static int judge(char *answer, size_t len)
{
	char *text;
	long number;

	if (!strncmp(answer, "ok ", 3)) {
		memmove(answer, answer + 3, len - 2);
		return 0;
	}
	if (strncmp(answer, "err ", 4))
		return -EPROTO;
	number = strtol(answer + 4, &text, 10);
	if (*text++ != ' ' || number < 1 || number > 4095)
		return -EPROTO;
	memmove(answer, text, len - (size_t)(text - answer) + 1);
	return -(int)number;
}

static int ask(int sock, const char *request, char *answer, size_t len)
{
	struct iovec iov = { answer, len - 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	answer[0] = '\0';
	if (strlen(request) > REQUEST_MAX)
		return -EMSGSIZE;
	if (send(sock, request, strlen(request), MSG_NOSIGNAL) < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	n = recvmsg(sock, &msg, 0);
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	answer[n] = '\0';
	if (msg.msg_flags & MSG_TRUNC)
		return -EMSGSIZE;
	return n ? judge(answer, (size_t)n) : -ECONNRESET;
}

int rgate_daemon_call(const char *path, const char *request, char *answer, size_t len)
{
	int sock, err;

	if (!answer || len < 64)
		return -EINVAL;
	answer[0] = '\0';
	sock = dial(path);
	if (sock < 0)
		return sock;
	err = ask(sock, request, answer, len);
	close(sock);
	return err;
}

int rgate_ring_open_remote(struct rgate_ring **ring, const struct rgate_ring_opts *opts)
{
	char request[256], answer[512];
	struct rgate_ring_opts o;
	int sock, err;

	err = rgate_ring_opts_get(&o, opts);
	if (err)
		return err;
	sock = dial(o.device);
	if (sock < 0)
		return sock;
	snprintf(request, sizeof(request), "ring-open %u %u %u %u %s", o.slots, o.slot_size,
		 o.policy, o.clock, o.name ? o.name : "");
	err = ask(sock, request, answer, sizeof(answer));
	if (!err)
		err = rgate_ring_recv(ring, sock);
	if (err) {
		close(sock);
		return err;
	}
	/* The daemon keeps the ring as long as this is open. */
	(*ring)->keep_fd = sock;
	return 0;
}

static int ask_keeper(struct rgate_ring *ring, const char *request, char *answer, size_t len)
{
	int err;

	if (ring->keep_fd < 0)
		return -EINVAL;
	err = ask(ring->keep_fd, request, answer, len);
	if (err == -ETIMEDOUT)		/* what comes later would be taken for another's */
		(void)shutdown(ring->keep_fd, SHUT_RD);
	return err == -EPIPE ? -ECONNRESET : err;
}

int rgate_ring_remote_state(struct rgate_ring *ring, char *why, size_t len)
{
	int err;

	if (!why || len < 64)
		return -EINVAL;
	why[0] = '\0';
	err = ask_keeper(ring, "ring-state", why, len);
	if (err)
		return err;
	err = !strcmp(why, "filled");
	why[0] = '\0';
	return err;
}

int rgate_ring_remote_device(struct rgate_ring *ring, uint32_t ifindex, char *name)
{
	char request[32], answer[512];
	int err;

	name[0] = '\0';
	snprintf(request, sizeof(request), "ring-device %u", ifindex);
	err = ask_keeper(ring, request, answer, sizeof(answer));
	if (err)
		return err;
	if (!*answer || strlen(answer) >= RGATE_DEVICE_NAME)
		return -EPROTO;
	memcpy(name, answer, strlen(answer) + 1);
	return 0;
}
