// SPDX-License-Identifier: MIT OR GPL-2.0
/* What the example of a key-value server makes of requests, and its table, on this CPU */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../Documentation/examples/gpu/http.cuh"
#include "../../Documentation/examples/gpu/kv.cuh"

#define HOST	"Host: a\r\n"

/* In memory of its own length, so that a byte too many is found */
static int parse(const char *text, size_t len, struct http_request *r)
{
	unsigned char *copy = malloc(len ? len : 1);
	int n;

	assert_non_null(copy);
	memcpy(copy, text, len);
	n = http_parse(copy, (uint32_t)len, r);
	free(copy);
	return n;
}

static int of(const char *text)
{
	struct http_request r;

	return parse(text, strlen(text), &r);
}

/* Each is whole, and no shorter part of it is */
static void whole(void **state)
{
	static const struct {
		const char *text;
		uint32_t method, body_len, close;
		const char *key;
	} good[] = {
		{ "GET /k HTTP/1.1\r\n" HOST "\r\n", HTTP_GET, 0, 0, "k" },
		{ "HEAD /a/b?c=%20 HTTP/1.1\r\nhOsT:\r\n\r\n", HTTP_HEAD, 0, 0, "a/b?c=%20" },
		{ "DELETE /~ HTTP/1.1\r\n" HOST "Connection: x, CLOSE \r\n\r\n", HTTP_DELETE, 0, 1,
		  "~" },
		{ "PUT /k HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", HTTP_PUT, 3, 0, "k" },
		{ "PUT /k HTTP/1.1\r\n" HOST "content-length:\t003 \r\nContent-Length: 3\r\n\r\n\r\n\r",
		  HTTP_PUT, 3, 0, "k" },
		{ "GET /k HTTP/1.0\r\n\r\n", HTTP_GET, 0, 1, "k" },
		{ "GET /k HTTP/1.1\r\n" HOST "Connection: closed, keep-alive\r\nX-y: \t \r\n\r\n",
		  HTTP_GET, 0, 0, "k" },
	};
	struct http_request r;
	size_t i, n, len;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		len = strlen(good[i].text);
		for (n = 0; n < len; n++)
			assert_int_equal(parse(good[i].text, n, &r), 0);
		assert_int_equal(parse(good[i].text, len, &r), len);
		assert_int_equal(r.method, good[i].method);
		assert_int_equal(r.body_len, good[i].body_len);
		assert_int_equal(r.body + r.body_len, len);
		assert_int_equal(r.close, good[i].close);
		assert_int_equal(r.key_len, strlen(good[i].key));
		assert_memory_equal(good[i].text + r.key, good[i].key, r.key_len);
	}
	/* what follows is the next one's */
	assert_int_equal(of("GET /k HTTP/1.1\r\n" HOST "\r\nGET /x"), 28);
}

