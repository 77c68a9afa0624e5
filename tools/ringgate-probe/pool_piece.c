// SPDX-License-Identifier: MIT OR GPL-2.0
/* Pieces of buffers, and the zones around them that nobody else may write. */
#include <stdio.h>

#include "pool_carve.h"
#include "pool_pattern.h"

struct span {
	unsigned char *begin, *end;
};

void *piece_addr(const struct carve *c, const struct piece *p)
{
	return (unsigned char *)c->bufs[p->index]->addr + p->off;
}

static struct span inner(const struct carve *c, const struct piece *p)
{
	unsigned char *begin = piece_addr(c, p);

	return (struct span){ begin, begin + p->len };
}

/* The part of buffer @i that is not further from the piece than a zone is long. Bytes
 * between buffers (there are some in a pool with red zones) are nobody's. */
static struct span around(const struct carve *c, const struct piece *p, size_t i)
{
	const struct rgate_buf *b = c->bufs[i];
	struct span s = { b->addr, (unsigned char *)b->addr + b->length };
	struct span in = inner(c, p);

	if (in.begin - s.begin > CARVE_ZONE)
		s.begin = in.begin - CARVE_ZONE;
	if (s.end - in.end > CARVE_ZONE)
		s.end = in.end + CARVE_ZONE;
	if (s.end < s.begin)
		s.end = s.begin;
	return s;
}

static size_t first(const struct piece *p)
{
	return p->index ? p->index - 1 : 0;
}

static size_t last(const struct carve *c, const struct piece *p)
{
	return p->index + 1 < c->n ? p->index + 1 : p->index;
}

/* Place in the stream of the bytes around a piece: that in the region */
static uint64_t place(const struct carve *c, const unsigned char *p)
{
	return (uint64_t)(p - (const unsigned char *)c->region.addr);
}

void piece_fill(struct carve *c, const struct piece *p, uint64_t key)
{
	size_t i;

	for (i = first(p); i <= last(c, p); i++) {
		struct span s = around(c, p, i);

		pattern_fill(s.begin, (size_t)(s.end - s.begin), key, place(c, s.begin));
		c->touched[i] = true;
	}
}

void piece_write(const struct carve *c, const struct piece *p, uint64_t key)
{
	pattern_fill(piece_addr(c, p), p->len, key, 0);
}

static bool holds(const struct carve *c, const unsigned char *begin, size_t len,
		  uint64_t key, uint64_t at, const char *what, char text[CARVE_TEXT])
{
	unsigned char want = 0;
	size_t i = pattern_differs(begin, len, key, at, &want);

	if (i == len)
		return true;
	snprintf(text, CARVE_TEXT, "%s: byte %#llx of the region is %#04x instead of %#04x",
		 what, (unsigned long long)place(c, begin + i), begin[i], want);
	return false;
}

static bool span_holds(const struct carve *c, struct span s, uint64_t key,
		       char text[CARVE_TEXT])
{
	return s.end <= s.begin ||
	       holds(c, s.begin, (size_t)(s.end - s.begin), key, place(c, s.begin),
		     "red zone", text);
}

bool piece_zones(const struct carve *c, const struct piece *p, uint64_t key,
		 char text[CARVE_TEXT])
{
	struct span in = inner(c, p);
	size_t i;

	for (i = first(p); i <= last(c, p); i++) {
		struct span s = around(c, p, i), before = s, after = { 0 };

		if (i == p->index) {
			before.end = in.begin;
			after = (struct span){ in.end, s.end };
		}
		if (!span_holds(c, before, key, text) || !span_holds(c, after, key, text))
			return false;
	}
	return true;
}

bool piece_holds(const struct carve *c, const struct piece *p, uint64_t key,
		 char text[CARVE_TEXT])
{
	return holds(c, piece_addr(c, p), p->len, key, 0, "contents", text);
}

bool piece_untouched(const struct carve *c, const struct piece *p, uint64_t key,
		     char text[CARVE_TEXT])
{
	struct span in = inner(c, p);

	return holds(c, in.begin, p->len, key, place(c, in.begin), "contents", text) &&
	       piece_zones(c, p, key, text);
}
