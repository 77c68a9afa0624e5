/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#ifndef RGATE_LIB_RING_MODULE_H
#define RGATE_LIB_RING_MODULE_H

struct rgate_ring;

/* A ring object on a file that is a handle already. Takes over @fd, also when it
 * fails. @device: where to open further handles, NULL: the usual place */
int rgate_module_adopt(struct rgate_ring **out, int fd, const char *device);

#endif
