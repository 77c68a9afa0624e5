// SPDX-License-Identifier: GPL-2.0-only
/*
 * The zero line of the benchmarks: drops every frame of one device at the
 * netfilter ingress hook and does nothing else.
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/netfilter_netdev.h>
#include <linux/rtnetlink.h>
#include <net/net_namespace.h>

static char *ifname = "";
module_param(ifname, charp, 0444);
MODULE_PARM_DESC(ifname, "device of the first network namespace whose frames are dropped");

static unsigned int nfdrop_hook(void *priv, struct sk_buff *skb,
				const struct nf_hook_state *state)
{
	return NF_DROP;
}

static struct nf_hook_ops nfdrop_ops = {
	.hook = nfdrop_hook,
	.pf = NFPROTO_NETDEV,
	.hooknum = NF_NETDEV_INGRESS,
	.priority = INT_MIN,
};

/* A hook must not outlive its device */
static int nfdrop_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);

	if (event == NETDEV_UNREGISTER && dev == nfdrop_ops.dev) {
		nf_unregister_net_hook(&init_net, &nfdrop_ops);
		nfdrop_ops.dev = NULL;
	}
	return NOTIFY_DONE;
}

static struct notifier_block nfdrop_nb = {
	.notifier_call = nfdrop_event,
};

static int __init nfdrop_init(void)
{
	struct net_device *dev;
	int err;

	err = register_netdevice_notifier(&nfdrop_nb);
	if (err)
		return err;
	rtnl_lock();
	dev = __dev_get_by_name(&init_net, ifname);
	nfdrop_ops.dev = dev;
	err = dev ? nf_register_net_hook(&init_net, &nfdrop_ops) : -ENODEV;
	if (err)
		nfdrop_ops.dev = NULL;
	rtnl_unlock();
	if (err)
		unregister_netdevice_notifier(&nfdrop_nb);
	return err;
}

/* Unregistering a notifier replays NETDEV_UNREGISTER, and so ends the hook */
static void __exit nfdrop_exit(void)
{
	unregister_netdevice_notifier(&nfdrop_nb);
}

module_init(nfdrop_init);
module_exit(nfdrop_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("drops all frames of a device: zero line of ringgate's benchmarks");
