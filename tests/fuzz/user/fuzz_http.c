// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Requests of HTTP as the GPU's example of a key-value server reads them, which come in pieces:
 * what is whole was not whole before its last byte, what is refused is refused for the same reason
 * whatever follows, and key and body are where the request is. What is whole can be written again
 * from what was found, and is found to be the same.
 */
#include <stdio.h>
#include <string.h>

#include "../../../Documentation/examples/gpu/http.cuh"
#include "fuzz.h"

#define MOST	(HTTP_HEAD_MAX + HTTP_BODY_MAX)

/* In memory of its own length */
static int parse(const uint8_t *data, size_t len, struct http_request *r)
{
	unsigned char *copy = malloc(len ? len : 1);
	int n;

	FUZZ_CHECK(copy);
	memcpy(copy, data, len);
	n = http_parse(copy, (uint32_t)len, r);
	free(copy);
	return n;
}

static void written_again(const uint8_t *data, const struct http_request *r)
{
	static const char *const methods[] = { "GET", "HEAD", "PUT", "DELETE" };
	struct http_request again;
	char text[MOST + 256];
	int n, whole;

	n = snprintf(text, sizeof(text), "%s /%.*s HTTP/1.%d\r\nHost:\r\nContent-Length: %u\r\n%s%s\r\n",
		     methods[r->method], (int)r->key_len, (const char *)data + r->key, !r->old,
		     r->body_len, r->close ? "Connection: close\r\n" : "",
		     r->expects ? "Expect: 100-continue\r\n" : "");
	FUZZ_CHECK(n > 0 && (size_t)n + r->body_len < sizeof(text));
	memcpy(text + n, data + r->body, r->body_len);
	whole = parse((const uint8_t *)text, (size_t)n + r->body_len, &again);
	FUZZ_CHECK(whole == n + (int)r->body_len);
	FUZZ_CHECK(again.method == r->method && again.key_len == r->key_len);
	FUZZ_CHECK(again.body_len == r->body_len && again.close == r->close);
	FUZZ_CHECK(again.expects == r->expects && again.old == r->old);
	FUZZ_CHECK(!memcmp(text + again.key, data + r->key, r->key_len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_request r, part;
	int whole, n;
	size_t i;

	if (size > MOST)
		size = MOST;
	whole = parse(data, size, &r);
	if (whole > 0) {
		FUZZ_CHECK((size_t)whole <= size && r.method < HTTP_METHODS);
		FUZZ_CHECK(r.key_len >= 1 && r.key_len <= HTTP_KEY_MAX);
		FUZZ_CHECK(r.key + r.key_len < r.body && r.body <= HTTP_HEAD_MAX);
		FUZZ_CHECK(r.body_len <= HTTP_BODY_MAX && r.body + r.body_len == (uint32_t)whole);
		FUZZ_CHECK(!memchr(data + r.key, ' ', r.key_len) && data[r.key - 1] == '/');
		written_again(data, &r);
	}
	/* as it comes: what was known of a shorter part stays so */
	for (i = 0; i < size; i += 1 + size / 64) {
		n = parse(data, i, &part);
		FUZZ_CHECK(!n || n == whole);
		FUZZ_CHECK(whole <= 0 || (n > 0) == (i >= (size_t)whole));
		if (!n && part.body)
			FUZZ_CHECK(whole >= 0 && part.body == r.body && part.expects == r.expects);
	}
	return 0;
}
