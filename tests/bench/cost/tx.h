/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Senders of the cost benchmark: UDP frames that carry pktgen's mark and their
 * number, from one veth device to the other.
 */
#ifndef TX_H
#define TX_H

#include <stdint.h>

#define TX_BATCH	64U	/* frames a system call, of every sender that is a program */

struct tx_flow {
	const char *dev;	/* sends */
	const char *dst_mac;
	const char *src_ip, *dst_ip;
	uint32_t len;		/* bytes of a frame without FCS, 64 to 1514 */
	uint32_t count;		/* frames a run */
};

struct tx_ops {
	const char *name;
	void (*setup)(const struct tx_flow *flow);
	/* sends all frames of a run; returns the nanoseconds that took */
	uint64_t (*run)(const struct tx_flow *flow);
};

/* In the kernel. It keeps a reference on each frame, so receivers that want to
 * change one (the IP stack does) pay for a clone. */
extern const struct tx_ops tx_pktgen;
/* A packet socket, sendmmsg(2), past the queueing discipline: frames belong to the receiver
 * alone */
extern const struct tx_ops tx_packet;
/* The same through the queueing discipline, as those below */
extern const struct tx_ops tx_packet_queue;
/* PACKET_TX_RING; and past the queueing discipline */
extern const struct tx_ops tx_tpacket;
extern const struct tx_ops tx_tpacket_direct;
/* The module's transmit ring */
extern const struct tx_ops tx_ring;

#endif
