// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Random calls on the module's device, its netlink family and its memory, by several
 * processes of several users, each with several threads, while frames arrive. What is
 * looked for shows in the kernel log, as a call that never returns, or as a module that
 * cannot be unloaded.
 *
 *	fuzz_device [-t SECONDS] [-n OPERATIONS] [-s SEED] [-w PROCESSES] [-j THREADS]
 *
 * The seed decides what each thread tries, in which order; how the threads meet is the
 * scheduler's. A single thread does the same every time, and says at the end what it
 * came to. Needs root, and a machine that may break: run it in the lab.
 */
#include "fuzz.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_PROCS	8
#define MAX_THREADS	8
/* A call takes no longer, where the kernel does not check itself (RGATE_SLOW) */
#define HANG_S		60

static struct {
	unsigned int seconds, procs, threads;
	uint64_t seed, ops;
} args = { .seconds = 30, .procs = 4, .threads = 2 };

/* In memory that all processes share */
static struct counters {
	uint64_t ops, done;
	uint64_t rnd;		/* where the random numbers were at the end */
	pid_t tid;
	const char *what;	/* the last thing begun; the same text in all processes */
} *counters;

struct worker {
	struct fuzz fuzz;
	struct counters *c;
};

static struct fuzz_proc proc;

static void die(const char *what)
{
	fprintf(stderr, "fuzz_device: %s: %s\n", what, strerror(errno));
	exit(1);
}

static const struct kind {
	const char *name;
	void (*op)(struct fuzz *f);
} kinds[8] = {
	{ "file", fuzz_file_op }, { "file", fuzz_file_op }, { "file", fuzz_file_op },
	{ "memory", fuzz_memory_op }, { "memory", fuzz_memory_op },
	{ "netlink", fuzz_netlink_op }, { "netlink", fuzz_netlink_op },
	{ "traffic", fuzz_traffic_op },
};

static void *thread(void *arg)
{
	struct worker *w = arg;

	__atomic_store_n(&w->c->tid, gettid(), __ATOMIC_RELAXED);
	while (!args.ops || w->c->ops < args.ops) {
		const struct kind *k = &kinds[fuzz_below(&w->fuzz, 8)];

		__atomic_store_n(&w->c->what, k->name, __ATOMIC_RELAXED);
		k->op(&w->fuzz);
		__atomic_fetch_add(&w->c->ops, 1, __ATOMIC_RELAXED);
	}
	w->c->rnd = w->fuzz.rnd;
	return NULL;
}

/* Memory is bounded for all; every second process is an ordinary user */
static void become(unsigned int i)
{
	struct rlimit lock = { 16 << 20, 16 << 20 }, files = { 128, 128 };

	if (setrlimit(RLIMIT_MEMLOCK, &lock) || setrlimit(RLIMIT_NOFILE, &files))
		die("setrlimit");
	prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0);
	proc.admin = !(i & 1);
	if (proc.admin) {
		struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
		struct __user_cap_data_struct d[2];

		if (syscall(SYS_capget, &h, d))
			die("capget");
		d[0].effective &= ~(1U << CAP_IPC_LOCK);
		d[0].permitted &= ~(1U << CAP_IPC_LOCK);
		if (syscall(SYS_capset, &h, d))
			die("capset");
		return;
	}
	if (setgroups(0, NULL) || setgid(20000 + i) || setuid(20000 + i))
		die("setuid");
}

static _Noreturn void process(unsigned int i, int sock)
{
	static struct worker workers[MAX_THREADS];
	pthread_t ids[MAX_THREADS];
	unsigned int t;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (t = 0; t < FUZZ_FDS; t++)
		proc.fds[t] = -1;
	proc.sock = sock;
	proc.tx = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	become(i);
	for (t = 0; t < args.threads; t++) {
		struct counters *c = &counters[i * MAX_THREADS + t];

		workers[t] = (struct worker){
			.c = c,
			.fuzz.p = &proc,
			.fuzz.done = &c->done,
			.fuzz.rnd = args.seed + 0x9e3779b97f4a7c15ULL * (i * MAX_THREADS + t + 1),
		};
		if (pthread_create(&ids[t], NULL, thread, &workers[t]))
			die("pthread_create");
	}
	for (t = 0; t < args.threads; t++)
		pthread_join(ids[t], NULL);
	_exit(0);
}

/* Where in the kernel a thread is */
static void tell(const struct counters *c)
{
	static const char *const files[] = { "status", "syscall", "stack" };
	char path[64], line[256];
	unsigned int i;

	printf("# thread %d, operation on %s\n", c->tid, c->what);
	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/%s", c->tid, files[i]);
		f = fopen(path, "r");
		while (f && fgets(line, sizeof(line), f))
			if (i || !strncmp(line, "State", 5) || strstr(line, "ctxt"))
				printf("#   %s: %s", files[i], line);
		if (f)
			fclose(f);
	}
}

static unsigned int patience(void)
{
	const char *slow = getenv("RGATE_SLOW");
	int n = slow ? atoi(slow) : 1;

	return HANG_S * (unsigned int)(n < 1 || n > 50 ? 1 : n);
}

static void sum(struct counters *all, unsigned int *stuck)
{
	static uint64_t last[MAX_PROCS * MAX_THREADS];
	static time_t since[MAX_PROCS * MAX_THREADS];
	unsigned int i, t;

	memset(all, 0, sizeof(*all));
	*stuck = 0;
	for (i = 0; i < args.procs; i++) {
		for (t = 0; t < args.threads; t++) {
			unsigned int k = i * MAX_THREADS + t;
			uint64_t ops = __atomic_load_n(&counters[k].ops, __ATOMIC_RELAXED);

			if (ops != last[k] || !since[k] || (args.ops && ops >= args.ops)) {
				last[k] = ops;
				since[k] = time(NULL);
			} else if (time(NULL) - since[k] > patience()) {
				(*stuck)++;
				tell(&counters[k]);
			}
			all->ops += ops;
			all->done += __atomic_load_n(&counters[k].done, __ATOMIC_RELAXED);
		}
	}
}

