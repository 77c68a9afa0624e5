// SPDX-License-Identifier: MIT OR GPL-2.0
#include "vt.h"
#include "vt_keys.h"

#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>

#define EXIT_SKIP	4
#define CASE_SECS	30

static int failures;
static const char *this_case = "";
static uint64_t run_seed;
static __thread uint64_t rng;

uint64_t vt_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void vt_usleep(unsigned int us)
{
	struct timespec ts = { us / 1000000, (long)(us % 1000000) * 1000 };

	nanosleep(&ts, NULL);
}

uint64_t vt_rand(void)
{
	uint64_t x = rng;

	if (!x)
		x = run_seed ^ ((uint64_t)gettid() << 32) ^ 0x9e3779b97f4a7c15;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	rng = x;
	return x * 0x2545f4914f6cdd1d;
}

unsigned int vt_cpus(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (unsigned int)n : 1;
}

void vt_pin(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % vt_cpus(), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void say(const char *prefix, const char *fmt, va_list ap)
{
	char line[512];

	vsnprintf(line, sizeof(line), fmt, ap);
	dprintf(STDOUT_FILENO, "# %s%s%s\n", prefix, *prefix ? ": " : "", line);
}

void vt_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
}

static void say_at(const char *file, int line, const char *fmt, va_list ap)
{
	const char *base = strrchr(file, '/');
	char prefix[160];

	snprintf(prefix, sizeof(prefix), "%s: %s:%d",
		 this_case, base ? base + 1 : file, line);
	say(prefix, fmt, ap);
}

void vt_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	/* A condition that fails in a loop need not be told a thousand times */
	if (__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED) >= 20)
		return;
	va_start(ap, fmt);
	say_at(file, line, fmt, ap);
	va_end(ap);
}

void vt_die(const char *file, int line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_at(file, line, fmt, ap);
	va_end(ap);
	_exit(1);
}

void vt_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("SKIP", fmt, ap);
	va_end(ap);
	_exit(EXIT_SKIP);
}

pid_t vt_fork(int (*fn)(void *arg), void *arg)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		DIE("fork: %s", strerror(errno));
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	rng = 0;
	__atomic_store_n(&failures, 0, __ATOMIC_RELAXED);
	_exit(fn(arg) || failures ? 1 : 0);
}

int vt_wait(pid_t pid, unsigned int ms)
{
	int status;
	pid_t r = 0;

	VT_UNTIL((r = waitpid(pid, &status, WNOHANG)), ms);
	if (r)
		return r == pid ? status : -1;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return -1;
}

bool vt_loaded(void)
{
	return !access("/sys/module/ringgate", F_OK);
}

int vt_rmmod(void)
{
	return syscall(SYS_delete_module, "ringgate", O_NONBLOCK) ? -errno : 0;
}

int vt_insmod(const char *params)
{
	const char *ko = getenv("RGATE_KO");
	int fd, r;

	if (!ko)
		return -ENOENT;
	fd = open(ko, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = syscall(SYS_finit_module, fd, params, 0) ? -errno : 0;
	close(fd);
	if (!r && !VT_UNTIL(!access(RGATE_DEVICE, R_OK | W_OK), 3000))
		return -ENODEV;
	return r;
}

static int run_case(void *arg)
{
	const struct vt_case *c = arg;

	setsid();
	this_case = c->name;
	if (!(c->flags & VT_HOSTNS))
		vt_netns_fresh();
	c->fn();
	return 0;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		vt_note("%s: %s", path, strerror(errno));
	close(fd);
}

unsigned int vt_slow(void)
{
	static unsigned int slow;
	const char *s;

	if (!slow) {
		s = getenv("RGATE_SLOW");
		slow = s ? (unsigned int)atoi(s) : 1;
		if (slow < 1 || slow > 50)
			slow = 1;
	}
	return slow;
}

int vt_run(const struct vt_case *cases, unsigned int n)
{
	unsigned int i, bad = 0;
	int err;

	if (getrandom(&run_seed, sizeof(run_seed), 0) != sizeof(run_seed))
		run_seed = vt_now();
	vt_pkt_seed = run_seed;
	printf("KTAP version 1\n1..%u\n", n);
	fflush(stdout);
	/* veth hands over by the backlog queue: no loss there, please */
	write_file("/proc/sys/net/core/netdev_max_backlog", "1000000");
	err = vt_keys_hold();
	if (err)
		printf("# no chain at lo's ingress: %s\n", strerror(-err));
	for (i = 0; i < n; i++) {
		struct vt_case c = cases[i];
		unsigned int secs = (c.secs ? c.secs : CASE_SECS) * vt_slow();
		uint64_t t0 = vt_now();
		pid_t pid = vt_fork(run_case, &c);
		int st = vt_wait(pid, secs * 1000);
		const char *verdict = "ok", *why = "";

		/* whatever it left in its session */
		kill(-pid, SIGKILL);
		if (st >= 0 && WIFEXITED(st) && WEXITSTATUS(st) == EXIT_SKIP) {
			why = " # SKIP";
		} else if (st) {
			verdict = "not ok";
			bad++;
		}
		if (st < 0)
			printf("# %s: no end after %u s\n", c.name, secs);
		else if (WIFSIGNALED(st))
			printf("# %s: killed by signal %d\n", c.name, WTERMSIG(st));
		printf("%s %u - %s%s\n", verdict, i + 1, c.name, why);
		printf("# %s: %llu ms\n", c.name,
		       (unsigned long long)(vt_now() - t0) / 1000000);
		fflush(stdout);
	}
	return bad ? 1 : 0;
}
