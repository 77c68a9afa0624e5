/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * As much of HTTP/1.1 as http_kv.cu speaks: requests with a key for a path and a value for a body.
 * What comes is anybody's: every byte is looked at once, and nothing is read beyond those there are.
 * Compiles for a CPU, too, where it is tested and fuzzed.
 */
#ifndef HTTP_CUH
#define HTTP_CUH

#include <ringgate/gpu/port.cuh>

#define HTTP_HEAD_MAX	2048U	/* bytes of a request before its body */
#define HTTP_KEY_MAX	64U
#define HTTP_BODY_MAX	1024U
#define HTTP_ANSWER_MAX	192U	/* of an answer before its body */

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_PUT, HTTP_DELETE, HTTP_METHODS };

struct http_request {
	uint32_t method;
	uint32_t key, key_len;		/* where it begins in the request, behind the slash */
	uint32_t body, body_len;
	uint32_t close;			/* the answer is the last one of the connection */
	uint32_t expects;		/* it waits for "100 Continue" before it sends the body */
	/* while it is looked at */
	uint32_t hosts, has_length, old;
};

/* A part of what came */
struct http_text {
	const unsigned char *at;
	uint32_t len;
};

RGATE_DEV uint32_t http_lower(uint32_t c)
{
	return c >= 'A' && c <= 'Z' ? c + 'a' - 'A' : c;
}

/* Is it @word, which is in lower case, whatever its own case? */
RGATE_DEV int http_is(struct http_text t, const char *word)
{
	uint32_t i;

	for (i = 0; i < t.len; i++)
		if (!word[i] || http_lower(t.at[i]) != (unsigned char)word[i])
			return 0;
	return !word[i];
}

/* Of a token: RFC 9110, 5.6.2 */
RGATE_DEV int http_token_char(uint32_t c)
{
	const char *others = "!#$%&'*+-.^_`|~";

	if ((c >= '0' && c <= '9') || (http_lower(c) >= 'a' && http_lower(c) <= 'z'))
		return 1;
	while (*others && (unsigned char)*others != c)
		others++;
	return *others != 0;
}

/* Takes the token that @t begins with */
RGATE_DEV struct http_text http_token(struct http_text *t)
{
	struct http_text token = { t->at, 0 };

	while (token.len < t->len && http_token_char(t->at[token.len]))
		token.len++;
	t->at += token.len;
	t->len -= token.len;
	return token;
}

RGATE_DEV struct http_text http_trim(struct http_text t)
{
	while (t.len && (t.at[0] == ' ' || t.at[0] == '\t')) {
		t.at++;
		t.len--;
	}
	while (t.len && (t.at[t.len - 1] == ' ' || t.at[t.len - 1] == '\t'))
		t.len--;
	return t;
}

/* Takes the line that @t begins with: 1; 0: it has no end so far; -400: it is none */
RGATE_DEV int http_line(struct http_text *t, struct http_text *line)
{
	uint32_t i;

	for (i = 0; i < t->len; i++) {
		const uint32_t c = t->at[i];

		if (c == '\r') {
			if (i + 1 == t->len)
				return 0;
			if (t->at[i + 1] != '\n')
				return -400;
			line->at = t->at;
			line->len = i;
			t->at += i + 2;
			t->len -= i + 2;
			return 1;
		}
		if ((c < ' ' && c != '\t') || c == 127)
			return -400;
	}
	return 0;
}

/* Of a first line: 0, or -status */
RGATE_DEV int http_target(struct http_text *t, const unsigned char *from, struct http_request *r)
{
	if (t->len < 2 || t->at[0] != ' ' || t->at[1] != '/')
		return -400;
	t->at += 2;
	t->len -= 2;
	r->key = (uint32_t)(t->at - from);
	r->key_len = 0;
	while (t->len && t->at[0] > ' ' && t->at[0] < 127) {
		r->key_len++;
		t->at++;
		t->len--;
	}
	if (r->key_len > HTTP_KEY_MAX)
		return -414;
	return r->key_len ? 0 : -404;
}

RGATE_DEV int http_first(struct http_text t, const unsigned char *from, struct http_request *r)
{
	const char *const methods[HTTP_METHODS] = { "GET", "HEAD", "PUT", "DELETE" };
	struct http_text method = http_token(&t);
	uint32_t i;
	int err;

	if (!method.len)
		return -400;
	for (r->method = 0; r->method < HTTP_METHODS; r->method++) {
		/* a method's case counts */
		for (i = 0; i < method.len && methods[r->method][i] == (char)method.at[i];)
			i++;
		if (i == method.len && !methods[r->method][i])
			break;
	}
	err = http_target(&t, from, r);
	if (err)
		return r->method == HTTP_METHODS ? -501 : err;
	if (http_is(t, " http/1.0"))
		r->old = r->close = 1;
	else if (!http_is(t, " http/1.1"))
		return -505;
	return r->method == HTTP_METHODS ? -501 : 0;
}

