// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent_packet.h"
#include "agent_priv.h"
#include "fds.h"

#define ROOM	(72U << 10)

static unsigned char room[ROOM];
static bool junk;			/* some program has sent what is not its own */

void packet_begin(void)
{
	junk = false;
}

void packet_fill(const struct rgate_socket *s, bool up, unsigned char *p, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		p[i] = served_byte(s, up, len + i);
}

bool packet_is(const struct rgate_socket *s, bool up, const unsigned char *p, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		if (p[i] != served_byte(s, up, len + i))
			return false;
	return true;
}

struct rgate_socket_addr packet_from(const struct rgate_socket *s)
{
	return (struct rgate_socket_addr){ .family = (uint16_t)s->family, .port = 9,
					   .addr = { 10, 0, 0, 9 } };
}

static struct rgate_socket_addr to(unsigned int which, uint16_t how)
{
	static const struct rgate_socket_addr known[] = {
		{ .family = 0 },
		{ .family = RGATE_SOCKET_INET, .addr = { 10, 0, 0, 2 } },
		{ .family = RGATE_SOCKET_INET, .addr = { 127, 0, 0, 1 } },
		{ .family = RGATE_SOCKET_INET6, .addr = { [15] = 1 } },
		{ .family = RGATE_SOCKET_INET6, .addr = { [10] = 255, 255, 127, 0, 0, 1 } },
		{ .family = RGATE_SOCKET_INET },
	};
	struct rgate_socket_addr a = known[which];

	/* Those that are bound, or whose port who serves has chosen */
	if (a.family)
		a.port = (uint16_t)(how & 1 ? 5000 + (how >> 1 & 3) :
					      SERVED_PORT + (how >> 1 & 15));
	return a;
}

static const struct rgate_socket_addr domain = {
	.family = RGATE_SOCKET_INET, .port = AGENT_DOMAIN_PORT, .addr = AGENT_DOMAIN,
};

