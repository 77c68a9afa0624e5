// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate pool verify: carving, and the places where transfers are tried. */
#include <errno.h>
#include <stdio.h>

#include "pool.h"
#include "pool_pattern.h"
#include "probe.h"
#include "util.h"

uint64_t pool_key(struct verify *v)
{
	/* never 0, which stands for none */
	return pattern_key(v->o->seed, ++v->keys) | 1;
}

struct piece pool_place(struct verify *v, uint64_t n, uint32_t i, size_t len, size_t align)
{
	size_t room = v->o->buffer - len;
	struct piece p = { .len = len };

	if (i == 1) {
		p.index = n - 1;
		p.off = room;
	} else if (i > 1) {
		p.index = pattern_below(&v->rng, n);
		p.off = pattern_below(&v->rng, room + 1);
	}
	p.off -= p.off % align;
	return p;
}

size_t pool_length(const struct verify *v, unsigned int n)
{
	/* one message is 2^31 bytes at most; half of it is enough */
	const uint64_t whole = v->o->buffer < 1ULL << 30 ? v->o->buffer : 1ULL << 30;
	const uint64_t mtu = v->mtu ?: 4096;
	const uint64_t lengths[] = { 1, 8, 63, 64, 65, mtu, mtu + 1, whole };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		if (lengths[i] >= whole && i + 1 < ARRAY_SIZE(lengths))
			continue;
		if (!n--)
			return lengths[i];
	}
	return 0;
}

static int carve(struct verify *v, const char *name)
{
	struct carve *c = &v->side.carve;
	char text[CARVE_TEXT] = "";
	int err = carve_all(c);

	if (err)
		return probe_fail(err, "cannot carve the pool", ""), err;
	report_add(&v->report, name, carve_complete(c, text), "%s", text);
	return 0;
}

static void look(struct verify *v)
{
	struct carve *c = &v->side.carve;
	char text[CARVE_TEXT] = "";
	const char *why;
	size_t i;

	for (i = 0; i < c->n && !util_stop; i++) {
		why = carve_misplaced(c, i);
		report_add(&v->report, "buffers apart", !why, "buffer %zu %s", i, why ?: "");
	}
	carve_write(c, report_progress);
	i = carve_damaged(c, text);
	report_add(&v->report, "patterns intact", !i, "%zu buffers: %s", i, text);
}

static void release(struct verify *v)
{
	struct rgate_pool_stats s = { .sz = sizeof(s) };
	struct carve *c = &v->side.carve;
	int err = carve_free(c, &v->rng);

	report_add(&v->report, "released in random order", !err, "%s",
		   rgate_strerror("rgate_mem_", err));
	err = rgate_pool_stats(c->pool, &s);
	report_add(&v->report, "all is back", !err && !s.used_buffers,
		   "%llu buffers are held", (unsigned long long)s.used_buffers);
}

int pool_carve_checks(struct verify *v)
{
	struct pool_side *s = &v->side;
	int err;

	err = carve_create(&s->carve, s->dev, v->o->size, v->o->buffer, s->access,
			   pool_key(v), report_progress);
	report_progress(NULL, 0, 0);
	if (err) {
		probe_fail(err, "cannot make the pool", "");
		return err;
	}
	err = carve(v, "carved completely");
	if (err)
		return err;
	look(v);
	release(v);
	err = carve(v, "carved again");
	if (err)
		return err;
	s->carve.key = pool_key(v);
	look(v);
	report_progress(NULL, 0, 0);
	return util_stop ? -EINTR : 0;
}
