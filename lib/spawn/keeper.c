// SPDX-License-Identifier: MIT OR GPL-2.0
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keeper.h"

#define STACK	(512U << 10)

struct runner {
	keeper_fn run;
	void *arg;
	int life;
};

static void begin(struct runner *r)
{
	r->run(r->arg, r->life);
	_exit(127);
}

/*
 * clone3(2) with a stack of its own: the new process begins on it, and has nowhere to return to.
 * The C library has no function for this. The number, or -errno
 */
#if defined(__x86_64__)
static long clone_on(const struct clone_args *args, struct runner *r)
{
	long ret;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "mov %[r], %%rdi\n\t"
			 "call *%[fn]\n\t"
			 "hlt\n"
			 "1:"
			 : "=a"(ret)
			 : "a"(SYS_clone3), "D"(args), "S"(sizeof(*args)), [fn]"r"(begin), [r]"r"(r)
			 : "rcx", "r11", "memory", "cc");
	return ret;
}

#define CAN_KEEP	true
#elif defined(__aarch64__)
static long clone_on(const struct clone_args *args, struct runner *r)
{
	register long x0 __asm__("x0") = (long)args;
	register long x1 __asm__("x1") = sizeof(*args);
	register long x8 __asm__("x8") = SYS_clone3;

	__asm__ volatile("svc 0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x0, %[r]\n\t"
			 "blr %[fn]\n\t"
			 "brk 1\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x1), "r"(x8), [fn]"r"(begin), [r]"r"(r)
			 : "memory", "cc");
	return x0;
}

#define CAN_KEEP	true
#else
static long clone_on(const struct clone_args *args, struct runner *r)
{
	(void)args;
	(void)r;
	return -1;
}

#define CAN_KEEP	false
#endif

int keeper_group(int group_fd)
{
	return CAN_KEEP ? -1 : group_fd;
}

/*
 * The other one will be somebody else's process, with the memory that this one has. So there is
 * nothing that this one could be made to do: it has no descriptor but that one, of a pipe's end for
 * reading, and may only read, write and end.
 */
static _Noreturn void keep(int fd)
{
	char c;

	(void)dup2(fd, 0);
	(void)close_range(1, ~0U, 0);
	/* Where the kernel has no such thing, nobody can look into either of them all the same. */
	(void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	(void)!syscall(SYS_read, 0, &c, 1);
	for (;;)
		syscall(SYS_exit, 0);
}

_Noreturn void keeper_begin(int group_fd, keeper_fn run, void *arg)
{
	struct runner r = { run, arg, -1 };
	struct clone_args args = {
		/* The signal of its end is that of this one's. */
		.flags = CLONE_VM | CLONE_PARENT | (group_fd >= 0 ? CLONE_INTO_CGROUP : 0),
		.stack_size = STACK, .cgroup = group_fd >= 0 ? (unsigned int)group_fd : 0,
	};
	int fds[2];
	void *stack;

	if (!CAN_KEEP)
		begin(&r);
	stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK,
		     -1, 0);
	if (stack == MAP_FAILED || pipe2(fds, O_CLOEXEC))
		_exit(1);
	(void)prctl(PR_SET_NAME, "ringgate-keeper");
	/* As the spawner's user always: it is not lost, as that of the other one is. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	args.stack = (uintptr_t)stack;
	r.life = fds[1];
	if (clone_on(&args, &r) < 0)
		_exit(1);
	keep(fds[0]);
}
