// SPDX-License-Identifier: MIT OR GPL-2.0
/* Without a server: flock(2); a robust mutex, and a barrier, in memory that all map. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"
#include "rival.h"

static void prepare_file(const char *address)
{
	int fd = open(address, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || close(fd))
		bench_die(errno, "%s", address);
}

static void *join_file(const char *address, unsigned int i, unsigned int members)
{
	int *fd = malloc(sizeof(*fd));

	(void)i;
	(void)members;
	if (!fd)
		bench_die(ENOMEM, "a lock");
	*fd = open(address, O_RDWR | O_CLOEXEC);
	if (*fd < 0)
		bench_die(errno, "%s", address);
	return fd;
}

static void acquire_file(void *h)
{
	if (flock(*(int *)h, LOCK_EX))
		bench_die(errno, "flock");
}

static void release_file(void *h)
{
	if (flock(*(int *)h, LOCK_UN))
		bench_die(errno, "flock");
}

static void leave_file(void *h)
{
	close(*(int *)h);
	free(h);
}

const struct rival file_lock = { "flock", prepare_file, join_file, acquire_file, release_file, NULL,
				 leave_file };

static struct shared {
	pthread_mutex_t mutex;
	pthread_barrier_t barrier;
	unsigned int members;
} *shared;

static void prepare_mutex(const char *address)
{
	pthread_mutexattr_t attr;

	(void)address;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED)
		bench_die(errno, "memory");
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&shared->mutex, &attr);
}

/* The first of those that take the mutex makes the barrier. */
static void *join_mutex(const char *address, unsigned int i, unsigned int members)
{
	pthread_barrierattr_t attr;

	(void)address;
	(void)i;
	pthread_mutex_lock(&shared->mutex);
	if (members && !shared->members) {
		pthread_barrierattr_init(&attr);
		pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
		pthread_barrier_init(&shared->barrier, &attr, members);
		shared->members = members;
	}
	pthread_mutex_unlock(&shared->mutex);
	return shared;
}

static void acquire_mutex(void *h)
{
	int err = pthread_mutex_lock(&((struct shared *)h)->mutex);

	if (err)
		bench_die(err, "the mutex");
}

static void release_mutex(void *h)
{
	pthread_mutex_unlock(&((struct shared *)h)->mutex);
}

static void meet_mutex(void *h)
{
	pthread_barrier_wait(&((struct shared *)h)->barrier);
}

static void leave_mutex(void *h)
{
	(void)h;
}

const struct rival robust_mutex = { "futex", prepare_mutex, join_mutex, acquire_mutex,
				    release_mutex, meet_mutex, leave_mutex };
