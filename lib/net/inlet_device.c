// SPDX-License-Identifier: MIT OR GPL-2.0
/* What the gateway's devices are called: asked for when somebody wants to know. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "inlet.h"

#define KEEP_NS		10000000000ULL	/* a device may be renamed, its number given again */
#define AGAIN_NS	100000000ULL	/* between two questions for the same */
#define ANY_NS		1000000ULL	/* and for any: they share their way with all else */

void inlet_devices_forget(struct rgate_inlet *in)
{
	memset(in->devices, 0, sizeof(in->devices));
}

static struct inlet_device *find(struct rgate_inlet *in, uint32_t ifindex)
{
	unsigned int i;

	for (i = 0; i < INLET_DEVICES; i++)
		if (in->devices[i].ifindex == ifindex)
			return &in->devices[i];
	return NULL;
}

static void ask(struct rgate_inlet *in, uint32_t ifindex, uint64_t now)
{
	const struct net_hdr msg = {
		.service = RGATE_SERVICE_NET, .type = NET_DEVICE, .value = htole32(ifindex),
	};
	struct inlet_device *d = find(in, ifindex);

	if (now - in->asked_ns < ANY_NS || (d && now - d->asked_ns < AGAIN_NS))
		return;
	in->asked_ns = now;
	if (inlet_send(in, &msg, sizeof(msg)))
		return;
	if (!d)
		d = &in->devices[in->next_device++ % INLET_DEVICES];
	*d = (struct inlet_device){ .ifindex = ifindex, .asked_ns = now };
}

void inlet_device_named(struct rgate_inlet *in, const struct net_name *msg)
{
	struct inlet_device *d = find(in, le32toh(msg->hdr.value));

	/* only what was asked for, and the first answer */
	if (!d || !d->asked_ns || d->known || !memchr(msg->name, '\0', sizeof(msg->name)))
		return;
	memcpy(d->name, msg->name, sizeof(d->name));
	d->known = true;
}

int rgate_inlet_device(struct rgate_inlet *in, uint32_t ifindex, char name[RGATE_DEVICE_NAME])
{
	const uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
	const struct inlet_device *d;
	int err = -EAGAIN;

	if (!ifindex || ifindex > INT32_MAX)
		return -EINVAL;
	pthread_mutex_lock(&in->lock);
	d = find(in, ifindex);
	if (d && d->known && now - d->asked_ns < KEEP_NS) {
		memcpy(name, d->name, sizeof(d->name));
		err = *name ? 0 : -ENODEV;
	} else if (!in->up) {
		err = -ENOTCONN;
	} else {
		ask(in, ifindex, now);
	}
	pthread_mutex_unlock(&in->lock);
	return err;
}
