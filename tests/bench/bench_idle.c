// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What rings cost while nothing arrives: CPU time of a sleeping consumer and of a
 * source over some seconds, and memory, as computed from the geometry, as mapped
 * and as the kernel accounts for it. The module's ring is measured where the
 * module is loaded.
 *
 * Prints one line of JSON for each.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "bench.h"

static uint64_t page_up(uint64_t n)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (n + page - 1) / page * page;
}

/* Documentation/abi.rst: producer page, consumer page, credits, owners, slots */
static uint64_t computed(uint64_t slots, uint64_t slot_size)
{
	return page_up(sizeof(struct rgate_prod)) +
	       page_up(RGATE_CREDITS_OFF + (slots / RGATE_BATCH + 7) / 8 * 64 +
		       slots / RGATE_BATCH * sizeof(uint64_t)) +
	       page_up(slots * slot_size);
}

/* A "Kb" field of /proc/meminfo in bytes */
static uint64_t meminfo(const char *field)
{
	FILE *f = fopen("/proc/meminfo", "r");
	unsigned long long kb = 0;
	char line[128];

	if (!f)
		bench_die(errno, "/proc/meminfo");
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, field, strlen(field)) &&
		    sscanf(line + strlen(field), ": %llu", &kb) == 1)
			break;
	fclose(f);
	return kb * 1024;
}

/* CPU time of this process, all threads, while a consumer sleeps; ns */
static uint64_t sleep_on(struct rgate_ring *ring, unsigned int seconds)
{
	struct rgate_consumer c;
	uint64_t cpu;
	int err;

	err = rgate_consumer_init(&c, ring, NULL);
	if (err)
		bench_die(err, "rgate_consumer_init");
	cpu = bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	err = rgate_consumer_wait(&c, (int)seconds * 1000);
	if (err)
		bench_die(err, "something arrived");
	return bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
}

static void print(const char *what, struct rgate_ring *ring, uint64_t accounted,
		  uint64_t machine, uint64_t cpu, unsigned int seconds)
{
	struct rgate_view v;

	rgate_ring_view(ring, &v);
	printf("{\"ring\":\"%s\",\"slots\":%u,\"slot_size\":%u,\"computed_bytes\":%llu,"
	       "\"mapped_bytes\":%zu,\"accounted_bytes\":%llu,\"machine_bytes\":%llu,"
	       "\"idle_seconds\":%u,\"idle_cpu_us\":%.1f}\n", what, v.nslots,
	       v.slot_size, (unsigned long long)computed(v.nslots, v.slot_size),
	       v.map_len, (unsigned long long)accounted,
	       (unsigned long long)machine, seconds, (double)cpu / 1000);
	if (computed(v.nslots, v.slot_size) != v.map_len)
		bench_die(0, "the ring has not the size that was computed");
}

static void idle_source(unsigned int seconds)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	uint64_t before = meminfo("Shmem"), after, cpu;
	struct rgate_source *src;
	struct rgate_ring *ring;
	int err;

	err = rgate_ring_open_memfd(&ring, NULL);
	if (err)
		bench_die(err, "rgate_ring_open_memfd");
	after = meminfo("Shmem");
	err = rgate_source_start_udp(&src, &ring, 1, (struct sockaddr *)&at, sizeof(at), NULL);
	if (err)
		bench_die(err, "rgate_source_start_udp");
	cpu = sleep_on(ring, seconds);
	print("memfd, UDP source", ring, after - before, after - before, cpu, seconds);
	rgate_source_stop(src);
	rgate_ring_close(ring);
}

static void idle_module(unsigned int seconds)
{
	uint64_t before = meminfo("MemFree"), after, cpu;
	struct rgate_ring_info info;
	struct rgate_ctl *ctl;
	struct rgate_ring *ring;
	int err;

	err = rgate_ring_open(&ring, NULL);
	if (err == -ENOENT || err == -ENXIO)
		return;
	if (err)
		bench_die(0, "rgate_ring_open: %s", rgate_strerror("rgate_ring_open", err));
	after = meminfo("MemFree");
	err = rgate_ctl_open(&ctl);
	if (!err)
		err = rgate_ctl_ring(ctl, rgate_ring_id(ring), &info);
	if (!err)
		err = rgate_ring_attach(ring, "lo", NULL, NULL);
	if (err)
		bench_die(0, "the module's ring: %s", rgate_strerror("rgate_ring_open", err));
	cpu = sleep_on(ring, seconds);
	print("module", ring, info.mem_bytes, before > after ? before - after : 0,
	      cpu, seconds);
	rgate_ctl_close(ctl);
	rgate_ring_close(ring);
}

int main(int argc, char **argv)
{
	unsigned int seconds = 5;
	int c;

	while ((c = getopt(argc, argv, "t:")) != -1) {
		if (c != 't' || atoi(optarg) < 1) {
			fprintf(stderr, "usage: bench_idle [-t SECONDS]\n");
			return 2;
		}
		seconds = (unsigned int)atoi(optarg);
	}
	idle_source(seconds);
	idle_module(seconds);
	return 0;
}
