// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The ring as memory alone: a producer and its consumers on cores of their own,
 * every byte checked, beside a bare loop of the same threads. The two take turns
 * and each pair of turns gives one ratio; the medians of those are printed.
 */
#include "mem.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define CONSUMERS_MAX	8
#define PINGS		20000U

struct turn {
	const struct mem_ops *ops;
	const struct mem_job *job;
	void *ctx;
	pthread_barrier_t start;
};

struct worker {
	struct turn *turn;
	uint32_t id;
	int cpu;
	bool ping;
	uint64_t ended;
	struct mem_sum sum;
};

struct row {
	uint32_t len;
	uint32_t consumers;
	bool shared_cpu;
	double bare;		/* medians over the rounds */
	double ring;
	double ratio;
	double low, high;	/* quartiles of the ratio */
};

static void check_sum(const struct turn *t, const struct worker *w, uint64_t want)
{
	if (w->sum.bad || w->sum.good != want)
		bench_die(0, "%s: consumer %u: %llu good, %llu bad payloads of %llu",
			  t->ops->name, w->id, (unsigned long long)w->sum.good,
			  (unsigned long long)w->sum.bad,
			  (unsigned long long)want);
}

static void *consumer_main(void *arg)
{
	struct worker *w = arg;
	struct turn *t = w->turn;
	/* on this thread's stack: *w lies on the producer's */
	struct mem_sum sum = { 0, 0 };
	struct mem_job job = *t->job;

	bench_pin(w->cpu);
	pthread_barrier_wait(&t->start);
	if (w->ping)
		t->ops->pong(t->ctx, &job, &sum);
	else
		t->ops->consume(t->ctx, &job, w->id, &sum);
	w->ended = bench_now_ns();
	w->sum = sum;
	return NULL;
}

static void workers_start(struct turn *t, struct worker *w, pthread_t *th,
			  bool ping)
{
	unsigned int i, cpus = bench_cpus();
	int err;

	err = pthread_barrier_init(&t->start, NULL, t->job->consumers + 1);
	if (err)
		bench_die(err, "pthread_barrier_init");
	for (i = 0; i < t->job->consumers; i++) {
		w[i] = (struct worker){
			.turn = t,
			.id = i,
			.ping = ping,
			.cpu = bench_cpu(1 + i % (cpus - 1)),
		};
		err = pthread_create(&th[i], NULL, consumer_main, &w[i]);
		if (err)
			bench_die(err, "pthread_create");
	}
}

/* Payloads a second, from the first put to the last check */
static double turn_rate(const struct mem_ops *ops, const struct mem_job *job)
{
	struct turn t = { .ops = ops, .job = job, .ctx = ops->make(job) };
	struct worker w[CONSUMERS_MAX];
	pthread_t th[CONSUMERS_MAX];
	uint64_t began, ended = 0;
	unsigned int i;

	workers_start(&t, w, th, false);
	pthread_barrier_wait(&t.start);
	began = bench_now_ns();
	ops->produce(t.ctx, job);
	for (i = 0; i < job->consumers; i++) {
		pthread_join(th[i], NULL);
		if (w[i].ended > ended)
			ended = w[i].ended;
		check_sum(&t, &w[i], job->n / job->consumers);
	}
	pthread_barrier_destroy(&t.start);
	ops->drop(t.ctx);
	return (double)job->n * 1e9 / (double)(ended - began);
}

/* Half the way there and back: @v[n] in nanoseconds */
static void turn_ping(const struct mem_ops *ops, const struct mem_job *job,
		      double *v)
{
	struct turn t = { .ops = ops, .job = job, .ctx = ops->make(job) };
	struct worker w, me = { .turn = &t };
	double per_tick = bench_ticks_ns();
	uint64_t *ticks, i;
	pthread_t th;

	ticks = calloc(job->n, sizeof(*ticks));
	if (!ticks)
		bench_die(ENOMEM, "ping");
	workers_start(&t, &w, &th, true);
	pthread_barrier_wait(&t.start);
	ops->ping(t.ctx, job, ticks, &me.sum);
	pthread_join(th, NULL);
	check_sum(&t, &w, job->n);
	check_sum(&t, &me, job->n);
	for (i = 0; i < job->n; i++)
		v[i] = (double)ticks[i] * per_tick / 2.0;
	free(ticks);
	pthread_barrier_destroy(&t.start);
	ops->drop(t.ctx);
}

/* As many payloads as the bare loop moves in the time a turn shall take */
static uint64_t turn_count(const struct mem_job *job, unsigned int ms)
{
	uint64_t unit = (uint64_t)MEM_BATCH * job->consumers, n;
	struct mem_job probe = *job;
	double rate;

	probe.n = 8192 * unit;
	rate = turn_rate(&mem_bare, &probe);
	n = (uint64_t)(rate * ms / 1000.0) / unit;
	return (n ? n : 1) * unit;
}

