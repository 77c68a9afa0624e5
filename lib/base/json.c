// SPDX-License-Identifier: MIT OR GPL-2.0
#include <inttypes.h>
#include <math.h>
#include <stddef.h>

#include "json.h"
#include "utf8.h"

void json_init(struct json *j, FILE *f, bool pretty)
{
	*j = (struct json){ .f = f, .pretty = pretty };
}

static void newline(struct json *j)
{
	unsigned int i;

	if (!j->pretty)
		return;
	fputc('\n', j->f);
	for (i = 0; i < j->depth; i++)
		fputs("  ", j->f);
}

static void string(struct json *j, const char *v)
{
	const unsigned char *s = (const unsigned char *)v;

	fputc('"', j->f);
	while (*s) {
		size_t n = rgate_utf8(s);

		if (*s == '"' || *s == '\\')
			fprintf(j->f, "\\%c", *s);
		else if (*s < 0x20 || *s == 0x7f)
			fprintf(j->f, "\\u%04x", *s);
		else if (n)
			fwrite(s, 1, n, j->f);
		else
			fputs("\\ufffd", j->f);
		s += n ? n : 1;
	}
	fputc('"', j->f);
}

static void begin(struct json *j, const char *key)
{
	if (j->depth) {
		if (j->some[j->depth])
			fputs(j->pretty ? "," : ", ", j->f);
		j->some[j->depth] = true;
		newline(j);
	}
	if (key) {
		string(j, key);
		fputs(": ", j->f);
	}
}

static void open_level(struct json *j, const char *key, char c)
{
	begin(j, key);
	fputc(c, j->f);
	if (j->depth + 1 < JSON_DEPTH)
		j->depth++;
	j->some[j->depth] = false;
}

static void close_level(struct json *j, char c)
{
	bool some = j->some[j->depth];

	j->depth--;
	if (some)
		newline(j);
	fputc(c, j->f);
}

void json_object(struct json *j, const char *key)
{
	open_level(j, key, '{');
}

void json_object_end(struct json *j)
{
	close_level(j, '}');
}

void json_array(struct json *j, const char *key)
{
	open_level(j, key, '[');
}

void json_array_end(struct json *j)
{
	close_level(j, ']');
}

void json_u64(struct json *j, const char *key, uint64_t v)
{
	begin(j, key);
	fprintf(j->f, "%" PRIu64, v);
}

void json_i64(struct json *j, const char *key, int64_t v)
{
	begin(j, key);
	fprintf(j->f, "%" PRId64, v);
}

void json_double(struct json *j, const char *key, double v)
{
	begin(j, key);
	if (isfinite(v))
		fprintf(j->f, "%.3f", v);
	else
		fputs("null", j->f);
}

void json_bool(struct json *j, const char *key, bool v)
{
	begin(j, key);
	fputs(v ? "true" : "false", j->f);
}

void json_str(struct json *j, const char *key, const char *v)
{
	begin(j, key);
	if (v)
		string(j, v);
	else
		fputs("null", j->f);
}

void json_raw(struct json *j, const char *key, const char *text)
{
	begin(j, key);
	fputs(text, j->f);
}

void json_end(struct json *j)
{
	fputc('\n', j->f);
	fflush(j->f);
}
