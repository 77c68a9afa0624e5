// SPDX-License-Identifier: GPL-2.0-only
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/io.h>
#include <linux/iosys-map.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "rgate_import.h"

/**
 * struct import - an open file
 * @lock: one call at a time
 * @buf: what is imported, or NULL
 * @att: its attachment
 * @sgt: mapped for @dir
 * @dir: direction
 */
struct import {
	struct mutex lock;	/* one call at a time */
	struct dma_buf *buf;
	struct dma_buf_attachment *att;
	struct sg_table *sgt;
	enum dma_data_direction dir;
};

static struct platform_device *import_device;

/*
 * Under the reservation lock, which some kernels want to be held here, and none minds: an
 * exporter like this one does not take it.
 */
static struct sg_table *import_map_locked(struct dma_buf_attachment *att,
					  enum dma_data_direction dir)
{
	struct sg_table *sgt;

	dma_resv_lock(att->dmabuf->resv, NULL);
	sgt = dma_buf_map_attachment(att, dir);
	dma_resv_unlock(att->dmabuf->resv);
	return sgt;
}

static void import_end(struct import *im)
{
	if (!im->buf)
		return;
	dma_resv_lock(im->buf->resv, NULL);
	dma_buf_unmap_attachment(im->att, im->sgt, im->dir);
	dma_resv_unlock(im->buf->resv);
	dma_buf_detach(im->buf, im->att);
	dma_buf_put(im->buf);
	im->buf = NULL;
}

static int import_map(struct import *im, struct import_arg *arg)
{
	struct scatterlist *sg;
	int i, err;

	if (im->buf)
		return -EBUSY;
	if (arg->dir > DMA_FROM_DEVICE)
		return -EINVAL;
	im->dir = arg->dir;
	im->buf = dma_buf_get(arg->fd);
	if (IS_ERR(im->buf)) {
		err = PTR_ERR(im->buf);
		goto forget;
	}
	im->att = dma_buf_attach(im->buf, &import_device->dev);
	if (IS_ERR(im->att)) {
		err = PTR_ERR(im->att);
		goto put;
	}
	im->sgt = import_map_locked(im->att, im->dir);
	if (IS_ERR(im->sgt)) {
		err = PTR_ERR(im->sgt);
		goto detach;
	}
	for_each_sgtable_dma_sg(im->sgt, sg, i) {
		arg->runs++;
		arg->longest = max(arg->longest, sg_dma_len(sg));
		arg->bytes += sg_dma_len(sg);
	}
	return 0;

detach:
	dma_buf_detach(im->buf, im->att);
put:
	dma_buf_put(im->buf);
forget:
	im->buf = NULL;
	return err;
}

/* Without an IOMMU, which the lab has none of, a device's address is the physical one. */
static void *import_at(struct import *im, u64 off)
{
	struct scatterlist *sg;
	int i;

	if (!im->buf)
		return NULL;
	for_each_sgtable_dma_sg(im->sgt, sg, i) {
		if (off < sg_dma_len(sg))
			return off + IMPORT_DATA <= sg_dma_len(sg) ?
			       phys_to_virt(sg_dma_address(sg)) + off : NULL;
		off -= sg_dma_len(sg);
	}
	return NULL;
}

static int import_rw(struct import *im, struct import_arg *arg, bool write)
{
	void *at = import_at(im, arg->off);

	if (!at)
		return -ENXIO;
	if (write)
		memcpy(at, arg->data, IMPORT_DATA);
	else
		memcpy(arg->data, at, IMPORT_DATA);
	return 0;
}

static int import_vread(struct import *im, struct import_arg *arg)
{
	struct iosys_map map;
	int err;

	if (!im->buf || arg->off > im->buf->size - IMPORT_DATA)
		return -ENXIO;
	err = dma_buf_begin_cpu_access(im->buf, DMA_FROM_DEVICE);
	if (err)
		return err;
	dma_resv_lock(im->buf->resv, NULL);
	err = dma_buf_vmap(im->buf, &map);
	if (!err) {
		iosys_map_memcpy_from(arg->data, &map, arg->off, IMPORT_DATA);
		dma_buf_vunmap(im->buf, &map);
	}
	dma_resv_unlock(im->buf->resv);
	return dma_buf_end_cpu_access(im->buf, DMA_FROM_DEVICE) ?: err;
}

static int import_call(struct import *im, unsigned int cmd, struct import_arg *arg)
{
	switch (cmd) {
	case IMPORT_MAP:
		return import_map(im, arg);
	case IMPORT_READ:
		return import_rw(im, arg, false);
	case IMPORT_WRITE:
		return import_rw(im, arg, true);
	case IMPORT_VREAD:
		return import_vread(im, arg);
	default:
		return -ENOTTY;
	}
}

static long import_ioctl(struct file *file, unsigned int cmd, unsigned long uarg)
{
	struct import *im = file->private_data;
	struct import_arg arg;
	int err;

	if (cmd == IMPORT_END) {
		mutex_lock(&im->lock);
		import_end(im);
		mutex_unlock(&im->lock);
		return 0;
	}
	if (copy_from_user(&arg, (void __user *)uarg, sizeof(arg)))
		return -EFAULT;
	mutex_lock(&im->lock);
	err = import_call(im, cmd, &arg);
	mutex_unlock(&im->lock);
	if (err)
		return err;
	return copy_to_user((void __user *)uarg, &arg, sizeof(arg)) ? -EFAULT : 0;
}

static int import_open(struct inode *inode, struct file *file)
{
	struct import *im = kzalloc(sizeof(*im), GFP_KERNEL);

	if (!im)
		return -ENOMEM;
	mutex_init(&im->lock);
	file->private_data = im;
	return 0;
}

static int import_release(struct inode *inode, struct file *file)
{
	struct import *im = file->private_data;

	import_end(im);
	mutex_destroy(&im->lock);
	kfree(im);
	return 0;
}

static const struct file_operations import_fops = {
	.owner = THIS_MODULE,
	.open = import_open,
	.release = import_release,
	.unlocked_ioctl = import_ioctl,
};

static struct miscdevice import_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "rgate_import",
	.fops = &import_fops,
	.mode = 0666,
};

static int __init import_init(void)
{
	int err;

	import_device = platform_device_register_simple("rgate_import", PLATFORM_DEVID_NONE,
							NULL, 0);
	if (IS_ERR(import_device))
		return PTR_ERR(import_device);
	err = dma_set_mask_and_coherent(&import_device->dev, DMA_BIT_MASK(64));
	if (!err)
		err = misc_register(&import_misc);
	if (err)
		platform_device_unregister(import_device);
	return err;
}

static void __exit import_exit(void)
{
	misc_deregister(&import_misc);
	platform_device_unregister(import_device);
}

module_init(import_init);
module_exit(import_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("An importer of dma-bufs, for ringgate's tests");
/* What MODULE_IMPORT_NS() makes of it; that macro's argument is a string since Linux 6.13 */
MODULE_INFO(import_ns, "DMA_BUF");
