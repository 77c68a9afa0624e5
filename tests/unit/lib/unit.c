// SPDX-License-Identifier: MIT OR GPL-2.0
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_S 120	/* a test program that takes longer hangs */

unsigned int unit_rounds(unsigned int n)
{
	unsigned int slower = 1;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	slower = 10;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
	slower = 10;
#endif
#endif
	if (unit_emulated())
		slower = 10;
	if (unit_slow())
		slower = 50;
	return n / slower ? n / slower : 1;
}

unsigned int unit_rounds_or(unsigned int n, unsigned int few)
{
	return unit_rounds(100) < 100 ? few : n;
}

bool unit_emulated(void)
{
	return getenv("RGATE_TEST_EMULATED") != NULL;
}

bool unit_slow(void)
{
	return getenv("RGATE_TEST_SLOW") != NULL;
}

unsigned int unit_patience(void)
{
	const char *slow = getenv("RGATE_SLOW");
	long n = slow ? strtol(slow, NULL, 10) : 1;

	return n < 1 ? 1 : n > 100 ? 100 : (unsigned int)n;
}

bool unit_asan(void)
{
#if defined(__SANITIZE_ADDRESS__)
	return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
	return true;
#endif
#endif
	return false;
}

bool unit_tsan(void)
{
#if defined(__SANITIZE_THREAD__)
	return true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
	return true;
#endif
#endif
	return false;
}

void unit_not_for_tsan(const char *why)
{
	if (!unit_tsan())
		return;
	print_message("# SKIP: not for ThreadSanitizer: %s\n", why);
	skip();
}

int unit_run(const char *name, const struct CMUnitTest *tests, size_t n)
{
	const char *base = strrchr(name, '/');

	alarm(LIMIT_S * unit_patience());
	cmocka_set_message_output(CM_OUTPUT_TAP);
	cmocka_set_test_filter(getenv("RGATE_TEST_CASE"));
	return !!_cmocka_run_group_tests(base ? base + 1 : name, tests, n, NULL, NULL);
}

static bool alone;	/* says that it makes no threads */

/* Whether this process made a thread although it says that it makes none */
static bool unexpected_threads(void)
{
	if (!alone || __libc_single_threaded)
		return false;
	fprintf(stderr, "# there are threads: this needs UNIT_MAIN(), for ThreadSanitizer to see it\n");
	return true;
}

int unit_run_alone(const char *name, const struct CMUnitTest *tests, size_t n)
{
	int err;

	alone = true;
	err = unit_run(name, tests, n);
	return unexpected_threads() ? 1 : err;
}

uint64_t unit_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t unit_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

struct rgate_ring *unit_ring(uint32_t slots, uint32_t slot_size, uint32_t flags,
			     uint32_t policy)
{
	struct rgate_ring_opts o = RGATE_OPTS(rgate_ring_opts,
		.slots = slots,
		.slot_size = slot_size,
		.flags = flags,
		.policy = policy,
	);
	struct rgate_ring *ring = NULL;

	assert_int_equal(rgate_ring_open_memfd(&ring, &o), 0);
	return ring;
}

static unsigned char pattern_byte(uint64_t i, size_t at)
{
	return (unsigned char)((i * 131 + at * 7) >> (at & 3));
}

void unit_pattern(void *data, uint64_t i, size_t len)
{
	unsigned char *p = data;
	size_t at;

	for (at = 0; at < len; at++)
		p[at] = pattern_byte(i, at);
	if (len >= sizeof(i))
		memcpy(p, &i, sizeof(i));
}

size_t unit_pattern_check(const void *data, uint64_t i, size_t len)
{
	const unsigned char *p = data;
	size_t at = 0;

	if (len >= sizeof(i)) {
		if (memcmp(p, &i, sizeof(i)))
			return 1;
		at = sizeof(i);
	}
	for (; at < len; at++)
		if (p[at] != pattern_byte(i, at))
			return at + 1;
	return 0;
}

int unit_put(struct rgate_producer *p, uint64_t i, size_t len)
{
	struct rgate_slot *s = rgate_producer_reserve(p);

	if (!s)
		return -ENOBUFS;
	unit_pattern(rgate_producer_data(s), i, len);
	rgate_producer_fill(p, s, (uint32_t)len, (uint32_t)len);
	rgate_producer_publish(p);
	return 0;
}

