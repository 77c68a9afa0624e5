// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Datagrams: each has a struct agent_head in front of it, put there by who sends, which no program
 * sees. An error of a socket is a message, too: whoever finds it first is told.
 */
#include "shim.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FEW		16U	/* parts that a datagram mostly has at most */
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
	if (shim_mark_connected(mark)) {
		err = shim_datagram_error(fd);
		if (err)
			return -err;
	}
	if (!mh->msg_name || !mh->msg_namelen)
		return shim_mark_connected(mark) ? 0 : -EDESTADDRREQ;
	return shim_mark_to(mark, mh->msg_name, mh->msg_namelen, &head->addr);
}

/* @v: with room for one part more */
static ssize_t send_in(int fd, const struct msghdr *mh, int flags, struct iovec *v)
{
	const int mark = shim_mark(fd);
	const size_t most = shim_mark_most(mark);
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
	return errno == ECONNRESET || (errno == EPIPE && shim_mark_over(fd)) ? -ENETDOWN : -errno;
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
		return shim_mark_over(fd) ? -ENETDOWN : 0;
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
