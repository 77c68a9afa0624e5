/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_LIB_FILTER_H
#define RGATE_LIB_FILTER_H

#include <stdbool.h>

/* Does a tcpdump expression use the keyword `vlan`? */
bool rgate_filter_uses_vlan(const char *text);

#endif
