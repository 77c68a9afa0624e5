/* SPDX-License-Identifier: GPL-2.0-only */
/* /dev/ringgate */
#ifndef RGATE_CHARDEV_H
#define RGATE_CHARDEV_H

int rgate_chardev_init(void);
void rgate_chardev_exit(void);

#endif
