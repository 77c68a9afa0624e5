// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What `ringgate run` makes of calls about datagrams that it answers for a program. What they point
 * to, and what lies in the socket, may be anything, and another thread may change it while it is
 * looked at; the agent may be anybody's. Whatever comes: a call has a result that there can be, or
 * an error that there is; no descriptor is left; nothing is written but where the call has room;
 * what is sent is well-formed; nothing goes on for ever.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../../../lib/shim/shim.h"
#include "fds.h"
#include "fuzz.h"
#include "hostile_agent.h"
#include "super.h"

#define STEPS	32U
#define ERRORS	4095
#define BASE	0x10000U		/* where the program's memory is, to it */
#define SIZE	0x4000U
#define PARTS	0x1000U			/* in it: struct iovec, */
#define NAME	0x2000U			/* an address and its length, */
#define BYTES	0x2100U			/* and bytes */
#define MESSAGES	4U
#define ROOM	(SIZE - BYTES)

static uint64_t last_id;
static struct fuzz_in *input;

/* ---- The program, and its memory ---- */

static unsigned char memory[SIZE];
static bool room[SIZE];			/* may be written */
static bool changes;			/* another thread is at it */
static unsigned int waits;

static unsigned char *at(uint64_t address, size_t len)
{
	if (address < BASE || address > BASE + SIZE || len > BASE + SIZE - address)
		return NULL;
	return memory + (address - BASE);
}

int task_read(struct task *t, uint64_t from, void *buf, size_t len)
{
	unsigned char *p = at(from, len);

	(void)t;
	if (!len)
		return 0;
	if (!p)
		return -EFAULT;
	if (changes && input->len)
		p[fuzz_u16(input) % len] = fuzz_u8(input);
	memcpy(buf, p, len);
	return 0;
}

int task_write(struct task *t, uint64_t to, const void *buf, size_t len)
{
	unsigned char *p = at(to, len);
	size_t i;

	(void)t;
	if (!len)
		return 0;
	if (!p)
		return -EFAULT;
	for (i = 0; !changes && i < len; i++)
		FUZZ_CHECK(room[p - memory + (ptrdiff_t)i]);
	memcpy(p, buf, len);
	return 0;
}

int super_wait(struct super_call *c, int fd, short events, uint64_t until_ns)
{
	(void)c;
	(void)fd;
	(void)events;
	FUZZ_CHECK(!until_ns && ++waits < 3);
	return waits == 2 || fuzz_u8(input) & 1 ? -EINTR : 0;
}

uint64_t super_until(int fd, int option)
{
	(void)fd;
	FUZZ_CHECK(option == SO_RCVTIMEO || option == SO_SNDTIMEO);
	return 0;
}

static void offer(uint64_t address, uint64_t len)
{
	const uint64_t there = BASE + SIZE - address;

	if (at(address, 0))
		memset(room + (address - BASE), true, len < there ? len : there);
}

/* ---- What a call points to ---- */

/* Mostly where there is something, and as long as that may be */
static uint64_t some_address(uint64_t right)
{
	const uint8_t how = fuzz_u8(input);

	return how < 0xf0 ? right : how < 0xf8 ? 0 : fuzz_u64(input);
}

static uint64_t some_len(uint64_t most)
{
	const uint8_t how = fuzz_u8(input);

	return how < 0xe0 ? how * most / 0xe0 : how < 0xf0 ? fuzz_u16(input) : fuzz_u64(input);
}

static void make_name(void)
{
	static const sa_family_t families[] = { AF_INET, AF_INET6, AF_UNSPEC, AF_UNIX };
	sa_family_t family = families[fuzz_u8(input) & 3];
	socklen_t len = (socklen_t)some_len(sizeof(struct sockaddr_in6) + 8);

	(void)fuzz_bytes(input, memory + NAME + 8, 32);
	memcpy(memory + NAME + 8, &family, sizeof(family));
	memcpy(memory + NAME, &len, sizeof(len));
	offer(BASE + NAME, 4);
	offer(BASE + NAME + 8, sizeof(struct sockaddr_storage));
}

