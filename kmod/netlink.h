/* SPDX-License-Identifier: GPL-2.0-only */
/* The generic netlink family. */
#ifndef RGATE_NETLINK_H
#define RGATE_NETLINK_H

#include <net/genetlink.h>
#include <ringgate/netlink.h>
/* What scripts/ynl makes of the specification: policies, commands and who does them */
#include "netlink_gen.h"

extern struct genl_family rgate_genl_family;

#endif
