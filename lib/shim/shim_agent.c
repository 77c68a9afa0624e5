// SPDX-License-Identifier: MIT OR GPL-2.0
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ASK_TRIES	10U

static char control[AGENT_PATH_MAX];
static size_t dir_len;		/* of the directory that it is in */
static bool begun;

/* By several threads at once it does the same. The first byte says that all are there. */
static void set_control(const char *to)
{
	const char *name = to ? strrchr(to, '/') : NULL;

	if (!name || name == to || name - to >= (ptrdiff_t)AGENT_DIR_MAX ||
	    strlen(to) >= sizeof(control))
		return;
	dir_len = (size_t)(name - to);
	(void)stpcpy(control + 1, to + 1);
	__atomic_store_n(&control[0], to[0], __ATOMIC_RELEASE);
}

void shim_begin(const char *agent)
{
	set_control(agent ? agent : secure_getenv(AGENT_ENV));
	__atomic_store_n(&begun, true, __ATOMIC_RELEASE);
}

static bool has_control(void)
{
	return __atomic_load_n(&control[0], __ATOMIC_ACQUIRE) != '\0';
}

bool shim_active(void)
{
	/* Constructors of other libraries may be earlier. */
	if (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE) && !has_control())
		set_control(secure_getenv(AGENT_ENV));
	return has_control();
}

/* ---- Whose a descriptor is ---- */

/* The kernel's word: it does not change errno if there is none. */
static bool name_of(long call, int fd, struct sockaddr_un *un, socklen_t *len)
{
	const int before = errno;
	long ret;

	memset(un, 0, sizeof(*un));
	*len = sizeof(*un);
	ret = syscall(call, fd, un, len);
	errno = before;
	return !ret && un->sun_family == AF_UNIX;
}

static bool is_in_dir(const struct sockaddr_un *un)
{
	return !strncmp(un->sun_path, control, dir_len) && un->sun_path[dir_len] == '/';
}

enum shim_kind shim_kind(int fd, struct agent_name *name)
{
	struct sockaddr_un un;
	socklen_t len;

	if (!shim_active() || !name_of(SYS_getsockname, fd, &un, &len) || !is_in_dir(&un))
		return SHIM_NONE;
	if (!name_of(SYS_getpeername, fd, &un, &len))
		return SHIM_SOCKET;
	memcpy(name, un.sun_path, sizeof(*name));
	if (len == offsetof(struct sockaddr_un, sun_path) + sizeof(*name) && !name->zero) {
		if (!memcmp(name->magic, AGENT_MAGIC, sizeof(name->magic)))
			return SHIM_ACCEPTED;
		if (!memcmp(name->magic, AGENT_MAGIC_DATAGRAM, sizeof(name->magic)))
			return SHIM_DATAGRAM;
	}
	if (is_in_dir(&un) && strcmp(un.sun_path + dir_len + 1, AGENT_DATA))
		return SHIM_LOCAL;
	return SHIM_SOCKET;
}

/* ---- The agent ---- */

union room {
	struct cmsghdr align;
	char buf[CMSG_SPACE(sizeof(int))];
};

static int call_agent(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	long fd, ret;

	(void)stpcpy(un.sun_path, control);
	fd = syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	do {
		ret = syscall(SYS_connect, fd, &un, sizeof(un));
	} while (ret < 0 && errno == EINTR);
	if (!ret)
		return (int)fd;
	(void)syscall(SYS_close, fd);
	return -ENETDOWN;
}

void shim_path(uint64_t id, struct sockaddr_un *un)
{
	char digits[20], *at = digits + sizeof(digits);
	char *end;

	do {
		*--at = (char)('0' + id % 10);
		id /= 10;
	} while (id);
	*un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	end = mempcpy(un->sun_path, control, dir_len + 1);
	memcpy(end, at, (size_t)(digits + sizeof(digits) - at));
}

