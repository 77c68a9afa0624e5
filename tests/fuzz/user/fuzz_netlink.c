// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What a kernel may answer: the first byte says what is asked, the rest is what
 * comes out of the socket, in datagrams of 16-bit lengths. Once by the parsers
 * alone, in memory that ends with the message; once through the whole of ctl.c, on
 * a socket that the input stands behind. And what the module would say of any ring or
 * attachment has to be read as it was written.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include <ringgate/ringgate.h>

#include "ctl_parse.h"
#include "fuzz.h"

#define FAMILY		0x20
#define PORT		7
#define DATAGRAMS	64	/* then the kernel has nothing more to say */

/* The socket: see -Wl,--wrap in the Makefile */
static struct {
	struct fuzz_in in;
	unsigned int left;
	bool opening;		/* the family is asked for: it is there */
	bool raw;		/* sequence and port as the input has them */
	uint32_t seq;
} kernel;

struct mnl_socket *__wrap_mnl_socket_open2(int bus, int flags)
{
	(void)flags;
	FUZZ_CHECK(bus == NETLINK_GENERIC);
	return (struct mnl_socket *)&kernel;
}

int __wrap_mnl_socket_close(struct mnl_socket *nl)
{
	(void)nl;
	return 0;
}

int __wrap_mnl_socket_bind(struct mnl_socket *nl, unsigned int groups, pid_t pid)
{
	(void)nl;
	(void)groups;
	(void)pid;
	return 0;
}

unsigned int __wrap_mnl_socket_get_portid(const struct mnl_socket *nl)
{
	(void)nl;
	return PORT;
}

int __wrap_mnl_socket_get_fd(const struct mnl_socket *nl)
{
	(void)nl;
	return 3;
}

int __wrap_mnl_socket_setsockopt(const struct mnl_socket *nl, int type, void *buf,
				 socklen_t len)
{
	(void)nl;
	(void)type;
	(void)buf;
	(void)len;
	return 0;
}

/* Whatever is asked, the request itself is well-formed. */
ssize_t __wrap_mnl_socket_sendto(const struct mnl_socket *nl, const void *buf, size_t len)
{
	const struct nlmsghdr *nlh = buf;
	const struct nlattr *attr;
	size_t used = 0;

	(void)nl;
	FUZZ_CHECK(len >= MNL_NLMSG_HDRLEN + GENL_HDRLEN && nlh->nlmsg_len == len);
	FUZZ_CHECK(nlh->nlmsg_flags & NLM_F_REQUEST);
	mnl_attr_for_each(attr, nlh, GENL_HDRLEN)
		used += MNL_ALIGN(attr->nla_len);
	FUZZ_CHECK(used == len - MNL_NLMSG_HDRLEN - GENL_HDRLEN);
	kernel.seq = nlh->nlmsg_seq;
	return (ssize_t)len;
}

static ssize_t answer_family(void *buf)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nlattr *groups, *group;
	struct genlmsghdr *g;
	struct nlmsgerr *e;
	size_t len;

	nlh->nlmsg_type = GENL_ID_CTRL;
	nlh->nlmsg_seq = kernel.seq;
	nlh->nlmsg_pid = PORT;
	g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));
	g->cmd = CTRL_CMD_NEWFAMILY;
	mnl_attr_put_u16(nlh, CTRL_ATTR_FAMILY_ID, FAMILY);
	groups = mnl_attr_nest_start(nlh, CTRL_ATTR_MCAST_GROUPS);
	group = mnl_attr_nest_start(nlh, 1);
	mnl_attr_put_u32(nlh, CTRL_ATTR_MCAST_GRP_ID, 5);
	mnl_attr_put_strz(nlh, CTRL_ATTR_MCAST_GRP_NAME, RGATE_GENL_MCGRP);
	mnl_attr_nest_end(nlh, group);
	mnl_attr_nest_end(nlh, groups);
	len = nlh->nlmsg_len;
	nlh = mnl_nlmsg_put_header((char *)buf + len);
	nlh->nlmsg_type = NLMSG_ERROR;
	nlh->nlmsg_seq = kernel.seq;
	nlh->nlmsg_pid = PORT;
	e = mnl_nlmsg_put_extra_header(nlh, sizeof(*e));
	e->msg.nlmsg_len = MNL_NLMSG_HDRLEN;
	return (ssize_t)(len + nlh->nlmsg_len);
}

