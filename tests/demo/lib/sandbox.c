// SPDX-License-Identifier: MIT OR GPL-2.0
#include "sandbox.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "demo.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* The first is always allowed. ppoll, epoll_pwait: what poll() and epoll_wait() are where there
 * are no such calls */
static const uint32_t allowed[] = {
	SYS_exit_group, SYS_ppoll, SYS_epoll_pwait, SYS_recvmsg, SYS_clock_gettime,
#ifdef SYS_poll
	SYS_poll,
#endif
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
};

void sandbox_enter(bool sleeps)
{
	const unsigned int n = sleeps ? ARRAY_SIZE(allowed) : 1;
	struct sock_filter prog[ARRAY_SIZE(allowed) + 3] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog fprog = {
		.len = (unsigned short)(n + 3),
		.filter = prog,
	};
	unsigned int i;

	/* over those that are left, and the one that kills */
	for (i = 0; i < n; i++)
		prog[1 + i] = (struct sock_filter)
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], n - i, 0);
	prog[1 + n] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	prog[2 + n] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &fprog))
		demo_die(errno, "seccomp");
}