RGATE_DEV int http_length(struct http_text v, struct http_request *r)
{
	uint32_t n = 0, i;

	if (!v.len || v.len > 9)
		return -400;
	for (i = 0; i < v.len; i++) {
		if (v.at[i] < '0' || v.at[i] > '9')
			return -400;
		n = n * 10 + v.at[i] - '0';
	}
	/* two lengths would make two requests of it, and which one the others on the way have seen? */
	if (r->has_length && r->body_len != n)
		return -400;
	r->has_length = 1;
	r->body_len = n;
	return n > HTTP_BODY_MAX ? -413 : 0;
}

/* Is "close" in the list? */
RGATE_DEV uint32_t http_closes(struct http_text v)
{
	uint32_t n;

	for (;;) {
		for (n = 0; n < v.len && v.at[n] != ',';)
			n++;
		struct http_text one = { v.at, n };

		if (http_is(http_trim(one), "close"))
			return 1;
		if (n == v.len)
			return 0;
		v.at += n + 1;
		v.len -= n + 1;
	}
}

RGATE_DEV int http_field(struct http_text t, struct http_request *r)
{
	struct http_text name = http_token(&t), v;

	if (!name.len || !t.len || t.at[0] != ':')
		return -400;
	t.at++;
	t.len--;
	v = http_trim(t);
	if (http_is(name, "content-length"))
		return http_length(v, r);
	if (http_is(name, "transfer-encoding"))
		return -501;
	if (http_is(name, "connection"))
		r->close |= http_closes(v);
	if (http_is(name, "host"))
		r->hosts++;
	if (http_is(name, "expect")) {
		if (!http_is(v, "100-continue"))
			return -417;
		r->expects = 1;
	}
	return 0;
}

/*
 * http_parse - one thread: what @have bytes from @at on begin with
 * How many of them are a request; 0: it is not whole so far: with r->body the head is; or -status:
 * it is refused, and where the next one begins is not known.
 */
RGATE_DEV int http_parse(const unsigned char *at, uint32_t have, struct http_request *r)
{
	const struct http_request none = { 0 };
	struct http_text rest = { at, have < HTTP_HEAD_MAX ? have : HTTP_HEAD_MAX }, line;
	uint32_t lines;
	int err;

	*r = none;
	for (lines = 0;; lines++) {
		err = http_line(&rest, &line);
		if (!err)
			return have < HTTP_HEAD_MAX ? 0 : -431;
		if (err < 0 || (lines && !line.len))
			break;
		err = lines ? http_field(line, r) : http_first(line, at, r);
		if (err)
			break;
	}
	if (err < 0)
		return err;
	if (r->hosts != 1 && !(r->old && !r->hosts))
		return -400;
	r->body = (uint32_t)(rest.at - at);
	return have - r->body < r->body_len ? 0 : (int)(r->body + r->body_len);
}

/*
 * Answers
 */

RGATE_DEV uint32_t http_put(unsigned char *to, uint32_t n, const char *text)
{
	while (*text)
		to[n++] = (unsigned char)*text++;
	return n;
}

RGATE_DEV uint32_t http_put_number(unsigned char *to, uint32_t n, uint32_t v)
{
	uint32_t unit = 1;

	while (v / unit >= 10)
		unit *= 10;
	for (; unit; unit /= 10)
		to[n++] = (unsigned char)('0' + v / unit % 10);
	return n;
}

RGATE_DEV const char *http_reason(uint32_t status)
{
	switch (status) {
	case 200:
		return "200 OK";
	case 201:
		return "201 Created";
	case 204:
		return "204 No Content";
	case 404:
		return "404 Not Found";
	case 413:
		return "413 Content Too Large";
	case 414:
		return "414 URI Too Long";
	case 417:
		return "417 Expectation Failed";
	case 431:
		return "431 Request Header Fields Too Large";
	case 501:
		return "501 Not Implemented";
	case 505:
		return "505 HTTP Version Not Supported";
	case 507:
		return "507 Insufficient Storage";
	default:
		return "400 Bad Request";
	}
}

/*
 * http_answer - one thread: an answer up to its body, of @body bytes
 * @to: HTTP_ANSWER_MAX bytes. How many it has.
 */
RGATE_DEV uint32_t http_answer(unsigned char *to, uint32_t status, uint32_t body, uint32_t close)
{
	uint32_t n = http_put(to, 0, "HTTP/1.1 ");

	n = http_put(to, n, http_reason(status));
	if (status != 204) {	/* which must have none */
		n = http_put(to, n, "\r\nContent-Length: ");
		n = http_put_number(to, n, body);
	}
	if (status == 200)
		n = http_put(to, n, "\r\nContent-Type: application/octet-stream");
	if (close)
		n = http_put(to, n, "\r\nConnection: close");
	return http_put(to, n, "\r\n\r\n");
}

#endif
