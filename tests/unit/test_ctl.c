// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Netlink control against a kernel that is part of this program: what is asked, and
 * what becomes of answers that are late, cut, strange, refused or not there.
 */
#include "unit.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FAMILY	31
#define GROUP	9
#define PORTID	4711

/* The kernel: fails where it is told to, else answers by fake.answer */
static struct {
	int err_open, err_bind, err_send, err_recv, err_sockopt, err_poll;
	bool no_family, no_group;
	void (*answer)(const struct nlmsghdr *req);
	unsigned int requests, sockets;
	unsigned int sockopts;		/* those that were turned on, a bit each */
	int waited;			/* ms, of the last poll that ended empty */
	int group;
	char req[70000];		/* the last request */
} fake;

struct mnl_socket {
	int fd, kernel;
};

static struct mnl_socket *sock;

static int failed(int *err)
{
	errno = *err;
	*err = 0;
	return -1;
}

struct mnl_socket *mnl_socket_open2(int bus, int flags)
{
	int sv[2];

	assert_int_equal(bus, NETLINK_GENERIC);
	assert_int_equal(flags, SOCK_CLOEXEC);
	if (fake.err_open) {
		failed(&fake.err_open);
		return NULL;
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sv), 0);
	sock = calloc(1, sizeof(*sock));
	assert_non_null(sock);
	sock->fd = sv[0];
	sock->kernel = sv[1];
	fake.sockets++;
	return sock;
}

int mnl_socket_bind(struct mnl_socket *nl, unsigned int groups, pid_t pid)
{
	assert_ptr_equal(nl, sock);
	assert_int_equal(groups, 0);
	assert_int_equal(pid, MNL_SOCKET_AUTOPID);
	return fake.err_bind ? failed(&fake.err_bind) : 0;
}

int mnl_socket_close(struct mnl_socket *nl)
{
	close(nl->fd);
	close(nl->kernel);
	free(nl);
	fake.sockets--;
	return 0;
}

int mnl_socket_get_fd(const struct mnl_socket *nl)
{
	return nl->fd;
}

unsigned int mnl_socket_get_portid(const struct mnl_socket *nl)
{
	(void)nl;
	return PORTID;
}

int mnl_socket_setsockopt(const struct mnl_socket *nl, int type, void *buf, socklen_t len)
{
	(void)nl;
	assert_int_equal(len, sizeof(int));
	if (type != NETLINK_ADD_MEMBERSHIP) {
		assert_int_equal(*(int *)buf, 1);
		fake.sockopts |= 1U << type;
		return 0;
	}
	memcpy(&fake.group, buf, sizeof(fake.group));
	return fake.err_sockopt ? failed(&fake.err_sockopt) : 0;
}

/* Nobody waits here: what is not there now will not come. */
int poll(struct pollfd *fds, nfds_t n, int ms)
{
	struct timespec none = { 0 };
	long r;

	if (fake.err_poll)
		return failed(&fake.err_poll);
	r = syscall(SYS_ppoll, fds, n, &none, NULL, 0);
	if (!r)
		fake.waited = ms;
	return (int)r;
}

static void deliver(const struct nlmsghdr *nlh)
{
	assert_int_equal(send(sock->kernel, nlh, nlh->nlmsg_len, 0), nlh->nlmsg_len);
}

/* A message that answers @req, to be filled */
static struct nlmsghdr *reply(const struct nlmsghdr *req, uint16_t type, uint8_t cmd)
{
	static char buf[8192];
	struct nlmsghdr *nlh;
	struct genlmsghdr *g;

	memset(buf, 0, sizeof(buf));
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = type;
	nlh->nlmsg_seq = req->nlmsg_seq;
	nlh->nlmsg_pid = PORTID;
	g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));
	g->cmd = cmd;
	return nlh;
}

static void acknowledge(const struct nlmsghdr *req, int error, const char *text)
{
	char buf[512] = "";
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nlmsgerr *e = mnl_nlmsg_put_extra_header(nlh, sizeof(*e));

	nlh->nlmsg_type = NLMSG_ERROR;
	nlh->nlmsg_flags = NLM_F_CAPPED;
	nlh->nlmsg_seq = req->nlmsg_seq;
	nlh->nlmsg_pid = PORTID;
	e->error = error;
	e->msg = *req;
	if (text) {
		nlh->nlmsg_flags |= NLM_F_ACK_TLVS;
		mnl_attr_put_strz(nlh, NLMSGERR_ATTR_MSG, text);
	}
	deliver(nlh);
}

