// SPDX-License-Identifier: MIT OR GPL-2.0
#include "tcp_stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"

#define TCP_STREAM_MAX	(64U << 20)

void tcp_stream_init(struct tcp_stream *st)
{
	memset(st, 0, sizeof(*st));
	st->bytes = calloc(1, TCP_STREAM_MAX);
	if (!st->bytes)
		demo_die(ENOMEM, "the stream");
}

/* The range, with what it touches; false: there are too many */
static bool insert(struct tcp_stream *st, struct tcp_range r)
{
	struct tcp_range *a = st->ahead;
	unsigned int first = 0, last;

	while (first < st->nahead && a[first].to < r.from)
		first++;
	for (last = first; last < st->nahead && a[last].from <= r.to; last++) {
		if (a[last].from < r.from)
			r.from = a[last].from;
		if (a[last].to > r.to)
			r.to = a[last].to;
	}
	if (first == last && st->nahead == TCP_RANGES)
		return false;
	memmove(&a[first + 1], &a[last], (st->nahead - last) * sizeof(*a));
	a[first] = r;
	st->nahead += 1 - (last - first);
	return true;
}

/* The edge moves over what is there. */
static void advance(struct tcp_stream *st)
{
	unsigned int n = 0;

	while (n < st->nahead && st->ahead[n].from <= st->edge) {
		if (st->ahead[n].to > st->edge)
			st->edge = st->ahead[n].to;
		n++;
	}
	st->nahead -= n;
	memmove(st->ahead, st->ahead + n, st->nahead * sizeof(st->ahead[0]));
}

bool tcp_stream_add(struct tcp_stream *st, const struct tcphdr *tcp, const unsigned char *data,
		    size_t n)
{
	const uint32_t at = ntohl(tcp->seq) - st->isn - 1;

	if (tcp->syn) {
		st->isn = ntohl(tcp->seq);
		st->syn = true;
		return true;
	}
	if (!st->syn || (uint64_t)at + n > TCP_STREAM_MAX)
		return false;
	memcpy(st->bytes + at, data, n);
	if (at > st->edge && n && !insert(st, (struct tcp_range){ at, (uint64_t)at + n }))
		return false;
	if (at <= st->edge && at + n > st->edge)
		st->edge = at + n;
	advance(st);
	if (tcp->fin) {
		st->fin = true;
		st->end = (uint64_t)at + n;
	}
	return true;
}

bool tcp_stream_complete(const struct tcp_stream *st)
{
	return st->fin && st->edge >= st->end;
}

uint64_t tcp_stream_missing(const struct tcp_stream *st)
{
	uint64_t missing = 0, to = st->edge;
	unsigned int i;

	for (i = 0; i < st->nahead; i++) {
		missing += st->ahead[i].from - to;
		to = st->ahead[i].to;
	}
	return missing + (st->fin && st->end > to ? st->end - to : 0);
}
