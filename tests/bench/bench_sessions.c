// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A daemon with very many sessions. Prints a line of JSON; tests/bench/sessions.sh starts the
 * daemon.
 *
 *	bench_sessions idle SOCKET PID SESSIONS SECONDS
 *		opens so many and asks for nothing: how often threads of the daemon PID run
 *		meanwhile, for how long, and which memory it has of its own for each; and the
 *		same of the daemon before, which has a cluster to look after
 *	bench_sessions fair SOCKET IN_FLIGHT SECONDS UID:PROCESSES...
 *		so many processes of each user, with so many nops under way in each: what each
 *		user gets, and what the process with the least
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "bench.h"

#define SESSIONS_MAX	100000U
#define USERS_MAX	16U
#define IN_FLIGHT_MAX	4096U
#define SETTLE_MS	1000U
#define BATCH		64U
#define OPEN_MS		60000U

static struct rgate_session *open_one(const char *path, uint32_t places)
{
	const struct rgate_session_opts o = RGATE_OPTS(rgate_session_opts, .path = path,
			.where = RGATE_SESSION_DAEMON, .requests = places,
			.spin_us = RGATE_SPIN_NONE, .timeout_ms = OPEN_MS);
	struct rgate_session *s;
	int err = rgate_session_open(&s, &o);

	if (err)
		bench_die(-err, "a session at %s", path);
	return s;
}

static unsigned long number(const char *text, unsigned long most)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (end == text || *end || v > most)
		bench_die(0, "'%s' is no number up to %lu", text, most);
	return v;
}

/* ---- Idle ---- */

/* The daemon as the kernel counts */
struct usage {
	unsigned long long switches;	/* by itself and not, of all threads */
	unsigned long long run_ns;
	unsigned long own_kib;
};

/* The number behind @key in a file of lines "key: number" */
static unsigned long long field(const char *path, const char *key)
{
	unsigned long long sum = 0, v;
	char line[256];
	FILE *f = fopen(path, "re");

	if (!f)
		bench_die(errno, "%s", path);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)) &&
		    sscanf(line + strlen(key), " %llu", &v) == 1)
			sum += v;
	fclose(f);
	return sum;
}

static void add_thread(struct usage *u, const char *pid, const char *tid)
{
	unsigned long long run;
	char path[320];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/task/%s/status", pid, tid);
	u->switches += field(path, "voluntary_ctxt_switches:") +
		       field(path, "nonvoluntary_ctxt_switches:");
	snprintf(path, sizeof(path), "/proc/%s/task/%s/schedstat", pid, tid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%llu", &run) != 1)
		bench_die(errno, "%s", path);
	fclose(f);
	u->run_ns += run;
}

static struct usage usage_of(const char *pid)
{
	struct usage u = { 0 };
	struct dirent *d;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/task", pid);
	dir = opendir(path);
	if (!dir)
		bench_die(errno, "%s", path);
	while ((d = readdir(dir)))
		if (*d->d_name != '.')
			add_thread(&u, pid, d->d_name);
	closedir(dir);
	/* The rings are mapped by both, and so are not its own. */
	snprintf(path, sizeof(path), "/proc/%s/smaps_rollup", pid);
	u.own_kib = (unsigned long)(field(path, "Private_Clean:") + field(path, "Private_Dirty:"));
	return u;
}

static int idle(char **arg)
{
	const unsigned int n = (unsigned int)number(arg[2], SESSIONS_MAX);
	const unsigned int seconds = (unsigned int)number(arg[3], 3600);
	struct rgate_session **s = calloc(n + 1, sizeof(*s));
	struct usage start, before, from, to;
	unsigned int i;

	if (!s || !n || !seconds)
		bench_die(0, "SESSIONS and SECONDS are at least 1");
	/* What the first one alone has the daemon allocate is not each one's. */
	s[n] = open_one(arg[0], 0);
	usleep(SETTLE_MS * 1000);
	start = usage_of(arg[1]);
	sleep(seconds);
	before = usage_of(arg[1]);
	for (i = 0; i < n; i++)
		s[i] = open_one(arg[0], 0);
	usleep(SETTLE_MS * 1000);
	from = usage_of(arg[1]);
	sleep(seconds);
	to = usage_of(arg[1]);
	printf("{\"what\": \"idle\", \"sessions\": %u, \"seconds\": %u, \"switches\": %llu, "
	       "\"run_us\": %.1f, \"switches_before\": %llu, \"run_us_before\": %.1f, "
	       "\"own_bytes_each\": %.0f}\n", n, seconds,
	       to.switches - from.switches, (double)(to.run_ns - from.run_ns) / 1000,
	       before.switches - start.switches, (double)(before.run_ns - start.run_ns) / 1000,
	       ((double)from.own_kib - (double)before.own_kib) * 1024 / n);
	for (i = 0; i <= n; i++)
		rgate_session_close(s[i]);
	free(s);
	return 0;
}

/* ---- Fair ---- */

struct user {
	uid_t uid;
	unsigned int processes;
};

/* Of all processes: a word each, behind what starts and ends them */
struct shared {
	uint32_t ready;		/* processes with a session */
	uint32_t go;		/* 1: ask; 2: no more */
	uint64_t done[];	/* by process */
};

static void ask(struct rgate_session *s, struct shared *sh, unsigned int in_flight,
		uint64_t *done)
{
	struct rgate_request q[BATCH] = { { .op = RGATE_REQ_NOP } };
	struct rgate_completion c[BATCH];
	unsigned int i, n = in_flight;
	int r;

	for (i = 0; i < BATCH; i++)
		q[i].op = RGATE_REQ_NOP;
	while (__atomic_load_n(&sh->go, __ATOMIC_ACQUIRE) == 1) {
		while (n) {
			r = rgate_session_submit_many(s, q, n < BATCH ? n : BATCH);
			if (r == -EAGAIN)
				break;
			if (r < 0)
				bench_die(-r, "a request");
			n -= (unsigned int)r;
		}
		r = rgate_session_wait(s, 100);
		if (r > 0)
			r = rgate_session_poll(s, c, BATCH);
		if (r < 0 && r != -EINTR)
			bench_die(-r, "an answer");
		for (i = 0; r > 0 && i < (unsigned int)r; i++)
			if (c[i].result)
				bench_die(-c[i].result, "a nop");
		if (r > 0) {
			n += (unsigned int)r;
			__atomic_store_n(done, *done + (unsigned int)r, __ATOMIC_RELAXED);
		}
	}
}

static void child(const char *path, struct shared *sh, const struct user *u,
		  unsigned int in_flight, uint64_t *done)
{
	struct rgate_session *s;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setgid(u->uid) || setuid(u->uid))
		bench_die(errno, "user %u", u->uid);
	s = open_one(path, in_flight);
	__atomic_add_fetch(&sh->ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&sh->go, __ATOMIC_ACQUIRE))
		usleep(10000);
	ask(s, sh, in_flight, done);
	rgate_session_close(s);
	_exit(0);
}

