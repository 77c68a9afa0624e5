// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Datagrams: each has a struct agent_head in front of it, put there by who sends, which no program
 * sees. An error of a socket is a message, too: whoever finds it first is told.
 */
#include "shim.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FEW		16U	/* parts that a datagram mostly has at most */
#define MOST_INET	65507U	/* bytes, of UDP over IPv4 */
/* Of UIO_MAXIOV - 1 parts with fewer bytes than the longest one some neighbours have no more. */
#define PAIR_MOST	(2 * AGENT_DATAGRAM_MAX / (UIO_MAXIOV - 2) + 1)
#define INHERITED	256	/* descriptors that are looked at when a program begins */

/* Never false while there is one: else others' descriptors would have to be looked at each time. */
static bool may_be;

void shim_datagram_note(void)
{
	__atomic_store_n(&may_be, true, __ATOMIC_RELAXED);
}

void shim_datagram_begin(void)
{
	struct agent_name name;
	int fd;

	for (fd = 0; fd < INHERITED && shim_active(); fd++)
		if (shim_kind(fd, &name) == SHIM_DATAGRAM)
			shim_datagram_note();
}

bool shim_datagram_is(int fd)
{
	struct agent_name name;

	return __atomic_load_n(&may_be, __ATOMIC_RELAXED) && shim_kind(fd, &name) == SHIM_DATAGRAM;
}

/* What the agent has left at the socket: AGENT_MARK_* */
static int mark_of(int fd)
{
	int mark = 0;
	socklen_t len = sizeof(mark);

	return syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_PRIORITY, &mark, &len) < 0 ? 0 : mark;
}

/* ---- Errors ---- */

/* That a message tells of, which is the agent's, or a liar's */
static int error_in(const struct agent_head *head)
{
	const uint32_t error = head->addr.scope;

	return error && error <= AGENT_ERROR_MAX ? (int)error : EPROTO;
}

static long look(int fd, struct agent_head *head, int flags)
{
	return syscall(SYS_recvfrom, fd, head, sizeof(*head), flags | MSG_DONTWAIT, NULL, NULL);
}

/*
 * No call takes a message only if it is an error. If another thread takes the one that was seen
 * first, the next one comes: another error, which is told then, or a datagram, which is lost, as
 * any of UDP may be.
 */
int shim_datagram_error(int fd)
{
	const int before = errno;
	struct agent_head head;
	int error = 0;

	if (look(fd, &head, MSG_PEEK) == (long)sizeof(head) && !head.addr.family &&
	    look(fd, &head, 0) == (long)sizeof(head) && !head.addr.family)
		error = error_in(&head);
	errno = before;
	return error;
}

/*
 * The agent's end is closed. One that the program has shut down both ways looks the same, but the
 * agent knows it.
 */
static bool is_over(int fd)
{
	const struct agent_ask ask = { .version = AGENT_VERSION, .what = AGENT_NAME };
	const struct timespec now = { .tv_nsec = 0 };
	struct pollfd p = { .fd = fd };

	return syscall(SYS_ppoll, &p, 1, &now, NULL, 0) == 1 && p.revents & POLLHUP &&
	       shim_ask(&ask, fd, NULL, NULL, true) < 0;
}

/* ---- Addresses ---- */

/* As the socket's family has it */
static int address(int mark, const struct sockaddr *sa, socklen_t len,
		   struct rgate_socket_addr *to)
{
	int err = shim_addr_get(sa, len, to);

	if (err || to->family == AF_INET6)
		return err || mark & AGENT_MARK_INET6 ? err : -EAFNOSUPPORT;
	if (!(mark & AGENT_MARK_INET6))
		return 0;
	memcpy(to->addr + 12, to->addr, 4);
	memset(to->addr, 0, 10);
	memset(to->addr + 10, 0xff, 2);
	to->family = AF_INET6;
	return 0;
}

int shim_datagram_peer(int fd, const struct sockaddr *sa, socklen_t len,
		       struct rgate_socket_addr *to)
{
	if (sa && len >= sizeof(sa->sa_family) && sa->sa_family == AF_UNSPEC) {
		*to = (struct rgate_socket_addr){ .family = 0 };
		return 0;
	}
	return address(mark_of(fd), sa, len, to);
}

