// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What the library in a program makes of its agent's answers, of what comes over its sockets, and
 * of what the program calls it with. The agent may be anybody's, answer anything with any
 * descriptors, or nothing, and so may who connects. Whatever comes: a call has a result that there
 * is, or an error that there is; no descriptor is left, and none of the program's own is touched;
 * no byte is written that the program did not offer, and none is told of that nobody wrote; what
 * the agent is asked is well-formed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../../../lib/shim/shim.h"
#include "fuzz.h"
#include "hostile_agent.h"

#define STEPS	64U
#define ROOM	4096U
#define ERRORS	4095

static uint64_t last_id;

/* ---- What is behind the library ---- */

static int next_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
			    struct addrinfo **res)
{
	static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

	/* No name is asked for in earnest. */
	if (!hints || !(hints->ai_flags & AI_NUMERICHOST))
		return EAI_NONAME;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
	return real(node, service, hints, res);
}

static int next_gethostbyname2_r(const char *name, int family, struct hostent *h, char *buf,
				 size_t len, struct hostent **result, int *error)
{
	(void)name;
	(void)family;
	(void)h;
	(void)buf;
	(void)len;
	*result = NULL;
	*error = HOST_NOT_FOUND;
	return 0;
}

static struct hostent *next_gethostbyname2(const char *name, int family)
{
	(void)name;
	(void)family;
	return NULL;
}

void *shim_next(enum shim_call call)
{
	switch (call) {
	case SHIM_CALL_sendmsg:
		return (void *)sendmsg;
	case SHIM_CALL_recvmsg:
		return (void *)recvmsg;
	case SHIM_CALL_getaddrinfo:
		return (void *)next_getaddrinfo;
	case SHIM_CALL_gethostbyname2_r:
		return (void *)next_gethostbyname2_r;
	case SHIM_CALL_gethostbyname2:
		return (void *)next_gethostbyname2;
	default:
		abort();
	}
}

/* ---- The program ---- */

/* 0, or an error that there is */
static void check_error(long result)
{
	FUZZ_CHECK(result <= 0 && result >= -ERRORS);
}

/* One of the program's, named as the agent has named it */
static int named(int type)
{
	struct sockaddr_un un;
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	shim_path(++last_id, &un);
	FUZZ_CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&un, sizeof(un)));
	(void)unlink(un.sun_path);
	return fd;
}

static void step_make(struct fuzz_in *in)
{
	static const int families[] = { AF_INET, AF_INET6, 0, -1 };
	const uint8_t how = fuzz_u8(in);
	const int type = (how & 4 ? SOCK_DGRAM : SOCK_STREAM) | (how & 8 ? SOCK_NONBLOCK : 0);
	struct stat own, got;
	int fd = shim_make(families[how & 3], type, how & 32, how & 16);

	if (fd < 0) {
		check_error(fd);
		return;
	}
	/* It is what the agent has sent, and not some number. */
	FUZZ_CHECK(fd > hostile_junk && !fstat(fd, &got) && !fstat(hostile_junk, &own));
	FUZZ_CHECK(got.st_rdev == own.st_rdev);
	FUZZ_CHECK(!!(fcntl(fd, F_GETFD) & FD_CLOEXEC) == !!(how & 16));
	close(fd);
}

/* An address as a program has it, with no byte behind it */
static struct sockaddr *some_sockaddr(struct fuzz_in *in, socklen_t *len)
{
	static const sa_family_t families[] = { AF_INET, AF_INET6, AF_UNSPEC, AF_UNIX };
	const uint8_t how = fuzz_u8(in);
	size_t n;
	struct sockaddr *sa = fuzz_copy(in, how >> 2 & 31, &n);

	if (n >= sizeof(sa->sa_family) && !(how & 0x80))
		sa->sa_family = families[how & 3];
	*len = (socklen_t)n;
	return sa;
}

static void step_addr(struct fuzz_in *in)
{
	struct rgate_socket_addr a;
	socklen_t len, room;
	struct sockaddr *sa = some_sockaddr(in, &len);
	unsigned char *back;
	int err = shim_addr_get(sa, len, &a);

	check_error(err);
	if (!err) {
		FUZZ_CHECK(a.family == sa->sa_family);
		room = fuzz_u8(in) % (sizeof(struct sockaddr_in6) + 4);
		back = malloc(room ? room : 1);
		FUZZ_CHECK(back);
		len = room;
		shim_addr_put(&a, (struct sockaddr *)back, &len);
		FUZZ_CHECK(len == (a.family == AF_INET ? sizeof(struct sockaddr_in) :
						    sizeof(struct sockaddr_in6)));
		/* All but the rest of a struct sockaddr_in comes back. */
		FUZZ_CHECK(!memcmp(back, sa, room < 8 ? room : 8));
		free(back);
	}
	free(sa);
}

