/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Receivers that the cost benchmark compares, behind one interface. Each takes
 * frames that pktgen numbered, looks at number and mark of every one, and hands
 * the buffer back.
 */
#ifndef RX_H
#define RX_H

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#define RX_PORT		9		/* pktgen's own default: discard */
#define RX_SLOTS	4096U		/* buffers of every receiver */
#define RX_BUF		2048U		/* bytes each */
#define RX_PAYLOAD	42U		/* Ethernet, IPv4 and UDP headers */
#define RX_PKTGEN_MAGIC	0xbe9be955U

struct rx_seen {
	uint32_t next;		/* number expected; pktgen begins a run at 1 */
	uint64_t good;
	uint64_t bad;
};

struct rx_ops {
	const char *name;
	void *(*open)(const char *ifname);
	/* takes all there is now, without waiting; returns frames. NULL: none arrive */
	unsigned int (*drain)(void *ctx, struct rx_seen *seen);
	void (*close)(void *ctx);
};

extern const struct rx_ops rx_ring;
extern const struct rx_ops rx_ring_xdp;
extern const struct rx_ops rx_ring_coarse;
extern const struct rx_ops rx_ring_xdp_coarse;
extern const struct rx_ops rx_recvmmsg;
extern const struct rx_ops rx_tpacket;
extern const struct rx_ops rx_xdp;
extern const struct rx_ops rx_xdp_drop;
/* They send each frame back, too. */
extern const struct rx_ops rx_echo_ring;
extern const struct rx_ops rx_echo_udp;
extern const struct rx_ops rx_echo_packet;

/* @payload: what pktgen wrote after the UDP header */
static inline void rx_look(struct rx_seen *seen, const void *payload)
{
	uint32_t h[2];

	memcpy(h, payload, sizeof(h));
	if (h[0] == htonl(RX_PKTGEN_MAGIC) && h[1] == htonl(seen->next))
		seen->good++;
	else
		seen->bad++;
	seen->next++;
}

#endif