static void measure_rate(struct row *row, const struct bench_opts *o)
{
	double bare[BENCH_ROUNDS_MAX], ring[BENCH_ROUNDS_MAX], ratio[BENCH_ROUNDS_MAX];
	struct mem_job job = {
		.len = row->len,
		.consumers = row->consumers,
		.yield = row->shared_cpu,
	};
	unsigned int i;

	job.n = turn_count(&job, o->ms);
	for (i = 0; i < o->rounds; i++) {
		if (i & 1)
			ring[i] = turn_rate(&mem_ring, &job);
		bare[i] = turn_rate(&mem_bare, &job);
		if (!(i & 1))
			ring[i] = turn_rate(&mem_ring, &job);
		ratio[i] = ring[i] / bare[i];
	}
	row->bare = bench_median(bare, o->rounds);
	row->ring = bench_median(ring, o->rounds);
	row->ratio = bench_median(ratio, o->rounds);
	row->low = bench_quantile(ratio, o->rounds, 0.25);
	row->high = bench_quantile(ratio, o->rounds, 0.75);
}

struct latency {
	double p50, p99;	/* medians over the rounds, ns */
};

static void measure_latency(struct latency *bare, struct latency *ring,
			    const struct bench_opts *o)
{
	const struct mem_ops *ops[2] = { &mem_bare, &mem_ring };
	double p50[2][BENCH_ROUNDS_MAX], p99[2][BENCH_ROUNDS_MAX];
	struct mem_job job = { .len = 64, .consumers = 1, .n = PINGS };
	double *v = calloc(PINGS, sizeof(*v));
	unsigned int i, k;

	if (!v)
		bench_die(ENOMEM, "latency");
	for (i = 0; i < o->rounds; i++) {
		for (k = 0; k < 2; k++) {
			turn_ping(ops[k], &job, v);
			p50[k][i] = bench_quantile(v, PINGS, 0.5);
			p99[k][i] = bench_quantile(v, PINGS, 0.99);
		}
	}
	free(v);
	bare->p50 = bench_median(p50[0], o->rounds);
	bare->p99 = bench_median(p99[0], o->rounds);
	ring->p50 = bench_median(p50[1], o->rounds);
	ring->p99 = bench_median(p99[1], o->rounds);
}

static void print_row(const struct row *r, FILE *json, bool first)
{
	printf("%6u  %9u%s  %10.2f  %10.2f  %6.2f  %6.3f  (%.3f to %.3f)\n",
	       r->len, r->consumers, r->shared_cpu ? "*" : " ",
	       r->bare / 1e6, r->ring / 1e6, r->ring * r->len / 1e9,
	       r->ratio, r->low, r->high);
	fflush(stdout);
	if (!json)
		return;
	fprintf(json, "%s{\"bytes\":%u,\"consumers\":%u,\"consumers_share_cpu\":%s,"
		"\"bare_pps\":%.0f,\"ring_pps\":%.0f,\"ratio\":%.3f,"
		"\"ratio_q1\":%.3f,\"ratio_q3\":%.3f}",
		first ? "" : ",", r->len, r->consumers,
		r->shared_cpu ? "true" : "false", r->bare, r->ring,
		r->ratio, r->low, r->high);
}

static void run_rates(const struct bench_opts *o)
{
	static const uint32_t lens[] = { 64, 256, 1500 };
	unsigned int i, k;

	printf(" bytes  consumers     bare M/s    ring M/s    GB/s   ratio  (quartiles)\n");
	for (k = 1; k <= 2; k++) {
		for (i = 0; i < 3; i++) {
			struct row row = {
				.len = lens[i],
				.consumers = k,
				.shared_cpu = bench_cpus() < k + 1,
			};

			measure_rate(&row, o);
			print_row(&row, o->json, k == 1 && i == 0);
		}
	}
	if (bench_cpus() < 3)
		printf("* both consumers share one core, in bare loop and ring alike\n");
}

static void run_latency(const struct bench_opts *o)
{
	struct latency bare, ring;

	measure_latency(&bare, &ring, o);
	printf("\nhand-over of one 64-byte payload (half a round trip), ns\n"
	       "               p50     p99\n"
	       "bare loop  %7.0f %7.0f\n"
	       "ringgate   %7.0f %7.0f\n", bare.p50, bare.p99, ring.p50, ring.p99);
	if (o->json)
		fprintf(o->json, "\"latency_ns\":{\"bare_p50\":%.0f,\"bare_p99\":%.0f,"
			"\"ring_p50\":%.0f,\"ring_p99\":%.0f}",
			bare.p50, bare.p99, ring.p50, ring.p99);
}

static void run(const struct bench_opts *o)
{
	double load = bench_load();

	printf("memory only: %u CPUs, load %.2f, medians of %u rounds of about %u ms a turn\n",
	       bench_cpus(), load, o->rounds, o->ms);
	bench_json_begin(o, load);
	run_rates(o);
	if (o->json)
		fprintf(o->json, "],");
	run_latency(o);
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .rounds = 11, .ms = 200 };

	bench_start(argc, argv, 0, &o);
	mem_pool_init();
	run(&o);
	bench_finish(&o);
	return 0;
}
