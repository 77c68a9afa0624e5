/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A frame in one line, or as a JSON object. */
#ifndef DESCRIBE_H
#define DESCRIBE_H

#include <stdbool.h>
#include <stdint.h>
#include <ringgate/ring.h>

/*
 * describe_frame - print to standard output
 * @s: first slot of the frame
 * @room: frame bytes the slot can hold
 * @time_ns: when it came, since 1970
 * @cap_len: bytes captured of the frame, over all its slots, with its tag
 * @orig_len: bytes it had on the wire, likewise
 * @dev: name of the device
 */
void describe_frame(const struct rgate_slot *s, uint32_t room, uint64_t time_ns,
		    uint32_t cap_len, uint32_t orig_len, const char *dev, bool json);

#endif
