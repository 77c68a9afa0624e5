/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Keeps the kernel's jump labels of the ingress path as they are. */
#ifndef VT_KEYS_H
#define VT_KEYS_H

/*
 * Registers an nftables ingress chain on lo of this network namespace, which
 * accepts all. While it stands, attaching and detaching elsewhere patches no
 * kernel code: QEMU's emulation, with two CPUs, can hang in code that is patched
 * while packets pass through it. 0 or -errno; stays when this process ends.
 */
int vt_keys_hold(void);

#endif
