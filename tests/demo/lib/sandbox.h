/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef DEMO_SANDBOX_H
#define DEMO_SANDBOX_H

/*
 * From here on any system call but exit_group kills this process with SIGSYS.
 * Exits where the kernel has no seccomp filters.
 */
void sandbox_enter(void);

#endif
