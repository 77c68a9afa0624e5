// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "fds.h"
#include "local.h"
#include "log.h"

#define BACKLOG		128
#define BUFFER_BYTES	(4 << 20)	/* asked for; root gets it */
#define STRANGERS_MAX	16
#define DEAF_NS		100000000	/* until we look for a descriptor again */
#define LISTENS		0	/* the word of listen_fd; others have their connection as one */

static int fill_address(struct sockaddr_un *sa, const char *path)
{
	const size_t len = strlen(path);

	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (*path != '/' || len >= sizeof(sa->sun_path))
		return -EINVAL;
	memcpy(sa->sun_path, path, len + 1);
	return 0;
}

/* The path is ours as long as we hold a lock on the file beside it. */
static int take_path(struct rgate_ep *ep)
{
	char path[sizeof(ep->self.addr) + 8];
	int err;

	snprintf(path, sizeof(path), "%s.lock", ep->self.addr);
	ep->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (ep->lock_fd < 0) {
		err = -errno;
		rgate_err("cannot create %s: %s", path, strerror(-err));
		return err;
	}
	if (!flock(ep->lock_fd, LOCK_EX | LOCK_NB)) {
		/* What a process that died left behind */
		(void)unlink(ep->self.addr);
		return 0;
	}
	err = errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
	if (err == -EADDRINUSE)
		rgate_err("another process is node %u: it holds %s", ep->self.id, path);
	close(ep->lock_fd);
	ep->lock_fd = -1;
	return err;
}

static int begin_listening(struct rgate_ep *ep)
{
	struct sockaddr_un sa;
	int err;

	err = fill_address(&sa, ep->self.addr);
	if (!err)
		err = take_path(ep);
	if (err)
		return err;
	ep->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (ep->listen_fd < 0)
		return -errno;
	if (bind(ep->listen_fd, (struct sockaddr *)&sa, sizeof(sa)) ||
	    chmod(sa.sun_path, 0600) || listen(ep->listen_fd, BACKLOG)) {
		err = -errno;
		rgate_err("cannot listen on %s: %s", sa.sun_path, strerror(-err));
		return err;
	}
	return events_add(&ep->ev, ep->listen_fd, EPOLLIN, LISTENS);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void forget_stranger(struct rgate_conn *conn)
{
	struct rgate_conn **at = &conn->ep->strangers;

	while (*at && *at != conn)
		at = &(*at)->next;
	if (*at)
		*at = conn->next;
}

static void conn_free(struct rgate_conn *conn)
{
	local_late_end(conn);
	if (conn->in_sock != conn->sock)
		close_fd(&conn->in_sock);
	/* Who else has that socket, by a descriptor of his own, would keep it among our events. */
	events_remove(&conn->ep->ev, conn->sock);
	close_fd(&conn->sock);
	local_serve_end(conn);
	close_fd(&conn->ask_sock);
	events_close(&conn->ev);
	local_unmap_all(conn);
	free(conn->recv);
	free(conn->done);
	free(conn);
}

static void local_destroy(struct rgate_conn *conn)
{
	if (!conn)
		return;
	forget_stranger(conn);
	conn_free(conn);
}

static void local_close(struct rgate_ep *ep)
{
	struct rgate_conn *conn;

	while ((conn = ep->strangers)) {
		ep->strangers = conn->next;
		conn_free(conn);
	}
	if (ep->listen_fd >= 0) {
		close(ep->listen_fd);
		(void)unlink(ep->self.addr);
	}
	/* Not unlinked: another process may be waiting for this very file. */
	if (ep->lock_fd >= 0)
		close(ep->lock_fd);
	local_server_stop(ep);
	events_close(&ep->ev);
	pthread_mutex_destroy(&ep->lock);
	free(ep);
}

static int local_open(struct rgate_ep **out, const struct rgate_ep_opts *opts)
{
	struct rgate_ep *ep = calloc(1, sizeof(*ep));
	int err;

	if (!ep)
		return -ENOMEM;
	ep->self = *opts->self;
	ep->opts = *opts;
	ep->opts.self = &ep->self;
	ep->listen_fd = ep->lock_fd = -1;
	err = events_open_plain(&ep->ev);
	if (err)
		goto free_ep;
	err = local_server_start(ep);
	if (err)
		goto close_events;
	pthread_mutex_init(&ep->lock, NULL);
	err = opts->listen ? begin_listening(ep) : 0;
	if (err)
		local_close(ep);
	else
		*out = ep;
	return err;

close_events:
	events_close(&ep->ev);
free_ep:
	free(ep);
	return err;
}

static int local_use_pool(struct rgate_ep *ep, enum rgate_prov_pool which,
			  const struct rgate_pool *pool)
{
	/* Not while the server thread looks at the one that goes. */
	pthread_mutex_lock(&ep->lock);
	ep->pool[which] = pool;
	pthread_mutex_unlock(&ep->lock);
	return 0;
}

static int local_fd(struct rgate_ep *ep)
{
	return ep->ev.fd;
}

/* Takes over both sockets, also where it fails */
static int conn_new(struct rgate_conn **out, struct rgate_ep *ep, int sock, int in_sock)
{
	struct rgate_conn *conn = calloc(1, sizeof(*conn));

	if (!conn) {
		close(sock);
		if (in_sock != sock)
			close(in_sock);
		return -ENOMEM;
	}
	*conn = (struct rgate_conn){
		.ep = ep, .sock = sock, .in_sock = in_sock, .ask_sock = -1,
		.ev = { -1, -1 }, .done_depth = ep->opts.send_depth,
	};
	*out = conn;
	return 0;
}

/* Root and our own user; nobody else may even try. */
static bool known_user(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return !getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) &&
	       (cred.uid == geteuid() || !cred.uid);
}

