/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * One side of a TCP connection put together again from its segments, which come in any
 * order: two CPUs of the machine before may each send some. No system calls but in init.
 */
#ifndef DEMO_TCP_STREAM_H
#define DEMO_TCP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netinet/tcp.h>

#define TCP_RANGES	64

struct tcp_stream {
	unsigned char *bytes;
	uint64_t edge;		/* bytes from the beginning without a hole */
	/* what came beyond it: apart from each other, ascending */
	struct tcp_range {
		uint64_t from, to;
	} ahead[TCP_RANGES];
	unsigned int nahead;
	uint32_t isn;
	bool syn, fin;
	uint64_t end;		/* with fin: bytes of the whole */
};

void tcp_stream_init(struct tcp_stream *st);

/* @n bytes of @data with their header; false: not of this connection, or too much */
bool tcp_stream_add(struct tcp_stream *st, const struct tcphdr *tcp, const unsigned char *data,
		    size_t n);

/* All of it up to the FIN is there */
bool tcp_stream_complete(const struct tcp_stream *st);

/* Bytes that are missing before others that came */
uint64_t tcp_stream_missing(const struct tcp_stream *st);

#endif
