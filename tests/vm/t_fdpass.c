// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A ring's file in other hands: another uid, user namespace, network
 * namespace. Reading works, and nothing else is gained.
 */
#include "lib/vt.h"

#include <sys/socket.h>
#include <sys/un.h>

#define UID_A	23460

static struct vt_nl nl;
static struct vt_ring ring;
static int tx, chan[2];

static void send_fd(int sock, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u = { 0 };
	struct iovec v = { "f", 1 };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1,
		.msg_control = u.buf, .msg_controllen = sizeof(u.buf),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	REQUIRE(sendmsg(sock, &m, 0) == 1);
}

static int recv_fd(int sock)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u;
	char b;
	struct iovec v = { &b, 1 };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1,
		.msg_control = u.buf, .msg_controllen = sizeof(u.buf),
	};
	struct cmsghdr *c;
	int fd = -1;

	REQUIRE(recvmsg(sock, &m, MSG_CMSG_CLOEXEC) == 1);
	c = CMSG_FIRSTHDR(&m);
	REQUIRE(c && c->cmsg_type == SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}

/* What the receiver of a file may do, whoever he is */
static void consume(struct vt_ring *r, unsigned int n)
{
	struct rgate_query q;

	REQUIRE(!vt_ring_query(r->fd, &q));
	r->geo = q.geo;
	vt_ring_map(r);
	EXPECT_EQ(vt_ring_verify(r, NULL, n, 3000), n);
	/* not more than the giver could */
	EXPECT(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0) ==
	       MAP_FAILED);
	EXPECT_ERRNO(mprotect(r->map, 4096, PROT_READ | PROT_WRITE), EACCES);
	EXPECT_ERRNO(mprotect(r->slots, 4096, PROT_READ | PROT_WRITE), EACCES);
}

static void no_netlink(const char *who)
{
	struct vt_att a = { .ifname = "lo", .rings = { ring.id }, .n = 1 };
	struct vt_nl mine;
	int r;

	vt_nl_open(&mine);
	r = vt_att_new(&mine, &a);
	if (r != -EPERM)
		FAIL("%s: ATT_NEW gave %d", who, r);
	vt_nl_close(&mine);
}

static int as_other_uid(void *arg)
{
	struct vt_ring r = { 0 }, mine;

	(void)arg;
	vt_ring_close(&ring);	/* only what came over the socket counts */
	REQUIRE(!setgid(UID_A) && !setuid(UID_A));
	r.fd = recv_fd(chan[1]);
	consume(&r, 40);
	no_netlink("other uid");
	/* a handle of his own, to sleep on */
	vt_ring_attach(&mine, r.fd);
	mine.pos = r.pos;
	REQUIRE(write(chan[1], "g", 1) == 1);
	EXPECT_EQ(vt_ring_verify(&mine, NULL, 40, 3000), 40);
	return 0;
}

static int as_userns(void *arg)
{
	struct vt_ring r = { 0 };

	(void)arg;
	vt_ring_close(&ring);
	REQUIRE(!setgid(UID_A) && !setuid(UID_A));
	if (unshare(CLONE_NEWUSER)) {
		vt_note("no user namespace for an unprivileged user here: %s",
			strerror(errno));
		return 0;
	}
	r.fd = recv_fd(chan[1]);
	/* all capabilities, but only in there: not over the ring's network */
	consume(&r, 40);
	no_netlink("user namespace");
	REQUIRE(write(chan[1], "g", 1) == 1);
	EXPECT_EQ(vt_ring_verify(&r, NULL, 40, 3000), 40);
	return 0;
}