static void done(const struct nlmsghdr *req, int error, bool with_error)
{
	char buf[64] = "";
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	nlh->nlmsg_type = NLMSG_DONE;
	nlh->nlmsg_seq = req->nlmsg_seq;
	nlh->nlmsg_pid = PORTID;
	if (with_error)
		memcpy(mnl_nlmsg_put_extra_header(nlh, sizeof(error)), &error,
		       sizeof(error));
	deliver(nlh);
}

static void describe_family(const struct nlmsghdr *req)
{
	struct nlmsghdr *nlh = reply(req, GENL_ID_CTRL, CTRL_CMD_NEWFAMILY);
	struct nlattr *groups, *one;

	mnl_attr_put_u16(nlh, CTRL_ATTR_FAMILY_ID, FAMILY);
	if (!fake.no_group) {
		groups = mnl_attr_nest_start(nlh, CTRL_ATTR_MCAST_GROUPS);
		one = mnl_attr_nest_start(nlh, 1);
		mnl_attr_put_strz(nlh, CTRL_ATTR_MCAST_GRP_NAME, RGATE_GENL_MCGRP);
		mnl_attr_put_u32(nlh, CTRL_ATTR_MCAST_GRP_ID, GROUP);
		mnl_attr_nest_end(nlh, one);
		mnl_attr_nest_end(nlh, groups);
	}
	deliver(nlh);
	acknowledge(req, 0, NULL);
}

ssize_t mnl_socket_sendto(const struct mnl_socket *nl, const void *req, size_t len)
{
	const struct nlmsghdr *nlh = req;

	assert_ptr_equal(nl, sock);
	assert_int_equal(len, nlh->nlmsg_len);
	assert_in_range(len, 1, sizeof(fake.req));
	if (fake.err_send)
		return failed(&fake.err_send);
	fake.requests++;
	memcpy(fake.req, req, len);
	if (nlh->nlmsg_type == GENL_ID_CTRL && fake.no_family)
		acknowledge(nlh, -ENOENT, NULL);
	else if (nlh->nlmsg_type == GENL_ID_CTRL)
		describe_family(nlh);
	else if (fake.answer)
		fake.answer(nlh);
	return (ssize_t)len;
}

ssize_t mnl_socket_recvfrom(const struct mnl_socket *nl, void *buf, size_t len)
{
	if (fake.err_recv)
		return failed(&fake.err_recv);
	return recv(nl->fd, buf, len, 0);
}

static struct rgate_ctl *open_ctl(void (*answer)(const struct nlmsghdr *req))
{
	struct rgate_ctl *ctl;

	memset(&fake, 0, sizeof(fake));
	fake.answer = answer;
	assert_int_equal(rgate_ctl_open(&ctl), 0);
	fake.requests = 0;
	return ctl;
}

static void close_ctl(struct rgate_ctl *ctl)
{
	rgate_ctl_close(ctl);
	assert_int_equal(fake.sockets, 0);
}

/* The attribute @type of the last request, or NULL */
static const struct nlattr *asked(uint16_t type)
{
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)fake.req;
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == type)
			return attr;
	return NULL;
}

/* The last request is about the attachment @att, by number and cookie */
static void asked_att(const struct rgate_ident *att)
{
	assert_int_equal(mnl_attr_get_u32(asked(RGATE_A_ATT_ID)), att->id);
	assert_int_equal(mnl_attr_get_u64(asked(RGATE_A_ATT_COOKIE)), att->cookie);
}

/* The @i-th ring that the last request names is @ring; NULL: there is none */
static void asked_ring(unsigned int i, const struct rgate_ident *ring)
{
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)fake.req;
	const struct nlattr *attr, *in, *tb[RGATE_A_RING_MAX + 1] = { NULL };
	unsigned int n = 0;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == RGATE_A_ATT_RING && n++ == i)
			mnl_attr_for_each_nested(in, attr)
				tb[mnl_attr_get_type(in)] = in;
	assert_int_equal(n > i, ring != NULL);
	if (!ring)
		return;
	assert_int_equal(mnl_attr_get_u32(tb[RGATE_A_RING_ID]), ring->id);
	assert_int_equal(mnl_attr_get_u64(tb[RGATE_A_RING_COOKIE]), ring->cookie);
}

