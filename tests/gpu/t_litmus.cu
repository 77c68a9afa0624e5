// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Each hand-over of the device's headers as a litmus test, with many instances, by the functions
 * of the library: forbidden outcomes are counted and have to be none. The same once more with
 * mistakes put in, which tells what the test can see on this device: printed, and asked for only
 * where it came out on each run so far. Documentation/model/README.rst lists them.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* all that the device's headers include: those themselves only in namespaces, below */
#include <ringgate/request.h>
#include <ringgate/rgate_gpu.h>
#include <ringgate/ring.h>

#include "gtest.h"
#include "litmus.h"

#define LIT_CAT_(a, b)	a##b
#define LIT_CAT(a, b)	LIT_CAT_(a, b)

#define LIT_NAME as_it_is
#define LIT_KIND 0
#include "litmus_variant.cuh"

#define LIT_NAME no_acquire
#define LIT_KIND 1
#include "litmus_variant.cuh"

#define LIT_NAME no_release
#define LIT_KIND 2
#include "litmus_variant.cuh"

#define LIT_NAME narrow
#define LIT_KIND 3
#include "litmus_variant.cuh"

#define LIT_NAME relaxed
#define LIT_KIND 4
#include "litmus_variant.cuh"

typedef void (*lit_run)(const struct lit_how *how, struct lit_seen *out);

#define ALL_KINDS(fn) { as_it_is::fn, no_acquire::fn, no_release::fn, narrow::fn, relaxed::fn }

static const char *const kind_name[LIT_KINDS] = {
	"as it is", "no acquire", "no release", "narrow scope", "relaxed"
};
static const char *const place_name[LIT_PLACES] = {
	"same warp", "same block", "other block", "other block, host memory"
};

static uint32_t *noise;

static void warm_up(void)
{
	if (noise)
		return;
	g_require(!cudaMalloc((void **)&noise, LIT_NOISE * 4ULL));
	g_require(!cudaMemset(noise, 0, LIT_NOISE * 4ULL));
}

static uint64_t wrong(const struct lit_seen *s)
{
	return s->stale + s->early + s->lost;
}

static void tell(const char *place, enum lit_kind kind, const struct lit_seen *s)
{
	g_note("%-24s %-12s %10llu as they have to be, %llu stale, %llu early, %llu lost%s", place,
	       kind_name[kind], s->good, s->stale, s->early, s->lost,
	       s->hung ? "; some gave up waiting" : "");
	if (s->ahead)
		g_note("%-24s %-12s %10llu slots of a batch were not there, and its end was", "", "",
		       s->ahead);
}

/* All variants at a place; @shows: bits of the variants of which something wrong has to be seen */
static void litmus(const lit_run *run, const char *name, struct lit_how *how, uint32_t shows)
{
	uint32_t kind;

	for (kind = 0; kind < LIT_KINDS; kind++) {
		struct lit_seen s;

		memset(&s, 0, sizeof(s));
		run[kind](how, &s);
		tell(name, (enum lit_kind)kind, &s);
		if (kind == LIT_AS_IT_IS)
			g_require(s.good && !wrong(&s) && !s.hung && !s.ahead);
		else if (shows >> kind & 1 && g_slow() == 1)
			g_require(wrong(&s));
	}
}

static void all_places(const lit_run *run, uint32_t rounds, uint32_t blocks, uint32_t from,
		       uint32_t to, const uint32_t *shows)
{
	struct lit_how how;
	uint32_t place;

	warm_up();
	for (place = from; place <= to; place++) {
		memset(&how, 0, sizeof(how));
		how.place = (enum lit_place)place;
		how.rounds = rounds / (uint32_t)g_slow();
		how.blocks = blocks;
		how.threads = g_slow() == 1 ? 512 : 160;
		how.noise = noise;
		litmus(run, place_name[place], &how, shows[place]);
	}
}

static void one_place(const lit_run *run, uint32_t rounds, uint32_t shows)
{
	struct lit_how how;

	memset(&how, 0, sizeof(how));
	how.rounds = rounds / (uint32_t)g_slow();
	litmus(run, "CPU and GPU", &how, shows);
}

/* Bits of variants that have come out wrong in each run so far */
#define NONE	0U
#define SHOWN(kind) (1U << (kind))
#define ACQUIRES (SHOWN(LIT_NO_ACQUIRE) | SHOWN(LIT_NARROW) | SHOWN(LIT_RELAXED))

/* A block has one L1 cache: only between blocks can it be out of date */
static const uint32_t between_blocks[LIT_PLACES] = { NONE, NONE, ACQUIRES, ACQUIRES };

static void queue(void)
{
	static const lit_run run[] = ALL_KINDS(lit_run_queue);

	all_places(run, 20000, 128, LIT_SAME_WARP, LIT_OTHER_FAR, between_blocks);
}

static void mail(void)
{
	static const lit_run run[] = ALL_KINDS(lit_run_mail);

	all_places(run, 20000, 128, LIT_SAME_BLOCK, LIT_OTHER_FAR, between_blocks);
}

static void out(void)
{
	static const lit_run run[] = ALL_KINDS(lit_run_out);

	all_places(run, 8192, 128, LIT_SAME_BLOCK, LIT_OTHER_BLOCK, between_blocks);
}

static void lock(void)
{
	static const lit_run run[] = ALL_KINDS(lit_run_lock);

	all_places(run, 10000, 128, LIT_SAME_WARP, LIT_OTHER_BLOCK, between_blocks);
}

static void last(void)
{
	static const lit_run run[] = ALL_KINDS(lit_run_last);

	all_places(run, 30000, 128, LIT_SAME_WARP, LIT_OTHER_BLOCK, between_blocks);
}

static void ask(void)
{
	static const lit_run run[] = ALL_KINDS(lit_run_ask);

	one_place(run, 4000, ACQUIRES);
}

static void chain(void)
{
	static const lit_run run[] = ALL_KINDS(lit_run_chain);

	one_place(run, 60000, SHOWN(LIT_NARROW) | SHOWN(LIT_RELAXED));
}

static void ordered(void)
{
	static const lit_run run[] = ALL_KINDS(lit_run_ordered);

	one_place(run, 60000, SHOWN(LIT_NARROW) | SHOWN(LIT_RELAXED));
}

static void done(void)
{
	static const lit_run run[] = ALL_KINDS(lit_run_done);

	one_place(run, 8000, NONE);
}

static void ended(void)
{
	static const lit_run run[] = ALL_KINDS(lit_run_end);

	one_place(run, 40000, NONE);
}

static const struct g_test tests[] = {
	{ "queue", queue },
	{ "mail", mail },
	{ "out", out },
	{ "lock", lock },
	{ "last", last },
	{ "ask", ask },
	{ "chain", chain },
	{ "ordered", ordered },
	{ "done", done },
	{ "ended", ended },
};

int main(int argc, char **argv)
{
	/* kernels that stay are started beside others */
	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	return g_run(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
