/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Calls to the system that fail, one at a time. For one file of a program whose linker
 * sends those calls here (--wrap, see the Makefile); it says of whom with refuse_mine().
 */
#ifndef REFUSE_H
#define REFUSE_H

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <fcntl.h>
#include <unistd.h>

struct refusal {		/* shared with processes that were forked since */
	unsigned int nth;	/* of the calls fails, from 1; 0: none */
	unsigned int seen;
	int injected;		/* the errno, once it has failed */
	char where[24];
};

static struct refusal *refusal;

static bool refuse_mine(void);

static inline void refuse_setup(void)
{
	refusal = mmap(NULL, sizeof(*refusal), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (refusal == MAP_FAILED)
		abort();
}

static inline void refuse(unsigned int nth)
{
	__atomic_store_n(&refusal->injected, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&refusal->seen, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&refusal->nth, nth, __ATOMIC_RELEASE);
}

static inline bool refused(int err, const char *name)
{
	unsigned int nth = refusal ? __atomic_load_n(&refusal->nth, __ATOMIC_ACQUIRE) : 0;

	if (!nth || !refuse_mine() ||
	    __atomic_add_fetch(&refusal->seen, 1, __ATOMIC_RELAXED) != nth)
		return false;
	strncpy(refusal->where, name, sizeof(refusal->where) - 1);
	__atomic_store_n(&refusal->injected, err, __ATOMIC_RELEASE);
	errno = err;
	return true;
}

#define REFUSES(type, name, err, bad, params, args)			\
	type __real_##name params;					\
	type __wrap_##name params;					\
	type __wrap_##name params					\
	{								\
		return refused(err, #name) ? bad : __real_##name args;	\
	}

REFUSES(void *, malloc, ENOMEM, NULL, (size_t n), (n))
REFUSES(void *, calloc, ENOMEM, NULL, (size_t n, size_t size), (n, size))
REFUSES(void *, realloc, ENOMEM, NULL, (void *p, size_t n), (p, n))
REFUSES(char *, strdup, ENOMEM, NULL, (const char *s), (s))
REFUSES(char *, strndup, ENOMEM, NULL, (const char *s, size_t n), (s, n))
REFUSES(int, posix_memalign, ENOMEM, ENOMEM, (void **p, size_t align, size_t n), (p, align, n))
REFUSES(void *, mmap, ENOMEM, MAP_FAILED,
	(void *at, size_t n, int prot, int flags, int fd, off_t off),
	(at, n, prot, flags, fd, off))
REFUSES(int, memfd_create, EMFILE, -1, (const char *name, unsigned int flags), (name, flags))
REFUSES(int, ftruncate, ENOSPC, -1, (int fd, off_t n), (fd, n))
REFUSES(int, epoll_create1, EMFILE, -1, (int flags), (flags))
REFUSES(int, epoll_ctl, ENOSPC, -1, (int ep, int op, int fd, struct epoll_event *ev),
	(ep, op, fd, ev))
REFUSES(int, eventfd, EMFILE, -1, (unsigned int n, int flags), (n, flags))
REFUSES(int, timerfd_create, EMFILE, -1, (int clock, int flags), (clock, flags))
REFUSES(int, socket, EMFILE, -1, (int family, int type, int protocol), (family, type, protocol))
REFUSES(int, socketpair, EMFILE, -1, (int family, int type, int protocol, int fd[2]),
	(family, type, protocol, fd))
REFUSES(int, bind, EACCES, -1, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
REFUSES(int, listen, EACCES, -1, (int fd, int n), (fd, n))
REFUSES(int, pipe2, EMFILE, -1, (int fd[2], int flags), (fd, flags))
REFUSES(int, pthread_create, EAGAIN, EAGAIN,
	(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg),
	(t, attr, fn, arg))

int __real_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	return refused(EMFILE, "open") ? -1 : __real_open(path, flags, mode);
}

#endif