static unsigned int asked_cmd(void)
{
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)fake.req;

	assert_int_equal(nlh->nlmsg_type, FAMILY);
	return ((const struct genlmsghdr *)mnl_nlmsg_get_payload(nlh))->cmd;
}

static void opening(void **state)
{
	struct rgate_ctl *ctl;

	(void)state;
	memset(&fake, 0, sizeof(fake));
	fake.err_open = EPROTONOSUPPORT;
	assert_int_equal(rgate_ctl_open(&ctl), -EPROTONOSUPPORT);
	fake.err_bind = EADDRINUSE;
	assert_int_equal(rgate_ctl_open(&ctl), -EADDRINUSE);
	fake.err_send = EPERM;
	assert_int_equal(rgate_ctl_open(&ctl), -EPERM);
	fake.no_family = true;		/* the module is not loaded */
	assert_int_equal(rgate_ctl_open(&ctl), -ENOENT);
	assert_int_equal(fake.sockets, 0);
	fake.no_family = false;
	assert_int_equal(rgate_ctl_open(&ctl), 0);
	assert_int_equal(rgate_ctl_fd(ctl), sock->fd);
	assert_int_equal(fake.sockopts, 1U << NETLINK_EXT_ACK | 1U << NETLINK_CAP_ACK);
	close_ctl(ctl);
	rgate_ctl_close(NULL);
}

static void yes(const struct nlmsghdr *req)
{
	acknowledge(req, 0, NULL);
}

static void attached(const struct nlmsghdr *req)
{
	struct nlmsghdr *nlh = reply(req, FAMILY, RGATE_CMD_ATT_NEW);

	mnl_attr_put_u32(nlh, RGATE_A_ATT_ID, 77);
	mnl_attr_put_u64(nlh, RGATE_A_ATT_COOKIE, 0x7777777777777777);
	deliver(nlh);
	acknowledge(req, 0, NULL);
}

static void commands(void **state)
{
	struct rgate_ctl *ctl = open_ctl(attached);
	struct rgate_attach_opts o = RGATE_OPTS(rgate_attach_opts, .priority = -5,
						.sample = 10, .filter = "udp");
	const struct rgate_ident rings[] = { { 3, 33 }, { 4, 1ULL << 63 } };
	const struct rgate_ident other = { 6, 66 };
	struct rgate_ident att = { 0 };

	(void)state;
	assert_int_equal(rgate_ctl_attach(ctl, "lo", rings, 2, &o, &att), 0);
	assert_int_equal(att.id, 77);
	assert_int_equal(att.cookie, 0x7777777777777777);
	assert_int_equal(asked_cmd(), RGATE_CMD_ATT_NEW);
	assert_string_equal(mnl_attr_get_str(asked(RGATE_A_ATT_IFNAME)), "lo");
	assert_int_equal(mnl_attr_get_u32(asked(RGATE_A_ATT_PRIORITY)), (uint32_t)-5);
	assert_int_equal(mnl_attr_get_u32(asked(RGATE_A_ATT_SAMPLE)), 10);
	asked_ring(0, &rings[0]);
	asked_ring(1, &rings[1]);
	asked_ring(2, NULL);
	assert_int_equal(mnl_attr_get_payload_len(asked(RGATE_A_ATT_FILTER)) %
			 sizeof(struct sock_filter), 0);
	/* who does not say steals nothing: the module mirrors by itself */
	assert_null(asked(RGATE_A_ATT_ACTION));
	assert_int_equal(rgate_ctl_attach(ctl, "lo", rings, 2, NULL, NULL), 0);
	assert_null(asked(RGATE_A_ATT_FILTER));
	assert_null(asked(RGATE_A_ATT_ACTION));
	o.action = RGATE_ACTION_STEAL;
	assert_int_equal(rgate_ctl_attach(ctl, "lo", rings, 2, &o, NULL), 0);
	assert_int_equal(mnl_attr_get_u32(asked(RGATE_A_ATT_ACTION)), RGATE_ACTION_STEAL);
	fake.answer = yes;
	assert_int_equal(rgate_ctl_detach(ctl, &att), 0);
	assert_int_equal(asked_cmd(), RGATE_CMD_ATT_DEL);
	asked_att(&att);
	assert_int_equal(rgate_ctl_join(ctl, &att, &rings[1]), 0);
	assert_int_equal(asked_cmd(), RGATE_CMD_ATT_JOIN);
	asked_att(&att);
	asked_ring(0, &rings[1]);
	assert_int_equal(rgate_ctl_leave(ctl, &att, &other), 0);
	assert_int_equal(asked_cmd(), RGATE_CMD_ATT_LEAVE);
	asked_att(&att);
	asked_ring(0, &other);
	asked_ring(1, NULL);
	close_ctl(ctl);
}

