/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What kmod/parse.c has from the kernel's headers and user space's lack */
#ifndef FUZZ_SHIM_NET_IP_H
#define FUZZ_SHIM_NET_IP_H

#include <arpa/inet.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/param.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint64_t u64;
typedef uint32_t u32;

#define IP_OFFSET	0x1fff
#define VLAN_HLEN	4
#define min		MIN
#define __aligned(x)	__attribute__((aligned(x)))

static inline bool eth_type_vlan(__be16 proto)
{
	return proto == htons(0x8100) || proto == htons(0x88a8);
}

#endif