static void wait_ready(const struct shared *sh, unsigned int n)
{
	while (__atomic_load_n(&sh->ready, __ATOMIC_ACQUIRE) < n) {
		if (waitpid(-1, NULL, WNOHANG) > 0)
			bench_die(0, "a process ended before it asked");
		usleep(10000);
	}
}

static void tell(const struct user *u, unsigned int users, const uint64_t *before,
		 const uint64_t *after, double seconds)
{
	uint64_t sum, least = UINT64_MAX, all = 0;
	unsigned int i, p, at = 0;

	printf("{\"what\": \"fair\", \"users\": [");
	for (i = 0; i < users; i++) {
		sum = 0;
		for (p = 0; p < u[i].processes; p++, at++) {
			const uint64_t got = after[at] - before[at];

			sum += got;
			least = got < least ? got : least;
		}
		all += sum;
		printf("%s{\"processes\": %u, \"per_s\": %.1f}", i ? ", " : "", u[i].processes,
		       (double)sum / seconds);
	}
	printf("], \"per_s\": %.1f, \"least_of_a_process\": %llu, \"seconds\": %.2f}\n",
	       (double)all / seconds, (unsigned long long)least, seconds);
}

static unsigned int read_users(struct user *u, char **arg, unsigned int *users)
{
	unsigned int n = 0;
	char *colon;

	for (*users = 0; *arg; arg++, (*users)++) {
		colon = strchr(*arg, ':');
		if (!colon || *users == USERS_MAX)
			bench_die(0, "up to %u of UID:PROCESSES", USERS_MAX);
		*colon = '\0';
		u[*users].uid = (uid_t)number(*arg, UINT32_MAX - 1);
		u[*users].processes = (unsigned int)number(colon + 1, SESSIONS_MAX);
		n += u[*users].processes;
	}
	return n;
}

static int fair(char **arg)
{
	const unsigned int in_flight = (unsigned int)number(arg[1], IN_FLIGHT_MAX);
	const unsigned int seconds = (unsigned int)number(arg[2], 3600);
	unsigned int users, n, i, p, at = 0;
	struct user u[USERS_MAX];
	uint64_t *before, *after, from, until;
	struct shared *sh;
	size_t size;

	n = read_users(u, arg + 3, &users);
	size = sizeof(*sh) + n * sizeof(sh->done[0]);
	sh = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	before = calloc(2 * (size_t)n + 1, sizeof(*before));
	if (sh == MAP_FAILED || !before || !n || !in_flight || !seconds)
		bench_die(0, "IN_FLIGHT, SECONDS and PROCESSES are at least 1");
	after = before + n;
	fflush(stdout);
	for (i = 0; i < users; i++)
		for (p = 0; p < u[i].processes; p++, at++) {
			const pid_t pid = fork();

			if (pid < 0)
				bench_die(errno, "a process");
			if (!pid)
				child(arg[0], sh, &u[i], in_flight, &sh->done[at]);
		}
	wait_ready(sh, n);
	__atomic_store_n(&sh->go, 1, __ATOMIC_RELEASE);
	/* until each has its requests under way */
	sleep(1 + seconds / 4);
	from = bench_now_ns();
	for (i = 0; i < n; i++)
		before[i] = __atomic_load_n(&sh->done[i], __ATOMIC_RELAXED);
	sleep(seconds);
	until = bench_now_ns();
	for (i = 0; i < n; i++)
		after[i] = __atomic_load_n(&sh->done[i], __ATOMIC_RELAXED);
	__atomic_store_n(&sh->go, 2, __ATOMIC_RELEASE);
	while (n && wait(NULL) > 0)
		n--;
	tell(u, users, before, after, (double)(until - from) / 1e9);
	free(before);
	munmap(sh, size);
	return 0;
}

int main(int argc, char **argv)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (argc == 6 && !strcmp(argv[1], "idle"))
		return idle(argv + 2);
	if (argc >= 6 && !strcmp(argv[1], "fair"))
		return fair(argv + 2);
	bench_die(0, "idle SOCKET PID SESSIONS SECONDS, or fair SOCKET IN_FLIGHT SECONDS "
		  "UID:PROCESSES...");
}