/* Refused before the kernel is asked */
static void arguments(void **state)
{
	struct rgate_ctl *ctl = open_ctl(attached);
	struct sock_filter insn = { 0 };
	struct sock_fprog prog = { .len = 1, .filter = &insn };
	struct rgate_attach_opts both = RGATE_OPTS(rgate_attach_opts, .filter = "udp",
						   .prog = &prog);
	struct rgate_attach_opts bad = RGATE_OPTS(rgate_attach_opts, .filter = "udp and");
	struct rgate_attach_opts o = RGATE_OPTS(rgate_attach_opts, .prog = &prog);
	struct rgate_ident rings[RGATE_ATT_RINGS_MAX + 1] = { { 1, 1 } };
	const struct rgate_ident att = { 1, 1 };

	(void)state;
	assert_int_equal(rgate_ctl_attach(ctl, NULL, rings, 1, NULL, NULL), -EINVAL);
	assert_int_equal(rgate_ctl_attach(ctl, "", rings, 1, NULL, NULL), -EINVAL);
	assert_int_equal(rgate_ctl_attach(ctl, "a-name-too-long-", rings, 1, NULL, NULL),
			 -EINVAL);
	assert_int_equal(rgate_ctl_attach(ctl, "lo", rings, 0, NULL, NULL), -EINVAL);
	assert_int_equal(rgate_ctl_attach(ctl, "lo", rings, RGATE_ATT_RINGS_MAX + 1,
					  NULL, NULL), -EINVAL);
	assert_int_equal(fake.requests, 0);
	assert_int_equal(rgate_ctl_attach(ctl, "a-name-too-long", rings, RGATE_ATT_RINGS_MAX,
					  NULL, NULL), 0);
	fake.requests = 0;
	assert_int_equal(rgate_ctl_attach(ctl, "lo", rings, 1, &both, NULL), -EINVAL);
	assert_int_equal(rgate_ctl_attach(ctl, "lo", rings, 1, &bad, NULL), -EINVAL);
	prog.filter = NULL;
	assert_int_equal(rgate_ctl_attach(ctl, "lo", rings, 1, &o, NULL), -EINVAL);
	prog.filter = &insn;
	prog.len = RGATE_FILTER_LEN_MAX + 1;
	assert_int_equal(rgate_ctl_attach(ctl, "lo", rings, 1, &o, NULL), -EINVAL);
	o.sz = 3;
	assert_int_equal(rgate_ctl_attach(ctl, "lo", rings, 1, &o, NULL), -EINVAL);
	assert_int_equal(rgate_ctl_set(ctl, &att, RGATE_SET_ACTION, &o), -EINVAL);
	assert_int_equal(rgate_ctl_set(ctl, &att, 0, NULL), -EINVAL);
	assert_int_equal(rgate_ctl_set(ctl, &att, RGATE_SET_ACTION, NULL), -EINVAL);
	assert_int_equal(rgate_ctl_set(ctl, &att, 1U << 9, NULL), -EINVAL);
	assert_int_equal(rgate_ctl_set(ctl, &att, RGATE_SET_FILTER, &both), -EINVAL);
	assert_int_equal(fake.requests, 0);
	close_ctl(ctl);
}

