// SPDX-License-Identifier: MIT OR GPL-2.0
#include "demo.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <ringgate/rgate.h>

void demo_die(int err, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	if (err)
		fprintf(stderr, ": %s", rgate_strerror(NULL, err));
	fputc('\n', stderr);
	exit(1);
}

void demo_sum_init(struct demo_sum *s, bool sha)
{
	memset(s, 0, sizeof(*s));
	if (!sha)
		return;
	s->sha = EVP_MD_CTX_new();
	if (!s->sha || !EVP_DigestInit_ex(s->sha, EVP_sha256(), NULL))
		demo_die(0, "libcrypto has no SHA-256");
}

void demo_sum_add(struct demo_sum *s, const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t word;
	size_t n = len;

	s->bytes += len;
	if (s->sha) {
		EVP_DigestUpdate(s->sha, data, len);
		return;
	}
	for (; n >= sizeof(word); n -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		s->sum += word;
	}
	for (; n; n--)
		s->sum += *p++;
}

void demo_sum_text(struct demo_sum *s, char text[DEMO_SUM_TEXT])
{
	unsigned char md[EVP_MAX_MD_SIZE];
	unsigned int len = 0, i;
	char *at = text;

	if (!s->sha) {
		snprintf(text, DEMO_SUM_TEXT, "sum:%016llx", (unsigned long long)s->sum);
		return;
	}
	EVP_DigestFinal_ex(s->sha, md, &len);
	at += sprintf(at, "sha256:");
	for (i = 0; i < len && i < 32; i++)
		at += sprintf(at, "%02x", md[i]);
}

uint64_t demo_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static uint64_t clock_us(clockid_t id)
{
	struct timespec t = { 0 };

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t demo_cpu_us(void)
{
	return clock_us(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t demo_cpu_of(pid_t pid)
{
	clockid_t id;

	return clock_getcpuclockid(pid, &id) ? 0 : clock_us(id);
}

uint64_t demo_cpu_all(void)
{
	unsigned long long user = 0, nice = 0, sys = 0, irq = 0, soft = 0;
	FILE *f = fopen("/proc/stat", "re");

	if (!f)
		demo_die(errno, "/proc/stat");
	if (fscanf(f, "cpu %llu %llu %llu %*u %*u %llu %llu", &user, &nice, &sys, &irq, &soft) != 5)
		demo_die(0, "/proc/stat is not as it was");
	fclose(f);
	return (user + nice + sys + irq + soft) * 1000000 / (unsigned long)sysconf(_SC_CLK_TCK);
}

void demo_clock_read(struct demo_clock *c, int which)
{
	uint64_t before, after, ns, best = UINT64_MAX;
	int i;

	/* the closest of several pairs: any may be interrupted */
	for (i = 0; i < 16; i++) {
		before = demo_ticks();
		ns = demo_now_ns();
		after = demo_ticks();
		if (after - before >= best)
			continue;
		best = after - before;
		c->ticks[which] = before + best / 2;
		c->ns[which] = ns;
	}
}

uint64_t demo_clock_ns(const struct demo_clock *c, uint64_t ticks)
{
	double per_tick = (double)(c->ns[1] - c->ns[0]) /
			  (double)(c->ticks[1] - c->ticks[0]);

	return c->ns[0] + (uint64_t)((double)(int64_t)(ticks - c->ticks[0]) * per_tick);
}

void demo_stay(void)
{
	int cpu = sched_getcpu();
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	if (cpu >= 0)
		CPU_SET((unsigned int)cpu, &cpus);
	if (cpu < 0 || sched_setaffinity(0, sizeof(cpus), &cpus))
		demo_die(errno, "staying on a CPU");
}

pid_t demo_spawn(char **argv)
{
	pid_t pid = fork();

	if (pid < 0)
		demo_die(errno, "fork");
	if (!pid) {
		execvp(argv[0], argv);
		demo_die(errno, "%s", argv[0]);
	}
	return pid;
}

bool demo_ended(pid_t pid)
{
	siginfo_t si = { .si_pid = 0 };

	return waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) ||
	       si.si_pid == pid;
}

void demo_reap(pid_t pid, const char *what)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		demo_die(0, "%s failed", what);
}

const char *demo_test(void)
{
	const char *name = getenv("DEMO_TEST");

	return name ? name : "";
}

unsigned long demo_number(const char *text, unsigned long min, unsigned long max)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 0);
	if (errno || end == text || *end || v < min || v > max)
		demo_die(0, "'%s' is not a number from %lu to %lu", text, min, max);
	return v;
}
