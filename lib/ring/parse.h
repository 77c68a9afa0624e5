/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Where the headers of a frame lie */
#ifndef RGATE_LIB_PARSE_H
#define RGATE_LIB_PARSE_H

#include <stddef.h>
#include <stdint.h>

#include <ringgate/ring.h>

/*
 * Sets l3_off, l4_off, payload_off and ip_proto of @hdr from the @len bytes at
 * @frame. Uses @hdr's dev_type (what the frame begins with) and protocol; what is
 * not known, cut off or malformed becomes RGATE_OFF_NONE; that is what the module's
 * parser says of the same bytes. Reads nothing beyond @len. Later fragments have no
 * layer 4.
 */
void rgate_parse_frame(struct rgate_slot *hdr, const void *frame, size_t len);

#endif