/* Sequence and port of the messages, which no mutation would guess */
static void address(char *buf, size_t len)
{
	size_t off = 0;

	while (len - off >= sizeof(struct nlmsghdr)) {
		struct nlmsghdr *nlh = (struct nlmsghdr *)(buf + off);

		nlh->nlmsg_seq = kernel.seq;
		nlh->nlmsg_pid = PORT;
		if (nlh->nlmsg_len < sizeof(*nlh) || nlh->nlmsg_len > len - off)
			break;
		off += MNL_ALIGN(nlh->nlmsg_len);
		if (off > len)
			break;
	}
}

ssize_t __wrap_mnl_socket_recvfrom(const struct mnl_socket *nl, void *buf, size_t size)
{
	size_t len;

	(void)nl;
	if (kernel.opening) {
		kernel.opening = false;
		return answer_family(buf);
	}
	len = fuzz_u16(&kernel.in);
	if (len > size) {
		errno = ENOSPC;
		return -1;
	}
	len = fuzz_bytes(&kernel.in, buf, len < kernel.in.len ? len : kernel.in.len);
	if (!kernel.raw)
		address(buf, len);
	return (ssize_t)len;
}

/* Ends every wait: the input is all that will come. */
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	FUZZ_CHECK(n == 1);
	(void)timeout;
	if (kernel.opening || (kernel.in.len && kernel.left)) {
		kernel.left -= !kernel.opening;
		fds->revents = POLLIN;
		return 1;
	}
	return 0;
}

static void check_ring(const struct rgate_ring_info *info)
{
	FUZZ_CHECK(memchr(info->name, 0, sizeof(info->name)));
}

static void check_att(const struct rgate_att_info *info)
{
	FUZZ_CHECK(memchr(info->ifname, 0, sizeof(info->ifname)));
	FUZZ_CHECK(info->nrings <= RGATE_ATT_RINGS_MAX);
}

static int on_ring(const struct rgate_ring_info *info, void *arg)
{
	unsigned int *n = arg;

	check_ring(info);
	return ++*n > 20 ? 1 : 0;
}

static int on_att(const struct rgate_att_info *info, void *arg)
{
	unsigned int *n = arg;

	check_att(info);
	return ++*n > 20 ? 1 : 0;
}

/* An answer is an error of errno's range, or what the callback returned. */
static void check_result(int ret, int max)
{
	FUZZ_CHECK(ret >= -4095 && ret <= max);
}

static void whole(struct fuzz_in *in, unsigned int what)
{
	static const struct rgate_ident rings[] = { { 1, 11 }, { 2, 22 } };
	static const struct rgate_ident one = { 1, 0x0101010101010101 };
	struct rgate_attach_opts o = { .sz = sizeof(o) };
	struct rgate_ring_info ring;
	struct rgate_att_info att;
	struct rgate_event_info ev;
	struct rgate_ctl *ctl;
	unsigned int n = 0, i;
	struct rgate_ident att_is;
	int err;

	kernel.opening = true;
	kernel.left = DATAGRAMS;
	FUZZ_CHECK(!rgate_ctl_open(&ctl));
	kernel.in = *in;
	switch (what % 8) {
	case 0:
		err = rgate_ctl_ring(ctl, 1, &ring);
		check_result(err, 0);
		if (!err)
			check_ring(&ring);
		break;
	case 1:
		err = rgate_ctl_att(ctl, 1, &att);
		check_result(err, 0);
		if (!err)
			check_att(&att);
		break;
	case 2:
		check_result(rgate_ctl_rings(ctl, on_ring, &n), 1);
		FUZZ_CHECK(n <= 21);
		break;
	case 3:
		check_result(rgate_ctl_atts(ctl, on_att, &n), 1);
		FUZZ_CHECK(n <= 21);
		break;
	case 4:
		check_result(rgate_ctl_attach(ctl, "lo", rings, 2, &o, &att_is), 0);
		break;
	case 5:
		check_result(rgate_ctl_detach(ctl, &one), 0);
		break;
	case 6:
		/* asks for the attachment's device first, to compile for it */
		o.filter = "udp";
		check_result(rgate_ctl_set(ctl, &one, RGATE_SET_FILTER, &o), 0);
		break;
	default:
		for (i = 0; i < DATAGRAMS; i++) {
			err = rgate_ctl_event(ctl, &ev, 1000);
			check_result(err, 1);
			if (!err)
				break;
		}
	}
	rgate_ctl_close(ctl);
}

/*
 * What was read must not depend on what lies in the padding between attributes or
 * on attributes that are unknown here; both are tested by the same message with an
 * unknown attribute behind it.
 */