static void step_name(struct fuzz_in *in)
{
	const uint8_t how = fuzz_u8(in);
	const int fd = named(SOCK_STREAM);
	struct rgate_socket_addr addr;
	struct sockaddr_in6 in6;
	socklen_t len = sizeof(in6);
	struct sockaddr *sa;
	int err;

	switch (how & 3) {
	case 0:
		sa = some_sockaddr(in, &len);
		check_error(shim_bind(fd, sa, len));
		free(sa);
		break;
	case 1:
		check_error(shim_listen(fd, fuzz_u8(in)));
		break;
	default:
		err = how & 1 ? shim_name(fd, SHIM_SOCKET, NULL, &addr) :
				shim_peer(fd, SHIM_SOCKET, NULL, &addr);
		check_error(err);
		if (!err)
			shim_addr_put(&addr, (struct sockaddr *)&in6, &len);
	}
	close(fd);
}

static void step_connect(struct fuzz_in *in)
{
	const int fd = named(SOCK_STREAM);
	socklen_t len;
	struct sockaddr *sa = some_sockaddr(in, &len);
	uint64_t id;
	int err = shim_connect(fd, sa, len, fuzz_u8(in) & 1, &id);

	check_error(err);
	if (!err && id)
		check_error(shim_connect_near(fd, id));
	shim_connect_told(fd);
	free(sa);
	close(fd);
}

static void step_option(struct fuzz_in *in)
{
	static const int names[][2] = {
		{ SOL_SOCKET, SO_REUSEADDR }, { SOL_SOCKET, SO_LINGER }, { SOL_SOCKET, SO_ERROR },
		{ SOL_SOCKET, SO_PROTOCOL }, { IPPROTO_TCP, TCP_CONGESTION },
		{ IPPROTO_TCP, TCP_INFO }, { IPPROTO_IP, IP_TTL }, { IPPROTO_IP, IP_TOS },
		{ IPPROTO_IPV6, IPV6_V6ONLY }, { SOL_SOCKET, 9999 },
	};
	const uint8_t which = fuzz_u8(in) % 10, how = fuzz_u8(in);
	const int fd = named(SOCK_STREAM);
	size_t n;
	void *value = fuzz_copy(in, how & 0x7f ? (how & 0x7f) * 3U : 0, &n);
	socklen_t len = (socklen_t)n;

	if (how & 0x80) {
		check_error(shim_option_set(fd, names[which][0], names[which][1], value, len));
	} else {
		check_error(shim_option_get(fd, names[which][0], names[which][1], value, &len));
		FUZZ_CHECK(len <= n);
	}
	free(value);
	close(fd);
}

/* ---- Names ---- */

static char *some_name(struct fuzz_in *in)
{
	size_t n;
	char *raw = fuzz_copy(in, fuzz_u8(in) + 4U, &n), *name = malloc(n + 2);

	FUZZ_CHECK(name);
	/* One that has to be asked for, mostly */
	name[0] = 'n';
	memcpy(name + 1, raw, n);
	name[n + 1] = '\0';
	free(raw);
	return name;
}

static void check_list(const struct addrinfo *a, int family)
{
	unsigned int n = 0;

	FUZZ_CHECK(a);
	for (; a; a = a->ai_next, n++) {
		FUZZ_CHECK(a->ai_family == AF_INET || a->ai_family == AF_INET6);
		FUZZ_CHECK(family == AF_UNSPEC || a->ai_family == family);
		FUZZ_CHECK(a->ai_addrlen == (a->ai_family == AF_INET ? sizeof(struct sockaddr_in) :
					     sizeof(struct sockaddr_in6)));
		FUZZ_CHECK(a->ai_addr->sa_family == a->ai_family);
		FUZZ_CHECK(!a->ai_canonname || strlen(a->ai_canonname) <= AGENT_ANSWER_MAX);
	}
	FUZZ_CHECK(n <= 3 * RGATE_SOCKET_FOUND_MAX);
}

