// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Programs that make the program's calls by syscall(2), as libuv does for several datagrams.
 * This library makes its own by that function, too: the linker has those go behind it (--wrap).
 *
 * The calls below are this library's, whoever else has functions of these names: those of a program
 * may be what calls syscall(2). The linker sees to that as well (-Bsymbolic-functions).
 */
#include "shim.h"

#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define ARGS 6

/* What the caller has not given is not looked at, as the kernel would not look at it. */
#define GET_ARGS(a, number)						\
	do {								\
		unsigned int i;						\
		va_list list;						\
									\
		va_start(list, number);					\
		for (i = 0; i < ARGS; i++)				\
			(a)[i] = va_arg(list, long);			\
		va_end(list);						\
	} while (0)

static long behind(long number, const long *a)
{
	return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
	long a[ARGS];

	GET_ARGS(a, number);
	return behind(number, a);
}

/* About sockets, but for those that move bytes */
static long about(long number, const long *a)
{
	const int fd = (int)a[0];

	switch (number) {
	case SYS_socket:
		return socket((int)a[0], (int)a[1], (int)a[2]);
	case SYS_bind:
		return bind(fd, (void *)a[1], (socklen_t)a[2]);
	case SYS_listen:
		return listen(fd, (int)a[1]);
	case SYS_connect:
		return connect(fd, (void *)a[1], (socklen_t)a[2]);
	case SYS_accept:
		return accept(fd, (void *)a[1], (void *)a[2]);
	case SYS_accept4:
		return accept4(fd, (void *)a[1], (void *)a[2], (int)a[3]);
	case SYS_getsockname:
		return getsockname(fd, (void *)a[1], (void *)a[2]);
	case SYS_getpeername:
		return getpeername(fd, (void *)a[1], (void *)a[2]);
	case SYS_setsockopt:
		return setsockopt(fd, (int)a[1], (int)a[2], (void *)a[3], (socklen_t)a[4]);
	case SYS_getsockopt:
		return getsockopt(fd, (int)a[1], (int)a[2], (void *)a[3], (void *)a[4]);
	case SYS_shutdown:
		return shutdown(fd, (int)a[1]);
	default:
		return behind(number, a);
	}
}

/* The same as without this library, and so no cancellation point, as functions of libc are */
static bool is_plain(long number, const long *a)
{
	switch (number) {
	case SYS_recvfrom:
	case SYS_sendto:
		if (a[4])
			return false;
		break;
	case SYS_read:
	case SYS_readv:
	case SYS_write:
	case SYS_writev:
	case SYS_sendmmsg:
		break;
	default:
		return false;
	}
	return !shim_datagram_is((int)a[0]);
}

SHIM_EXPORT long syscall(long number, ...)
{
	long a[ARGS];

	GET_ARGS(a, number);
	if (is_plain(number, a))
		return behind(number, a);
	switch (number) {
	case SYS_read:
		return read((int)a[0], (void *)a[1], (size_t)a[2]);
	case SYS_readv:
		return readv((int)a[0], (void *)a[1], (int)a[2]);
	case SYS_write:
		return write((int)a[0], (void *)a[1], (size_t)a[2]);
	case SYS_writev:
		return writev((int)a[0], (void *)a[1], (int)a[2]);
	case SYS_recvfrom:
		return recvfrom((int)a[0], (void *)a[1], (size_t)a[2], (int)a[3], (void *)a[4],
				(void *)a[5]);
	case SYS_recvmsg:
		return recvmsg((int)a[0], (void *)a[1], (int)a[2]);
	case SYS_recvmmsg:
		return recvmmsg((int)a[0], (void *)a[1], (unsigned int)a[2], (int)a[3],
				(void *)a[4]);
	case SYS_sendto:
		return sendto((int)a[0], (void *)a[1], (size_t)a[2], (int)a[3], (void *)a[4],
			      (socklen_t)a[5]);
	case SYS_sendmsg:
		return sendmsg((int)a[0], (void *)a[1], (int)a[2]);
	case SYS_sendmmsg:
		return sendmmsg((int)a[0], (void *)a[1], (unsigned int)a[2], (int)a[3]);
	default:
		return about(number, a);
	}
}