static void unknown_attribute(const struct nlmsghdr *nlh, size_t len)
{
	struct rgate_ring_info one = { 0 }, two = { 0 };
	size_t longer = MNL_ALIGN(len) + 8;
	struct nlmsghdr *more;
	struct nlattr *attr;
	int err = rgate_parse_ring(nlh, &one);

	more = calloc(1, longer);
	FUZZ_CHECK(more);
	memcpy(more, nlh, len);
	more->nlmsg_len = (uint32_t)longer;
	attr = (struct nlattr *)((char *)more + MNL_ALIGN(len));
	attr->nla_len = 8;
	attr->nla_type = (uint16_t)NLA_TYPE_MASK;
	if (!err) {
		FUZZ_CHECK(!rgate_parse_ring(more, &two));
		FUZZ_CHECK(!memcmp(&one, &two, sizeof(one)));
	}
	free(more);
}

/* An object as the module would describe it comes out as it went in. */

static struct nlmsghdr *begin(void *buf, uint8_t cmd)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));

	g->cmd = cmd;
	return nlh;
}

static void put_u64s(struct nlmsghdr *nlh, uint16_t type, uint16_t first, const uint64_t *v,
		     unsigned int n)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, type);
	unsigned int i;

	for (i = 0; i < n; i++)
		mnl_attr_put_u64(nlh, (uint16_t)(first + i), v[i]);
	mnl_attr_nest_end(nlh, nest);
}

static void any_name(struct fuzz_in *in, char *name, size_t size)
{
	fuzz_bytes(in, name, size);
	name[size - 1] = 0;
	memset(name + strlen(name), 0, size - strlen(name));
}

static void ring_round_trip(struct fuzz_in *in)
{
	static uint64_t buf[512];
	struct nlmsghdr *nlh = begin(buf, RGATE_CMD_RING_GET);
	struct rgate_ring_info want = { 0 }, got;
	uint32_t *const u32[] = {
		[RGATE_A_RING_ID] = &want.ring_id,
		[RGATE_A_RING_SLOTS] = &want.slots,
		[RGATE_A_RING_SLOT_SIZE] = &want.slot_size,
		[RGATE_A_RING_FLAGS] = &want.flags,
		[RGATE_A_RING_POLICY] = &want.policy,
		[RGATE_A_RING_CLOCK] = &want.clock,
		[RGATE_A_RING_GENERATION] = &want.generation,
		[RGATE_A_RING_HANDLES] = &want.handles,
		[RGATE_A_RING_NODE] = (uint32_t *)&want.node,
		[RGATE_A_RING_UID] = &want.uid,
	};
	uint16_t i;

	any_name(in, want.name, sizeof(want.name));
	mnl_attr_put_strz(nlh, RGATE_A_RING_NAME, want.name);
	for (i = 0; i < sizeof(u32) / sizeof(u32[0]); i++) {
		if (!u32[i])
			continue;
		*u32[i] = fuzz_u32(in);
		mnl_attr_put_u32(nlh, i, *u32[i]);
	}
	want.mem_bytes = fuzz_u64(in);
	mnl_attr_put_u64(nlh, RGATE_A_RING_MEM_BYTES, want.mem_bytes);
	want.head = fuzz_u64(in);
	mnl_attr_put_u64(nlh, RGATE_A_RING_HEAD, want.head);
	want.cookie = fuzz_u64(in);
	mnl_attr_put_u64(nlh, RGATE_A_RING_COOKIE, want.cookie);
	fuzz_bytes(in, &want.stats, offsetof(struct rgate_stats, reserved));
	put_u64s(nlh, RGATE_A_RING_STATS, RGATE_A_STATS_DELIVERED,
		 (const uint64_t *)&want.stats, RGATE_A_STATS_MAX - RGATE_A_STATS_DELIVERED + 1);
	FUZZ_CHECK(!rgate_parse_ring(nlh, &got));
	FUZZ_CHECK(!memcmp(&want, &got, sizeof(got)));
}

/* Those of the first version lie in front of the kind, the others behind. */
#define ATT_STATS	(RGATE_A_ATT_STATS_MAX - RGATE_A_ATT_STATS_SEEN + 1)
#define BEFORE_KIND	(RGATE_A_ATT_STATS_SPILLED - RGATE_A_ATT_STATS_SEEN + 1)