bool shim_gone(void)
{
	const int before = errno;
	bool gone;

	gone = syscall(SYS_faccessat, AT_FDCWD, control, F_OK) < 0 && errno == ENOENT;
	errno = before;
	return gone;
}

/* Of a connect that is waited for: as long as the program's sends may wait */
static void limit_wait(int sock, int fd)
{
	struct timeval most;
	socklen_t len = sizeof(most);

	if (!syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, &most, &len))
		(void)syscall(SYS_setsockopt, sock, SOL_SOCKET, SO_RCVTIMEO, &most, len);
}

static int tell(int sock, const struct agent_ask *ask, int fd)
{
	struct iovec v = { .iov_base = (void *)(uintptr_t)ask, .iov_len = sizeof(*ask) };
	struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1 };
	union room room = { .buf = { 0 } };
	long n;

	if (fd >= 0) {
		mh.msg_control = room.buf;
		mh.msg_controllen = sizeof(room.buf);
		*CMSG_FIRSTHDR(&mh) = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int)) };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&mh)), &fd, sizeof(fd));
	}
	do {
		n = syscall(SYS_sendmsg, sock, &mh, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
		return -ERESTART;
	return n == (long)sizeof(*ask) ? 0 : -ENETDOWN;
}

static int hear(int sock, struct agent_answer *answer, int *made, bool cloexec, bool waits)
{
	struct iovec v = { .iov_base = answer, .iov_len = sizeof(*answer) };
	struct msghdr mh = { .msg_iov = &v, .msg_iovlen = 1 };
	union room room = { .buf = { 0 } };
	struct cmsghdr *h;
	long n;

	mh.msg_control = room.buf;
	/* For one alone, and not for another one behind it, for which there would be padding */
	mh.msg_controllen = made ? CMSG_LEN(sizeof(int)) : 0;
	/* A connect goes on after a signal, as the kernel's does. */
	do {
		n = syscall(SYS_recvmsg, sock, &mh, cloexec ? MSG_CMSG_CLOEXEC : 0);
	} while (n < 0 && errno == EINTR && !waits);
	if (n < 0 && waits && (errno == EINTR || errno == EAGAIN))
		return errno == EINTR ? -EINTR : -EINPROGRESS;
	/* It was not read. */
	if (n < 0 && errno == ECONNRESET)
		return -ERESTART;
	h = n >= 0 && made ? CMSG_FIRSTHDR(&mh) : NULL;
	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
		memcpy(made, CMSG_DATA(h), sizeof(*made));
	/* What says anything else is no agent. */
	if (n != (long)sizeof(*answer) || answer->result > 0 || answer->result < -AGENT_ERROR_MAX)
		return -ENETDOWN;
	/* No place for it was left here. */
	if (made && *made < 0 && !answer->result)
		return -EMFILE;
	return answer->result;
}

/* -ERESTART: the agent has sent it away without looking, as it came too late, or is gone */
static int ask_once(const struct agent_ask *ask, int fd, struct agent_answer *answer, int *made,
		    bool cloexec)
{
	const bool waits = ask->what == AGENT_CONNECT && !(ask->a & AGENT_NONBLOCK);
	int ret, sock = call_agent();

	if (sock < 0)
		return sock;
	if (waits)
		limit_wait(sock, fd);
	ret = tell(sock, ask, fd);
	if (!ret)
		ret = hear(sock, answer, made, cloexec, waits);
	if (ret && made && *made >= 0) {
		(void)syscall(SYS_close, *made);
		*made = -1;
	}
	(void)syscall(SYS_close, sock);
	return ret;
}

int shim_ask(const struct agent_ask *ask, int fd, struct agent_answer *answer, int *made,
	     bool cloexec)
{
	const int before = errno;
	struct agent_answer room;
	unsigned int tries = ASK_TRIES;
	int ret;

	do {
		ret = ask_once(ask, fd, answer ? answer : &room, made, cloexec);
	} while (ret == -ERESTART && --tries);
	errno = before;
	return ret == -ERESTART ? -ENETDOWN : ret;
}
