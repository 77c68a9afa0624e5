/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Functions of libringgate that libringgate-cluster and libringgate-gpu of the same version
 * call, and nobody else: exported, under RINGGATE_PRIVATE in lib/libringgate.map.
 */
#ifndef RGATE_LIB_WITHIN_H
#define RGATE_LIB_WITHIN_H

#define RGATE_WITHIN __attribute__((visibility("default")))

#endif