static void att_round_trip(struct fuzz_in *in)
{
	static uint64_t buf[1024];
	struct nlmsghdr *nlh = begin(buf, RGATE_CMD_ATT_GET);
	struct rgate_att_info want = { 0 }, got;
	uint32_t *const u32[] = {
		[RGATE_A_ATT_ID] = &want.att_id,
		[RGATE_A_ATT_IFINDEX] = &want.ifindex,
		[RGATE_A_ATT_PRIORITY] = (uint32_t *)&want.priority,
		[RGATE_A_ATT_ACTION] = &want.action,
		[RGATE_A_ATT_FANOUT] = &want.fanout,
		[RGATE_A_ATT_SAMPLE] = &want.sample,
		[RGATE_A_ATT_FILTER_LEN] = &want.filter_len,
		[RGATE_A_ATT_KIND] = &want.kind,
		[RGATE_A_ATT_THREAD] = &want.thread,
	};
	unsigned int rings = fuzz_u8(in) % (RGATE_ATT_RINGS_MAX + 2);
	uint64_t stats[ATT_STATS];
	uint16_t i;

	any_name(in, want.ifname, sizeof(want.ifname));
	mnl_attr_put_strz(nlh, RGATE_A_ATT_IFNAME, want.ifname);
	for (i = 0; i < rings; i++) {
		struct nlattr *nest = mnl_attr_nest_start(nlh, RGATE_A_ATT_RING);
		uint32_t id = fuzz_u32(in);
		uint64_t cookie = fuzz_u64(in);

		mnl_attr_put_u32(nlh, RGATE_A_RING_ID, id);
		mnl_attr_put_u64(nlh, RGATE_A_RING_COOKIE, cookie);
		mnl_attr_nest_end(nlh, nest);
		if (i < RGATE_ATT_RINGS_MAX) {
			want.rings[want.nrings].id = id;
			want.rings[want.nrings++].cookie = cookie;
		}
	}
	want.cookie = fuzz_u64(in);
	mnl_attr_put_u64(nlh, RGATE_A_ATT_COOKIE, want.cookie);
	for (i = 0; i < sizeof(u32) / sizeof(u32[0]); i++) {
		if (!u32[i])
			continue;
		*u32[i] = fuzz_u32(in);
		mnl_attr_put_u32(nlh, i, *u32[i]);
	}
	fuzz_bytes(in, stats, sizeof(stats));
	memcpy(&want.seen, stats, BEFORE_KIND * sizeof(stats[0]));
	memcpy(&want.bad_length, stats + BEFORE_KIND,
	       (ATT_STATS - BEFORE_KIND) * sizeof(stats[0]));
	put_u64s(nlh, RGATE_A_ATT_STATS, RGATE_A_ATT_STATS_SEEN, stats, ATT_STATS);
	if (rings > RGATE_ATT_RINGS_MAX) {
		FUZZ_CHECK(rgate_parse_att(nlh, &got) == -EPROTO);
		return;
	}
	FUZZ_CHECK(!rgate_parse_att(nlh, &got));
	FUZZ_CHECK(!memcmp(&want, &got, sizeof(got)));
}

static void parsers(struct fuzz_in *in)
{
	struct rgate_ring_info ring;
	struct rgate_att_info att;
	struct rgate_event_info ev;
	char msg[32], none[1] = { 'x' };
	struct rgate_ident ident;
	struct nlmsghdr *nlh;
	uint32_t x;
	uint16_t y;
	size_t len;
	int err;

	nlh = fuzz_copy(in, 1U << 16, &len);
	if (len < sizeof(*nlh))
		goto out;
	nlh->nlmsg_len = (uint32_t)len;
	err = rgate_parse_ring(nlh, &ring);
	FUZZ_CHECK(err == 0 || err == -EPROTO);
	if (!err)
		check_ring(&ring);
	unknown_attribute(nlh, len);
	err = rgate_parse_att(nlh, &att);
	FUZZ_CHECK(err == 0 || err == -EPROTO);
	if (!err)
		check_att(&att);
	err = rgate_parse_att_ident(nlh, &ident);
	FUZZ_CHECK(err == 0 || err == -EPROTO);
	err = rgate_parse_event(nlh, &ev);
	FUZZ_CHECK(err == 0 || err == -EPROTO);
	err = rgate_parse_family(nlh, &y, &x);
	FUZZ_CHECK(err == 0 || err == -EPROTO);
	err = rgate_parse_error(nlh, msg, sizeof(msg));
	FUZZ_CHECK(err <= 0 && err >= -4095);
	FUZZ_CHECK(memchr(msg, 0, sizeof(msg)));
	FUZZ_CHECK(rgate_parse_error(nlh, none, 0) == err && none[0] == 'x');
out:
	free(nlh);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	unsigned int what = fuzz_u8(&in);

	memset(&kernel, 0, sizeof(kernel));
	kernel.raw = what & 64;
	if (what == 255)
		ring_round_trip(&in);
	else if (what == 254)
		att_round_trip(&in);
	else if (what & 128)
		parsers(&in);
	else
		whole(&in, what & 63);
	return 0;
}
