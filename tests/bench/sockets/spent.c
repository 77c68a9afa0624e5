// SPDX-License-Identifier: MIT OR GPL-2.0
/* What processes have spent: CPU, by the scheduler's count, and memory. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "way.h"

static uint64_t cpu_of(long pid)
{
	unsigned long long ns, all = 0;
	const struct dirent *d;
	char path[300];
	DIR *dir;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/task", pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%ld/task/%s/schedstat", pid, d->d_name);
		f = d->d_name[0] == '.' ? NULL : fopen(path, "r");
		if (f && fscanf(f, "%llu", &ns) == 1)
			all += ns;
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return all;
}

/* The value, in KiB there, of lines that begin with one of two words */
static uint64_t bytes_in(const char *path, const char *word, const char *other)
{
	unsigned long long kib, all = 0;
	FILE *f = fopen(path, "r");
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		const char *colon = strchr(line, ':');
		const size_t n = colon ? (size_t)(colon - line) : 0;

		if (n && ((n == strlen(word) && !strncmp(line, word, n)) ||
			  (n == strlen(other) && !strncmp(line, other, n))) &&
		    sscanf(colon + 1, "%llu", &kib) == 1)
			all += kib;
	}
	if (f)
		fclose(f);
	return all << 10;
}

static uint64_t bytes_of(long pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%ld/smaps_rollup", pid);
	return bytes_in(path, "Pss", "SwapPss");
}

/* Its parent, if that is called ringgate; else 0 */
static long above(long pid)
{
	char path[64], name[32] = "";
	long parent = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	f = fopen(path, "r");
	if (f && fscanf(f, "%*d (%*[^)]) %*c %ld", &parent) != 1)
		parent = 0;
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "/proc/%ld/comm", parent);
	f = fopen(path, "r");
	if (f && !fgets(name, sizeof(name), f))
		name[0] = '\0';
	if (f)
		fclose(f);
	return strcmp(name, "ringgate\n") ? 0 : parent;
}

static void add(struct spent *s, long pid)
{
	s->cpu_ns += cpu_of(pid);
	s->bytes += bytes_of(pid);
}

void spent_by(const char *pids, struct spent *s)
{
	char *end;
	long pid;

	*s = (struct spent){ .own_bytes = bytes_of(getpid()) };
	s->bytes = s->own_bytes;
	s->kernel_bytes = bytes_in("/proc/meminfo", "Slab", "PageTables");
	for (pid = above(getpid()); pid; pid = above(pid))
		add(s, pid);
	for (; *pids; pids = *end ? end + 1 : end) {
		pid = strtol(pids, &end, 10);
		if (end == pids)
			bench_die(0, "-p %s: numbers of processes", pids);
		add(s, pid);
	}
	/* Also of threads that have ended */
	s->cpu_ns += bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}
