/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The frames of the senders that are programs. */
#ifndef TX_FRAME_H
#define TX_FRAME_H

#include <arpa/inet.h>
#include <string.h>

#include "rx.h"
#include "tx.h"

/* All of a frame but its number and mark; flow->len bytes */
void tx_frame_build(unsigned char *frame, const struct tx_flow *flow);

/* Those two, where pktgen has them: all that changes from frame to frame */
static inline void tx_frame_number(unsigned char *frame, uint32_t number)
{
	uint32_t h[2] = { htonl(RX_PKTGEN_MAGIC), htonl(number) };

	memcpy(frame + RX_PAYLOAD, h, sizeof(h));
}

#endif
