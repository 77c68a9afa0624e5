// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Empty tasks from a process that submits to one that completes, through a server: ringgated, and
 * other queues, 32 at a time each, or BATCH; and through memory of both alone. A line of JSON.
 *
 *	bench_queue WAY ADDRESS TASKS [BATCH]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "queue/rival.h"

unsigned int batch = 32;

static const struct rival *const all[] = { &ringgate_queue, &redis_streams, &beanstalkd,
					  &chase_lev };

static const struct rival *way(const char *name)
{
	unsigned int i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	bench_die(0, "%s is none of ringgate, redis, beanstalkd, deque", name);
}

static pid_t start(void (*end)(const char *, uint32_t), const char *address, uint32_t tasks)
{
	pid_t pid = fork();

	if (pid < 0)
		bench_die(errno, "fork");
	if (pid)
		return pid;
	end(address, tasks);
	_exit(0);
}

int main(int argc, char **argv)
{
	const struct rival *rival;
	uint64_t began, ns;
	uint32_t tasks;
	int status, i;

	if (argc != 4 && argc != 5)
		bench_die(0, "usage: bench_queue WAY ADDRESS TASKS [BATCH]");
	if (argc == 5)
		batch = (unsigned int)strtoul(argv[4], NULL, 0);
	if (!batch || batch > BATCH_MOST)
		bench_die(0, "1 to %u at a time", BATCH_MOST);
	rival = way(argv[1]);
	if (!rival->work)
		bench_die(0, "%s: its library was not there when this was built", argv[1]);
	tasks = (uint32_t)strtoul(argv[3], NULL, 0);
	rival->prepare(argv[2]);
	began = bench_now_ns();
	start(rival->work, argv[2], tasks);
	start(rival->submit, argv[2], tasks);
	for (i = 0; i < 2; i++)
		if (wait(&status) < 0 || status)
			bench_die(0, "%s: one of both failed", argv[1]);
	ns = bench_now_ns() - began;
	printf("{\"way\":\"%s\",\"batch\":%u,\"tasks\":%u,\"per_s\":%.0f}\n", argv[1], batch, tasks,
	       tasks * 1e9 / (double)ns);
	return 0;
}
