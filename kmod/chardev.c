// SPDX-License-Identifier: GPL-2.0-only
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "alloc.h"
#include "chardev.h"
#include "ring.h"
#include "send.h"

static const struct file_operations rgate_fops;

/* The file's ring, complete, or NULL */
static struct rgate_ring *rgate_handle_ring(struct rgate_handle *h)
{
	/* Pairs with the release in rgate_handle_set(). */
	return smp_load_acquire(&h->ring);
}

static void rgate_handle_set(struct rgate_handle *h, struct rgate_ring *ring)
{
	/* Pairs with the acquire in rgate_handle_ring(). */
	smp_store_release(&h->ring, ring);
	/* Pairs with the barrier in rgate_poll(). */
	smp_mb();
	/*
	 * Who waits since before there was a ring: the ring is set, then the queue
	 * looked at; poll goes on the queue, then looks for the ring. One sees the other.
	 */
	if (waitqueue_active(&h->wq))
		rgate_ring_polled(ring, h);
}

static int rgate_open(struct inode *inode, struct file *file)
{
	struct rgate_handle *h = rgate_kzalloc(sizeof(*h));

	if (!h)
		return -ENOMEM;
	mutex_init(&h->lock);
	init_waitqueue_head(&h->wq);
	file->private_data = h;
	return nonseekable_open(inode, file);
}

/* All mappings are gone too: each holds the file. */
static int rgate_release(struct inode *inode, struct file *file)
{
	struct rgate_handle *h = file->private_data;

	if (h->ring)
		rgate_ring_del_handle(h->ring, h);
	mutex_destroy(&h->lock);
	kfree(h);
	return 0;
}

static int rgate_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct rgate_handle *h = file->private_data;
	struct rgate_ring *ring = rgate_handle_ring(h);
	struct rgate_mem *mem;
	int err;

	if (!ring)
		return -ENXIO;
	mem = rgate_ring_mem_get(ring);
	err = rgate_mem_mmap(mem, vma);
	if (!err)
		rgate_ring_mapped(ring, h, mem);
	rgate_mem_put(mem);
	return err;
}

static __poll_t rgate_poll(struct file *file, poll_table *wait)
{
	struct rgate_handle *h = file->private_data;
	struct rgate_ring *ring;

	/* First, so that a file in an epoll set hears of a later ring. */
	poll_wait(file, &h->wq, wait);
	/* Pairs with the barrier in rgate_handle_set(). */
	smp_mb();
	ring = rgate_handle_ring(h);
	if (!ring)
		return EPOLLERR;
	if (ring->tx)
		return rgate_send_writable(ring) ? EPOLLOUT | EPOLLWRNORM : 0;
	return rgate_ring_readable(ring, h) ? EPOLLIN | EPOLLRDNORM : 0;
}

static void rgate_query_fill(struct rgate_ring *ring, struct rgate_handle *h,
			     struct rgate_query *q)
{
	struct rgate_ring_now now;

	rgate_ring_look(ring, &now);
	q->flags = ring->flags;
	q->policy = ring->policy;
	q->clock = ring->clock;
	q->node = ring->node;
	memcpy(q->name, ring->name, RGATE_NAME_LEN);
	q->ring_id = ring->id;
	q->handles = READ_ONCE(ring->nhandles);
	q->mem_bytes = now.geo.map_len;
	q->cookie = ring->cookie;
	rgate_ring_geometry(&now.geo, now.generation, h, &q->geo);
	q->stats = now.stats;
}

/*
 * Tell the user about the ring, then give it to the file: an address that
 * cannot be written leaves no trace.
 */
static int rgate_create_handle(struct rgate_handle *h, struct rgate_ring *ring,
			       struct rgate_create *arg, void __user *uarg)
{
	/* Nobody resizes a ring that has no handle: its memory stands. */
	arg->ring_id = ring->id;
	arg->cookie = ring->cookie;
	h->index = 0;
	rgate_ring_geometry(&ring->mem->geo, ring->mem->generation, h, &arg->geo);
	memcpy(arg->name, ring->name, RGATE_NAME_LEN);
	if (copy_to_user(uarg, arg, sizeof(*arg)))
		return -EFAULT;
	return rgate_ring_add_handle(ring, h);
}

