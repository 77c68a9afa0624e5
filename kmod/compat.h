/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels, found by Kbuild's probes. Nothing else in the
 * module asks which kernel this is.
 */
#ifndef RGATE_COMPAT_H
#define RGATE_COMPAT_H

#include <linux/mm.h>
#include <net/genetlink.h>

#ifndef RGATE_HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* In older releases of 6.1 a group's flags are those of a command. */
#ifndef GENL_MCAST_CAP_NET_ADMIN
#define GENL_MCAST_CAP_NET_ADMIN GENL_UNS_ADMIN_PERM
#endif

#endif
