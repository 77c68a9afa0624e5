// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <unistd.h>

#include "agent_packet.h"
#include "agent_raw.h"
#include "fds.h"

#define PIECE	(96U << 10)

struct program_fd program_fds[PROGRAM_FDS];
struct agent *program_agent;
static struct asker_fd {
	int fd;				/* -1: none */
	bool answered;
	struct program_fd *connects;	/* what it is about */
} askers[PROGRAM_ASKERS];
static unsigned int next_fd, next_asker;
static unsigned char piece[PIECE];

void program_begin(struct agent *agent)
{
	unsigned int i;

	program_agent = agent;
	next_fd = next_asker = 0;
	packet_begin();
	for (i = 0; i < PROGRAM_FDS; i++)
		program_fds[i] = (struct program_fd){ .fd = -1 };
	for (i = 0; i < PROGRAM_ASKERS; i++)
		askers[i] = (struct asker_fd){ .fd = -1 };
}

void program_hush(void)
{
	unsigned int i;

	for (i = 0; i < PROGRAM_ASKERS; i++)
		program_asker_close(i);
}

void program_end(void)
{
	unsigned int i;

	for (i = 0; i < PROGRAM_FDS; i++)
		if (program_fds[i].fd >= 0)
			program_close(&program_fds[i]);
}

struct program_fd *program_fd(uint8_t number)
{
	struct program_fd *p = &program_fds[number % PROGRAM_FDS];

	return p->fd < 0 ? NULL : p;
}

struct program_fd *program_new(int fd)
{
	struct program_fd *p = &program_fds[next_fd++ % PROGRAM_FDS];

	if (p->fd >= 0)
		program_close(p);
	*p = (struct program_fd){ .fd = fd };
	return p;
}

/* ---- Questions ---- */

int program_call(const char *name, int type)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	FUZZ_CHECK(fd >= 0);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/%s", agent_dir(program_agent), name);
	if (!connect(fd, (struct sockaddr *)&un, sizeof(un)))
		return fd;
	close(fd);
	return -1;
}

unsigned int program_asker(int fd)
{
	const unsigned int i = next_asker++ % PROGRAM_ASKERS;

	program_asker_close(i);
	askers[i] = (struct asker_fd){ .fd = fd };
	return i;
}

int program_asker_fd(unsigned int number)
{
	return askers[number % PROGRAM_ASKERS].fd;
}

void program_asker_close(unsigned int number)
{
	struct asker_fd *k = &askers[number % PROGRAM_ASKERS];

	if (k->fd >= 0)
		close(k->fd);
	k->fd = -1;
}

void program_asker_connects(unsigned int number, struct program_fd *p)
{
	askers[number % PROGRAM_ASKERS].connects = p;
}

void program_say(int sock, const void *msg, size_t len, const int *fds, unsigned int nfds)
{
	struct iovec v = { .iov_base = (void *)(uintptr_t)msg, .iov_len = len };
	struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1 };
	struct cmsghdr *h;

	if (nfds) {
		mh.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		mh.msg_control = calloc(1, mh.msg_controllen);
		FUZZ_CHECK(mh.msg_control);
		h = CMSG_FIRSTHDR(&mh);
		*h = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
				       .cmsg_len = CMSG_LEN(nfds * sizeof(int)) };
		memcpy(CMSG_DATA(h), fds, nfds * sizeof(int));
	}
	(void)sendmsg(sock, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
	free(mh.msg_control);
}

/* Which it is the kernel says, as the agent is told by it, too. */
static void keep(int fd)
{
	struct program_fd *p = program_new(fd);
	struct sockaddr_un un;
	socklen_t len = sizeof(un);
	const struct conn *c;

	FUZZ_CHECK(!getsockname(fd, (struct sockaddr *)&un, &len));
	p->id = agent_path_id(program_agent, &un, len);
	FUZZ_CHECK(p->id);
	c = conn_find(program_agent, p->id);
	p->s = c ? c->socket : NULL;
	p->datagram = c && c->state == CONN_DATAGRAM;
	p->bare = p->datagram && c->bare;
}

/* To another program's: what follows are its own bytes, and not those of who serves. */
static void connect_itself(struct program_fd *p, const struct agent_answer *answer)
{
	struct sockaddr_un un;
	uint64_t id;

	FUZZ_CHECK(answer->len == sizeof(id));
	memcpy(&id, answer->value, sizeof(id));
	FUZZ_CHECK(id);
	agent_path(program_agent, id, &un);
	raw_connect(p->fd, &un);
}