static int rgate_ioc_create(struct rgate_handle *h, void __user *uarg)
{
	struct rgate_create arg;
	struct rgate_ring *ring;
	int err;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	if (arg.ring_id || arg.reserved0 || arg.cookie ||
	    memchr_inv(arg.reserved, 0, sizeof(arg.reserved)) ||
	    memchr_inv(&arg.geo, 0, sizeof(arg.geo)))
		return -EINVAL;
	if (mutex_lock_interruptible(&h->lock))
		return -EINTR;
	if (h->ring) {
		err = -EBUSY;
		goto unlock;
	}
	ring = rgate_ring_create(&arg, current->nsproxy->net_ns);
	if (IS_ERR(ring)) {
		err = PTR_ERR(ring);
		goto unlock;
	}
	err = rgate_create_handle(h, ring, &arg, uarg);
	if (err)
		rgate_ring_del_handle(ring, NULL);
	else
		rgate_handle_set(h, ring);
unlock:
	mutex_unlock(&h->lock);
	return err;
}

/* Give the file a handle on the ring of another file, which @from keeps open. */
static int rgate_attach_handle(struct rgate_handle *h, struct rgate_ring *ring,
			       struct rgate_attach *arg, void __user *uarg)
{
	int err = rgate_ring_add_handle(ring, h);
	struct rgate_ring_now now;

	if (err)
		return err;
	rgate_ring_look(ring, &now);
	arg->ring_id = ring->id;
	arg->cookie = ring->cookie;
	rgate_ring_geometry(&now.geo, now.generation, h, &arg->geo);
	if (copy_to_user(uarg, arg, sizeof(*arg))) {
		rgate_ring_del_handle(ring, h);
		return -EFAULT;
	}
	rgate_handle_set(h, ring);
	return 0;
}

static int rgate_ioc_attach(struct rgate_handle *h, void __user *uarg)
{
	struct rgate_attach arg;
	struct rgate_ring *ring = NULL;
	struct file *from;
	int err;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	if (arg.flags || arg.ring_id || arg.reserved0 || arg.cookie ||
	    arg.reserved ||
	    memchr_inv(&arg.geo, 0, sizeof(arg.geo)))
		return -EINVAL;
	from = fget(arg.fd);
	if (!from)
		return -EBADF;
	if (from->f_op == &rgate_fops)
		ring = rgate_handle_ring(from->private_data);
	if (!ring) {
		err = -EINVAL;
		goto put_file;
	}
	/*
	 * A handle takes one of few wait words, and the new file may be open
	 * for writing: who may only look gets neither.
	 */
	if (!(from->f_mode & FMODE_WRITE)) {
		err = -EACCES;
		goto put_file;
	}
	if (mutex_lock_interruptible(&h->lock)) {
		err = -EINTR;
		goto put_file;
	}
	err = h->ring ? -EBUSY : rgate_attach_handle(h, ring, &arg, uarg);
	mutex_unlock(&h->lock);
put_file:
	fput(from);
	return err;
}

static int rgate_ioc_resize(struct file *file, void __user *uarg)
{
	struct rgate_handle *h = file->private_data;
	struct rgate_ring *ring = rgate_handle_ring(h);
	struct rgate_resize arg;
	int err;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	if (arg.reserved0 ||
	    memchr_inv(arg.reserved, 0, sizeof(arg.reserved)) ||
	    memchr_inv(&arg.geo, 0, sizeof(arg.geo)))
		return -EINVAL;
	if (!ring)
		return -ENXIO;
	/* Who may only look cannot take the others' memory away. */
	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	err = rgate_ring_resize(ring, h, &arg);
	if (err)
		return err;
	return copy_to_user(uarg, &arg, sizeof(arg)) ? -EFAULT : 0;
}

