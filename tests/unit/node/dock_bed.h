/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Who asks another node, as in asks_bed.h, and may have a dock for its bytes */
#ifndef DOCK_BED_H
#define DOCK_BED_H

#include "asks_bed.h"

int dock_setup(void **state);
/* Of what was shared nothing is left, and all that was written was in its place. */
int dock_teardown(void **state);

/* Bytes that are known again: the one at @at, and so many from the first one on */
uint8_t dock_byte(uint32_t at);
void dock_set_bytes(unsigned char *at, uint32_t len);
void dock_check_bytes(const unsigned char *at, uint32_t len);

#endif