bool shim_datagram_connected(int fd)
{
	return mark_of(fd) & AGENT_MARK_CONNECTED;
}

/* ---- Parts ---- */

static size_t length_of(const struct iovec *v)
{
	return v->iov_len < INT_MAX ? v->iov_len : INT_MAX;
}

/* Of the first @n; more than there can be is as good as any such number */
static size_t length(const struct iovec *v, size_t n)
{
	size_t i, len = 0;

	for (i = 0; i < n && len <= AGENT_DATAGRAM_MAX; i++)
		len += length_of(v + i);
	return len;
}

/* Two parts that are one to the kernel */
struct pair {
	const struct iovec *of;		/* NULL: there are none */
	size_t before;			/* bytes in front of them */
	unsigned char bytes[PAIR_MOST];
};

/* Of all parts but the last one */
static void join_two(struct iovec *v, const struct msghdr *mh, struct pair *p)
{
	size_t i, both, least = SIZE_MAX, at = 0, before = 0;

	for (i = 0; i + 2 < mh->msg_iovlen; i++) {
		both = length_of(v + i) + length_of(v + i + 1);
		if (both < least) {
			least = both;
			at = i;
			p->before = before;
		}
		before += length_of(v + i);
	}
	p->of = mh->msg_iov + at;
	v[at] = (struct iovec){ .iov_base = p->bytes, .iov_len = least };
	memmove(v + at + 1, v + at + 2, (mh->msg_iovlen - at - 2) * sizeof(*v));
}

/*
 * @v: with room for one part more, and so many are there then: the kernel takes UIO_MAXIOV. Where a
 * program has as many those that lie behind the last byte of the longest datagram are left out, or
 * two short ones joined.
 */
static size_t put_front(struct iovec *v, struct agent_head *head, const struct msghdr *mh,
			struct pair *p)
{
	p->of = NULL;
	v[0] = (struct iovec){ .iov_base = head, .iov_len = sizeof(*head) };
	if (mh->msg_iovlen)
		memcpy(v + 1, mh->msg_iov, mh->msg_iovlen * sizeof(*v));
	if (mh->msg_iovlen < UIO_MAXIOV)
		return mh->msg_iovlen + 1;
	if (length(mh->msg_iov, UIO_MAXIOV - 1) < AGENT_DATAGRAM_MAX)
		join_two(v + 1, mh, p);
	return UIO_MAXIOV;
}

/* Between the parts and what the kernel has for them: of @len bytes of all */
static void copy_two(struct pair *p, size_t len, bool in)
{
	unsigned char *own = p->bytes;
	size_t i, n;

	len = p->of && len > p->before ? len - p->before : 0;
	for (i = 0; i < 2 && len; i++) {
		n = len < p->of[i].iov_len ? len : p->of[i].iov_len;
		if (n && in)
			memcpy(own, p->of[i].iov_base, n);
		else if (n)
			memcpy(p->of[i].iov_base, own, n);
		own += n;
		len -= n;
	}
}

/* ---- Sent ---- */

static int make_head(int fd, const struct msghdr *mh, int mark, struct agent_head *head)
{
	int err;

	*head = (struct agent_head){ .addr.family = 0 };
	if (mark & AGENT_MARK_CONNECTED) {
		err = shim_datagram_error(fd);
		if (err)
			return -err;
	}
	if (!mh->msg_name || !mh->msg_namelen)
		return mark & AGENT_MARK_CONNECTED ? 0 : -EDESTADDRREQ;
	err = address(mark, mh->msg_name, mh->msg_namelen, &head->addr);
	return !err && !head->addr.port ? -EINVAL : err;
}