static int rgate_ioc_query(struct rgate_handle *h, void __user *uarg)
{
	struct rgate_ring *ring = rgate_handle_ring(h);
	struct rgate_query q = {};

	if (!ring)
		return -ENXIO;
	rgate_query_fill(ring, h, &q);
	return copy_to_user(uarg, &q, sizeof(q)) ? -EFAULT : 0;
}

static int rgate_ioc_send(struct file *file, void __user *uarg)
{
	struct rgate_ring *ring = rgate_handle_ring(file->private_data);
	struct rgate_send arg;
	int err;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	if (arg.flags || arg.taken || arg.sent || arg.in_flight ||
	    arg.reserved0 || arg.head ||
	    memchr_inv(arg.reserved, 0, sizeof(arg.reserved)))
		return -EINVAL;
	if (!ring)
		return -ENXIO;
	if (!ring->tx)
		return -EOPNOTSUPP;
	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	err = rgate_send(ring, &arg);
	if (err)
		return err;
	return copy_to_user(uarg, &arg, sizeof(arg)) ? -EFAULT : 0;
}

/*
 * Tell the user, then give the descriptor: an address that cannot be written leaves no
 * trace. Takes over @buf.
 */
static int rgate_export_fd(struct file *buf, struct rgate_export *arg,
			   void __user *uarg)
{
	int err, fd = get_unused_fd_flags(O_CLOEXEC);

	if (fd < 0) {
		err = fd;
		goto put_buf;
	}
	arg->fd = fd;
	arg->len = i_size_read(file_inode(buf));
	if (copy_to_user(uarg, arg, sizeof(*arg))) {
		err = -EFAULT;
		goto put_fd;
	}
	fd_install(fd, buf);
	return 0;

put_fd:
	put_unused_fd(fd);
put_buf:
	fput(buf);
	return err;
}

static int rgate_ioc_export(struct file *file, void __user *uarg)
{
	struct rgate_ring *ring = rgate_handle_ring(file->private_data);
	struct rgate_export arg;
	struct file *buf;

	if (copy_from_user(&arg, uarg, sizeof(arg)))
		return -EFAULT;
	if (arg.area >= RGATE_AREA_COUNT || arg.flags || arg.fd ||
	    arg.generation || arg.len ||
	    memchr_inv(arg.reserved, 0, sizeof(arg.reserved)))
		return -EINVAL;
	if (!ring)
		return -ENXIO;
	buf = rgate_ring_export(ring, arg.area, &arg.generation);
	if (IS_ERR(buf))
		return PTR_ERR(buf);
	/* As by mmap: it does no more than this file may. */
	if (buf->f_mode & ~file->f_mode & (FMODE_READ | FMODE_WRITE)) {
		fput(buf);
		return -EBADF;
	}
	return rgate_export_fd(buf, &arg, uarg);
}

static long rgate_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct rgate_handle *h = file->private_data;
	void __user *uarg = (void __user *)arg;

	switch (cmd) {
	case RGATE_IOC_CREATE:
		return rgate_ioc_create(h, uarg);
	case RGATE_IOC_ATTACH:
		return rgate_ioc_attach(h, uarg);
	case RGATE_IOC_RESIZE:
		return rgate_ioc_resize(file, uarg);
	case RGATE_IOC_QUERY:
		return rgate_ioc_query(h, uarg);
	case RGATE_IOC_SEND:
		return rgate_ioc_send(file, uarg);
	case RGATE_IOC_EXPORT:
		return rgate_ioc_export(file, uarg);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations rgate_fops = {
	.owner = THIS_MODULE,
	.open = rgate_open,
	.release = rgate_release,
	.mmap = rgate_mmap,
	.poll = rgate_poll,
	.unlocked_ioctl = rgate_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/*
 * Open to all, as /dev/net/tun is: a ring costs its owner's own memory, and
 * frames only come in by an attachment, which needs CAP_NET_ADMIN.
 */
static struct miscdevice rgate_miscdev = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "ringgate",
	.fops = &rgate_fops,
	.mode = 0666,
};

int rgate_chardev_init(void)
{
	return misc_register(&rgate_miscdev);
}

void rgate_chardev_exit(void)
{
	misc_deregister(&rgate_miscdev);
}
