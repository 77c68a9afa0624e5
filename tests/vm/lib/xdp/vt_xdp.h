/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Programs that hand frames to the module. */
#ifndef VT_XDP_H
#define VT_XDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vt_nl;

#define VT_XDP_ALL	0xffffffffU	/* bytes of a frame */

/* Looks for the module's function, which the others need; skips the case without */
void vt_xdp_find(void);
/* Lets go of the module's types */
void vt_xdp_forget(void);
/*
 * A program that hands all frames to an attachment. @plain: what the function returns
 * is the program's; else only where that is a verdict, and XDP_PASS where it is none.
 */
int vt_xdp_prog(uint32_t att, uint64_t cookie, uint32_t snap, bool plain);
/* One run on a frame that lo seems to have received; what the program returns */
int vt_xdp_run(int fd, void *frame, size_t len);
/* An attachment of kind XDP, of one ring; the case ends if it fails */
uint32_t vt_xdp_attach(struct vt_nl *nl, const char *ifname, uint32_t ring, uint32_t action);

#endif