static int local_connect(struct rgate_ep *ep, const struct rgate_cluster_node *to,
			 const void *hello, size_t len, void *owner, struct rgate_conn **out)
{
	const struct local_packet p = { .type = LOCAL_HELLO };
	struct iovec iov = { (void *)hello, len };
	struct rgate_conn *conn;
	struct sockaddr_un sa;
	int sock, err;

	err = len > RGATE_PROV_HELLO ? -EINVAL : fill_address(&sa, to->addr);
	if (err)
		return err;
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return -errno;
	if (connect(sock, (struct sockaddr *)&sa, sizeof(sa))) {
		err = errno == ENOENT ? -ECONNREFUSED : -errno;
		close(sock);
		return err;
	}
	err = conn_new(&conn, ep, sock, sock);
	if (err)
		return err;
	conn->owner = owner;
	err = known_user(sock) ? local_send(sock, &p, &iov, 1, NULL, 0) : -EPERM;
	if (!err)
		err = events_add(&ep->ev, sock, EPOLLIN | EPOLLRDHUP, events_word(conn));
	if (err)
		local_destroy(conn);
	else
		*out = conn;
	return err;
}

static int local_loopback(struct rgate_ep *ep, void *owner, struct rgate_conn **out)
{
	struct rgate_conn *conn;
	int socks[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, socks))
		return -errno;
	err = conn_new(&conn, ep, socks[0], socks[1]);
	if (err)
		return err;
	conn->owner = owner;
	conn->up = true;
	err = local_late_begin(conn);
	if (err)
		local_destroy(conn);
	else
		*out = conn;
	return err;
}

static int local_accept(struct rgate_conn *conn, const void *welcome, size_t len, void *owner)
{
	const struct local_packet p = { .type = LOCAL_WELCOME };
	struct iovec iov = { (void *)welcome, len };

	conn->owner = owner;
	return len > RGATE_PROV_WELCOME ? -EINVAL : local_send(conn->sock, &p, &iov, 1, NULL, 0);
}

static void local_reject(struct rgate_conn *conn, int err)
{
	const struct local_packet p = { .type = LOCAL_REJECT, .arg = err };

	(void)local_send(conn->sock, &p, NULL, 0, NULL, 0);
	local_destroy(conn);
}

/* From now on the socket's packets are for poll(); its end is still of interest. */
static int now_up(struct rgate_conn *conn)
{
	int err = local_late_begin(conn);

	if (err)
		return err;
	conn->up = true;
	return events_change(&conn->ep->ev, conn->sock, EPOLLRDHUP, events_word(conn));
}

