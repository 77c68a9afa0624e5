// SPDX-License-Identifier: GPL-2.0-only
#include <linux/dma-buf.h>
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/fcntl.h>
#include <linux/iosys-map.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include "alloc.h"
#include "dmabuf.h"
#include "mem.h"

/**
 * struct rgate_dmabuf - what a dma-buf shows
 * @mem: with a reference: pages and charge are there as long as the dma-buf is
 * @off: bytes from the start of @mem, of whole pages
 * @len: bytes, likewise
 * @writable: as it may be mapped by users
 */
struct rgate_dmabuf {
	struct rgate_mem *mem;
	size_t off;
	size_t len;
	bool writable;
};

/* Several devices may have it at once, and none needs a sync: see rgate_dmabuf_attach(). */
#define RGATE_DMABUF_ATTRS DMA_ATTR_SKIP_CPU_SYNC

/*
 * Kernel and users write while the device has it mapped, and make no call that could sync
 * caches or copy out of a bounce buffer: a device that needs either would read old frames.
 */
static int rgate_dmabuf_attach(struct dma_buf *dmabuf,
			       struct dma_buf_attachment *attach)
{
	return dev_is_dma_coherent(attach->dev) &&
	       dma_max_mapping_size(attach->dev) == SIZE_MAX ? 0 : -EOPNOTSUPP;
}

static struct sg_table *rgate_dmabuf_map(struct dma_buf_attachment *attach,
					 enum dma_data_direction dir)
{
	const struct rgate_dmabuf *buf = attach->dmabuf->priv;
	struct page **pages = buf->mem->pages + (buf->off >> PAGE_SHIFT);
	struct sg_table *sgt;
	int err;

	if (!buf->writable && dir != DMA_TO_DEVICE)
		return ERR_PTR(-EACCES);
	sgt = rgate_kzalloc(sizeof(*sgt));
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	err = rgate_alloc_fails() ? -ENOMEM :
		sg_alloc_table_from_pages_segment(sgt, pages, buf->len >> PAGE_SHIFT,
						  0, buf->len,
						  dma_get_max_seg_size(attach->dev),
						  GFP_KERNEL_ACCOUNT);
	if (err)
		goto free_sgt;
	err = dma_map_sgtable(attach->dev, sgt, dir, RGATE_DMABUF_ATTRS);
	if (err)
		goto free_table;
	return sgt;

free_table:
	sg_free_table(sgt);
free_sgt:
	kfree(sgt);
	return ERR_PTR(err);
}

static void rgate_dmabuf_unmap(struct dma_buf_attachment *attach,
			       struct sg_table *sgt,
			       enum dma_data_direction dir)
{
	dma_unmap_sgtable(attach->dev, sgt, dir, RGATE_DMABUF_ATTRS);
	sg_free_table(sgt);
	kfree(sgt);
}

static int rgate_dmabuf_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	const struct rgate_dmabuf *buf = dmabuf->priv;

	/* It lies within the dma-buf. From here on the offset is that of the ring's memory. */
	vma->vm_pgoff += buf->off >> PAGE_SHIFT;
	return rgate_mem_mmap(buf->mem, vma);
}

static int rgate_dmabuf_vmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	const struct rgate_dmabuf *buf = dmabuf->priv;

	iosys_map_set_vaddr(map, buf->mem->base + buf->off);
	return 0;
}

static void rgate_dmabuf_release(struct dma_buf *dmabuf)
{
	struct rgate_dmabuf *buf = dmabuf->priv;

	rgate_mem_put(buf->mem);
	kfree(buf);
}

static const struct dma_buf_ops rgate_dmabuf_ops = {
	.attach = rgate_dmabuf_attach,
	.map_dma_buf = rgate_dmabuf_map,
	.unmap_dma_buf = rgate_dmabuf_unmap,
	.release = rgate_dmabuf_release,
	.mmap = rgate_dmabuf_mmap,
	.vmap = rgate_dmabuf_vmap,
};

/* No kernel address: nothing would keep a driver from writing there. */
static const struct dma_buf_ops rgate_dmabuf_readonly_ops = {
	.attach = rgate_dmabuf_attach,
	.map_dma_buf = rgate_dmabuf_map,
	.unmap_dma_buf = rgate_dmabuf_unmap,
	.release = rgate_dmabuf_release,
	.mmap = rgate_dmabuf_mmap,
};

static void rgate_dmabuf_init(struct rgate_dmabuf *buf, struct rgate_mem *mem,
			      enum rgate_ring_area area)
{
	const struct rgate_geo *geo = &mem->geo;
	bool slots = area == RGATE_AREA_SLOTS;

	buf->mem = mem;
	buf->off = slots ? geo->slots_off : geo->cons_off;
	buf->len = (slots ? geo->map_len : geo->slots_off) - buf->off;
	buf->writable = !rgate_geo_readonly(geo, mem->rw_slots, buf->off, buf->len);
}

/**
 * rgate_dmabuf_new - a dma-buf of one area
 * @mem: gets a reference
 * @area: which
 *
 * Return: its file, which can be written to if the area can, or an ERR_PTR.
 */
struct file *rgate_dmabuf_new(struct rgate_mem *mem, enum rgate_ring_area area)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct rgate_dmabuf *buf = rgate_kzalloc(sizeof(*buf));
	struct dma_buf *dmabuf;

	if (!buf)
		return ERR_PTR(-ENOMEM);
	rgate_dmabuf_init(buf, mem, area);
	info.ops = buf->writable ? &rgate_dmabuf_ops : &rgate_dmabuf_readonly_ops;
	info.size = buf->len;
	info.flags = buf->writable ? O_RDWR : O_RDONLY;
	info.priv = buf;
	dmabuf = rgate_alloc_fails() ? ERR_PTR(-ENOMEM) : dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		kfree(buf);
		return ERR_CAST(dmabuf);
	}
	rgate_mem_get(mem);
	return dmabuf->file;
}

/* What MODULE_IMPORT_NS() makes of it; that macro's argument is a string since Linux 6.13 */
MODULE_INFO(import_ns, "DMA_BUF");
