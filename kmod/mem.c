// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "alloc.h"
#include "compat.h"
#include "mem.h"

/* Larger runs than this bring no more: 2 MiB is a huge page on most machines. */
#define RGATE_MAX_ORDER 9

/*
 * RLIMIT_MEMLOCK per user, as AF_XDP and io_uring count it: a ring can outlive
 * the mm that made it, so the mm is the wrong one to charge.
 */
static int rgate_mem_charge(struct rgate_mem *mem)
{
	atomic_long_t *locked;
	long limit, old, new;

	mem->cred = get_current_cred();
	if (capable(CAP_IPC_LOCK))
		return 0;
	limit = min_t(unsigned long, rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT,
		      LONG_MAX);
	locked = &mem->cred->user->locked_vm;
	old = atomic_long_read(locked);
	do {
		new = old + mem->npages;
		if (new > limit) {
			put_cred(mem->cred);
			return -ENOBUFS;
		}
	} while (!atomic_long_try_cmpxchg(locked, &old, new));
	mem->charged = mem->npages;
	return 0;
}

static void rgate_mem_uncharge(struct rgate_mem *mem)
{
	atomic_long_sub(mem->charged, &mem->cred->user->locked_vm);
	put_cred(mem->cred);
}

/* Zeroed, charged to the memory cgroup; an error rather than the OOM killer. */
static struct page *rgate_alloc_run(int node, unsigned int order)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;

	gfp |= order ? __GFP_NORETRY : __GFP_RETRY_MAYFAIL;
	if (node != NUMA_NO_NODE)
		gfp |= __GFP_THISNODE;
	return alloc_pages_node(node, gfp, order);
}

/* Pages from @from on were never allocated. */
static void rgate_mem_free_pages(struct rgate_mem *mem, unsigned long from)
{
	while (from--) {
		__free_page(mem->pages[from]);
		if (!(from % 4096))
			cond_resched();
	}
	kvfree(mem->pages);
}

/*
 * Large runs first, for short scatter lists where devices map the memory, split
 * at once into pages with a count each: a user's pin on one page then keeps that page and no other.
 */
static int rgate_mem_alloc_pages(struct rgate_mem *mem, int node)
{
	unsigned int order = RGATE_MAX_ORDER;
	unsigned long n = 0, i;
	struct page *page;
	int err = -ENOMEM;

	mem->pages = rgate_kvcalloc(mem->npages, sizeof(*mem->pages));
	if (!mem->pages)
		return -ENOMEM;
	while (n < mem->npages) {
		if (fatal_signal_pending(current)) {
			err = -EINTR;
			goto free_pages;
		}
		if (rgate_alloc_fails())
			goto free_pages;
		order = min_t(unsigned int, order, ilog2(mem->npages - n));
		page = rgate_alloc_run(node, order);
		if (!page) {
			if (!order--)
				goto free_pages;
			continue;
		}
		if (order)
			split_page(page, order);
		for (i = 0; i < 1UL << order; i++)
			mem->pages[n++] = page + i;
		cond_resched();
	}
	return 0;

free_pages:
	rgate_mem_free_pages(mem, n);
	return err;
}

static void rgate_mem_layout(struct rgate_mem *mem)
{
	const struct rgate_geo *geo = &mem->geo;
	struct rgate_prod *prod = mem->base;

	mem->prod = prod;
	mem->cons = mem->base + geo->cons_off;
	mem->credits = mem->base + geo->credits_off;
	mem->slots = mem->base + geo->slots_off;

	prod->magic = RGATE_MAGIC;
	prod->version = RGATE_ABI_VERSION;
	prod->slot_hdr = RGATE_SLOT_HDR;
	prod->slots = geo->slots;
	prod->slot_size = geo->slot_size;
	prod->batch = RGATE_BATCH;
	prod->handles = RGATE_HANDLES_MAX;
	prod->map_len = geo->map_len;
	prod->cons_off = geo->cons_off;
	prod->credits_off = geo->credits_off;
	prod->slots_off = geo->slots_off;
	prod->state = RGATE_STATE_ACTIVE;
}

