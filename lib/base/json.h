/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * JSON as it is written. A key is NULL inside an array and for the outermost
 * value. Numbers are written whole: readers that keep doubles lose digits
 * beyond 2^53.
 */
#ifndef RGATE_JSON_H
#define RGATE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH	16

/* Their names for the linker: libraries of a program may have such functions, too. */
#define JSON_AS(name) __asm__("rgate_json_" name)

struct json {
	FILE *f;
	bool pretty;		/* one value a line; else all in one line */
	unsigned int depth;
	bool some[JSON_DEPTH];	/* this level has a value already */
};

void json_init(struct json *j, FILE *f, bool pretty) JSON_AS("init");
void json_object(struct json *j, const char *key) JSON_AS("object");
void json_object_end(struct json *j) JSON_AS("object_end");
void json_array(struct json *j, const char *key) JSON_AS("array");
void json_array_end(struct json *j) JSON_AS("array_end");
void json_u64(struct json *j, const char *key, uint64_t v) JSON_AS("u64");
void json_i64(struct json *j, const char *key, int64_t v) JSON_AS("i64");
void json_double(struct json *j, const char *key, double v) JSON_AS("double");
void json_bool(struct json *j, const char *key, bool v) JSON_AS("bool");
/* NULL is written as null; bytes that are not UTF-8 are written as U+FFFD */
void json_str(struct json *j, const char *key, const char *v) JSON_AS("str");
/* @text: a value that is JSON already */
void json_raw(struct json *j, const char *key, const char *text) JSON_AS("raw");
/* After the outermost value: newline, and out with it */
void json_end(struct json *j) JSON_AS("end");

#endif
