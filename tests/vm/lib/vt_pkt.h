/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Frames of known contents: all follows from the seed, length and number. */
#ifndef VT_PKT_H
#define VT_PKT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VT_PKT_MIN	58	/* Ethernet, IPv4, UDP, 16 bytes of ours */
#define VT_PKT_DPORT	4711
#define VT_PKT_SPORT	20000	/* plus the flow's number */

extern uint64_t vt_pkt_seed;

/* Ethernet/IPv4/UDP, @len bytes in all; correct checksums */
void vt_pkt_udp(uint8_t *buf, size_t len, uint64_t seq, uint16_t flow);
/* Is it such a frame, whole and unharmed? @seq may be NULL */
bool vt_pkt_check(const uint8_t *buf, size_t len, uint64_t *seq);
/* The same, but @have bytes of a frame of @len */
bool vt_pkt_check_cut(const uint8_t *buf, size_t have, size_t len, uint64_t *seq);
/* @len random bytes that follow from @seq */
void vt_pkt_fill(uint8_t *buf, size_t len, uint64_t seq);
uint16_t vt_csum(const void *data, size_t len, uint32_t sum);

/* Which of @n numbers were seen, and how often too often */
struct vt_seen {
	uint8_t *map;
	uint64_t n, got, dup, alien;
};

void vt_seen_init(struct vt_seen *s, uint64_t n);
void vt_seen_add(struct vt_seen *s, uint64_t seq);

#endif