static void step_addrinfo(struct fuzz_in *in)
{
	static const char *const services[] = { NULL, "80", "http" };
	static const int families[] = { AF_UNSPEC, AF_INET, AF_INET6, AF_UNSPEC };
	const uint8_t how = fuzz_u8(in);
	const struct addrinfo hints = {
		.ai_family = families[how & 3],
		.ai_socktype = how & 4 ? SOCK_STREAM : 0,
		.ai_flags = (how & 8 ? AI_CANONNAME : 0) | (how & 16 ? AI_ADDRCONFIG : 0) |
			    (how & 32 ? AI_V4MAPPED : 0) | (how & 64 ? AI_PASSIVE : 0),
	};
	char *name = some_name(in);
	struct addrinfo *list = NULL;

	if (!getaddrinfo(name, services[how % 3], &hints, &list)) {
		check_list(list, hints.ai_family);
		freeaddrinfo(list);
	}
	free(name);
}

static void step_hostent(struct fuzz_in *in)
{
	const uint8_t how = fuzz_u8(in);
	const size_t len = fuzz_u16(in) % ROOM;
	const int family = how & 1 ? AF_INET6 : AF_INET;
	char *name = some_name(in), *buf = malloc(len ? len : 1);
	struct hostent h, *result = NULL;
	int error = 0, ret;
	char **at;

	FUZZ_CHECK(buf);
	ret = gethostbyname2_r(name, family, &h, buf, len, &result, &error);
	FUZZ_CHECK(ret >= 0 && ret <= ERRORS && (!result || !ret));
	if (result) {
		FUZZ_CHECK(h.h_addrtype == family && h.h_length == (family == AF_INET ? 4 : 16));
		FUZZ_CHECK(!strcmp(h.h_name, name) && !h.h_aliases[0] && h.h_addr_list[0]);
		for (at = h.h_addr_list; *at; at++)
			FUZZ_CHECK(*at >= buf && *at + h.h_length <= buf + len);
	} else if (!ret) {
		FUZZ_CHECK(error > 0);
	}
	free(name);
	free(buf);
}

/* ---- What comes over its sockets ---- */

static void name_end(int fd, const char *magic, struct fuzz_in *in)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct agent_name name = { .agent = ++last_id };

	memcpy(name.magic, magic, sizeof(name.magic));
	name.error = fuzz_u8(in) & 1 ? hostile_error(in) : 0;
	name.local = hostile_addr(in);
	name.peer = hostile_addr(in);
	memcpy(un.sun_path, &name, sizeof(name));
	FUZZ_CHECK(!bind(fd, (struct sockaddr *)&un,
			 offsetof(struct sockaddr_un, sun_path) + sizeof(name)));
}

static void step_accept(struct fuzz_in *in)
{
	struct sockaddr_un un;
	int l = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const uint8_t how = fuzz_u8(in);
	struct rgate_socket_addr peer;
	struct sockaddr_in6 in6;
	socklen_t len = sizeof(in6);
	int err;

	shim_path(++last_id, &un);
	FUZZ_CHECK(!bind(l, (struct sockaddr *)&un, sizeof(un)) && !listen(l, 1));
	if (how & 1)
		name_end(s, how & 2 ? AGENT_MAGIC : AGENT_MAGIC_DATAGRAM, in);
	FUZZ_CHECK(!connect(s, (struct sockaddr *)&un, sizeof(un)));
	(void)unlink(un.sun_path);
	if (how & 4)
		close(s);
	fd = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	FUZZ_CHECK(fd >= 0);
	err = shim_accepted(fd, l, &peer);
	check_error(err);
	if (!err && peer.family)
		shim_addr_put(&peer, (struct sockaddr *)&in6, &len);
	close(fd);
	close(l);
	if (!(how & 4))
		close(s);
}

/* A message of the agent's, which may be too short, an error, or no datagram of any family */
static void give(int fd, struct fuzz_in *in)
{
	struct {
		struct agent_head head;
		unsigned char bytes[300];
	} said;
	const uint8_t how = fuzz_u8(in);
	size_t len = sizeof(said.head) + fuzz_u8(in);

	memset(&said, 0xa5, sizeof(said));
	said.head.addr = hostile_addr(in);
	if (how & 1)
		said.head.addr = (struct rgate_socket_addr){ .scope = hostile_error(in) };
	if (how & 2)
		len = fuzz_u8(in) % (sizeof(said.head) + 2);
	hostile_send(fd, &said, len, how >> 6);
}

