// SPDX-License-Identifier: MIT OR GPL-2.0
#include "report.h"

#include <stdio.h>
#include <stdlib.h>

#define BUCKETS 40	/* powers of two of nanoseconds */

static int cmp_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int b = 0;

	while (ns > 1 && b < BUCKETS - 1) {
		ns >>= 1;
		b++;
	}
	return b;
}

static uint64_t latency_of(const struct result *r, uint64_t i)
{
	uint64_t at = demo_clock_ns(&r->clock, r->samples[i].ticks);

	/* the two clocks agree to within tens of nanoseconds */
	return at > r->samples[i].sent_ns ? at - r->samples[i].sent_ns : 0;
}

static void report_latency(const struct result *r)
{
	uint64_t hist[BUCKETS] = { 0 }, n = r->nsamples, i, *v;
	unsigned int b, last = 0;

	v = n ? malloc(n * sizeof(*v)) : NULL;
	if (!v)
		return;
	for (i = 0; i < n; i++) {
		v[i] = latency_of(r, i);
		b = bucket_of(v[i]);
		hist[b]++;
		last = b > last ? b : last;
	}
	qsort(v, n, sizeof(*v), cmp_u64);
	printf(",\"latency_ns\":{\"p50\":%llu,\"p99\":%llu,\"max\":%llu,\"histogram\":[",
	       (unsigned long long)v[n / 2], (unsigned long long)v[n * 99 / 100],
	       (unsigned long long)v[n - 1]);
	for (b = 0; b <= last; b++)
		printf("%s%llu", b ? "," : "", (unsigned long long)hist[b]);
	printf("]}");
	free(v);
}

void report_cpu(const struct report_cpu *cpu)
{
	printf(",\"cpu_us\":%llu,\"machine_us\":%llu",
	       (unsigned long long)(cpu->own_us[1] - cpu->own_us[0]),
	       (unsigned long long)(cpu->all_us[1] - cpu->all_us[0]));
}

void report_ring(struct result *r, const struct rgate_stats *st,
		 const struct rgate_source_stats *src, const struct report_cpu *cpu)
{
	uint64_t last = demo_clock_ns(&r->clock, r->last);
	uint64_t ns = last - demo_clock_ns(&r->clock, r->first);

	printf("{\"test\":\"%s\",\"who\":\"ring\",\"frames\":%llu,\"slots\":%llu,"
	       "\"bytes\":%llu,\"hash\":\"%s\",\"last_ns\":%llu,\"seconds\":%.6f,\"malformed\":%u,"
	       "\"missing\":%llu,\"polls\":%s,\"sleeps\":%llu,\"spins\":%llu,", demo_test(),
	       (unsigned long long)r->frames, (unsigned long long)r->slots,
	       (unsigned long long)r->bytes, r->hash,
	       (unsigned long long)last, (double)ns / 1e9,
	       r->malformed, (unsigned long long)r->holes, r->polls ? "true" : "false",
	       (unsigned long long)r->waits.sleeps, (unsigned long long)r->waits.spins);
	printf("\"classes\":{\"plain\":%llu,\"vlan\":%llu,\"fragment\":%llu,"
	       "\"ipv6\":%llu,\"jumbo\":%llu},",
	       (unsigned long long)r->classes[CLASS_PLAIN],
	       (unsigned long long)r->classes[CLASS_VLAN],
	       (unsigned long long)r->classes[CLASS_FRAGMENT],
	       (unsigned long long)r->classes[CLASS_IPV6],
	       (unsigned long long)r->classes[CLASS_JUMBO]);
	printf("\"delivered\":%llu,\"dropped_full\":%llu,\"dropped_fault\":%llu,"
	       "\"truncated\":%llu,\"chained\":%llu,\"wakeups\":%llu,"
	       "\"socket_drops\":%llu",
	       (unsigned long long)st->delivered,
	       (unsigned long long)st->dropped_full,
	       (unsigned long long)st->dropped_fault,
	       (unsigned long long)st->truncated,
	       (unsigned long long)st->chained,
	       (unsigned long long)st->wakeups,
	       (unsigned long long)(src ? src->socket_drops : 0));
	report_cpu(cpu);
	report_latency(r);
	printf("}\n");
}