static void hear_one(struct asker_fd *k)
{
	struct agent_answer answer;
	struct iovec v = { .iov_base = &answer, .iov_len = sizeof(answer) };
	union rgate_fds_room room;
	struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = room.buf,
			     .msg_controllen = sizeof(room.buf) };
	ssize_t n = recvmsg(k->fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int made[2];
	unsigned int nmade;

	if (n <= 0)
		return;
	nmade = rgate_take_fds(&mh, made, 2);
	FUZZ_CHECK(n == sizeof(answer) && !(mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC)));
	FUZZ_CHECK(!k->answered && nmade < 2);
	FUZZ_CHECK(answer.result <= 0 && answer.result >= -4095);
	FUZZ_CHECK(answer.len <= sizeof(answer.value) && (!nmade || !answer.result));
	k->answered = true;
	if (k->connects && k->connects->fd >= 0 && !answer.result && answer.len)
		connect_itself(k->connects, &answer);
	if (nmade)
		keep(made[0]);
}

void program_hear(void)
{
	unsigned int i;

	for (i = 0; i < PROGRAM_ASKERS; i++)
		if (askers[i].fd >= 0)
			hear_one(&askers[i]);
}

/* ---- Streams ---- */

/* It has one that both of its ends agree about. */
static bool is_whole(const struct program_fd *p)
{
	return p->s && p->s->stream && !p->s->wild && !p->s->spoilt &&
	       (!p->accepted || p->greeted == sizeof(struct agent_hello));
}

void program_write(struct program_fd *p, uint32_t len)
{
	uint32_t i;
	ssize_t n;

	if (p->datagram) {
		packet_send(p, (uint16_t)len);
		return;
	}
	if (p->accepted && p->greeted < sizeof(struct agent_hello))
		program_greet(p, sizeof(struct agent_hello), true);
	len = len < PIECE ? len : PIECE;
	for (i = 0; i < len; i++)
		piece[i] = p->s ? served_byte(p->s, true, p->s->written + i) : 0;
	n = send(p->fd, piece, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0 && p->s)
		p->s->written += (uint64_t)n;
}

static void check_read(struct program_fd *p, ssize_t n)
{
	ssize_t i;

	if (!n) {
		/* An end is the other side's, behind all that it has sent; else it is an error. */
		FUZZ_CHECK(p->deaf || (p->s->over && p->got == p->s->given));
		return;
	}
	FUZZ_CHECK(p->got + (uint64_t)n <= p->s->given);
	for (i = 0; i < n; i++)
		FUZZ_CHECK(piece[i] == served_byte(p->s, false, p->got + (uint64_t)i));
	p->got += (uint64_t)n;
}

void program_read(struct program_fd *p, uint32_t len)
{
	ssize_t n;

	if (p->datagram) {
		packet_read(p);
		return;
	}
	n = recv(p->fd, piece, len < PIECE ? len + 1 : PIECE, MSG_DONTWAIT);
	if (n >= 0 && is_whole(p))
		check_read(p, n);
	p->deaf |= n < 0 && errno != EAGAIN;
}

void program_shutdown(struct program_fd *p, int how)
{
	if (shutdown(p->fd, how))
		return;
	p->deaf |= how != SHUT_WR;
	if (p->s)
		p->s->ended |= how != SHUT_RD;
}

void program_close(struct program_fd *p)
{
	close(p->fd);
	p->fd = -1;
	if (p->s)
		p->s->ended = true;
}

void program_greet(struct program_fd *p, uint32_t len, bool right)
{
	const struct agent_hello hello = { .magic = AGENT_MAGIC, .id = p->id };
	const uint32_t left = sizeof(hello) - p->greeted;
	unsigned char said[sizeof(hello)];
	ssize_t n;

	if (!p->accepted || !left)
		return;
	memcpy(said, &hello, sizeof(said));
	len = len < left ? len : left;
	if (len && !right)
		said[p->greeted + len - 1] ^= 1;
	n = send(p->fd, said + p->greeted, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n <= 0)
		return;
	p->greeted += (uint32_t)n;
	if (p->s)
		p->s->spoilt |= !right;
}

void program_accept(struct program_fd *p, uint32_t len)
{
	struct sockaddr_un un;
	socklen_t room = sizeof(un);
	struct agent_name name;
	struct pollfd there = { .fd = p->fd, .events = POLLIN };
	int fd;

	/* It may be one that waits. */
	if (poll(&there, 1, 0) != 1 || there.revents != POLLIN)
		return;
	fd = accept4(p->fd, (struct sockaddr *)&un, &room, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	p = program_new(fd);
	/* Else it is another program's, or a stranger's. */
	if (!agent_name_of(program_agent, &un, room, &name))
		return;
	if (name.error) {
		program_close(p);
		return;
	}
	p->accepted = true;
	p->id = name.id;
	p->s = served_at(name.peer.port - SERVED_PORT);
	FUZZ_CHECK(p->s && p->s->accepted && name.peer.port >= SERVED_PORT);
	program_greet(p, len, true);
}
