/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Datagrams of an agent's programs, as the library in a program has them, and those outside */
#ifndef RGATE_TEST_DATAGRAM_BED_H
#define RGATE_TEST_DATAGRAM_BED_H

#include "agent_bed.h"

#define MOST	65507U

static inline int new_udp(uint16_t family)
{
	int fd = -1;

	assert_int_equal(ASK(-1, NULL, &fd, .what = AGENT_SOCKET, .a = family,
			     .b = AGENT_DATAGRAM), 0);
	assert_true(fd >= 0);
	return fd;
}

/* One that knows nothing of it, and its port */
static inline int outer(uint16_t *port)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct timeval most = { .tv_sec = 30 };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)), 0);
	*port = ntohs(in.sin_port);
	return fd;
}

static inline void outer_send(int fd, uint16_t port, const void *data, size_t len)
{
	const struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	assert_int_equal(sendto(fd, data, len, 0, (const struct sockaddr *)&in, sizeof(in)), len);
}

/* The port that it came from */
static inline uint16_t outer_recv(int fd, const void *data, size_t len)
{
	static char got[MOST + 1];
	struct sockaddr_in in;
	socklen_t room = sizeof(in);

	assert_int_equal(recvfrom(fd, got, sizeof(got), 0, (struct sockaddr *)&in, &room), len);
	assert_memory_equal(got, data, len);
	return ntohs(in.sin_port);
}

/* As the library in a program does */
static inline int send_with(int fd, const struct rgate_socket_addr *to, const void *data,
			    size_t len, int flags)
{
	struct agent_head head = { .addr = *to };
	struct iovec v[2] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)(uintptr_t)data, .iov_len = len },
	};
	const struct msghdr mh = { .msg_iov = v, .msg_iovlen = 2 };

	return sendmsg(fd, &mh, flags | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static inline void send_to(int fd, uint16_t port, const void *data, size_t len)
{
	assert_int_equal(send_with(fd, &(struct rgate_socket_addr){
		.family = port ? AF_INET : 0, .port = port,
		.addr = { port ? 127 : 0, 0, 0, port ? 1 : 0 } }, data, len, 0), 0);
}

/* Its bytes, which came in time; an error that was told: -errno */
static inline int recv_from(int fd, struct rgate_socket_addr *from, void *data, size_t room)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct agent_head head;
	struct iovec v[2] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = data, .iov_len = room },
	};
	struct msghdr mh = { .msg_iov = v, .msg_iovlen = 2 };
	ssize_t n;

	assert_int_equal(poll(&p, 1, 30000), 1);
	n = recvmsg(fd, &mh, 0);
	if (n < (ssize_t)sizeof(head))
		return n < 0 ? -errno : -EPIPE;
	if (from)
		*from = head.addr;
	return head.addr.family ? (int)(n - (ssize_t)sizeof(head)) : -(int)head.addr.scope;
}

static inline bool is_silent(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return !poll(&p, 1, 100);
}

static inline uint16_t port_of(int fd)
{
	struct agent_answer answer;

	assert_int_equal(ASK(fd, &answer, NULL, .what = AGENT_NAME), 0);
	return answer.addr.port;
}

static inline uint16_t bind_udp(int fd, uint16_t port)
{
	assert_int_equal(ASK(fd, NULL, NULL, .what = AGENT_BIND, .addr = loop_at(port)), 0);
	return port_of(fd);
}

static inline int connect_udp(int fd, uint16_t port)
{
	return ASK(fd, NULL, NULL, .what = AGENT_CONNECT, .addr = loop_at(port));
}

static inline int mark_of(int fd)
{
	int mark = -1;
	socklen_t len = sizeof(mark);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_PRIORITY, &mark, &len), 0);
	return mark;
}

static inline void all_gone(void)
{
	eventually(info_now().now == 0);
}

#endif