static void receive(int fd, struct fuzz_in *in)
{
	const uint8_t how = fuzz_u8(in);
	const size_t n = how & 15, room = fuzz_u8(in);
	struct iovec v[16];
	struct sockaddr_in6 from;
	struct msghdr mh = { .msg_iov = v, .msg_iovlen = n, .msg_name = how & 16 ? &from : NULL,
			     .msg_namelen = how & 16 ? fuzz_u8(in) % (sizeof(from) + 1) : 0 };
	unsigned char *buf = calloc(1, 16 * room + 1);
	size_t i, all = n * room, whole;
	ssize_t got;

	FUZZ_CHECK(buf);
	for (i = 0; i < n; i++)
		v[i] = (struct iovec){ .iov_base = buf + i * room, .iov_len = room };
	got = shim_datagram_recv(fd, &mh, MSG_DONTWAIT | (how & 32 ? MSG_PEEK : 0) |
				 (how & 64 ? MSG_TRUNC : 0));
	if (got < 0)
		check_error(got);
	whole = got > 0 ? (size_t)got < all ? (size_t)got : all : 0;
	FUZZ_CHECK(got <= (how & 64 ? 300 : (ssize_t)all));
	/* Each of these came, and no other; of what is no datagram some may have. */
	for (i = got < 0 ? all : 0; i < 16 * room; i++)
		FUZZ_CHECK(buf[i] == (i < whole ? 0xa5 : 0));
	free(buf);
}

static void put(int fd, struct fuzz_in *in)
{
	const uint8_t how = fuzz_u8(in);
	unsigned char bytes[64] = { 0 };
	struct iovec v[40];
	socklen_t len;
	struct sockaddr *sa = some_sockaddr(in, &len);
	const struct msghdr mh = { .msg_iov = v, .msg_iovlen = how % 40,
				   .msg_name = how & 64 ? sa : NULL,
				   .msg_namelen = how & 64 ? len : 0 };
	size_t i;
	ssize_t n;

	for (i = 0; i < 40; i++)
		v[i] = (struct iovec){ .iov_base = bytes, .iov_len = i };
	n = shim_datagram_send(fd, &mh, MSG_DONTWAIT | (how & 128 ? MSG_OOB : 0));
	if (n < 0)
		check_error(n);
	else
		FUZZ_CHECK((size_t)n == mh.msg_iovlen * (mh.msg_iovlen - 1) / 2 || !n);
	free(sa);
}

static void step_datagram(struct fuzz_in *in)
{
	struct rgate_socket_addr to;
	struct sockaddr_un un;
	struct sockaddr *sa;
	socklen_t len;
	int pair[2], i, mark = fuzz_u8(in) & 3;

	FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
	shim_path(++last_id, &un);
	FUZZ_CHECK(!bind(pair[0], (struct sockaddr *)&un, sizeof(un)));
	(void)unlink(un.sun_path);
	name_end(pair[1], AGENT_MAGIC_DATAGRAM, in);
	(void)setsockopt(pair[0], SOL_SOCKET, SO_PRIORITY, &mark, sizeof(mark));
	shim_datagram_note();
	FUZZ_CHECK(shim_datagram_is(pair[0]));
	for (i = 0; i < 12 && in->len; i++) {
		switch (fuzz_u8(in) % 7) {
		case 0:
		case 1:
			if (pair[1] >= 0)
				give(pair[1], in);
			break;
		case 2:
			receive(pair[0], in);
			break;
		case 3:
			put(pair[0], in);
			break;
		case 4:
			FUZZ_CHECK(shim_datagram_there(pair[0]) >= 0);
			check_error(-(long)shim_datagram_error(pair[0]));
			break;
		case 5:
			sa = some_sockaddr(in, &len);
			check_error(shim_mark_to(shim_mark(pair[0]), sa, len, &to));
			check_error(shim_mark_connect(pair[0], sa, len));
			free(sa);
			break;
		default:
			if (pair[1] >= 0)
				close(pair[1]);
			pair[1] = -1;
		}
	}
	close(pair[0]);
	if (pair[1] >= 0)
		close(pair[1]);
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
	static void (*const steps[])(struct fuzz_in *) = {
		step_make, step_addr, step_name, step_connect, step_option, step_addrinfo,
		step_hostent, step_accept, step_datagram,
	};
	struct fuzz_in in = { .p = data, .len = size };
	const unsigned int before = fuzz_open_fds();
	unsigned int i;

	hostile_input = &in;
	for (i = 0; i < STEPS && in.len; i++) {
		steps[fuzz_u8(&in) % (sizeof(steps) / sizeof(steps[0]))](&in);
		FUZZ_CHECK(fuzz_open_fds() == before);
	}
	hostile_input = NULL;
	return 0;
}
