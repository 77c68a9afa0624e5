// SPDX-License-Identifier: MIT OR GPL-2.0
/* A judge of JSON, independent of what writes it: RFC 8259, in UTF-8. */
#include <ctype.h>

#include "fuzz.h"

#define DEPTH_MAX 32

struct text {
	const char *p, *end;
	unsigned int depth;
};

static void blanks(struct text *t)
{
	while (t->p < t->end && strchr(" \t\r\n", *t->p) && *t->p)
		t->p++;
}

static bool eat(struct text *t, char c)
{
	if (t->p == t->end || *t->p != c)
		return false;
	t->p++;
	return true;
}

static bool word(struct text *t, const char *w)
{
	size_t n = strlen(w);

	if ((size_t)(t->end - t->p) < n || memcmp(t->p, w, n))
		return false;
	t->p += n;
	return true;
}

static bool digits(struct text *t)
{
	const char *from = t->p;

	while (t->p < t->end && isdigit((unsigned char)*t->p))
		t->p++;
	return t->p > from;
}

static bool number(struct text *t)
{
	eat(t, '-');
	if (!eat(t, '0') && !digits(t))
		return false;
	if (eat(t, '.') && !digits(t))
		return false;
	if (eat(t, 'e') || eat(t, 'E')) {
		if (!eat(t, '+'))
			eat(t, '-');
		return digits(t);
	}
	return true;
}

static bool escape(struct text *t)
{
	unsigned int i;

	if (t->p == t->end)
		return false;
	if (*t->p++ != 'u')
		return t->p[-1] && strchr("\"\\/bfnrt", t->p[-1]);
	for (i = 0; i < 4; i++)
		if (t->p == t->end || !isxdigit((unsigned char)*t->p++))
			return false;
	return true;
}

/* One character of UTF-8, decoded and checked for the shortest form */
static bool utf8(struct text *t)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	unsigned char c = (unsigned char)*t->p++;
	unsigned int more = c < 0x80 ? 0 : c >> 5 == 6 ? 1 : c >> 4 == 14 ? 2 :
			    c >> 3 == 30 ? 3 : 4, i;
	uint32_t v = more ? c & (0x3f >> more) : c;

	if (more == 4)
		return false;
	for (i = 0; i < more; i++) {
		if (t->p == t->end || ((unsigned char)*t->p & 0xc0) != 0x80)
			return false;
		v = v << 6 | ((unsigned char)*t->p++ & 0x3f);
	}
	return v >= least[more] && v <= 0x10ffff && (v < 0xd800 || v > 0xdfff);
}

static bool string(struct text *t)
{
	if (!eat(t, '"'))
		return false;
	while (t->p < t->end && *t->p != '"') {
		if ((unsigned char)*t->p < 0x20)
			return false;
		if (eat(t, '\\') ? !escape(t) : !utf8(t))
			return false;
	}
	return eat(t, '"');
}

static bool value(struct text *t);

/* NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX bounds it */
static bool items(struct text *t, char end, bool keys)
{
	blanks(t);
	if (eat(t, end))
		return true;
	do {
		blanks(t);
		if (keys) {
			if (!string(t))
				return false;
			blanks(t);
			if (!eat(t, ':'))
				return false;
		}
		if (!value(t))
			return false;
		blanks(t);
	} while (eat(t, ','));
	return eat(t, end);
}

/* NOLINTNEXTLINE(misc-no-recursion): see items() */
static bool value(struct text *t)
{
	bool ok;

	blanks(t);
	if (t->p == t->end || t->depth == DEPTH_MAX)
		return false;
	t->depth++;
	if (eat(t, '{'))
		ok = items(t, '}', true);
	else if (eat(t, '['))
		ok = items(t, ']', false);
	else if (*t->p == '"')
		ok = string(t);
	else
		ok = word(t, "true") || word(t, "false") || word(t, "null") || number(t);
	t->depth--;
	return ok;
}

bool fuzz_json_ok(const char *text, size_t len)
{
	struct text t = { .p = text, .end = text + len };

	if (!value(&t))
		return false;
	blanks(&t);
	return t.p == t.end;
}
