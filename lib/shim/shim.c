// SPDX-License-Identifier: MIT OR GPL-2.0
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>

static void *next[SHIM_CALLS_N];

static const char *const names[SHIM_CALLS_N] = {
	[SHIM_CALL_socket] = "socket",
	[SHIM_CALL_bind] = "bind",
	[SHIM_CALL_getsockname] = "getsockname",
	[SHIM_CALL_getpeername] = "getpeername",
	[SHIM_CALL_connect] = "connect",
	[SHIM_CALL_listen] = "listen",
	[SHIM_CALL_accept] = "accept",
	[SHIM_CALL_accept4] = "accept4",
	[SHIM_CALL_getaddrinfo] = "getaddrinfo",
	[SHIM_CALL_gethostbyname] = "gethostbyname",
	[SHIM_CALL_gethostbyname2] = "gethostbyname2",
	[SHIM_CALL_gethostbyname2_r] = "gethostbyname2_r",
	[SHIM_CALL_setsockopt] = "setsockopt",
	[SHIM_CALL_getsockopt] = "getsockopt",
	[SHIM_CALL_send] = "send",
	[SHIM_CALL_sendto] = "sendto",
	[SHIM_CALL_sendmsg] = "sendmsg",
	[SHIM_CALL_recvfrom] = "recvfrom",
	[SHIM_CALL___recvfrom_chk] = "__recvfrom_chk",
	[SHIM_CALL_recvmsg] = "recvmsg",
	[SHIM_CALL_recvmmsg] = "recvmmsg",
	[SHIM_CALL_sendmmsg] = "sendmmsg",
	[SHIM_CALL_read] = "read",
	[SHIM_CALL___read_chk] = "__read_chk",
	[SHIM_CALL_readv] = "readv",
	[SHIM_CALL_write] = "write",
	[SHIM_CALL_writev] = "writev",
	[SHIM_CALL_recv] = "recv",
	[SHIM_CALL___recv_chk] = "__recv_chk",
	[SHIM_CALL_shutdown] = "shutdown",
	[SHIM_CALL_ioctl] = "ioctl",
	[SHIM_CALL_syscall] = "syscall",
};

static void *look_up(enum shim_call call)
{
	void *fn = dlsym(RTLD_NEXT, names[call]);

	__atomic_store_n(&next[call], fn, __ATOMIC_RELAXED);
	return fn;
}

__attribute__((constructor)) static void begin(void)
{
	unsigned int i;

	shim_begin(NULL);
	for (i = 0; i < SHIM_CALLS_N; i++)
		(void)look_up(i);
	shim_datagram_begin();
}

void *shim_next(enum shim_call call)
{
	/* One that was there when the program began: nothing but its address is read from it. */
	void *fn = __atomic_load_n(&next[call], __ATOMIC_RELAXED);

	return fn ? fn : look_up(call);
}

int shim_return(int result)
{
	if (result >= 0)
		return result;
	errno = -result;
	return -1;
}