static void refused(void **state)
{
	static const struct {
		int status;
		const char *text;
	} bad[] = {
		{ 400, "\r\n" }, { 400, " GET /k HTTP/1.1\r\n" }, { 400, "GET  /k HTTP/1.1\r\n" },
		{ 400, "GET k HTTP/1.1\r\n" }, { 400, "GET\r\n" }, { 400, "GET /k HTTP/1.1\n" },
		{ 400, "GET /k\001 HTTP/1.1\r\n" }, { 400, "GET /k HTTP/1.1\rX" },
		{ 400, "G\177T" }, { 400, "\026\003\001" },
		{ 404, "GET / HTTP/1.1\r\n" },
		{ 505, "GET /k HTTP/1.2\r\n" }, { 505, "GET /k\r\n" }, { 505, "GET /k \r\n" },
		{ 505, "GET /k HTTP/1.1 \r\n" }, { 505, "GET /k\200 HTTP/1.1\r\n" },
		{ 501, "POST /k HTTP/1.1\r\n" }, { 501, "get /k HTTP/1.1\r\n" },
		{ 501, "GETS / HTTP/1.1\r\n" }, { 501, "GE /k HTTP/1.1\r\n" },
		{ 400, "GET /k HTTP/1.1\r\n\r\n" },
		{ 400, "GET /k HTTP/1.1\r\n" HOST HOST "\r\n" },
		{ 400, "GET /k HTTP/1.0\r\n" HOST HOST "\r\n" },
		{ 400, "GET /k HTTP/1.1\r\nHost : a\r\n" }, { 400, "GET /k HTTP/1.1\r\n: a\r\n" },
		{ 400, "GET /k HTTP/1.1\r\nHost\r\n" },
		{ 400, "GET /k HTTP/1.1\r\n" HOST " b\r\n" },
		{ 400, "PUT /k HTTP/1.1\r\nContent-Length: \r\n" },
		{ 400, "PUT /k HTTP/1.1\r\nContent-Length: 1,1\r\n" },
		{ 400, "PUT /k HTTP/1.1\r\nContent-Length: +1\r\n" },
		{ 400, "PUT /k HTTP/1.1\r\nContent-Length: 0000000001\r\n" },
		{ 400, "PUT /k HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n" },
		{ 400, "PUT /k HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 2\r\n" },
		{ 413, "PUT /k HTTP/1.1\r\nContent-Length: 1025\r\n" },
		{ 413, "PUT /k HTTP/1.1\r\nContent-Length: 999999999\r\n" },
		{ 501, "PUT /k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" },
		{ 417, "PUT /k HTTP/1.1\r\nExpect: more\r\n" },
	};
	char text[HTTP_HEAD_MAX + 1];
	struct http_request r;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (of(bad[i].text) != -bad[i].status)
			print_message("# %s", bad[i].text);
		assert_int_equal(of(bad[i].text), -bad[i].status);
	}
	memset(text, 'k', sizeof(text));
	memcpy(text, "GET /", 5);
	memcpy(text + 5 + HTTP_KEY_MAX, " HTTP/1.1\r\n" HOST "\r\n", 22);
	assert_int_equal(parse(text, 27 + HTTP_KEY_MAX, &r), 27 + HTTP_KEY_MAX);
	memset(text + 5, 'k', HTTP_KEY_MAX + 1);
	memcpy(text + 6 + HTTP_KEY_MAX, " HTTP/1.1\r\n", 11);
	assert_int_equal(parse(text, 17 + HTTP_KEY_MAX, &r), -414);
	/* no end of a head as long as one may be */
	memset(text, 'k', sizeof(text));
	assert_int_equal(parse(text, HTTP_HEAD_MAX - 1, &r), 0);
	assert_int_equal(parse(text, HTTP_HEAD_MAX, &r), -431);
	text[HTTP_HEAD_MAX - 1] = '\r';
	text[HTTP_HEAD_MAX] = '\n';
	assert_int_equal(parse(text, HTTP_HEAD_MAX + 1, &r), -431);
}

/* A body is asked for when the head is there, and says so */
static void expects(void **state)
{
	static const char head[] = "PUT /k HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\n"
		"Content-Length: 2\r\n\r\n";
	const size_t len = sizeof(head) - 1;
	struct http_request r;

	(void)state;
	assert_int_equal(parse(head, len - 1, &r), 0);
	assert_int_equal(r.body, 0);
	assert_int_equal(parse(head, len, &r), 0);
	assert_int_equal(r.body, len);
	assert_int_equal(r.expects, 1);
}

