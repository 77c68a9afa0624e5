/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* XDP programs on devices: put there, kept, taken away. */
#ifndef XDP_LINK_H
#define XDP_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/filter.h>
#include <ringgate/rgate_ctl.h>

/* What has to be there before anything is changed */
struct xdp_ready {
	int btf_fd;
	uint32_t func;
};

/*
 * xdp_prepare - can a program be put on a device, and kept there?
 * Says what is missing. An exit code; xdp_unprepare() after EXIT_OK.
 */
int xdp_prepare(struct xdp_ready *r);
void xdp_unprepare(struct xdp_ready *r);

/*
 * xdp_bind - put a program on a device that hands its frames to an attachment
 * @filter: for Ethernet frames as the receive hook has them; empty: all
 * @generic: behind the driver, not in it
 * It stays when this process ends, until xdp_sweep() finds the attachment gone.
 * Says why not. An exit code.
 */
int xdp_bind(const struct xdp_ready *r, const char *ifname, const struct rgate_ident *att,
	     const struct sock_fprog *filter, bool generic);

/*
 * Takes away what is left of attachments of this network namespace that ended; how many.
 * The kernel lets go of a program, and so of the module, a little later.
 */
unsigned int xdp_sweep(struct rgate_ctl *ctl);

/* Prints, to standard error, the programs that hold the module; how many */
unsigned int xdp_list_holders(void);

#endif
