/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/rgate_import: a device without hardware that imports a dma-buf, as drivers do, and
 * shows what it got. An open file has one import at a time, which ends with it.
 */
#ifndef RGATE_IMPORT_H
#define RGATE_IMPORT_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define IMPORT_DEVICE	"/dev/rgate_import"
#define IMPORT_DATA	64

struct import_arg {
	__s32 fd;		/* MAP: the dma-buf */
	__u32 dir;		/* MAP: 0 both ways, 1 to the device, 2 from it */
	__u32 runs;		/* MAP, out: entries of the scatter list */
	__u32 longest;		/* MAP, out: bytes of the longest */
	__u64 bytes;		/* MAP, out: of all */
	__u64 off;		/* the others: where */
	__u8 data[IMPORT_DATA];	/* what is there, or shall be */
};

/* Attach, and map for the device */
#define IMPORT_MAP	_IOWR(0xB8, 0, struct import_arg)
/* At the addresses that the device has */
#define IMPORT_READ	_IOWR(0xB8, 1, struct import_arg)
#define IMPORT_WRITE	_IOWR(0xB8, 2, struct import_arg)
/* At the address that a driver has, between begin_cpu_access and end_cpu_access */
#define IMPORT_VREAD	_IOWR(0xB8, 3, struct import_arg)
/* Unmap and detach */
#define IMPORT_END	_IO(0xB8, 4)

#endif
