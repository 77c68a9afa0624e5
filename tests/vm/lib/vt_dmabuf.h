/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* A ring's areas as dma-bufs, and the module that imports them (tests/vm/kmod). */
#ifndef VT_DMABUF_H
#define VT_DMABUF_H

#include <ringgate/ioctl.h>
#include "../kmod/rgate_import.h"

/* EXPORT on @fd: a descriptor, or -errno. @out may be NULL */
int vt_export(int fd, uint32_t area, struct rgate_export *out);
/* The same; the case ends if it fails */
int vt_exported(int fd, uint32_t area);
/* Are both the same dma-buf? */
bool vt_same_file(int a, int b);

/* The importing module, beside RGATE_KO. Without it the case is skipped. */
void vt_importer_load(void);
void vt_importer_unload(void);
int vt_importer(void);
/* Import @buf for @dir: 0, or -errno. @out may be NULL */
int vt_import(int importer, int buf, unsigned int dir, struct import_arg *out);
/* IMPORT_READ, IMPORT_WRITE, IMPORT_VREAD of IMPORT_DATA bytes: 0, or -errno */
int vt_import_do(int importer, unsigned long what, uint64_t off, void *data);

#endif
