// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fds.h"
#include "hostile_agent.h"

#define TEMPLATE	"/tmp/ringgate-fuzz.XXXXXX"

int hostile_junk;
struct fuzz_in *hostile_input;
static int control = -1;
static char dir[sizeof(TEMPLATE)];

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

struct rgate_socket_addr hostile_addr(struct fuzz_in *in)
{
	static const uint16_t families[] = { RGATE_SOCKET_INET, RGATE_SOCKET_INET6, 0, 99 };
	struct rgate_socket_addr a;
	const uint8_t how = fuzz_u8(in);

	memset(&a, 0, sizeof(a));
	(void)fuzz_bytes(in, &a, how & 0x80 ? sizeof(a) : how & 31);
	if (!(how & 0x40))
		a.family = families[how >> 5 & 1 ? 2 + (how & 1) : how & 1];
	return a;
}

uint32_t hostile_error(struct fuzz_in *in)
{
	static const uint32_t some[] = {
		EACCES, ECONNREFUSED, EINPROGRESS, 1, 4095, 4096, 0, 0x80000000U, 0xffffffffU,
	};
	const uint8_t which = fuzz_u8(in) % 12;

	return which < 9 ? some[which] : fuzz_u32(in);
}

static uint32_t some_len(struct fuzz_in *in)
{
	static const uint32_t some[] = {
		0, 4, 8, 16, 32, 64, 256, AGENT_ANSWER_MAX, AGENT_ANSWER_MAX + 1, UINT32_MAX,
	};
	const uint8_t which = fuzz_u8(in);

	return which < 100 ? some[which % 10] : which < 220 ? which - 100U : fuzz_u32(in);
}

void hostile_send(int sock, const void *msg, size_t len, unsigned int nfds)
{
	int fds[4] = { hostile_junk, hostile_junk, hostile_junk, hostile_junk };
	struct iovec v = { .iov_base = (void *)(uintptr_t)msg, .iov_len = len };
	struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1 };
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(fds))];
	} room = { .buf = { 0 } };

	if (nfds) {
		mh.msg_control = room.buf;
		mh.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		*CMSG_FIRSTHDR(&mh) = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(nfds * sizeof(int)) };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&mh)), fds, nfds * sizeof(int));
	}
	(void)sendmsg(sock, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void answer(int sock, struct fuzz_in *in)
{
	union {
		struct agent_answer a;
		unsigned char more[sizeof(struct agent_answer) + 64];
	} said;
	const uint8_t how = fuzz_u8(in);
	size_t len = sizeof(said.a);

	memset(&said, 0, sizeof(said));
	said.a.result = how & 1 ? (int32_t)hostile_error(in) : 0;
	if (how & 2 && said.a.result > 0)
		said.a.result = -said.a.result;
	said.a.len = some_len(in);
	said.a.found = how & 4 ? some_len(in) : fuzz_u8(in) % 8;
	said.a.addr = hostile_addr(in);
	(void)fuzz_bytes(in, said.a.value, fuzz_u8(in) * 2U);
	if (how & 8)
		len = fuzz_u16(in) % (sizeof(said.more) + 1);
	hostile_send(sock, &said, len, how >> 4 & 3);
}

/* The question is one that an agent takes. */
static void look(int sock)
{
	struct agent_ask ask;
	struct iovec v = { .iov_base = &ask, .iov_len = sizeof(ask) };
	union rgate_fds_room room;
	struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = room.buf,
			     .msg_controllen = sizeof(room.buf) };
	ssize_t n = recvmsg(sock, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fds[2];
	unsigned int nfds;

	FUZZ_CHECK(n == (ssize_t)sizeof(ask) && !(mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC)));
	nfds = rgate_take_fds(&mh, fds, 2);
	FUZZ_CHECK(nfds <= 1);
	if (nfds)
		close(fds[0]);
	FUZZ_CHECK(ask.version == AGENT_VERSION && ask.what >= 1 && ask.what <= AGENT_RESOLVE);
	FUZZ_CHECK(ask.len <= sizeof(ask.value) && !ask.reserved);
}

/* Whoever has called, and has said something, hears something, or nothing and the end. */
static void turn(void)
{
	struct fuzz_in *in = hostile_input;
	uint8_t how;
	int sock = accept4(control, NULL, NULL, SOCK_CLOEXEC);

	if (sock < 0)
		return;
	how = fuzz_u8(in);
	if (how % 8 != 7)
		look(sock);
	if (how % 8 < 6)
		answer(sock, in);
	if (how == 0x45)
		answer(sock, in);
	close(sock);
}

/* Of those that a call has not there is whatever was there. */
__attribute__((no_sanitize("address", "undefined")))
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (hostile_input && number == SYS_recvmsg)
		turn();
	return __real_syscall(number, a, b, c, d, e, f);
}

static void remove_dir(void)
{
	char path[sizeof(dir) + sizeof("/" AGENT_CONTROL)];

	(void)snprintf(path, sizeof(path), "%s/" AGENT_CONTROL, dir);
	(void)unlink(path);
	(void)rmdir(dir);
}

const char *hostile_begin(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	memcpy(dir, TEMPLATE, sizeof(dir));
	FUZZ_CHECK(mkdtemp(dir));
	FUZZ_CHECK(!atexit(remove_dir));
	(void)snprintf(un.sun_path, sizeof(un.sun_path), "%s/" AGENT_CONTROL, dir);
	control = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	FUZZ_CHECK(!bind(control, (struct sockaddr *)&un, sizeof(un)) && !listen(control, 16));
	hostile_junk = open("/dev/null", O_RDWR | O_CLOEXEC);
	FUZZ_CHECK(hostile_junk >= 0);
	return dir;
}
