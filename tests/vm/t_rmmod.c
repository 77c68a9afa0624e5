// SPDX-License-Identifier: MIT OR GPL-2.0
/* The module cannot go while anything of it is used, and can right after. */
#include "lib/vt.h"

static bool refused(int err)
{
	return err == -EWOULDBLOCK || err == -EBUSY;
}

/* rmmod must work now; the module is loaded again for what follows */
static void must_go(const char *when)
{
	int err = vt_rmmod();

	if (err) {
		FAIL("rmmod %s: %s", when, strerror(-err));
		return;
	}
	EXPECT(!vt_loaded());
	EXPECT_EQ(access(RGATE_DEVICE, F_OK), -1);
	err = vt_insmod("");
	if (err)
		DIE("insmod: %s", strerror(-err));
}

static void must_stay(const char *when)
{
	int err = vt_rmmod();

	if (!refused(err))
		FAIL("rmmod %s: %d", when, err);
	if (!err)
		REQUIRE(!vt_insmod(""));
}

static void idle(void)
{
	must_go("with nothing used");
	must_go("again");
}

static void open_file(void)
{
	int fd = vt_dev_open();
	struct rgate_create c = vt_create_req();

	must_stay("with a file open");
	REQUIRE(!ioctl(fd, RGATE_IOC_CREATE, &c));
	must_stay("with a ring");
	close(fd);
	must_go("after close");
}

static void mapping_only(void)
{
	struct vt_ring r;
	void *part;

	vt_ring_open(&r, 256, 2048, 0, 0);
	close(r.fd);
	r.fd = -1;
	must_stay("with a mapping left");
	EXPECT_EQ(r.prod->magic, RGATE_MAGIC);
	/* one page left */
	part = r.map + 4096;
	munmap(r.map, 4096);
	munmap(r.map + 8192, r.geo.map_len - 8192);
	must_stay("with one page mapped");
	munmap(part, 4096);
	must_go("after munmap");
}

static void retired_mapping(void)
{
	struct vt_ring r;

	vt_ring_open(&r, 256, 2048, 0, 0);
	REQUIRE(!vt_ring_resize(r.fd, 64, 256, NULL));
	close(r.fd);
	r.fd = -1;
	must_stay("with retired memory mapped");
	vt_ring_unmap(&r);
	must_go("after that");
}

static void attached(void)
{
	struct vt_traffic t = { .ifname = "va", .len = 200, .cpu = 1 };
	struct vt_ring r;
	struct vt_nl nl;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&r, 256, 512, 0, RGATE_POLICY_OVERWRITE);
	vt_att_simple(&nl, "vb", r.id);
	vt_traffic_start(&t);
	must_stay("with an attachment");
	vt_usleep(200000);
	must_stay("under traffic");
	/* closing the ring ends the attachment: no ATT_DEL needed */
	vt_ring_close(&r);
	must_go("after close under traffic");
	vt_traffic_stop(&t);
	EXPECT(!t.err);
}

static void many_attachments(void)
{
	struct vt_ring r[16];
	struct vt_nl nl;
	unsigned int i;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	for (i = 0; i < 16; i++) {
		vt_ring_open(&r[i], 64, 256, 0, 0);
		vt_att_simple(&nl, "vb", r[i].id);
		vt_att_simple(&nl, "lo", r[i].id);
	}
	for (i = 0; i < 16; i++)
		vt_ring_close(&r[i]);
	must_go("after 32 attachments");
}

static void full_ring_event_pending(void)
{
	struct vt_ring r;
	struct vt_nl nl;
	int tx;

	/* delayed work of the event is under way when all closes */
	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	REQUIRE(!vt_nl_subscribe(&nl));
	vt_ring_open(&r, 64, 256, 0, 0);
	vt_att_simple(&nl, "vb", r.id);
	tx = vt_tx_open("va");
	vt_tx_burst(tx, 100, 0, 100);
	vt_ring_close(&r);
	must_go("with an event pending");
}

static void netlink_socket_open(void)
{
	struct vt_nl nl;

	/* a socket and a subscription hold nothing */
	vt_nl_open(&nl);
	REQUIRE(!vt_nl_subscribe(&nl));
	must_go("with a netlink socket open");
	/* the family has another number now; the old one is an error, not a crash */
	(void)vt_nl_count(&nl, RGATE_CMD_RING_GET);
	vt_nl_close(&nl);
}

static void polled_and_epolled(void)
{
	struct vt_ring r;
	struct pollfd p;
	int i;

	for (i = 0; i < 3; i++) {
		vt_ring_open(&r, 64, 256, 0, 0);
		p = (struct pollfd){ .fd = r.fd, .events = POLLIN };
		EXPECT_EQ(poll(&p, 1, 20), 0);
		vt_ring_close(&r);
		must_go("after poll");
	}
}

static const struct vt_case cases[] = {
	{ .name = "idle", .fn = idle },
	{ .name = "file open", .fn = open_file },
	{ .name = "only a mapping left", .fn = mapping_only },
	{ .name = "only retired memory mapped", .fn = retired_mapping },
	{ .name = "attached, under traffic", .fn = attached },
	{ .name = "32 attachments", .fn = many_attachments },
	{ .name = "an event pending", .fn = full_ring_event_pending },
	{ .name = "netlink socket open", .fn = netlink_socket_open },
	{ .name = "after poll", .fn = polled_and_epolled },
};

VT_MAIN(cases)
