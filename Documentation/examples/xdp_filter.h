/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What the program in the driver is told by the one that loads it */
#ifndef XDP_FILTER_H
#define XDP_FILTER_H

#include <linux/types.h>

struct xdp_filter {
	__u64 cookie;
	__u32 attachment;
	__u32 port;
};

#endif
