// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What it costs to get a buffer and to give it back: ringgate's pool, DPDK's, UCX's,
 * malloc(), and a registration for each buffer where there is an RDMA device. All in
 * one run, taking turns; the medians over the rounds are printed, and the ratio to
 * the best pool as the median of the rounds' ratios. Names of rivals on the command
 * line: these only, beside ringgate.
 */
#include "pool/pool.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS		512U	/* in a pool, for two threads */
#define RIVALS		(sizeof(rivals) / sizeof(rivals[0]))
#define RINGGATE	0U	/* its place among them */
#define THREADS_MAX	256U

static const struct pool_ops *const rivals[] = {
	&pool_ringgate, &pool_dpdk, &pool_ucs, &pool_malloc, &pool_verbs, &pool_none,
};

static const char *const patterns[POOL_PATTERNS] = { "pair", "fifo", "bulk", "pass" };

struct rival {
	const struct pool_ops *ops;
	void *pool;		/* NULL: cannot run here */
	const char *why;
	uint64_t n;		/* buffers of a turn */
	double ns[BENCH_ROUNDS_MAX];
	double median, q1, q3;
};

struct turn {
	const struct rival *rival;
	enum pool_pattern pattern;
	unsigned int threads;
	uint64_t n;
	struct pool_way *ways;
	pthread_barrier_t start;
};

struct worker {
	struct turn *turn;
	unsigned int id;
	uint64_t began, ended, pairs;
};

struct cell {
	struct pool_cfg cfg;
	enum pool_pattern pattern;
	struct rival rivals[RIVALS];
	const struct rival *best;	/* of the other pools, or NULL */
	double ratio, q1, q3;		/* to it */
	double cheaper;			/* than registration, 0: not measured */
};

static uint64_t work(const struct turn *t, void *thread, unsigned int id, uint64_t n)
{
	const struct pool_ops *ops = t->rival->ops;
	struct pool_way *way = &t->ways[id / 2];
	uint64_t batches = (n + POOL_BATCH - 1) / POOL_BATCH;

	if (t->pattern != POOL_PASS)
		return ops->run[t->pattern](thread, n);
	if (id % 2)
		return ops->take_over(thread, way, batches);
	return ops->put_away(thread, way, batches);
}

static void way_reset(struct pool_way *way)
{
	unsigned int i;

	for (i = 0; i < POOL_WAY; i++)
		atomic_store(&way->slot[i].full, 0);
	atomic_store(&way->taken, 0);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct turn *t = w->turn;
	const struct pool_ops *ops = t->rival->ops;
	void *thread;

	bench_pin(bench_cpu(w->id));
	thread = ops->enter(t->rival->pool, w->id);
	/* caches filled, pages there, the partner awake */
	pthread_barrier_wait(&t->start);
	work(t, thread, w->id, t->n / 8 + 1);
	pthread_barrier_wait(&t->start);
	if (t->pattern == POOL_PASS && w->id % 2 == 0)
		way_reset(&t->ways[w->id / 2]);
	pthread_barrier_wait(&t->start);
	w->began = bench_now_ns();
	w->pairs = work(t, thread, w->id, t->n);
	w->ended = bench_now_ns();
	/* none goes while another still works: nothing of it is in the figures */
	pthread_barrier_wait(&t->start);
	ops->leave(thread);
	return NULL;
}

/*
 * Nanoseconds for a buffer taken and given, of which a thread did @pairs. Threads that
 * work for themselves begin when each of them is awake, so their own times count; those
 * that work together are one.
 */
static double turn_time(const struct turn *t, const struct worker *w)
{
	uint64_t first = UINT64_MAX, last = 0, sum = 0;
	unsigned int i;

	for (i = 0; i < t->threads; i++) {
		first = w[i].began < first ? w[i].began : first;
		last = w[i].ended > last ? w[i].ended : last;
		sum += w[i].ended - w[i].began;
	}
	if (t->pattern == POOL_PASS)
		return (double)(last - first) / (double)w[0].pairs;
	return (double)sum / t->threads / (double)w[0].pairs;
}

