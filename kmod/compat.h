/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels, found by Kbuild's probes. Nothing else in the
 * module asks which kernel this is.
 */
#ifndef RGATE_COMPAT_H
#define RGATE_COMPAT_H

#include <linux/btf.h>
#include <linux/btf_ids.h>
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

/* Functions for BPF programs: the names changed, and so did what marks the set. */
#ifndef __bpf_kfunc
#define __bpf_kfunc noinline
#endif
#ifndef __bpf_kfunc_start_defs
#define __bpf_kfunc_start_defs()
#define __bpf_kfunc_end_defs()
#endif
#ifndef BTF_KFUNCS_START
#define BTF_KFUNCS_START(name) BTF_SET8_START(name)
#define BTF_KFUNCS_END(name) BTF_SET8_END(name)
#endif

/* In older releases of 6.1 a group's flags are those of a command. */
#ifndef GENL_MCAST_CAP_NET_ADMIN
#define GENL_MCAST_CAP_NET_ADMIN GENL_UNS_ADMIN_PERM
#endif

#endif