static int as_own_netns(void *arg)
{
	struct vt_att a = { .ifname = "lo", .rings = { ring.id }, .n = 1 };
	struct vt_ring_info info;
	struct vt_ring r = { 0 };
	struct vt_nl mine;

	(void)arg;
	vt_ring_close(&ring);
	/* a user's own user and network namespace: he is admin in there */
	REQUIRE(!setgid(UID_A) && !setuid(UID_A));
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		vt_note("no user namespace for an unprivileged user here: %s",
			strerror(errno));
		return 0;
	}
	r.fd = recv_fd(chan[1]);
	vt_nl_open(&mine);
	/* the ring belongs to another network namespace: not to be had here */
	EXPECT_EQ(vt_ring_info(&mine, a.rings[0], &info), -ENOENT);
	EXPECT_EQ(vt_nl_count(&mine, RGATE_CMD_RING_GET), 0);
	EXPECT_EQ(vt_att_new(&mine, &a), -ENOENT);
	/* the frames in it can be read all the same */
	consume(&r, 40);
	/* a ring made here is of here, and can be attached here */
	{
		struct vt_ring own;
		struct rgate_create c = vt_create_req();
		int id;

		c.slots = 64;
		c.slot_size = 256;
		own.fd = vt_dev_open();
		REQUIRE(!ioctl(own.fd, RGATE_IOC_CREATE, &c));
		a.rings[0] = c.ring_id;
		id = vt_att_new(&mine, &a);
		EXPECT_GE(id, 1);
		EXPECT_EQ(vt_ring_info(&mine, c.ring_id, &info), 0);
		EXPECT_EQ(vt_nl_count(&mine, RGATE_CMD_ATT_GET), 1);
		close(own.fd);
	}
	REQUIRE(write(chan[1], "g", 1) == 1);
	EXPECT_EQ(vt_ring_verify(&r, NULL, 40, 3000), 40);
	return 0;
}

static void give_to(int (*fn)(void *))
{
	struct pollfd p;
	pid_t pid;
	char c;
	int st;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&ring, 256, 512, 0, 0);
	vt_att_simple(&nl, "vb", ring.id);
	tx = vt_tx_open("va");
	REQUIRE(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, chan));
	pid = vt_fork(fn, NULL);
	vt_tx_burst(tx, 100, 0, 40);
	send_fd(chan[0], ring.fd);
	p = (struct pollfd){ .fd = chan[0], .events = POLLIN };
	if (poll(&p, 1, 10000) == 1 && read(chan[0], &c, 1) == 1) {
		/* our own handle goes: theirs carry the ring, and its attachment */
		vt_ring_close(&ring);
		vt_tx_burst(tx, 100, 40, 40);
	}
	st = vt_wait(pid, 15000);
	EXPECT_EQ(st, 0);
	/* with them it went */
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_RING_GET), ring.fd >= 0 ? 1 : 0);
}

static void other_uid(void)
{
	give_to(as_other_uid);
}

static void user_namespace(void)
{
	give_to(as_userns);
}

static void network_namespace(void)
{
	give_to(as_own_netns);
}

/* The file in flight, received by nobody, still holds the ring */
static void in_flight(void)
{
	vt_nl_open(&nl);
	vt_ring_open(&ring, 64, 256, 0, 0);
	REQUIRE(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, chan));
	send_fd(chan[0], ring.fd);
	vt_ring_close(&ring);
	EXPECT_EQ(vt_nl_count(&nl, RGATE_CMD_RING_GET), 1);
	close(chan[0]);
	close(chan[1]);
	EXPECT(VT_UNTIL(vt_nl_count(&nl, RGATE_CMD_RING_GET) == 0, 3000));
}

/* Opening by /proc gives a new file without a ring, not a second way in */
static void by_proc(void)
{
	struct rgate_query q;
	char path[64];
	int fd;

	vt_ring_open(&ring, 64, 256, 0, 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ring.fd);
	fd = open(path, O_RDWR);
	REQUIRE(fd >= 0);
	EXPECT(vt_ring_query(fd, &q) < 0);
	EXPECT(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
	close(fd);
}

static const struct vt_case cases[] = {
	{ .name = "another uid", .fn = other_uid },
	{ .name = "a user namespace", .fn = user_namespace },
	{ .name = "a network namespace of the receiver's own", .fn = network_namespace },
	{ .name = "in flight over a socket", .fn = in_flight },
	{ .name = "opened anew by /proc", .fn = by_proc },
};

VT_MAIN(cases)
