/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * JSON as it is written. A key is NULL inside an array and for the outermost
 * value. Numbers are written whole: readers that keep doubles lose digits
 * beyond 2^53.
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH	16

struct json {
	FILE *f;
	bool pretty;		/* one value a line; else all in one line */
	unsigned int depth;
	bool some[JSON_DEPTH];	/* this level has a value already */
};

void json_init(struct json *j, FILE *f, bool pretty);
void json_object(struct json *j, const char *key);
void json_object_end(struct json *j);
void json_array(struct json *j, const char *key);
void json_array_end(struct json *j);
void json_u64(struct json *j, const char *key, uint64_t v);
void json_i64(struct json *j, const char *key, int64_t v);
void json_double(struct json *j, const char *key, double v);
void json_bool(struct json *j, const char *key, bool v);
/* NULL is written as null; bytes that are not UTF-8 are written as U+FFFD */
void json_str(struct json *j, const char *key, const char *v);
/* @text: a value that is JSON already */
void json_raw(struct json *j, const char *key, const char *text);
/* After the outermost value: newline, and out with it */
void json_end(struct json *j);

#endif