static size_t make_parts(size_t n)
{
	struct iovec v;
	size_t i;

	for (i = 0; i < n && i < 64; i++) {
		v.iov_base = (void *)(uintptr_t)some_address(BASE + BYTES + i);
		v.iov_len = some_len(ROOM / 4);
		memcpy(memory + PARTS + i * sizeof(v), &v, sizeof(v));
		offer((uintptr_t)v.iov_base, v.iov_len);
	}
	return n;
}

static void make_message(size_t i)
{
	const uint8_t n = fuzz_u8(input);
	const struct mmsghdr m = { .msg_hdr = {
		.msg_name = (void *)(uintptr_t)some_address(BASE + NAME + 8),
		.msg_namelen = (socklen_t)some_len(sizeof(struct sockaddr_storage)),
		.msg_iov = (void *)(uintptr_t)some_address(BASE + PARTS),
		.msg_iovlen = n < 0xf8 ? make_parts(n % 16) : fuzz_u32(input),
		.msg_controllen = n & 16 ? fuzz_u8(input) : 0,
	} };

	memcpy(memory + i * sizeof(m), &m, sizeof(m));
	offer(BASE + i * sizeof(m) + offsetof(struct msghdr, msg_namelen), sizeof(socklen_t));
	offer(BASE + i * sizeof(m) + offsetof(struct msghdr, msg_controllen), sizeof(size_t));
	offer(BASE + i * sizeof(m) + offsetof(struct msghdr, msg_flags), sizeof(int));
	offer(BASE + i * sizeof(m) + offsetof(struct mmsghdr, msg_len), sizeof(int));
}

/* ---- Calls ---- */

static int some_flags(void)
{
	static const int flags[] = {
		0, MSG_PEEK, MSG_TRUNC, MSG_PEEK | MSG_TRUNC, MSG_WAITFORONE, MSG_DONTWAIT,
		MSG_ERRQUEUE, MSG_OOB,
	};

	return flags[fuzz_u8(input) & 7] | (fuzz_u8(input) & 1 ? MSG_DONTWAIT : 0);
}

static void step_call(int fd)
{
	static const int calls[] = {
		SYS_sendto, SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_sendmmsg, SYS_recvmmsg,
	};
	const unsigned int which = fuzz_u8(input) % 6;
	struct seccomp_data data = { .nr = calls[which] };
	struct super_call c = { .data = &data, .task = { .pidfd = hostile_junk } };
	int64_t n;
	size_t i;

	memset(room, 0, sizeof(room));
	make_name();
	for (i = 0; i < MESSAGES; i++)
		make_message(i);
	changes = fuzz_u8(input) & 1;
	data.args[1] = some_address(BASE);
	if (which < 2) {
		data.args[1] = some_address(BASE + BYTES);
		data.args[2] = some_len(ROOM);
		offer(data.args[1], data.args[2]);
		data.args[3] = (uint64_t)some_flags();
		data.args[4] = some_address(BASE + NAME + 8);
		data.args[5] = which ? some_address(BASE + NAME) : some_len(32);
	} else if (which < 4) {
		data.args[2] = (uint64_t)some_flags();
	} else {
		data.args[2] = some_len(MESSAGES);
		data.args[3] = (uint64_t)some_flags();
	}
	/* What is read as something else has room elsewhere. */
	changes |= (which >= 2 && data.args[1] != BASE) ||
		   (which >= 4 && data.args[2] > MESSAGES);
	waits = 0;
	n = super_datagram(&c, fd);
	FUZZ_CHECK(n >= -ERRORS && n <= AGENT_DATAGRAM_MAX);
	if (which >= 4)
		FUZZ_CHECK(n <= (int64_t)(unsigned int)data.args[2]);
	else if (which == 0 || (which == 1 && !(data.args[3] & MSG_TRUNC)))
		FUZZ_CHECK(n < 0 || (uint64_t)n <= data.args[2]);
}

/* ---- The agent's end ---- */