/* One attachment, of device "lo" */
static void tell_att(const struct nlmsghdr *req)
{
	struct nlmsghdr *nlh = reply(req, FAMILY, RGATE_CMD_ATT_GET);

	mnl_attr_put_u32(nlh, RGATE_A_ATT_ID, 12);
	mnl_attr_put_u64(nlh, RGATE_A_ATT_COOKIE, 1212);
	mnl_attr_put_strz(nlh, RGATE_A_ATT_IFNAME, "lo");
	deliver(nlh);
	acknowledge(req, 0, NULL);
}

static void tell_att_then_yes(const struct nlmsghdr *req)
{
	fake.answer = yes;
	tell_att(req);
}

static void no_att(const struct nlmsghdr *req)
{
	acknowledge(req, -ENOENT, NULL);
}

static void setting(void **state)
{
	struct rgate_ctl *ctl = open_ctl(yes);
	struct rgate_attach_opts o = RGATE_OPTS(rgate_attach_opts, .sample = 3,
						.action = RGATE_ACTION_STEAL);
	struct rgate_ident att = { 12, 1212 };

	(void)state;
	assert_int_equal(rgate_ctl_set(ctl, &att, RGATE_SET_ACTION | RGATE_SET_SAMPLE, &o),
			 0);
	assert_int_equal(asked_cmd(), RGATE_CMD_ATT_SET);
	asked_att(&att);
	assert_int_equal(mnl_attr_get_u32(asked(RGATE_A_ATT_SAMPLE)), 3);
	assert_int_equal(mnl_attr_get_u32(asked(RGATE_A_ATT_ACTION)), RGATE_ACTION_STEAL);
	assert_null(asked(RGATE_A_ATT_FILTER));
	/* no filter: an empty one is sent, which takes it away */
	assert_int_equal(rgate_ctl_set(ctl, &att, RGATE_SET_FILTER, &o), 0);
	assert_int_equal(mnl_attr_get_payload_len(asked(RGATE_A_ATT_FILTER)), 0);
	/* text is compiled for the attachment's device, so that is asked for first */
	o.filter = "tcp";
	fake.answer = tell_att_then_yes;
	fake.requests = 0;
	assert_int_equal(rgate_ctl_set(ctl, &att, RGATE_SET_FILTER, &o), 0);
	assert_int_equal(fake.requests, 2);
	assert_true(mnl_attr_get_payload_len(asked(RGATE_A_ATT_FILTER)) > 0);
	/* another one has its number by now: nothing is set, and for no other device */
	att.cookie++;
	fake.answer = tell_att_then_yes;
	fake.requests = 0;
	assert_int_equal(rgate_ctl_set(ctl, &att, RGATE_SET_FILTER, &o), -ESTALE);
	assert_int_equal(fake.requests, 1);
	fake.answer = no_att;
	assert_int_equal(rgate_ctl_set(ctl, &att, RGATE_SET_FILTER, &o), -ENOENT);
	/* What the kernel says of it is what comes back. */
	assert_int_equal(rgate_ctl_set(ctl, &att, RGATE_SET_SAMPLE, &o), -ENOENT);
	close_ctl(ctl);
}

static char words[128];

static void listen_log(void *arg, enum rgate_log_level level, const char *text)
{
	(void)level;
	(void)arg;
	snprintf(words, sizeof(words), "%s", text);
}

static void refused(const struct nlmsghdr *req)
{
	acknowledge(req, -EPERM, "you may not");
}

static void praised(const struct nlmsghdr *req)
{
	acknowledge(req, 0, "well done");
}

static void refused_shortly(const struct nlmsghdr *req)
{
	acknowledge(req, -EPERM, "x");
}

static void nonsense_error(const struct nlmsghdr *req)
{
	acknowledge(req, 5, NULL);
}

static void overrun(const struct nlmsghdr *req)
{
	struct nlmsghdr *nlh = reply(req, NLMSG_OVERRUN, 0);

	deliver(nlh);
}