/* Takes ended processes out of @pids; false when one did not end as it should */
static bool reap(pid_t *pids, unsigned int *running)
{
	unsigned int i;
	int status;

	*running = 0;
	for (i = 0; i < args.procs; i++) {
		if (pids[i] && waitpid(pids[i], &status, WNOHANG) == pids[i]) {
			pids[i] = 0;
			if (!args.ops || status) {
				printf("# process %u ended: status %#x\n", i, (unsigned int)status);
				return false;
			}
		}
		*running += pids[i] != 0;
	}
	return true;
}

/* Until the time is over, or all operations are done. No process may end before. */
static bool watch(pid_t *pids, struct counters *all)
{
	unsigned int s, stuck, running = args.procs;

	for (s = 0; s < args.seconds && running; s++) {
		sleep(1);
		sum(all, &stuck);
		if (s % 30 == 29)
			printf("# %u s, %" PRIu64 " calls, %" PRIu64 " succeeded\n", s + 1,
			       all->ops, all->done);
		if (stuck) {
			printf("# %u threads have not come back for %u s\n", stuck, patience());
			return false;
		}
		if (!reap(pids, &running))
			return false;
	}
	sum(all, &stuck);
	if (!args.ops)
		return true;
	if (running)
		printf("# not done after %u s\n", args.seconds);
	return !running;
}

/* The same for the same seed, where one thread has everything for itself */
static void tell_ends(void)
{
	unsigned int i, t;

	for (i = 0; i < args.procs; i++) {
		for (t = 0; t < args.threads; t++) {
			const struct counters *c = &counters[i * MAX_THREADS + t];

			printf("# end of %u.%u: %" PRIu64 " operations, %" PRIu64
			       " succeeded, state %016" PRIx64 "\n", i, t, c->ops, c->done, c->rnd);
		}
	}
}

static void stop(const pid_t *pids)
{
	unsigned int i;

	for (i = 0; i < args.procs; i++)
		if (pids[i])
			kill(pids[i], SIGKILL);
	for (i = 0; i < args.procs; i++)
		if (pids[i])
			waitpid(pids[i], NULL, 0);
}

static bool unloads(void)
{
	unsigned int tries;

	for (tries = 0; tries < 50; tries++) {
		if (!system("rmmod ringgate 2>/dev/null"))
			return true;
		usleep(100000);
	}
	return false;
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 't':
		args.seconds = (unsigned int)strtoul(arg, NULL, 0);
		return 0;
	case 'n':
		args.ops = strtoull(arg, NULL, 0);
		return 0;
	case 's':
		args.seed = strtoull(arg, NULL, 0);
		return 0;
	case 'w':
		args.procs = (unsigned int)strtoul(arg, NULL, 0);
		if (!args.procs || args.procs > MAX_PROCS)
			argp_error(state, "1 to %u processes", MAX_PROCS);
		return 0;
	case 'j':
		args.threads = (unsigned int)strtoul(arg, NULL, 0);
		if (!args.threads || args.threads > MAX_THREADS)
			argp_error(state, "1 to %u threads", MAX_THREADS);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{ "time", 't', "SECONDS", 0, "How long (default 30)", 0 },
	{ "operations", 'n', "N", 0, "Of each thread, then end (default: no end)", 0 },
	{ "seed", 's', "SEED", 0, "What to try (default: a new one)", 0 },
	{ "processes", 'w', "N", 0, "Processes (default 4)", 0 },
	{ "threads", 'j', "N", 0, "Threads of each (default 2)", 0 },
	{ 0 }
};

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_opt,
		.doc = "Random calls on /dev/ringgate and the netlink family.",
	};
	pid_t pids[MAX_PROCS] = { 0 };
	struct counters all;
	unsigned int i;
	bool good, gone;
	int sv[2];

	if (argp_parse(&argp, argc, argv, 0, NULL, NULL))
		return 2;
	while (!args.seed)
		if (getrandom(&args.seed, sizeof(args.seed), 0) < 0)
			die("getrandom");
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n1..3\n# timeout: %u\n", args.seconds + 120);
	printf("# seed 0x%" PRIx64 ", %u processes of %u threads\n", args.seed, args.procs,
	       args.threads);
	if (unshare(CLONE_NEWNET) || system("ip link set lo up"))
		die("network namespace");
	counters = mmap(NULL, sizeof(*counters) * MAX_PROCS * MAX_THREADS,
			PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counters == MAP_FAILED || socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sv))
		die("set-up");
	for (i = 0; i < args.procs; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("fork");
		if (!pids[i])
			process(i, sv[i & 1]);
	}
	good = watch(pids, &all);
	stop(pids);
	if (args.ops)
		tell_ends();
	close(sv[0]);
	close(sv[1]);
	printf("%sok 1 - %" PRIu64 " random calls returned\n", good ? "" : "not ", all.ops);
	/* If hardly any succeed, little is tested. */
	printf("%sok 2 - %" PRIu64 " of them succeeded\n", all.done * 20 > all.ops ? "" : "not ",
	       all.done);
	gone = unloads();
	printf("%sok 3 - the module unloads\n", gone ? "" : "not ");
	return !(good && gone && all.done * 20 > all.ops);
}
