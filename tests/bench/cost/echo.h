/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the receivers that send every frame back have in common. */
#ifndef ECHO_H
#define ECHO_H

#include <string.h>

#define ECHO_MAC	6U
#define ECHO_IP		26U	/* source and destination, 4 bytes each */
#define ECHO_UDP	34U	/* ports, 2 bytes each */

static inline void echo_swap(unsigned char *a, unsigned int n)
{
	unsigned char t[ECHO_MAC];

	memcpy(t, a, n);
	memcpy(a, a + n, n);
	memcpy(a + n, t, n);
}

/* Back to the sender; no checksum changes */
static inline void echo_turn(unsigned char *frame)
{
	echo_swap(frame, ECHO_MAC);
	echo_swap(frame + ECHO_IP, 4);
	echo_swap(frame + ECHO_UDP, 2);
}

#endif
