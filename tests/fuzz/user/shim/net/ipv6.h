/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef FUZZ_SHIM_NET_IPV6_H
#define FUZZ_SHIM_NET_IPV6_H

#include <net/ip.h>

#define NEXTHDR_HOP		0
#define NEXTHDR_ROUTING		43
#define NEXTHDR_FRAGMENT	44
#define NEXTHDR_AUTH		51
#define NEXTHDR_NONE		59
#define NEXTHDR_DEST		60

struct frag_hdr {
	__u8 nexthdr;
	__u8 reserved;
	__be16 frag_off;
	__be32 identification;
};

#endif