/* Before the answer: nothing, a tail of another one, somebody else's, and cut */
static void beside(const struct nlmsghdr *req)
{
	struct nlmsghdr *nlh = reply(req, NLMSG_NOOP, 0);

	deliver(nlh);
	nlh = reply(req, FAMILY, RGATE_CMD_ATT_GET);
	nlh->nlmsg_seq--;
	deliver(nlh);
	nlh = reply(req, FAMILY, RGATE_CMD_ATT_GET);
	nlh->nlmsg_pid++;
	deliver(nlh);
	nlh = reply(req, FAMILY, RGATE_CMD_ATT_GET);
	nlh->nlmsg_len += 4;
	assert_int_equal(send(sock->kernel, nlh, nlh->nlmsg_len - 4, 0),
			 nlh->nlmsg_len - 4);
	tell_att(req);
}

static void strange(const struct nlmsghdr *req)
{
	deliver(reply(req, FAMILY, RGATE_CMD_RING_GET));
	acknowledge(req, 0, NULL);
}

/* A length that is negative to who takes it for an int, with an answer behind it */
static void huge(const struct nlmsghdr *req)
{
	struct nlmsghdr *nlh = reply(req, FAMILY, RGATE_CMD_ATT_GET);
	uint32_t len = nlh->nlmsg_len;

	nlh->nlmsg_len = 1U << 31 | len;
	assert_int_equal(send(sock->kernel, nlh, len, 0), len);
	tell_att(req);
}

static void answers(void **state)
{
	struct rgate_ctl *ctl = open_ctl(refused);
	const struct rgate_ident one = { 1, 1 };
	struct rgate_ring_info ring;
	struct rgate_att_info att;

	(void)state;
	rgate_log_set(listen_log, NULL);
	assert_int_equal(rgate_ctl_detach(ctl, &one), -EPERM);
	assert_string_equal(words, "kernel: you may not");
	fake.answer = refused_shortly;
	assert_int_equal(rgate_ctl_detach(ctl, &one), -EPERM);
	assert_string_equal(words, "kernel: x");
	/* no words, and words without an error, are not logged */
	*words = '\0';
	fake.answer = no_att;
	assert_int_equal(rgate_ctl_detach(ctl, &one), -ENOENT);
	fake.answer = praised;
	assert_int_equal(rgate_ctl_detach(ctl, &one), 0);
	assert_string_equal(words, "");
	rgate_log_set(NULL, NULL);
	fake.answer = nonsense_error;
	assert_int_equal(rgate_ctl_detach(ctl, &one), -EPROTO);
	fake.answer = overrun;
	assert_int_equal(rgate_ctl_detach(ctl, &one), -ENOBUFS);
	fake.answer = beside;
	assert_int_equal(rgate_ctl_att(ctl, 12, &att), 0);
	assert_int_equal(att.att_id, 12);
	assert_int_equal(mnl_attr_get_u32(asked(RGATE_A_ATT_ID)), 12);
	fake.answer = huge;
	assert_int_equal(rgate_ctl_att(ctl, 12, &att), 0);
	assert_int_equal(att.att_id, 12);
	fake.answer = strange;
	assert_int_equal(rgate_ctl_att(ctl, 12, &att), -EPROTO);
	/* only an acknowledgment: nothing is known of what was asked for */
	fake.answer = yes;
	assert_int_equal(rgate_ctl_att(ctl, 12, &att), -EPROTO);
	assert_int_equal(rgate_ctl_ring(ctl, 13, &ring), -EPROTO);
	assert_int_equal(mnl_attr_get_u32(asked(RGATE_A_RING_ID)), 13);
	assert_int_equal(rgate_ctl_attach(ctl, "lo", &one, 1, NULL, NULL),
			 -EPROTO);
	close_ctl(ctl);
}

static void failures(void **state)
{
	const struct rgate_ident one = { 1, 1 };
	struct rgate_ctl *ctl = open_ctl(NULL);

	(void)state;
	assert_int_equal(rgate_ctl_detach(ctl, &one), -ETIMEDOUT);
	assert_in_range(fake.waited, 1000, 5000);
	fake.err_poll = ENOMEM;
	assert_int_equal(rgate_ctl_detach(ctl, &one), -ENOMEM);
	fake.answer = yes;
	fake.err_poll = EINTR;		/* a signal is not an answer */
	assert_int_equal(rgate_ctl_detach(ctl, &one), 0);
	fake.err_recv = EINTR;
	assert_int_equal(rgate_ctl_detach(ctl, &one), 0);
	fake.err_recv = ENOBUFS;
	assert_int_equal(rgate_ctl_detach(ctl, &one), -ENOBUFS);
	fake.err_recv = ENOSPC;		/* longer than any answer */
	assert_int_equal(rgate_ctl_detach(ctl, &one), -EPROTO);
	fake.err_send = ECONNREFUSED;
	assert_int_equal(rgate_ctl_detach(ctl, &one), -ECONNREFUSED);
	/* what is left of the answers given up is not taken for this one's */
	assert_int_equal(rgate_ctl_detach(ctl, &one), 0);
	close_ctl(ctl);
}