/**
 * rgate_mem_alloc - zeroed memory for a ring of a given shape
 * @geo: checked geometry
 * @node: NUMA node that all of it has to come from, or NUMA_NO_NODE
 *
 * Charges the calling user. The producer area holds the geometry afterwards.
 *
 * Return: memory with one reference, or -ENOBUFS, -ENOMEM, -EINTR.
 */
struct rgate_mem *rgate_mem_alloc(const struct rgate_geo *geo, int node)
{
	struct rgate_mem *mem = rgate_kzalloc(sizeof(*mem));
	int err;

	if (!mem)
		return ERR_PTR(-ENOMEM);
	kref_init(&mem->ref);
	mem->geo = *geo;
	mem->npages = geo->map_len >> PAGE_SHIFT;
	err = rgate_mem_charge(mem);
	if (err)
		goto free_mem;
	/* Asking for it page by page would starve everybody before it fails. */
	if (mem->npages > si_mem_available()) {
		err = -ENOMEM;
		goto uncharge;
	}
	err = rgate_mem_alloc_pages(mem, node);
	if (err)
		goto uncharge;
	mem->base = rgate_alloc_fails() ? NULL :
		vmap(mem->pages, mem->npages, VM_MAP, PAGE_KERNEL);
	if (!mem->base) {
		err = -ENOMEM;
		goto free_pages;
	}
	rgate_mem_layout(mem);
	return mem;

free_pages:
	rgate_mem_free_pages(mem, mem->npages);
uncharge:
	rgate_mem_uncharge(mem);
free_mem:
	kfree(mem);
	return ERR_PTR(err);
}

static void rgate_mem_release(struct kref *ref)
{
	struct rgate_mem *mem = container_of(ref, struct rgate_mem, ref);

	might_sleep();
	vunmap(mem->base);
	rgate_mem_free_pages(mem, mem->npages);
	rgate_mem_uncharge(mem);
	kfree(mem);
}

void rgate_mem_get(struct rgate_mem *mem)
{
	kref_get(&mem->ref);
}

/* Process context: the last reference unmaps and frees. */
void rgate_mem_put(struct rgate_mem *mem)
{
	kref_put(&mem->ref, rgate_mem_release);
}

static void rgate_vma_open(struct vm_area_struct *vma)
{
	rgate_mem_get(vma->vm_private_data);
}

static void rgate_vma_close(struct vm_area_struct *vma)
{
	rgate_mem_put(vma->vm_private_data);
}

/* Pages are there from the start; this is for what madvise() threw out. */
static vm_fault_t rgate_vma_fault(struct vm_fault *vmf)
{
	struct rgate_mem *mem = vmf->vma->vm_private_data;

	if (vmf->pgoff >= mem->npages)
		return VM_FAULT_SIGBUS;
	vmf->page = mem->pages[vmf->pgoff];
	get_page(vmf->page);
	return 0;
}

static const struct vm_operations_struct rgate_vm_ops = {
	.open = rgate_vma_open,
	.close = rgate_vma_close,
	.fault = rgate_vma_fault,
};

/**
 * rgate_mem_mmap - put a range of the memory into a new VMA
 * @mem: the VMA takes a reference of its own
 * @vma: from mmap(2); its offset is the byte offset in the mapping
 *
 * A VMA that touches a read-only page is read-only for good. Inserted with
 * struct pages, so that get_user_pages() and so ibv_reg_mr() work.
 */
int rgate_mem_mmap(struct rgate_mem *mem, struct vm_area_struct *vma)
{
	unsigned long first = vma->vm_pgoff, num = vma_pages(vma);
	int err;

	/* Not VM_SHARED, which a file opened read-only lacks. */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	if (first >= mem->npages || num > mem->npages - first)
		return -EINVAL;
	if (rgate_geo_readonly(&mem->geo, mem->rw_slots, first << PAGE_SHIFT,
			       num << PAGE_SHIFT)) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		vm_flags_clear(vma, VM_MAYWRITE);
	}
	vm_flags_clear(vma, VM_MAYEXEC);
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);

	err = vm_insert_pages(vma, vma->vm_start, mem->pages + first, &num);
	if (err)
		return err;
	vma->vm_private_data = mem;
	vma->vm_ops = &rgate_vm_ops;
	rgate_mem_get(mem);
	return 0;
}
