// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "local.h"
#include "thread.h"

static void put(struct local_serve *s)
{
	struct rgate_ep *ep = s->ep;

	/* Pairs with the other one's: what was done with it is over. */
	if (__atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL))
		return;
	close(s->sock);
	free(s);
	__atomic_sub_fetch(&ep->serving, 1, __ATOMIC_RELEASE);
}

/* A descriptor that cannot be written through, whatever the peer does with it */
static int read_only(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* It is for who writes there. */
static void close_bell(int fds[2])
{
	if (fds[1] >= 0)
		close(fds[1]);
	fds[1] = -1;
}

/* False: the peer asks no more */
static bool answer(struct local_serve *s)
{
	const uint32_t allow = __atomic_load_n(&s->allow, __ATOMIC_ACQUIRE);
	struct local_answer a = { .err = -EACCES };
	const struct local_packet p = { 0 };
	struct iovec iov = { &a, sizeof(a) };
	struct local_question q;
	int fds[2] = { -1, -1 }, ro;
	unsigned char *addr;
	ssize_t n;

	n = recv(s->sock, &q, sizeof(q), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n != sizeof(q))
		return false;
	if (allow)
		a.err = local_describe(s->ep, q.rkey, &a, &addr, fds);
	a.access &= allow;
	if (!a.err && !a.access)
		a.err = -EACCES;
	if (!a.err && !(a.access & (RGATE_ACCESS_REMOTE_WRITE | RGATE_ACCESS_REMOTE_ATOMIC))) {
		ro = read_only(fds[0]);
		a.err = ro < 0 ? -errno : 0;
		close(fds[0]);
		fds[0] = ro;
		close_bell(fds);
	}
	(void)local_send(s->sock, &p, &iov, 1, fds, a.err ? 0 : fds[1] < 0 ? 1 : 2);
	if (fds[0] >= 0)
		close(fds[0]);
	close_bell(fds);
	return true;
}

static void *serve_main(void *arg)
{
	struct rgate_ep *ep = arg;
	struct epoll_event e;
	bool stopping = false;

	while (!stopping || __atomic_load_n(&ep->serving, __ATOMIC_ACQUIRE)) {
		if (events_wait(&ep->served, &e, 1, -1) != 1)
			continue;
		if (e.data.u64 == EVENTS_WAKE) {
			stopping = true;
			events_woken(&ep->served);
		} else if (!answer(e.data.ptr)) {
			events_remove(&ep->served, ((struct local_serve *)e.data.ptr)->sock);
			put(e.data.ptr);
		}
	}
	return NULL;
}

int local_server_start(struct rgate_ep *ep)
{
	int err = events_open(&ep->served);

	if (err)
		return err;
	err = rgate_thread_start(&ep->server, NULL, serve_main, ep);
	if (err)
		events_close(&ep->served);
	return err;
}

/* All connections have been destroyed: the thread sees their ends, then this. */
void local_server_stop(struct rgate_ep *ep)
{
	events_wake(&ep->served);
	pthread_join(ep->server, NULL);
	events_close(&ep->served);
}

int local_serve_begin(struct rgate_conn *conn, int sock)
{
	struct local_serve *s = calloc(1, sizeof(*s));
	int err;

	if (!s) {
		close(sock);
		return -ENOMEM;
	}
	*s = (struct local_serve){ conn->ep, sock, 2, conn->allow };
	__atomic_add_fetch(&conn->ep->serving, 1, __ATOMIC_RELAXED);
	conn->serve = s;
	err = events_add(&conn->ep->served, sock, EPOLLIN, events_word(s));
	if (err)
		put(s);
	return err;
}

void local_serve_end(struct rgate_conn *conn)
{
	if (!conn->serve)
		return;
	/* Nobody gets anything from here on; the thread finds the end. */
	__atomic_store_n(&conn->serve->allow, 0, __ATOMIC_RELEASE);
	shutdown(conn->serve->sock, SHUT_RDWR);
	put(conn->serve);
	conn->serve = NULL;
}