static int local_establish(struct rgate_conn *conn)
{
	const int type = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;
	const struct local_packet p = { .type = LOCAL_UP };
	int ours[2], theirs[2], fds[2], err;

	if (socketpair(AF_UNIX, type, 0, ours))
		return -errno;
	if (socketpair(AF_UNIX, type, 0, theirs)) {
		err = -errno;
		close(ours[0]);
		close(ours[1]);
		return err;
	}
	/* The peer serves what we ask, and asks what we serve. */
	conn->ask_sock = ours[0];
	fds[0] = ours[1];
	fds[1] = theirs[1];
	err = local_serve_begin(conn, theirs[0]);
	if (!err)
		err = local_send(conn->sock, &p, NULL, 0, fds, 2);
	close(fds[0]);
	close(fds[1]);
	return err ? err : now_up(conn);
}

/* Not before: who only asks for a connection costs a socket and no more. */
static int local_prepare(struct rgate_conn *conn)
{
	const int size = BUFFER_BYTES;
	int err;

	if (conn->done)
		return 0;
	if (setsockopt(conn->sock, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		(void)setsockopt(conn->sock, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	err = events_open(&conn->ev);
	if (err)
		return err;
	conn->recv = calloc(conn->ep->opts.recv_depth, sizeof(*conn->recv));
	conn->done = calloc(conn->done_depth, sizeof(*conn->done));
	if (!conn->recv || !conn->done)
		return -ENOMEM;
	return events_add(&conn->ev, conn->in_sock, EPOLLIN, 0);
}

static int local_allow(struct rgate_conn *conn, uint32_t access)
{
	conn->allow = access;
	if (conn->serve)
		__atomic_store_n(&conn->serve->allow, access, __ATOMIC_RELEASE);
	return 0;
}

static void *local_owner(const struct rgate_conn *conn)
{
	return conn->owner;
}

static int local_conn_fd(const struct rgate_conn *conn)
{
	return conn->ev.fd;
}

static uint32_t local_inline_size(const struct rgate_conn *conn)
{
	return conn->late ? LOCAL_LATE_INLINE : UINT32_MAX;
}

/* Which users may ask at all is known here, and nothing of which node it is */
static bool local_is_from(const struct rgate_conn *conn, const struct rgate_cluster_node *node)
{
	(void)node;
	return known_user(conn->sock);
}

static uint64_t local_source(const struct rgate_conn *conn)
{
	struct ucred cred;
	socklen_t n = sizeof(cred);

	return getsockopt(conn->sock, SOL_SOCKET, SO_PEERCRED, &cred, &n) || cred.pid <= 0 ? 0 :
	       (uint64_t)cred.pid;
}

static void local_whence(const struct rgate_conn *conn, char *text, size_t len)
{
	struct ucred cred;
	socklen_t n = sizeof(cred);

	if (getsockopt(conn->sock, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
		snprintf(text, len, "this machine");
	else
		snprintf(text, len, "process %d of user %u", cred.pid, cred.uid);
}

static int down(struct rgate_conn *conn, struct rgate_prov_event *ev, int err)
{
	events_remove(&conn->ep->ev, conn->sock);
	if (conn->told)
		return 0;
	conn->told = true;
	ev->kind = RGATE_PROV_DOWN;
	ev->conn = conn;
	ev->err = err;
	return 1;
}

static bool is_socket(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISSOCK(st.st_mode) && !fcntl(fd, F_SETFL, O_NONBLOCK);
}

/* Two sockets that came along, or none; anything else is closed */
static unsigned int take_sockets(struct msghdr *msg, int fds[2])
{
	unsigned int n = rgate_take_fds(msg, fds, 2);

	if (n == 2 && is_socket(fds[0]) && is_socket(fds[1]))
		return 2;
	while (n)
		close(fds[--n]);
	return 0;
}

static int other_is_up(struct rgate_conn *conn, const int fds[2])
{
	int err;

	conn->ask_sock = fds[1];
	err = local_serve_begin(conn, fds[0]);
	return err ? err : now_up(conn);
}

/* A packet of the handshake: 1 with an event, 0 without */
static int handshake(struct rgate_conn *conn, struct rgate_prov_event *ev)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct local_packet p = { 0 };
	struct iovec iov[2] = { { &p, sizeof(p) }, { ev->data, sizeof(ev->data) } };
	struct msghdr msg = {
		.msg_iov = iov, .msg_iovlen = 2,
		.msg_control = control.buf, .msg_controllen = sizeof(control.buf),
	};
	unsigned int nfds;
	int fds[2];
	ssize_t n;

	n = recvmsg(conn->sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return down(conn, ev, conn->owner ? -ECONNRESET : -EPROTO);
	nfds = take_sockets(&msg, fds);
	ev->len = n > (ssize_t)sizeof(p) ? (size_t)n - sizeof(p) : 0;
	ev->conn = conn;
	if (nfds && p.type == LOCAL_UP && n == sizeof(p) && conn->owner && conn->ask_sock < 0) {
		if (other_is_up(conn, fds))
			return down(conn, ev, -EPROTO);
		ev->kind = RGATE_PROV_UP;
		return 1;
	}
	if (nfds) {
		close(fds[0]);
		close(fds[1]);
	}
	if (n < (ssize_t)sizeof(p) || msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || nfds)
		return down(conn, ev, -EPROTO);
	if (p.type == LOCAL_HELLO && !conn->owner && !conn->told) {
		forget_stranger(conn);
		ev->kind = RGATE_PROV_REQUEST;
		return 1;
	}
	if (p.type == LOCAL_WELCOME && conn->owner) {
		ev->kind = RGATE_PROV_REPLY;
		return 1;
	}
	if (p.type == LOCAL_REJECT)
		return down(conn, ev, p.arg == -EACCES ? -EACCES : -ECONNREFUSED);
	return down(conn, ev, -EPROTO);
}

/* The first of the list came last: the oldest goes when they are too many. */
static void add_stranger(struct rgate_ep *ep, struct rgate_conn *conn)
{
	struct rgate_conn *c;
	unsigned int n = 0;

	conn->next = ep->strangers;
	ep->strangers = conn;
	for (c = conn; c->next; c = c->next)
		n++;
	if (n >= STRANGERS_MAX)
		local_destroy(c);
}

static void listen_or_not(struct rgate_ep *ep, uint64_t deaf_until)
{
	ep->deaf_until = deaf_until;
	(void)events_change(&ep->ev, ep->listen_fd, deaf_until ? 0 : EPOLLIN, LISTENS);
}

static void welcome_somebody(struct rgate_ep *ep)
{
	int sock = accept4(ep->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct rgate_conn *conn;

	if (sock < 0) {
		/* There is none left: whoever waits would wake us again at once, forever. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			listen_or_not(ep, rgate_clock_now(CLOCK_MONOTONIC) + DEAF_NS);
		return;
	}
	if (!known_user(sock)) {
		close(sock);
		return;
	}
	if (conn_new(&conn, ep, sock, sock))
		return;
	if (events_add(&ep->ev, sock, EPOLLIN | EPOLLRDHUP, events_word(conn))) {
		local_destroy(conn);
		return;
	}
	add_stranger(ep, conn);
}

static int local_event(struct rgate_ep *ep, struct rgate_prov_event *ev)
{
	struct rgate_conn *conn;
	struct epoll_event e;
	int ret;

	if (ep->deaf_until && rgate_clock_now(CLOCK_MONOTONIC) >= ep->deaf_until)
		listen_or_not(ep, 0);
	for (;;) {
		/* One at a time: the next one may be of a connection that is gone then. */
		if (events_wait(&ep->ev, &e, 1, 0) <= 0)
			return 0;
		*ev = (struct rgate_prov_event){ 0 };
		if (e.data.u64 == LISTENS) {
			welcome_somebody(ep);
			continue;
		}
		conn = e.data.ptr;
		ret = conn->up ? down(conn, ev, -ECONNRESET) : handshake(conn, ev);
		if (!ret)
			continue;
		/* Nobody else knows one that never said hello. */
		if (ev->kind == RGATE_PROV_DOWN && !conn->owner) {
			local_destroy(conn);
			continue;
		}
		return 1;
	}
}

const struct rgate_prov_ops rgate_prov_local = {
	.name = "local",
	.open = local_open,
	.close = local_close,
	.use_pool = local_use_pool,
	.share = local_share_add,
	.unshare = local_share_del,
	.bell = local_share_bell,
	.fd = local_fd,
	.event = local_event,
	.connect = local_connect,
	.loopback = local_loopback,
	.accept = local_accept,
	.reject = local_reject,
	.establish = local_establish,
	.prepare = local_prepare,
	.allow = local_allow,
	.owner = local_owner,
	.destroy = local_destroy,
	.post = local_post,
	.recv = local_recv,
	.poll = local_poll,
	.conn_fd = local_conn_fd,
	.arm = local_arm,
	.arm_recv = local_arm_recv,
	.inline_size = local_inline_size,
	.is_from = local_is_from,
	.source = local_source,
	.whence = local_whence,
};