/* A question for the name server, of which one byte is another one */
static void ask_domain(const struct program_fd *p, uint32_t which, unsigned char other)
{
	static const unsigned char right[] =
		"\0\7\1\0\0\1\0\0\0\0\0\0\3abc\1d\0\0\1\0\1";
	unsigned char said[sizeof(right)];
	struct agent_head head = { .addr = domain };
	struct iovec v[2] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = said, .iov_len = sizeof(right) - (other & 1) - 1 },
	};
	struct msghdr mh = { .msg_iov = v, .msg_iovlen = 2 };
	union rgate_fds_room fds;

	agent_set_family(&head.addr, (uint16_t)p->s->family);
	memcpy(said, right, sizeof(said));
	if (which < sizeof(said))
		said[which] = other;
	if (p->bare)
		rgate_put_fds(&mh, &fds, &p->fd, 1);
	(void)sendmsg(p->fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void packet_send(struct program_fd *p, uint16_t how)
{
	const unsigned int which = how >> 13;
	struct agent_head head;
	uint32_t len = how & 0x1fff;
	struct iovec v[2] = {
		{ .iov_base = &head, .iov_len = sizeof(head) }, { .iov_base = room },
	};
	struct msghdr mh = { .msg_iov = v, .msg_iovlen = 2 };
	union rgate_fds_room fds;

	if (!p->s)
		return;
	if (which == 7 && len & 0x1000) {
		ask_domain(p, len & 31, (unsigned char)(len >> 5 & 127) * 2);
		return;
	}
	if (which >= 6) {
		/* Of any length, also with a head that looks right, as all of it is 0 */
		junk = p->s->wild = true;
		memset(room, which == 6 ? 0 : (int)len, sizeof(room));
		(void)send(p->fd, room, len & 1 ? len % 64 : len << 3, MSG_DONTWAIT | MSG_NOSIGNAL);
		return;
	}
	head.addr = to(which, how);
	len = len & 0x1000 ? (len & 0xfff) << 4 : len;
	v[1].iov_len = len;
	packet_fill(p->s, true, room, len);
	if (p->bare && head.addr.family) {
		rgate_put_fds(&mh, &fds, &p->fd, 1);
	} else if (p->bare) {
		mh.msg_iov = v + 1;
		mh.msg_iovlen = 1;
	}
	(void)sendmsg(p->fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool packet_is_some(const unsigned char *p, uint32_t len)
{
	const struct rgate_socket *s;
	uint32_t i;

	for (i = 0; (s = served_at(i)); i++)
		if (s->datagram && packet_is(s, true, p, len))
			return true;
	return false;
}

static void check(const struct program_fd *p, const struct agent_head *head, uint32_t len)
{
	const struct rgate_socket_addr outside = packet_from(p->s);

	FUZZ_CHECK(len <= AGENT_DATAGRAM_MAX);
	if (!head->addr.family) {
		FUZZ_CHECK(!len && head->addr.scope && head->addr.scope < 4096);
		return;
	}
	FUZZ_CHECK(head->addr.family == p->s->family);
	if (head->addr.port == domain.port && agent_same_host(&head->addr, &domain)) {
		FUZZ_CHECK(len >= 12 && len <= 512 && room[2] & 0x80);
		return;
	}
	if (!memcmp(&head->addr, &outside, sizeof(outside)))
		FUZZ_CHECK(packet_is(p->s, false, room, len));
	else
		FUZZ_CHECK(junk || packet_is_some(room, len));
}

/* The head that has come beside one: in a file that nobody can change any more */
static void take_head(struct msghdr *mh, struct agent_head *head)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int fd;

	FUZZ_CHECK(!(mh->msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && rgate_take_fds(mh, &fd, 1) == 1);
	FUZZ_CHECK(fcntl(fd, F_GET_SEALS) == seals);
	FUZZ_CHECK(pread(fd, head, sizeof(*head), 0) == sizeof(*head));
	close(fd);
}

static void read_bare(struct program_fd *p)
{
	struct iovec v = { .iov_base = room, .iov_len = sizeof(room) };
	union rgate_fds_room fds;
	struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = fds.buf,
			     .msg_controllen = sizeof(fds.buf) };
	ssize_t n = recvmsg(p->fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct agent_head head;

	/* One without bytes has a head, the end has none. */
	if (n < 0 || (!n && !mh.msg_controllen)) {
		p->deaf |= !n || errno != EAGAIN;
		return;
	}
	take_head(&mh, &head);
	if (p->s)
		check(p, &head, (uint32_t)n);
}

void packet_read(struct program_fd *p)
{
	struct agent_head head;
	struct iovec v[2] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = room, .iov_len = sizeof(room) },
	};
	struct msghdr mh = { .msg_iov = v, .msg_iovlen = 2 };
	ssize_t n;

	if (p->bare) {
		read_bare(p);
		return;
	}
	n = recvmsg(p->fd, &mh, MSG_DONTWAIT);
	p->deaf |= !n || (n < 0 && errno != EAGAIN);
	if (n <= 0 || !p->s)
		return;
	FUZZ_CHECK(n >= (ssize_t)sizeof(head) && !(mh.msg_flags & MSG_TRUNC));
	check(p, &head, (uint32_t)(n - (ssize_t)sizeof(head)));
}

/* ---- Who serves: calls that wait ---- */

int __wrap_rgate_socket_sendto(struct rgate_socket *s, const void *buf, uint32_t len,
			       uint32_t flags, const struct rgate_socket_addr *addr)
{
	const struct rgate_socket_io io = RGATE_OPTS(rgate_socket_io, .flags = flags, .len = len,
		.buf = (void *)(uintptr_t)buf);

	FUZZ_CHECK(s->set && s->datagram && (!addr || addr->family == s->family));
	served_check_send(s, &io);
	if (served.gone || served.refuses & SERVED_NO_PLACE)
		return served.gone ? -EPIPE : -EAGAIN;
	served.sent += len;
	return (int)len;
}

int __wrap_rgate_socket_send(struct rgate_socket *s, const void *buf, uint32_t len, uint32_t flags)
{
	return __wrap_rgate_socket_sendto(s, buf, len, flags, NULL);
}

/* ---- What the agent asks for without waiting: it is done at once ---- */

int __wrap_socket_setopt_quiet(struct rgate_socket *s, uint32_t option, const void *value,
			       uint32_t len)
{
	return __wrap_rgate_socket_setopt(s, option, value, len);
}

int __wrap_socket_close_quiet(struct rgate_socket *s)
{
	/* Who serves may still write there. */
	FUZZ_CHECK(!served_has_buffer(s));
	return __wrap_rgate_socket_close(s);
}

int __wrap_sockets_open_asking(struct rgate_sockets **set, const struct rgate_sockets_opts *o,
			       bool (*enough)(void *ctx, uint64_t ns), void *ctx)
{
	(void)enough;
	(void)ctx;
	return __wrap_rgate_sockets_open(set, o);
}

bool __wrap_sockets_are_here(struct rgate_sockets *set)
{
	(void)set;
	return false;
}

int __wrap_sockets_settle(struct rgate_sockets *set)
{
	(void)set;
	return 0;
}

bool __wrap_sockets_settled(const struct rgate_sockets *set)
{
	(void)set;
	return true;
}

/* Nothing waits for who serves here. */
void __wrap_sockets_end_by(struct rgate_sockets *set, uint64_t ns)
{
	(void)set;
	(void)ns;
}