static double turn_run(struct turn *t)
{
	struct worker w[THREADS_MAX];
	pthread_t th[THREADS_MAX];
	unsigned int i;
	int err;

	err = pthread_barrier_init(&t->start, NULL, t->threads);
	if (err)
		bench_die(err, "pthread_barrier_init");
	for (i = 0; i < (t->threads + 1) / 2; i++)
		way_reset(&t->ways[i]);
	for (i = 0; i < t->threads; i++) {
		w[i] = (struct worker){ .turn = t, .id = i };
		err = pthread_create(&th[i], NULL, worker_main, &w[i]);
		if (err)
			bench_die(err, "pthread_create");
	}
	for (i = 0; i < t->threads; i++)
		pthread_join(th[i], NULL);
	pthread_barrier_destroy(&t->start);
	return turn_time(t, w);
}

/* As many buffers as take about @ms */
static uint64_t turn_count(struct turn *t, unsigned int ms)
{
	double goal = ms * 1e6, ns;

	for (t->n = POOL_BATCH; ; t->n *= 4) {
		ns = turn_run(t);
		if (ns * (double)t->n >= goal / 4)
			break;
	}
	t->n = (uint64_t)(goal / ns);
	return t->n > POOL_BATCH ? t->n : POOL_BATCH;
}

static bool can(const struct rival *r, const struct pool_cfg *cfg)
{
	return r->pool && (cfg->threads == 1 || !r->ops->one_thread);
}

static void cell_rounds(struct cell *c, const struct bench_opts *o, struct pool_way *ways)
{
	struct turn t = {
		.pattern = c->pattern,
		.threads = c->cfg.threads,
		.ways = ways,
	};
	unsigned int i, k;

	for (i = 0; i <= o->rounds; i++) {
		for (k = 0; k < RIVALS; k++) {
			/* another is the first in each round */
			struct rival *r = &c->rivals[(i + k) % RIVALS];

			if (!can(r, &c->cfg))
				continue;
			t.rival = r;
			if (!i) {
				r->n = turn_count(&t, o->ms);
				continue;
			}
			t.n = r->n;
			r->ns[i - 1] = turn_run(&t);
		}
	}
}

static void rival_sum(struct rival *r, unsigned int rounds)
{
	r->q1 = bench_quantile(r->ns, rounds, 0.25);
	r->median = bench_median(r->ns, rounds);
	r->q3 = bench_quantile(r->ns, rounds, 0.75);
}

/* The other pool with the lowest median, and what ringgate takes of its time */
static void cell_ratio(struct cell *c, unsigned int rounds)
{
	const struct rival *own = &c->rivals[RINGGATE], *r;
	double v[RIVALS][BENCH_ROUNDS_MAX];
	unsigned int i, k;

	for (k = 0; k < RIVALS; k++)
		for (i = 0; i < rounds; i++)
			v[k][i] = own->ns[i] / c->rivals[k].ns[i];
	for (k = 0; k < RIVALS; k++) {
		if (!can(&c->rivals[k], &c->cfg))
			continue;
		rival_sum(&c->rivals[k], rounds);
		r = &c->rivals[k];
		if (r->ops->registers)
			c->cheaper = 1.0 / bench_median(v[k], rounds);
		if (!r->ops->pool || (c->best && c->best->median <= r->median))
			continue;
		c->best = r;
		c->q1 = bench_quantile(v[k], rounds, 0.25);
		c->ratio = bench_median(v[k], rounds);
		c->q3 = bench_quantile(v[k], rounds, 0.75);
	}
}

static void cell_json(const struct cell *c, FILE *f)
{
	static bool more;
	unsigned int k;

	fprintf(f, "%s{\"bytes\":%zu,\"threads\":%u,\"pattern\":\"%s\"", more ? "," : "",
		c->cfg.size, c->cfg.threads, patterns[c->pattern]);
	more = true;
	for (k = 0; k < RIVALS; k++) {
		const struct rival *r = &c->rivals[k];

		if (can(r, &c->cfg))
			fprintf(f, ",\"%s\":{\"ns\":%.2f,\"q1\":%.2f,\"q3\":%.2f}",
				r->ops->name, r->median, r->q1, r->q3);
	}
	if (c->best)
		fprintf(f, ",\"best\":\"%s\",\"ratio\":%.3f,\"ratio_q1\":%.3f,"
			"\"ratio_q3\":%.3f", c->best->ops->name, c->ratio, c->q1, c->q3);
	if (c->cheaper > 0.0)
		fprintf(f, ",\"cheaper\":%.0f", c->cheaper);
	fputc('}', f);
}

static void head_print(void)
{
	unsigned int k;

	printf("\n  bytes threads pattern");
	for (k = 0; k < RIVALS; k++)
		printf(" %12s", rivals[k]->name);
	printf("  ratio (quartiles)       cheaper\n");
}