void unit_dir_make(char *dir)
{
	strcpy(dir, access("/dev/shm", W_OK) ? "/tmp/rgate_unit.XXXXXX" :
	       "/dev/shm/rgate_unit.XXXXXX");
	assert_non_null(mkdtemp(dir));
}

void unit_dir_empty(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	assert_non_null(d);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			assert_int_equal(unlinkat(dirfd(d), e->d_name, 0), 0);
	closedir(d);
}

unsigned int unit_entries(const char *dir)
{
	DIR *d = opendir(dir);
	unsigned int n = 0;

	unit_require(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

unsigned int unit_mappings(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned int n = 0;
	char line[512];

	unit_require(f);
	while (fgets(line, sizeof(line), f))
		n += !!strstr(line, name);
	fclose(f);
	return n;
}

/* scripts/coverage: gcov writes at exit(), which children do without. */
#ifdef UNIT_COVERAGE
void __gcov_dump(void);
#else
#define __gcov_dump() ((void)0)
#endif

_Noreturn void unit_die(const char *file, int line, const char *what)
{
	fprintf(stderr, "# %s:%d: %s failed\n", file, line, what);
	_exit(99);
}

/* Some of each size: a thread that has just begun has none at hand. */
static void *allocate(void *arg)
{
	char *volatile p;
	size_t n;

	for (n = 16; n < 1 << 18; n += n / 8) {
		p = malloc(n);
		free(p);
	}
	return arg;
}

/* In a child: its end of the pair, once it is seen that its threads can allocate memory */
static int child_begins(int sv[2])
{
	pthread_t t;

	close(sv[0]);
	alarm(LIMIT_S * unit_patience());
	if (unit_asan()) {
		unit_require(!pthread_create(&t, NULL, allocate, NULL));
		unit_require(!pthread_join(t, NULL));
		unit_require(write(sv[1], "", 1) == 1);
	}
	return sv[1];
}

/*
 * The address sanitizer's allocator may do nothing about fork(2), as that of gcc 12: where another
 * thread had one of its locks at that moment, the child's threads wait for it for ever. Such a
 * child is given up, and another one made.
 */
static bool child_is_well(int pid, int sock)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	char said;

	if (!unit_asan())
		return true;
	if (poll(&p, 1, 2000 * (int)unit_patience()) == 1 && read(sock, &said, 1) == 1)
		return true;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return false;
}

static int try_fork(int (*fn)(int sock, void *arg), void *arg, int *sock)
{
	int sv[2], pid, status;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		status = fn(child_begins(sv), arg);
		/* AddressSanitizer's has one: see child_begins(). */
		if (!unit_asan() && unexpected_threads())
			status = 98;
		__gcov_dump();
		_exit(status);
	}
	close(sv[1]);
	if (!child_is_well(pid, sv[0])) {
		close(sv[0]);
		return -1;
	}
	*sock = sv[0];
	return pid;
}

int unit_fork(int (*fn)(int sock, void *arg), void *arg, int *sock)
{
	unsigned int i;
	int pid = -1;

	for (i = 0; pid < 0 && i < 8; i++)
		pid = try_fork(fn, arg, sock);
	assert_true(pid >= 0);
	return pid;
}

void unit_reap(int pid, int status)
{
	int st;

	assert_int_equal(waitpid(pid, &st, 0), pid);
	assert_true(WIFEXITED(st));
	assert_int_equal(WEXITSTATUS(st), status);
}

/*
 * The library's mutexes check errors in tests (--wrap, see the Makefile): a lock that is taken
 * twice, or given back by who does not have it, ends the program at once.
 */
int __real_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr);
int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __real_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);

int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
	pthread_mutexattr_t checks;
	int err;

	pthread_mutexattr_init(&checks);
	if (attr)
		checks = *attr;
	pthread_mutexattr_settype(&checks, PTHREAD_MUTEX_ERRORCHECK);
	err = __real_pthread_mutex_init(m, &checks);
	pthread_mutexattr_destroy(&checks);
	return err;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
	unit_require(!__real_pthread_mutex_lock(m));
	return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
	/*
	 * Of PTHREAD_MUTEX_INITIALIZER it checks nothing: who could take it does not have it. A
	 * recursive one its owner could take; those check that it is his, and glibc says which
	 * they are in the lowest bits.
	 */
	if ((m->__data.__kind & 3) != PTHREAD_MUTEX_RECURSIVE_NP)
		unit_require(pthread_mutex_trylock(m));
	unit_require(!__real_pthread_mutex_unlock(m));
	return 0;
}