static void dump_rings(const struct nlmsghdr *req)
{
	uint32_t i;

	assert_true(req->nlmsg_flags & NLM_F_DUMP);
	for (i = 1; i <= 3; i++) {
		struct nlmsghdr *nlh = reply(req, FAMILY, RGATE_CMD_RING_GET);

		nlh->nlmsg_flags = NLM_F_MULTI;
		mnl_attr_put_u32(nlh, RGATE_A_RING_ID, i);
		deliver(nlh);
	}
	done(req, 0, true);
}

static void dump_atts(const struct nlmsghdr *req)
{
	struct nlmsghdr *nlh = reply(req, FAMILY, RGATE_CMD_ATT_GET);

	mnl_attr_put_u32(nlh, RGATE_A_ATT_ID, 1);
	deliver(nlh);
	done(req, 0, false);
}

/* A late error, which is not this one's, and an end without one */
static void dump_none(const struct nlmsghdr *req)
{
	struct nlmsghdr late = *req;

	late.nlmsg_seq--;
	acknowledge(&late, -EPERM, NULL);
	done(req, 0, false);
}

static void dump_last(const struct nlmsghdr *req)
{
	done(req, -4095, true);
}

static void dump_beyond(const struct nlmsghdr *req)
{
	done(req, -4096, true);
}

static void dump_cut(const struct nlmsghdr *req)
{
	done(req, -EMSGSIZE, true);
}

/* An error that is no error number */
static void dump_wild(const struct nlmsghdr *req)
{
	done(req, INT32_MIN, true);
}

static void dump_strange(const struct nlmsghdr *req)
{
	deliver(reply(req, FAMILY, RGATE_CMD_EVENT));
	done(req, 0, true);
}

static int on_ring(const struct rgate_ring_info *info, void *arg)
{
	unsigned int *n = arg;

	return ++*n == info->ring_id ? 0 : -EILSEQ;
}

static int on_att(const struct rgate_att_info *info, void *arg)
{
	unsigned int *n = arg;

	*n += info->att_id;
	return 0;
}

static int stop_at_two(const struct rgate_ring_info *info, void *arg)
{
	(*(unsigned int *)arg)++;
	return info->ring_id == 2 ? 99 : 0;
}

static void walks(void **state)
{
	struct rgate_ctl *ctl = open_ctl(dump_rings);
	unsigned int n = 0;

	(void)state;
	assert_int_equal(rgate_ctl_rings(ctl, on_ring, &n), 0);
	assert_int_equal(n, 3);
	n = 0;
	assert_int_equal(rgate_ctl_rings(ctl, stop_at_two, &n), 99);
	assert_int_equal(n, 2);
	fake.answer = dump_atts;
	n = 0;
	assert_int_equal(rgate_ctl_atts(ctl, on_att, &n), 0);
	assert_int_equal(n, 1);
	fake.answer = dump_cut;
	assert_int_equal(rgate_ctl_atts(ctl, on_att, &n), -EMSGSIZE);
	fake.answer = dump_none;
	assert_int_equal(rgate_ctl_rings(ctl, on_ring, &n), 0);
	fake.answer = dump_last;
	assert_int_equal(rgate_ctl_rings(ctl, on_ring, &n), -4095);
	fake.answer = dump_beyond;
	assert_int_equal(rgate_ctl_rings(ctl, on_ring, &n), -EPROTO);
	fake.answer = dump_wild;
	assert_int_equal(rgate_ctl_atts(ctl, on_att, &n), -EPROTO);
	fake.answer = dump_strange;
	assert_int_equal(rgate_ctl_atts(ctl, on_att, &n), -EPROTO);
	assert_int_equal(rgate_ctl_rings(ctl, on_ring, &n), -EPROTO);
	close_ctl(ctl);
}

