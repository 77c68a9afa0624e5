/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Datagrams that tell what they are: of which flow, which one of it, how long; all other
 * bytes follow from that, so that a receiver can verify each by itself.
 */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STREAM_MIN	32	/* bytes of a datagram */
#define STREAM_MAX	1472
#define STREAM_FLOWS	256	/* at most */
#define STREAM_PORT	20000	/* source port of flow 0 */

/* Fills @buf for datagram @number of @flow; returns its length, up to @max */
size_t stream_fill(unsigned char *buf, uint32_t flow, uint32_t number, size_t max);

/* Is this such a datagram, whole and right? */
bool stream_check(const unsigned char *buf, size_t len, uint32_t *flow, uint32_t *number);

/* The UDP payload of an Ethernet frame with IPv4; NULL: it has none, or not all of it */
const unsigned char *stream_payload(const unsigned char *frame, size_t len, size_t *out);

#endif
