// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd.h"
#include "module.h"
#include "replay_out.h"
#include "util.h"

/* Fewer than the queue of a device is long by default, so that it has room for what may be
 * under way, which is as many frames as there are slots */
#define SLOTS		512U
#define RING_BYTES	(4U << 20)	/* of longer slots there are fewer */
#define BURST		64U		/* frames that are put before the module is asked to send */
#define TAG		4U		/* bytes of a VLAN tag, which the MTU does not count */
#define HEADER		14U
#define WAIT_MS		200		/* between two looks at util_stop */
#define NO_MEMORY_NS	(5 * NSEC)	/* a frame waits so long for memory */

/* Bytes of a frame that the device sends; an exit code */
static int device_room(struct replay_out *o)
{
	struct ifreq ifr;
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	memcpy(ifr.ifr_name, o->dev, sizeof(ifr.ifr_name));
	if (sock < 0 || ioctl(sock, SIOCGIFHWADDR, &ifr))
		err = -errno;
	if (!err && ifr.ifr_hwaddr.sa_family != ARPHRD_ETHER &&
	    ifr.ifr_hwaddr.sa_family != ARPHRD_LOOPBACK)
		err = -EPROTOTYPE;
	if (!err && ioctl(sock, SIOCGIFMTU, &ifr))
		err = -errno;
	if (sock >= 0)
		close(sock);
	if (err)
		return fail_in("rgate_ctl_attach:transmit", err, "cannot send through %s", o->dev);
	o->room = (uint32_t)ifr.ifr_mtu + HEADER + TAG;
	return EXIT_OK;
}

static int ring_open(struct replay_out *o)
{
	struct rgate_ring_opts opts = RGATE_OPTS(rgate_ring_opts,
		.slots = SLOTS,
		.slot_size = RGATE_SLOT_SIZE_DEFAULT,
		.flags = RGATE_RING_TRANSMIT | RGATE_RING_RW_SLOTS,
		.name = "replay");
	int err;

	while (opts.slot_size < o->room + RGATE_SLOT_HDR && opts.slot_size < RGATE_SLOT_SIZE_MAX)
		opts.slot_size *= 2;
	while (opts.slots > RGATE_SLOTS_MIN && opts.slots * opts.slot_size > RING_BYTES)
		opts.slots /= 2;
	err = rgate_ring_open(&o->ring, &opts);
	if (is_no_module(err))
		return fail_no_module();
	if (!err)
		err = rgate_sender_init(&o->s, o->ring);
	if (err)
		return fail_in("rgate_ring_open", err, "cannot make a ring of %u slots of %u bytes",
			       opts.slots, opts.slot_size);
	o->room = rgate_sender_room(&o->s);
	return EXIT_OK;
}

int replay_out_open(struct replay_out *o, const char *dev)
{
	struct rgate_attach_opts opts = RGATE_OPTS(rgate_attach_opts,
						   .kind = RGATE_KIND_TRANSMIT);
	int ret, err;

	memset(o, 0, sizeof(*o));
	snprintf(o->dev, sizeof(o->dev), "%s", dev);
	ret = device_room(o);
	if (!ret)
		ret = ring_open(o);
	if (ret)
		return ret;
	err = rgate_ring_attach(o->ring, o->dev, &opts, NULL);
	/* Nothing is there to be taken, but a device that is down is told. */
	if (!err)
		err = rgate_sender_kick(&o->s, 0);
	if (err)
		return fail_in("rgate_ctl_attach:transmit", err, "cannot send through %s", o->dev);
	return EXIT_OK;
}

static int no_memory(uint64_t *since)
{
	uint64_t now = util_now();

	if (!*since)
		*since = now;
	if (now - *since > NO_MEMORY_NS)
		return -ENOBUFS;
	util_sleep(now + NSEC / 1000);
	return 0;
}

/* The module took @n slots, or why none. 0: go on */
static int after_kick(struct replay_out *o, int n, uint64_t *starved)
{
	switch (n) {
	case -EAGAIN:
		n = rgate_sender_wait(&o->s, WAIT_MS);
		return n < 0 && n != -EINTR ? n : 0;
	case -ENOBUFS:
		return no_memory(starved);
	case -EINTR:
		return 0;
	default:
		/* none, though some are there: somebody else writes to the ring */
		if (n <= 0)
			return n ?: -EIO;
		o->pending -= (uint32_t)n;
		*starved = 0;
		return 0;
	}
}

int replay_out_flush(struct replay_out *o)
{
	uint64_t starved = 0;
	int err = 0;

	while (o->pending && !err) {
		if (util_stop)
			return -EINTR;
		err = after_kick(o, rgate_sender_kick(&o->s, 0), &starved);
	}
	return err;
}

int replay_out_put(struct replay_out *o, const void *frame, uint32_t len)
{
	struct rgate_tx_slot *slot = rgate_sender_reserve(&o->s);
	int err;

	if (!slot) {
		err = replay_out_flush(o);
		if (err)
			return err;
		slot = rgate_sender_reserve(&o->s);
		if (!slot)
			return -EIO;
	}
	memcpy(rgate_sender_data(slot), frame, len);
	rgate_sender_publish(&o->s, slot, len, 0);
	o->pending++;
	return o->pending < BURST ? 0 : replay_out_flush(o);
}

void replay_out_stats(const struct replay_out *o, struct rgate_stats *stats)
{
	rgate_ring_stats(o->ring, stats);
}

void replay_out_close(struct replay_out *o)
{
	rgate_ring_close(o->ring);
}
