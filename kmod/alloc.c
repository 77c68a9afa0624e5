// SPDX-License-Identifier: GPL-2.0-only
#include <linux/atomic.h>
#include <linux/moduleparam.h>
#include <linux/sysfs.h>
#include "alloc.h"

static atomic_t fail_alloc = ATOMIC_INIT(0);

static int fail_alloc_set(const char *val, const struct kernel_param *kp)
{
	int n, err = kstrtoint(val, 0, &n);

	if (err)
		return err;
	if (n < 0)
		return -EINVAL;
	atomic_set(&fail_alloc, n);
	return 0;
}

static int fail_alloc_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%d\n", atomic_read(&fail_alloc));
}

static const struct kernel_param_ops fail_alloc_ops = {
	.set = fail_alloc_set,
	.get = fail_alloc_get,
};
module_param_cb(fail_alloc, &fail_alloc_ops, NULL, 0600);
MODULE_PARM_DESC(fail_alloc,
		 "for tests: the n-th allocation from now fails, then it is off (default 0: off)");

/**
 * rgate_alloc_fails - is this the allocation that has to fail?
 *
 * Control paths only; every allocation of the module asks here first, so that
 * counting up from 1 walks through all error paths.
 */
bool rgate_alloc_fails(void)
{
	return atomic_read(&fail_alloc) > 0 &&
	       atomic_dec_if_positive(&fail_alloc) == 0;
}
