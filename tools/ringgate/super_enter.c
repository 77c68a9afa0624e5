// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The filter. What it does not name goes on as ever. In an empty network namespace other sockets
 * than TCP and UDP reach nothing. Calls of another kind than this machine's own, by which a socket
 * could be made unseen, are those of no kernel, and so is io_uring, for which programs have another
 * way.
 */
#define _GNU_SOURCE
#include "super.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util.h"

#if defined(__x86_64__)
#define OWN_ARCH	AUDIT_ARCH_X86_64
#define OTHERS		0x40000000U	/* numbers from here on are x32's */
#elif defined(__aarch64__)
#define OWN_ARCH	AUDIT_ARCH_AARCH64
#define OTHERS		0x80000000U
#else
#define OWN_ARCH	0U	/* no calls are known: super_enter() says so */
#define OTHERS		0U
#endif

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV	(1UL << 5)
#endif

#define WORD(at)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
/* Of an argument; both machines are little-endian. */
#define LOW(n)		WORD(offsetof(struct seccomp_data, args[n]))
#define HIGH(n)		WORD(offsetof(struct seccomp_data, args[n]) + 4)
#define IF(value, yes, no)	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define RET(what)	BPF_STMT(BPF_RET | BPF_K, what)
#define NO_CALL		(SECCOMP_RET_ERRNO | ENOSYS)
#define SEEN		RET(SECCOMP_RET_USER_NOTIF)

static struct sock_filter filter[] = {
	WORD(offsetof(struct seccomp_data, arch)),
	IF(OWN_ARCH, 1, 0),
	RET(NO_CALL),
	WORD(offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, OTHERS, 0, 1),
	RET(NO_CALL),
	IF(SYS_io_uring_setup, 0, 1),
	RET(NO_CALL),
	IF(SYS_connect, 0, 1), SEEN,
	IF(SYS_accept, 0, 1), SEEN,
	IF(SYS_accept4, 0, 1), SEEN,
	IF(SYS_bind, 0, 1), SEEN,
	IF(SYS_listen, 0, 1), SEEN,
	IF(SYS_getsockname, 0, 1), SEEN,
	IF(SYS_getpeername, 0, 1), SEEN,
	IF(SYS_setsockopt, 0, 1), SEEN,
	IF(SYS_getsockopt, 0, 1), SEEN,
	IF(SYS_sendmsg, 0, 1), SEEN,
	IF(SYS_recvmsg, 0, 1), SEEN,
	IF(SYS_sendmmsg, 0, 1), SEEN,
	IF(SYS_recvmmsg, 0, 1), SEEN,
	IF(SYS_socket, 0, 5),
	LOW(0),
	IF(AF_INET, 2, 0),
	IF(AF_INET6, 1, 0),
	RET(SECCOMP_RET_ALLOW),
	RET(SECCOMP_RET_USER_NOTIF),
	/* With an address, or room for one */
	IF(SYS_sendto, 1, 0),
	IF(SYS_recvfrom, 0, 6),
	LOW(4),
	IF(0, 0, 3),
	HIGH(4),
	IF(0, 0, 1),
	RET(SECCOMP_RET_ALLOW),
	RET(SECCOMP_RET_USER_NOTIF),
	RET(SECCOMP_RET_ALLOW),
};

int super_enter(int sock)
{
	const struct sock_fprog prog = { .len = ARRAY_SIZE(filter), .filter = filter };
	char ready;
	int fd;

	if (!OWN_ARCH)
		return -ENOSYS;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	/* A call that is looked at comes to its end: a signal waits for that. */
	fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			  SECCOMP_FILTER_FLAG_NEW_LISTENER |
			  SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &prog);
	if (fd < 0)
		return -errno;
	if (write(sock, &fd, sizeof(fd)) != sizeof(fd) || read(sock, &ready, 1) != 1)
		return -EPIPE;
	close(fd);
	return 0;
}
