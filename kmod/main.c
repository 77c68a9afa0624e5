// SPDX-License-Identifier: GPL-2.0-only
/*
 * ringgate: received packets in rings that any process, or a GPU, can poll.
 *
 * Layers, each using only those below it:
 *
 *	chardev, netlink	what users call
 *	attach, event		who gets frames, news go out
 *	hook, xdp		frames come in
 *	deliver, put		they become slots
 *	send, send_frame, send_thread, flight
 *				frames that users wrote go out
 *	wake			who sleeps in poll
 *	ring			handles, resizing
 *	dmabuf			memory for drivers that import it
 *	writer			the producer's side of the protocol
 *	mem, geometry		memory and its layout
 */
#include <linux/module.h>
#include <net/net_namespace.h>
#include "attach.h"
#include "chardev.h"
#include "flight.h"
#include "netlink.h"
#include "ring.h"
#include "xdp.h"

/* Devices are gone by now, and their attachments with them, but for races. */
static void __net_exit rgate_net_exit(struct net *net)
{
	mutex_lock(&rgate_lock);
	rgate_att_drop_net(net);
	rgate_ring_forget_net(net);
	mutex_unlock(&rgate_lock);
}

static struct pernet_operations rgate_net_ops = {
	.exit = rgate_net_exit,
};

static int __init rgate_init(void)
{
	int err;

	err = rgate_ring_init();
	if (err)
		return err;
	err = rgate_att_init();
	if (err)
		goto exit_ring;
	err = register_pernet_subsys(&rgate_net_ops);
	if (err)
		goto exit_att;
	err = genl_register_family(&rgate_genl_family);
	if (err)
		goto exit_net;
	err = rgate_chardev_init();
	if (err)
		goto exit_genl;
	rgate_xdp_init();
	return 0;

exit_genl:
	genl_unregister_family(&rgate_genl_family);
exit_net:
	unregister_pernet_subsys(&rgate_net_ops);
exit_att:
	rgate_att_exit();
exit_ring:
	rgate_ring_exit();
	return err;
}

/* No file is open, so there is no ring, and without rings no attachment. */
static void __exit rgate_exit(void)
{
	rgate_chardev_exit();
	genl_unregister_family(&rgate_genl_family);
	unregister_pernet_subsys(&rgate_net_ops);
	rgate_att_exit();
	rgate_ring_exit();
	rgate_flight_exit();
}

module_init(rgate_init);
module_exit(rgate_exit);

MODULE_LICENSE("GPL");
MODULE_AUTHOR("The ringgate developers");
MODULE_DESCRIPTION("Packet rings for user space and GPUs, filled at netfilter ingress or by XDP programs");
MODULE_VERSION("0.1.0");