static void notify(uint16_t type, uint8_t cmd, uint32_t event)
{
	struct nlmsghdr none = { 0 };
	struct nlmsghdr *nlh = reply(&none, type, cmd);

	mnl_attr_put_u32(nlh, RGATE_A_EVENT_TYPE, event);
	mnl_attr_put_u32(nlh, RGATE_A_EVENT_RING_ID, 6);
	deliver(nlh);
}

static void notify_huge(void)
{
	struct nlmsghdr none = { 0 };
	struct nlmsghdr *nlh = reply(&none, FAMILY, RGATE_CMD_EVENT);
	uint32_t len = nlh->nlmsg_len;

	nlh->nlmsg_len = 1U << 31 | len;
	assert_int_equal(send(sock->kernel, nlh, len, 0), len);
}

static void events(void **state)
{
	struct rgate_ctl *ctl = open_ctl(yes);
	struct rgate_event_info ev;

	(void)state;
	fake.err_sockopt = EPERM;
	assert_int_equal(rgate_ctl_subscribe(ctl), -EPERM);
	assert_int_equal(rgate_ctl_subscribe(ctl), 0);
	assert_int_equal(fake.group, GROUP);
	assert_int_equal(rgate_ctl_event(ctl, &ev, 0), 0);
	assert_int_equal(rgate_ctl_event(ctl, &ev, 50), 0);
	assert_in_range(fake.waited, 1, 50);
	/* another family's message is passed over */
	notify(FAMILY + 1, RGATE_CMD_EVENT, RGATE_EVENT_RING_GONE);
	notify(FAMILY, RGATE_CMD_EVENT, RGATE_EVENT_RING_FULL);
	assert_int_equal(rgate_ctl_event(ctl, &ev, -1), 1);
	assert_int_equal(ev.type, RGATE_EVENT_RING_FULL);
	assert_int_equal(ev.ring_id, 6);
	notify(FAMILY, RGATE_CMD_RING_GET, RGATE_EVENT_RING_FULL);
	assert_int_equal(rgate_ctl_event(ctl, &ev, -1), -EPROTO);
	notify_huge();
	assert_int_equal(rgate_ctl_event(ctl, &ev, 0), 0);
	notify(FAMILY, RGATE_CMD_EVENT, RGATE_EVENT_RING_FULL);
	fake.err_recv = ENOBUFS;	/* some were lost; the next is there */
	assert_int_equal(rgate_ctl_event(ctl, &ev, -1), -ENOBUFS);
	assert_int_equal(rgate_ctl_event(ctl, &ev, -1), 1);
	fake.err_poll = EINTR;
	assert_int_equal(rgate_ctl_event(ctl, &ev, -1), -EINTR);
	close_ctl(ctl);

	memset(&fake, 0, sizeof(fake));
	fake.no_group = true;
	assert_int_equal(rgate_ctl_open(&ctl), 0);
	assert_int_equal(rgate_ctl_subscribe(ctl), -EPROTO);
	close_ctl(ctl);
}

/* A memfd ring has no place in the module. */
static void memfd_rings(void **state)
{
	struct rgate_ring *ring = unit_ring(64, 256, 0, RGATE_POLICY_DROP);
	struct rgate_ident ident = { 1, 1 };

	(void)state;
	memset(&fake, 0, sizeof(fake));
	assert_int_equal(rgate_ring_attach(ring, "lo", NULL, &ident), -EOPNOTSUPP);
	assert_int_equal(rgate_ring_detach(ring, &ident), -EOPNOTSUPP);
	rgate_ring_ident(ring, &ident);
	assert_int_equal(ident.id, 0);
	assert_int_equal(ident.cookie, 0);
	assert_int_equal(fake.requests, 0);
	rgate_ring_close(ring);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(opening),
	cmocka_unit_test(commands),
	cmocka_unit_test(arguments),
	cmocka_unit_test(setting),
	cmocka_unit_test(answers),
	cmocka_unit_test(failures),
	cmocka_unit_test(walks),
	cmocka_unit_test(events),
	cmocka_unit_test(memfd_rings),
};

UNIT_MAIN_ALONE(tests)
