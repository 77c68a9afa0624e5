/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef DEMO_SANDBOX_H
#define DEMO_SANDBOX_H

#include <stdbool.h>

/*
 * From here on any system call but exit_group kills this process with SIGSYS; with
 * @sleeps those that rgate_consumer_wait() makes to sleep are allowed, too: poll or
 * epoll_wait, recvmsg, and clock_gettime where the vDSO does not do it.
 * Exits where the kernel has no seccomp filters.
 */
void sandbox_enter(bool sleeps);

#endif