static void cell_print(const struct cell *c)
{
	unsigned int k;

	printf("%7zu %7u %7s", c->cfg.size, c->cfg.threads, patterns[c->pattern]);
	for (k = 0; k < RIVALS; k++) {
		if (can(&c->rivals[k], &c->cfg))
			printf(" %12.1f", c->rivals[k].median);
		else
			printf(" %12s", "-");
	}
	if (c->best)
		printf("  %.3f (%.3f to %.3f)", c->ratio, c->q1, c->q3);
	if (c->cheaper > 0.0)
		printf(" %9.0f", c->cheaper);
	putchar('\n');
	fflush(stdout);
}

static const char *const *only;		/* names from the command line */

static bool wanted(const struct pool_ops *ops)
{
	unsigned int i;

	for (i = 0; only[i]; i++)
		if (!strcmp(only[i], ops->name))
			return true;
	return !only[0] || ops == rivals[RINGGATE];
}

static void rival_open(struct rival *r, const struct pool_ops *ops,
		       const struct pool_cfg *cfg)
{
	*r = (struct rival){ .ops = ops, .why = "not asked for" };
	if (wanted(ops))
		r->pool = ops->open(cfg, &r->why);
}

/* All patterns with one size of buffer and number of threads */
static void measure(const struct pool_cfg *cfg, const struct bench_opts *o)
{
	struct pool_way *ways = aligned_alloc(_Alignof(struct pool_way),
					      (cfg->threads + 1) / 2 * sizeof(*ways));
	struct cell *c = calloc(1, sizeof(*c));
	unsigned int k, p;

	if (!ways || !c)
		bench_die(ENOMEM, "ways");
	c->cfg = *cfg;
	for (k = 0; k < RIVALS; k++)
		rival_open(&c->rivals[k], rivals[k], cfg);
	for (p = 0; p < POOL_PATTERNS; p++) {
		if (p == POOL_PASS && cfg->threads % 2)
			continue;
		c->pattern = p;
		c->best = NULL;
		cell_rounds(c, o, ways);
		cell_ratio(c, o->rounds);
		cell_print(c);
		if (o->json)
			cell_json(c, o->json);
	}
	for (k = 0; k < RIVALS; k++)
		if (c->rivals[k].pool)
			rivals[k]->close(c->rivals[k].pool);
	free(c);
	free(ways);
}

/* Which cannot run here, and why */
static void missing(const struct bench_opts *o, unsigned int buffers)
{
	struct pool_cfg cfg = { .size = 4096, .buffers = buffers, .threads = 1 };
	bool more = false;
	unsigned int k;

	if (o->json)
		fprintf(o->json, "],\"missing\":{");
	for (k = 0; k < RIVALS; k++) {
		struct rival r;

		rival_open(&r, rivals[k], &cfg);
		if (r.pool) {
			r.ops->close(r.pool);
			continue;
		}
		printf("%s is missing: %s\n", r.ops->name, r.why);
		if (o->json)
			fprintf(o->json, "%s\"%s\":\"%s\"", more ? "," : "",
				r.ops->name, r.why);
		more = true;
	}
	if (o->json)
		fputc('}', o->json);
}

static void run(const struct bench_opts *o)
{
	static const size_t sizes[] = { 4096, 512 << 10 };
	unsigned int most = bench_cpus() & ~1U, i, k;
	unsigned int threads[2] = { 1, most < THREADS_MAX ? most : THREADS_MAX };
	struct pool_cfg cfg;
	double load = bench_load();

	printf("a buffer taken and given, ns: %u CPUs, load %.2f, medians of %u rounds of about %u ms a turn\n",
	       bench_cpus(), load, o->rounds, o->ms);
	bench_json_begin(o, load);
	head_print();
	for (i = 0; i < 2; i++) {
		for (k = 0; k < (most ? 2 : 1); k++) {
			cfg = (struct pool_cfg){
				.size = sizes[i],
				/* also for one thread: EAL is told once how much */
				.buffers = BUFFERS * (most ? threads[1] / 2 : 1),
				.threads = threads[k],
			};
			measure(&cfg, o);
		}
	}
	missing(o, cfg.buffers);
}

int main(int argc, char **argv)
{
	struct bench_opts o = { .rounds = 21, .ms = 10, .cpus = 1 };

	bench_start(argc, argv, 0, &o);
	only = (const char *const *)argv + optind;
	run(&o);
	bench_finish(&o);
	return 0;
}