static void answers(void **state)
{
	static const uint32_t status[] = {
		200, 201, 204, 400, 404, 413, 414, 417, 431, 501, 505, 507
	};
	unsigned char to[HTTP_ANSWER_MAX + 1];
	char want[64];
	uint32_t i, n;

	(void)state;
	for (i = 0; i < sizeof(status) / sizeof(status[0]); i++) {
		n = http_answer(to, status[i], HTTP_BODY_MAX, 1);
		assert_in_range(n, 1, HTTP_ANSWER_MAX);
		to[n] = 0;
		snprintf(want, sizeof(want), "HTTP/1.1 %u ", status[i]);
		assert_memory_equal(to, want, strlen(want));
		assert_int_equal(!strstr((char *)to, "\r\nContent-Length: 1024\r\n"),
				 status[i] == 204);
		assert_non_null(strstr((char *)to, "\r\nConnection: close\r\n\r\n"));
	}
	n = http_answer(to, 404, 0, 0);
	to[n] = 0;
	assert_string_equal((char *)to, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
}

static struct kv_key key_of(const char *text)
{
	return (struct kv_key){ (const unsigned char *)text, (uint32_t)strlen(text) };
}

static void table(void **state)
{
	unsigned char value[KV_VALUE_MAX], got[KV_VALUE_MAX];
	struct kv_set one = { 0 };
	struct kv_table t = { &one, 1 };
	char key[KV_KEY_MAX + 1] = "";
	unsigned int i;

	(void)state;
	memset(key, 'k', KV_KEY_MAX);
	memset(value, 'v', sizeof(value));
	assert_int_equal(kv_get(&t, key_of("a"), got), -ENOENT);
	assert_int_equal(kv_put(&t, key_of("a"), value, 1), 1);
	assert_int_equal(kv_put(&t, key_of(key), value, KV_VALUE_MAX), 1);
	assert_int_equal(kv_put(&t, key_of("ab"), value, 0), 1);
	assert_int_equal(kv_put(&t, key_of("b"), value, 2), 1);
	/* the set is full, and what is there stays what it is */
	assert_int_equal(kv_put(&t, key_of("c"), value, 2), -ENOSPC);
	assert_int_equal(kv_put(&t, key_of("b"), (const unsigned char *)"xyz", 3), 0);
	assert_int_equal(kv_get(&t, key_of("b"), got), 3);
	assert_memory_equal(got, "xyz", 3);
	assert_int_equal(kv_get(&t, key_of(key), got), KV_VALUE_MAX);
	assert_memory_equal(got, value, KV_VALUE_MAX);
	assert_int_equal(kv_get(&t, key_of("ab"), got), 0);
	assert_int_equal(kv_get(&t, key_of("a"), got), 1);
	key[KV_KEY_MAX - 1] = 'x';
	assert_int_equal(kv_get(&t, key_of(key), got), -ENOENT);
	assert_int_equal(kv_delete(&t, key_of(key)), -ENOENT);
	assert_int_equal(kv_delete(&t, key_of("a")), 0);
	assert_int_equal(kv_delete(&t, key_of("a")), -ENOENT);
	assert_int_equal(kv_put(&t, key_of("c"), value, 2), 1);
	for (i = 0; i < KV_WAYS; i++)
		assert_true(one.entry[i].key_len);
	assert_int_equal(one.lock, 0);
}

#define THREADS	4U
#define ROUNDS	2000U

/* Each value is of one writer, all of it */
static void *at_once(void *arg)
{
	const struct kv_table *t = arg;
	unsigned char value[KV_VALUE_MAX], got[KV_VALUE_MAX];
	const struct kv_key key = key_of("shared");
	unsigned int i, k;
	int n;

	for (i = 0; i < ROUNDS; i++) {
		memset(value, (int)i, sizeof(value));
		unit_require(kv_put(t, key, value, 1 + i % 64) >= 0);
		n = kv_get(t, key, got);
		for (k = 1; (int)k < n; k++)
			unit_require(got[k] == got[0]);
		if (i % 16 == 0)
			kv_delete(t, key);
	}
	return NULL;
}

static void many(void **state)
{
	static struct kv_set sets[2];
	struct kv_table t = { sets, 2 };
	pthread_t thread[THREADS];
	unsigned int i;

	(void)state;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, at_once, &t), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(sets[0].lock | sets[1].lock, 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(whole),
	cmocka_unit_test(refused),
	cmocka_unit_test(expects),
	cmocka_unit_test(answers),
	cmocka_unit_test(table),
	cmocka_unit_test(many),
};

UNIT_MAIN(tests)
