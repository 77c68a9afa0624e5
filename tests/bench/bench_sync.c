// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Locks and barriers, ringgate's and others', each of which belongs to processes. A line of JSON.
 *
 *	bench_sync lock WAY ADDRESS WAITERS TIMES
 *	bench_sync barrier WAY ADDRESS MEMBERS TIMES
 *
 * Without waiters one process acquires and releases. With them there is one process more than
 * waiters, and each wants the lock again as soon as it has released it: what is told is the time
 * of a hold, and which part of the holds were another process's than the one before. A counter
 * that only holders change, and without atomics, has to be right in the end. mpi: by mpirun.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "sync/rival.h"

#define PROCESSES	64U

struct shared {
	unsigned int ready, go;
	/* of who holds the lock */
	volatile uint64_t held, changes, began_ns, ended_ns;
	volatile unsigned int last, inside;
};

static struct shared *sh;
static uint64_t times;

static const struct rival *const all[] = { &ringgate_lock, &ringgate_requests, &ringgate_meet,
					  &ringgate_add, &ringgate_swap, &redis_set, &redis_list,
					  &etcd_lock, &file_lock, &robust_mutex };

static const struct rival *way(const char *name)
{
	unsigned int i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i]->name, name))
			break;
	if (i == sizeof(all) / sizeof(all[0]))
		bench_die(0, "there is no way %s", name);
	if (!all[i]->join)
		bench_die(0, "%s: its library was not there when this was built", name);
	return all[i];
}

static uint64_t warm(void)
{
	return times / 10 + 1;
}

static void alone(const struct rival *r, void *h)
{
	uint64_t i;

	for (i = 0; i < warm() + times; i++) {
		if (i == warm())
			sh->began_ns = bench_now_ns();
		r->acquire(h);
		r->release(h);
	}
	sh->ended_ns = bench_now_ns();
	sh->held = warm() + times;
	sh->changes = times;
}

/* With the lock: false when it is over */
static bool hold(unsigned int me)
{
	if (sh->inside)
		bench_die(0, "two have the lock");
	sh->inside = 1;
	if (sh->held == warm())
		sh->began_ns = bench_now_ns();
	if (sh->held < warm() + times) {
		sh->changes += sh->held >= warm() && sh->last != me;
		sh->last = me;
		sh->held++;
		if (sh->held == warm() + times)
			sh->ended_ns = bench_now_ns();
	} else {
		sh->inside = 0;
		return false;
	}
	sh->inside = 0;
	return true;
}

static void contend(const struct rival *r, void *h, unsigned int me)
{
	bool goes_on;

	do {
		r->acquire(h);
		goes_on = hold(me);
		r->release(h);
	} while (goes_on);
}

static void gather(const struct rival *r, void *h, unsigned int me)
{
	uint64_t i;

	for (i = 0; i < warm() + times; i++) {
		if (i == warm() && !me)
			sh->began_ns = bench_now_ns();
		r->meet(h);
	}
	if (me)
		return;
	sh->ended_ns = bench_now_ns();
	sh->changes = times;
	sh->held = warm() + times;
}

static void be(const struct rival *r, const char *address, unsigned int me, unsigned int n,
	       bool barrier)
{
	void *h = r->join(address, me, barrier ? n : 0);

	__atomic_fetch_add(&sh->ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&sh->go, __ATOMIC_ACQUIRE))
		usleep(1000);
	if (barrier)
		gather(r, h, me);
	else if (n == 1)
		alone(r, h);
	else
		contend(r, h, me);
	r->leave(h);
}

static void run(const struct rival *r, const char *address, unsigned int n, bool barrier)
{
	unsigned int i;
	int status;
	pid_t pid;

	r->prepare(address);
	for (i = 0; i < n; i++) {
		pid = fork();
		if (pid < 0)
			bench_die(errno, "fork");
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			be(r, address, i, n, barrier);
			_exit(0);
		}
	}
	while (__atomic_load_n(&sh->ready, __ATOMIC_ACQUIRE) < n) {
		/* One that could not join says why. */
		if (waitpid(-1, &status, WNOHANG))
			exit(1);
		usleep(1000);
	}
	__atomic_store_n(&sh->go, 1, __ATOMIC_RELEASE);
	for (i = 0; i < n; i++)
		if (wait(&status) < 0 || status)
			bench_die(0, "%s: a process failed", r->name);
	if (sh->held != warm() + times)
		bench_die(0, "%s: it was held %llu times, and not %llu", r->name,
			  (unsigned long long)sh->held, (unsigned long long)(warm() + times));
}

static void tell(const char *what, const char *name, unsigned int n, double ns, double share)
{
	printf("{\"what\":\"%s\",\"way\":\"%s\",\"n\":%u,\"times\":%llu,", what, name, n,
	       (unsigned long long)times);
	printf("\"ns\":%.1f,\"changes\":%.3f}\n", ns, share);
}

int main(int argc, char **argv)
{
	const bool barrier = argc > 1 && !strcmp(argv[1], "barrier");
	unsigned int n;
	double ns;

	if (argc != 6 || (!barrier && strcmp(argv[1], "lock")))
		bench_die(0, "usage: bench_sync lock|barrier WAY ADDRESS WAITERS|MEMBERS TIMES");
	n = (unsigned int)strtoul(argv[4], NULL, 0);
	times = strtoul(argv[5], NULL, 0);
	if (!times || n > PROCESSES - 1 || (barrier && !n))
		bench_die(0, "1 to %u processes, once or more often", PROCESSES);
	if (barrier && !strcmp(argv[2], "mpi")) {
		ns = mpi_barriers((unsigned int)times);
		if (ns > 0)
			tell(argv[1], argv[2], n, ns, 1);
		return 0;
	}
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED)
		bench_die(errno, "memory");
	run(way(argv[2]), argv[3], barrier ? n : n + 1, barrier);
	ns = (double)(sh->ended_ns - sh->began_ns);
	tell(argv[1], argv[2], n, ns / (double)times, (double)sh->changes / (double)times);
	return 0;
}
