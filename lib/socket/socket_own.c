// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "socket_own.h"

struct question {
	struct nlmsghdr head;
	struct rtmsg route;
	struct rtattr attr;
	uint8_t addr[16];
};

int socket_own_open(void)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	int err, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	/* Connected: other processes' messages are none of the kernel's. */
	if (connect(fd, (struct sockaddr *)&kernel, sizeof(kernel)) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

static int ask(int fd, const struct socket_host *h, uint32_t seq)
{
	const uint16_t len = h->v6 ? 16 : 4;
	struct question q = {
		.head = {
			.nlmsg_len = NLMSG_LENGTH(sizeof(q.route)) + RTA_SPACE(len),
			.nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = seq,
		},
		.route = { .rtm_family = h->v6 ? AF_INET6 : AF_INET, .rtm_dst_len = len * 8 },
		.attr = { .rta_type = RTA_DST, .rta_len = RTA_LENGTH(len) },
	};

	memcpy(q.addr, h->addr, len);
	return send(fd, &q, q.head.nlmsg_len, 0) < 0 ? -errno : 0;
}

static bool is_own(uint8_t type)
{
	return type == RTN_LOCAL || type == RTN_BROADCAST || type == RTN_ANYCAST ||
	       type == RTN_MULTICAST;
}

/* 1, 0: what is said; -errno; -EAGAIN: this is the answer to another question */
static int read_answer(const void *buf, size_t len, uint32_t seq)
{
	const struct nlmsghdr *h = buf;
	const struct nlmsgerr *e = NLMSG_DATA(h);
	const struct rtmsg *r = NLMSG_DATA(h);

	if (len < sizeof(*h) || h->nlmsg_len > len)
		return -EPROTO;
	if (h->nlmsg_seq != seq)
		return -EAGAIN;
	if (h->nlmsg_type == NLMSG_ERROR && h->nlmsg_len >= NLMSG_LENGTH(sizeof(*e)))
		/* No way there: what is then asked of the kernel fails by itself. */
		return e->error == -ENETUNREACH || e->error == -EHOSTUNREACH ||
		       e->error == -EACCES || e->error == -EINVAL ? 0 :
		       e->error ? e->error : -EPROTO;
	if (h->nlmsg_type != RTM_NEWROUTE || h->nlmsg_len < NLMSG_LENGTH(sizeof(*r)))
		return -EPROTO;
	return is_own(r->rtm_type);
}

int socket_own(int fd, const struct socket_host *h)
{
	static uint32_t number;
	const uint32_t seq = __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED);
	uint64_t buf[512];
	ssize_t n;
	int err;

	err = ask(fd, h, seq);
	if (err)
		return err;
	/* The kernel answers in the call that asks. */
	do {
		n = recv(fd, buf, sizeof(buf), 0);
		if (n < 0)
			return -errno;
		err = read_answer(buf, (size_t)n, seq);
	} while (err == -EAGAIN);
	return err;
}