/* @v: with room for one part more */
static ssize_t send_in(int fd, const struct msghdr *mh, int flags, struct iovec *v)
{
	const int mark = mark_of(fd);
	const size_t most = mark & AGENT_MARK_INET6 ? AGENT_DATAGRAM_MAX : MOST_INET;
	struct msghdr own = { .msg_iov = v };
	struct agent_head head;
	struct pair pair;
	ssize_t n;
	int err;

	/* Control messages, and pieces of one, are what there is not. */
	if (mh->msg_controllen || flags & (MSG_OOB | MSG_MORE))
		return -EOPNOTSUPP;
	err = make_head(fd, mh, mark, &head);
	if (err)
		return err;
	if (length(mh->msg_iov, mh->msg_iovlen) > most)
		return -EMSGSIZE;
	own.msg_iovlen = put_front(v, &head, mh, &pair);
	copy_two(&pair, most, true);
	n = NEXT(sendmsg)(fd, &own, (flags & MSG_DONTWAIT) | MSG_NOSIGNAL);
	if (n >= 0)
		return n - (ssize_t)sizeof(head);
	/* The agent has closed it; the program itself may have ended sending. */
	return errno == ECONNRESET || (errno == EPIPE && is_over(fd)) ? -ENETDOWN : -errno;
}

/* What there is, an error, too; or -errno */
static ssize_t recv_one(int fd, struct msghdr *own, struct agent_head *head, int flags)
{
	ssize_t n;

	*head = (struct agent_head){ .addr.family = 0 };
	n = NEXT(recvmsg)(fd, own, flags);
	if (n < 0)
		return errno == ECONNRESET ? -ENETDOWN : -errno;
	if (!n)
		return is_over(fd) ? -ENETDOWN : 0;
	return n < (ssize_t)sizeof(*head) ? -EPROTO : n;
}

static ssize_t recv_in(int fd, struct msghdr *mh, int flags, struct iovec *v)
{
	struct msghdr own = { .msg_iov = v };
	struct agent_head head;
	struct pair pair;
	ssize_t n;
	int err;

	if (flags & (MSG_OOB | MSG_ERRQUEUE))
		return flags & MSG_OOB ? -EOPNOTSUPP : -EAGAIN;
	own.msg_iovlen = put_front(v, &head, mh, &pair);
	for (;;) {
		n = recv_one(fd, &own, &head, flags);
		if (n <= 0 || head.addr.family)
			break;
		if (!(flags & MSG_PEEK))
			return -error_in(&head);
		/* It is told once, also to who only looks: what is taken then, if it is there. */
		err = shim_datagram_error(fd);
		if (err)
			return -err;
	}
	if (n <= 0)
		return n;
	n -= (ssize_t)sizeof(head);
	copy_two(&pair, (size_t)n, false);
	if (mh->msg_name)
		shim_addr_put(&head.addr, mh->msg_name, &mh->msg_namelen);
	mh->msg_controllen = 0;
	mh->msg_flags = own.msg_flags & MSG_TRUNC;
	return n;
}

/* More parts than a signal's stack should have room for */
__attribute__((noinline)) static ssize_t send_many(int fd, const struct msghdr *mh, int flags)
{
	struct iovec v[UIO_MAXIOV + 1];

	return mh->msg_iovlen <= UIO_MAXIOV ? send_in(fd, mh, flags, v) : -EMSGSIZE;
}

__attribute__((noinline)) static ssize_t recv_many(int fd, struct msghdr *mh, int flags)
{
	struct iovec v[UIO_MAXIOV + 1];

	return mh->msg_iovlen <= UIO_MAXIOV ? recv_in(fd, mh, flags, v) : -EMSGSIZE;
}

ssize_t shim_datagram_send(int fd, const struct msghdr *mh, int flags)
{
	struct iovec v[FEW + 1];

	return mh->msg_iovlen > FEW ? send_many(fd, mh, flags) : send_in(fd, mh, flags, v);
}

ssize_t shim_datagram_recv(int fd, struct msghdr *mh, int flags)
{
	struct iovec v[FEW + 1];

	return mh->msg_iovlen > FEW ? recv_many(fd, mh, flags) : recv_in(fd, mh, flags, v);
}

int shim_datagram_there(int fd)
{
	const int flags = MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT, before = errno;
	long n = syscall(SYS_recvfrom, fd, NULL, 0, flags, NULL, NULL);

	errno = before;
	return n > (long)sizeof(struct agent_head) ? (int)(n - (long)sizeof(struct agent_head)) : 0;
}