/* A file that says from whom one is: the agent's, or nearly */
static int some_tag(void)
{
	static const int all = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	const uint8_t how = fuzz_u8(input);
	struct agent_head head = { .addr = hostile_addr(input) };
	const size_t len = how & 1 ? fuzz_u8(input) % (sizeof(head) + 1) : sizeof(head);
	int fd = memfd_create("from", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (how & 2)
		head.addr = (struct rgate_socket_addr){ .scope = hostile_error(input) };
	FUZZ_CHECK(fd >= 0 && write(fd, &head, len) == (ssize_t)len);
	FUZZ_CHECK(!fcntl(fd, F_ADD_SEALS, how & 4 ? fuzz_u8(input) & all : all));
	return fd;
}

static void give(int fd)
{
	static unsigned char bytes[UINT16_MAX + 1];
	const uint8_t how = fuzz_u8(input);
	struct iovec v = { .iov_base = bytes, .iov_len = how & 1 ? fuzz_u8(input) : 0 };
	struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1 };
	union rgate_fds_room fds;
	int tags[RGATE_FDS_MAX];
	unsigned int n = how & 2 ? how >> 5 : 1, i;

	if (how & 4)
		v.iov_len = fuzz_u16(input);
	for (i = 0; i < n; i++)
		tags[i] = how & 8 ? fcntl(hostile_junk, F_DUPFD_CLOEXEC, 0) : some_tag();
	if (n)
		rgate_put_fds(&mh, &fds, tags, n);
	(void)sendmsg(fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
	for (i = 0; i < n; i++)
		close(tags[i]);
}

/* What the agent gets of a program's */
static void hear(int fd)
{
	static unsigned char bytes[AGENT_DATAGRAM_MAX + sizeof(struct agent_head) + 1];
	struct iovec v = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	union rgate_fds_room fds;
	struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = fds.buf,
			     .msg_controllen = sizeof(fds.buf) };
	ssize_t n = recvmsg(fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct agent_head head;
	unsigned int nfds;
	int one;

	if (n < 0)
		return;
	nfds = rgate_take_fds(&mh, &one, 1);
	FUZZ_CHECK(!(mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC)));
	if (!nfds)
		return;
	close(one);
	FUZZ_CHECK(n >= (ssize_t)sizeof(head));
	memcpy(&head, bytes, sizeof(head));
	FUZZ_CHECK(head.addr.family == AF_INET || head.addr.family == AF_INET6);
	FUZZ_CHECK(head.addr.port);
}

static void make_pair(int pair[2])
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct agent_name name = { .agent = ++last_id };
	const uint8_t how = fuzz_u8(input);
	const int mark = how & 3;

	FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	if (how & 4)
		FUZZ_CHECK(!fcntl(pair[0], F_SETFL, O_NONBLOCK));
	memcpy(name.magic, AGENT_MAGIC_DATAGRAM, sizeof(name.magic));
	memcpy(un.sun_path, &name, sizeof(name));
	FUZZ_CHECK(!bind(pair[1], (struct sockaddr *)&un,
			 offsetof(struct sockaddr_un, sun_path) + sizeof(name)));
	shim_path(++last_id, &un);
	FUZZ_CHECK(!bind(pair[0], (struct sockaddr *)&un, sizeof(un)));
	(void)unlink(un.sun_path);
	(void)setsockopt(pair[0], SOL_SOCKET, SO_PRIORITY, &mark, sizeof(mark));
}

/* ---- The input ---- */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	shim_begin(hostile_begin());
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { .p = data, .len = size };
	const unsigned int before = fuzz_open_fds();
	unsigned int i;
	int pair[2], error;

	hostile_input = input = &in;
	memset(memory, 0, sizeof(memory));
	make_pair(pair);
	for (i = 0; i < STEPS && in.len; i++) {
		switch (fuzz_u8(&in) % 8) {
		case 0:
		case 1:
			if (pair[1] >= 0)
				give(pair[1]);
			break;
		case 2:
			if (pair[1] >= 0)
				hear(pair[1]);
			break;
		case 3:
			error = super_datagram_error(pair[0]);
			FUZZ_CHECK(error >= 0 && error <= ERRORS);
			break;
		case 4:
			if (fuzz_u8(&in) & 7 || pair[1] < 0)
				break;
			close(pair[1]);
			pair[1] = -1;
			break;
		default:
			step_call(pair[0]);
		}
		FUZZ_CHECK(fuzz_open_fds() == before + 1 + (pair[1] >= 0));
	}
	close(pair[0]);
	if (pair[1] >= 0)
		close(pair[1]);
	hostile_input = NULL;
	return 0;
}
