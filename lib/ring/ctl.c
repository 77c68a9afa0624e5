// SPDX-License-Identifier: MIT OR GPL-2.0
/* The module's generic netlink family, over libmnl */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <ringgate/rgate_ctl.h>

#include "clock.h"
#include "ctl_parse.h"
#include "log.h"
#include "opts.h"

#define BUF_SIZE	(64U << 10)	/* a request with the longest filter fits */
#define ANSWER_MS	5000		/* the kernel answers at once, or not at all */

struct rgate_ctl {
	struct mnl_socket *nl;
	uint16_t family;
	uint32_t group;
	uint32_t portid;
	uint32_t seq;
	char *tx;
	char *rx;
};

/* What becomes of the answers to one request */
struct answer {
	int (*fn)(const struct nlmsghdr *nlh, void *arg);
	void *arg;
	int ret;	/* of fn; others are not handed to it any more */
	bool one;	/* there has to be something for fn */
	bool any;	/* and there was */
	bool done;
};

static struct nlmsghdr *begin(struct rgate_ctl *ctl, uint16_t type, uint8_t cmd,
			      uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(ctl->tx);
	struct genlmsghdr *g;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nlh->nlmsg_seq = ++ctl->seq;
	g = mnl_nlmsg_put_extra_header(nlh, sizeof(*g));
	g->cmd = cmd;
	g->version = RGATE_GENL_VERSION;
	return nlh;
}

static int wait_readable(struct rgate_ctl *ctl, uint64_t end)
{
	struct pollfd pfd = { .fd = mnl_socket_get_fd(ctl->nl), .events = POLLIN };

	for (;;) {
		uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
		int n = poll(&pfd, 1, now >= end ? 0 :
			     (int)((end - now + 999999) / 1000000));

		if (n > 0)
			return 0;
		if (n == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

static int on_message(const struct nlmsghdr *nlh, struct answer *a)
{
	char text[256];
	int err;

	switch (nlh->nlmsg_type) {
	case NLMSG_NOOP:
		return 0;
	case NLMSG_OVERRUN:
		return -ENOBUFS;
	case NLMSG_DONE:
		a->done = true;
		if (nlh->nlmsg_len < MNL_NLMSG_HDRLEN + sizeof(int))
			return 0;
		memcpy(&err, (const char *)nlh + MNL_NLMSG_HDRLEN, sizeof(err));
		if (err < -4095)
			return -EPROTO;
		return err < 0 ? err : 0;
	case NLMSG_ERROR:
		a->done = true;
		err = rgate_parse_error(nlh, text, sizeof(text));
		if (err && text[0])
			rgate_err("kernel: %s", text);
		return err;
	}
	if (a->fn && !a->ret) {
		a->ret = a->fn(nlh, a->arg);
		a->any = true;
	}
	return 0;
}

/* mnl_nlmsg_ok() takes a length of more than 2 GB for a negative one, which fits. */
static bool whole(const struct nlmsghdr *nlh, int len)
{
	return len >= (int)sizeof(*nlh) && nlh->nlmsg_len <= (unsigned int)len &&
	       mnl_nlmsg_ok(nlh, len);
}

static int on_buffer(struct rgate_ctl *ctl, int len, struct answer *a)
{
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)ctl->rx;
	int err;

	for (; whole(nlh, len) && !a->done; nlh = mnl_nlmsg_next(nlh, &len)) {
		/* the tail of an earlier answer that was given up */
		if (nlh->nlmsg_seq != ctl->seq || nlh->nlmsg_pid != ctl->portid)
			continue;
		err = on_message(nlh, a);
		if (err)
			return err;
	}
	return 0;
}

/* Sends what is in tx, and receives until the answer is complete. */
static int transact(struct rgate_ctl *ctl, struct nlmsghdr *nlh, struct answer *a)
{
	uint64_t end = rgate_clock_now(CLOCK_MONOTONIC) + ANSWER_MS * 1000000ULL;
	int err = 0;

	if (mnl_socket_sendto(ctl->nl, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	while (!err && !a->done) {
		ssize_t n;

		err = wait_readable(ctl, end);
		if (err)
			break;
		n = mnl_socket_recvfrom(ctl->nl, ctl->rx, BUF_SIZE);
		if (n < 0 && errno != EINTR)
			err = errno == ENOSPC ? -EPROTO : -errno;
		else if (n > 0)
			err = on_buffer(ctl, (int)n, a);
	}
	if (!err && a->one && !a->any)
		return -EPROTO;
	return err ? err : a->ret;
}

static int on_family(const struct nlmsghdr *nlh, void *arg)
{
	struct rgate_ctl *ctl = arg;

	return rgate_parse_family(nlh, &ctl->family, &ctl->group);
}

static int resolve(struct rgate_ctl *ctl)
{
	struct answer a = { .fn = on_family, .arg = ctl };
	struct nlmsghdr *nlh = begin(ctl, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_ACK);
	int err;

	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, RGATE_GENL_NAME);
	err = transact(ctl, nlh, &a);
	return !err && !ctl->family ? -ENOENT : err;
}

int rgate_ctl_open(struct rgate_ctl **out)
{
	struct rgate_ctl *ctl = calloc(1, sizeof(*ctl));
	int one = 1, err;

	if (!ctl)
		return -ENOMEM;
	ctl->tx = calloc(1, BUF_SIZE);
	ctl->rx = calloc(1, BUF_SIZE);
	if (!ctl->tx || !ctl->rx) {
		err = -ENOMEM;
		goto fail;
	}
	ctl->nl = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!ctl->nl || mnl_socket_bind(ctl->nl, 0, MNL_SOCKET_AUTOPID) < 0) {
		err = -errno;
		goto fail;
	}
	ctl->portid = mnl_socket_get_portid(ctl->nl);
	/* words with errors; all kernels that have the module have it */
	mnl_socket_setsockopt(ctl->nl, NETLINK_EXT_ACK, &one, sizeof(one));
	mnl_socket_setsockopt(ctl->nl, NETLINK_CAP_ACK, &one, sizeof(one));
	err = resolve(ctl);
	if (err)
		goto fail;
	*out = ctl;
	return 0;
fail:
	rgate_ctl_close(ctl);
	return err;
}

void rgate_ctl_close(struct rgate_ctl *ctl)
{
	if (!ctl)
		return;
	if (ctl->nl)
		mnl_socket_close(ctl->nl);
	free(ctl->tx);
	free(ctl->rx);
	free(ctl);
}

static int command(struct rgate_ctl *ctl, struct nlmsghdr *nlh)
{
	struct answer a = { .fn = NULL };

	return transact(ctl, nlh, &a);
}

/* The filter of the options, compiled where it is text. @own: free it after */
static int get_filter(const char *ifname, const struct rgate_attach_opts *o,
		      struct sock_fprog *prog, bool *own)
{
	*own = false;
	prog->len = 0;
	prog->filter = NULL;
	if (o->filter && o->prog)
		return -EINVAL;
	if (o->prog) {
		*prog = *o->prog;
		return prog->len > RGATE_FILTER_LEN_MAX ||
		       (prog->len && !prog->filter) ? -EINVAL : 0;
	}
	if (!o->filter)
		return 0;
	*own = true;
	return rgate_filter_compile(ifname, o->filter, prog, NULL, 0);
}

static void put_filter(struct nlmsghdr *nlh, const struct sock_fprog *prog)
{
	mnl_attr_put(nlh, RGATE_A_ATT_FILTER, prog->len * sizeof(*prog->filter),
		     prog->filter ? (const void *)prog->filter : "");
}

static void put_att(struct nlmsghdr *nlh, const struct rgate_ident *att)
{
	mnl_attr_put_u32(nlh, RGATE_A_ATT_ID, att->id);
	mnl_attr_put_u64(nlh, RGATE_A_ATT_COOKIE, att->cookie);
}

static void put_ring(struct nlmsghdr *nlh, const struct rgate_ident *ring)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, RGATE_A_ATT_RING);

	mnl_attr_put_u32(nlh, RGATE_A_RING_ID, ring->id);
	mnl_attr_put_u64(nlh, RGATE_A_RING_COOKIE, ring->cookie);
	mnl_attr_nest_end(nlh, nest);
}

static int on_att_ident(const struct nlmsghdr *nlh, void *arg)
{
	return rgate_parse_att_ident(nlh, arg);
}

int rgate_ctl_attach(struct rgate_ctl *ctl, const char *ifname,
		     const struct rgate_ident *rings, unsigned int n,
		     const struct rgate_attach_opts *opts, struct rgate_ident *att)
{
	struct answer a = { .fn = on_att_ident, .one = true };
	struct rgate_ident ident = { 0 };
	struct rgate_attach_opts o;
	struct sock_fprog prog;
	struct nlmsghdr *nlh;
	unsigned int i;
	bool own;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (err)
		return err;
	if (!ifname || !ifname[0] || strlen(ifname) >= IFNAMSIZ || !n ||
	    n > RGATE_ATT_RINGS_MAX)
		return -EINVAL;
	err = get_filter(ifname, &o, &prog, &own);
	if (err)
		return err;
	nlh = begin(ctl, ctl->family, RGATE_CMD_ATT_NEW, NLM_F_ACK);
	mnl_attr_put_strz(nlh, RGATE_A_ATT_IFNAME, ifname);
	mnl_attr_put_u32(nlh, RGATE_A_ATT_PRIORITY, (uint32_t)o.priority);
	if (o.action)
		mnl_attr_put_u32(nlh, RGATE_A_ATT_ACTION, o.action);
	mnl_attr_put_u32(nlh, RGATE_A_ATT_FANOUT, o.fanout);
	mnl_attr_put_u32(nlh, RGATE_A_ATT_SAMPLE, o.sample);
	/* a module from before there were kinds knows no such attribute */
	if (o.kind)
		mnl_attr_put_u32(nlh, RGATE_A_ATT_KIND, o.kind);
	if (o.thread)
		mnl_attr_put_u32(nlh, RGATE_A_ATT_THREAD, o.thread);
	for (i = 0; i < n; i++)
		put_ring(nlh, &rings[i]);
	if (prog.len)
		put_filter(nlh, &prog);
	a.arg = &ident;
	err = transact(ctl, nlh, &a);
	if (own)
		rgate_filter_free(&prog);
	if (!err && att)
		*att = ident;
	return err;
}

int rgate_ctl_detach(struct rgate_ctl *ctl, const struct rgate_ident *att)
{
	struct nlmsghdr *nlh = begin(ctl, ctl->family, RGATE_CMD_ATT_DEL, NLM_F_ACK);

	put_att(nlh, att);
	return command(ctl, nlh);
}

static int member(struct rgate_ctl *ctl, uint8_t cmd, const struct rgate_ident *att,
		  const struct rgate_ident *ring)
{
	struct nlmsghdr *nlh = begin(ctl, ctl->family, cmd, NLM_F_ACK);

	put_att(nlh, att);
	put_ring(nlh, ring);
	return command(ctl, nlh);
}

int rgate_ctl_join(struct rgate_ctl *ctl, const struct rgate_ident *att,
		   const struct rgate_ident *ring)
{
	return member(ctl, RGATE_CMD_ATT_JOIN, att, ring);
}

int rgate_ctl_leave(struct rgate_ctl *ctl, const struct rgate_ident *att,
		    const struct rgate_ident *ring)
{
	return member(ctl, RGATE_CMD_ATT_LEAVE, att, ring);
}

int rgate_ctl_set(struct rgate_ctl *ctl, const struct rgate_ident *att, uint32_t what,
		  const struct rgate_attach_opts *opts)
{
	struct rgate_att_info info;
	struct rgate_attach_opts o;
	struct sock_fprog prog = { 0 };
	struct nlmsghdr *nlh;
	bool own = false;
	int err;

	err = rgate_opts_copy(&o, sizeof(o), opts);
	if (err)
		return err;
	if (!what || what & ~(RGATE_SET_ACTION | RGATE_SET_SAMPLE | RGATE_SET_FILTER) ||
	    (what & RGATE_SET_FILTER && o.filter && o.prog) ||
	    (what & RGATE_SET_ACTION && !o.action))
		return -EINVAL;
	if (what & RGATE_SET_FILTER) {
		/* text is compiled for the device it will see */
		err = o.filter ? rgate_ctl_att(ctl, att->id, &info) : 0;
		if (!err && o.filter && info.cookie != att->cookie)
			err = -ESTALE;
		if (!err)
			err = get_filter(o.filter ? info.ifname : NULL, &o, &prog, &own);
		if (err)
			return err;
	}
	nlh = begin(ctl, ctl->family, RGATE_CMD_ATT_SET, NLM_F_ACK);
	put_att(nlh, att);
	if (what & RGATE_SET_ACTION)
		mnl_attr_put_u32(nlh, RGATE_A_ATT_ACTION, o.action);
	if (what & RGATE_SET_SAMPLE)
		mnl_attr_put_u32(nlh, RGATE_A_ATT_SAMPLE, o.sample);
	if (what & RGATE_SET_FILTER)
		put_filter(nlh, &prog);
	err = command(ctl, nlh);
	if (own)
		rgate_filter_free(&prog);
	return err;
}

/* One object, or a walk over all */

static int on_one_ring(const struct nlmsghdr *nlh, void *arg)
{
	return rgate_parse_ring(nlh, arg);
}

static int on_one_att(const struct nlmsghdr *nlh, void *arg)
{
	return rgate_parse_att(nlh, arg);
}

int rgate_ctl_ring(struct rgate_ctl *ctl, uint32_t ring_id,
		   struct rgate_ring_info *info)
{
	struct answer a = { .fn = on_one_ring, .arg = info, .one = true };
	struct nlmsghdr *nlh = begin(ctl, ctl->family, RGATE_CMD_RING_GET, NLM_F_ACK);

	mnl_attr_put_u32(nlh, RGATE_A_RING_ID, ring_id);
	return transact(ctl, nlh, &a);
}

int rgate_ctl_att(struct rgate_ctl *ctl, uint32_t att_id,
		  struct rgate_att_info *info)
{
	struct answer a = { .fn = on_one_att, .arg = info, .one = true };
	struct nlmsghdr *nlh = begin(ctl, ctl->family, RGATE_CMD_ATT_GET, NLM_F_ACK);

	mnl_attr_put_u32(nlh, RGATE_A_ATT_ID, att_id);
	return transact(ctl, nlh, &a);
}

struct ring_walk {
	rgate_ring_fn fn;
	void *arg;
};

struct att_walk {
	rgate_att_fn fn;
	void *arg;
};

static int on_ring(const struct nlmsghdr *nlh, void *arg)
{
	struct ring_walk *w = arg;
	struct rgate_ring_info info;
	int err = rgate_parse_ring(nlh, &info);

	return err ? err : w->fn(&info, w->arg);
}

static int on_att(const struct nlmsghdr *nlh, void *arg)
{
	struct att_walk *w = arg;
	struct rgate_att_info info;
	int err = rgate_parse_att(nlh, &info);

	return err ? err : w->fn(&info, w->arg);
}

int rgate_ctl_rings(struct rgate_ctl *ctl, rgate_ring_fn fn, void *arg)
{
	struct ring_walk w = { .fn = fn, .arg = arg };
	struct answer a = { .fn = on_ring, .arg = &w };

	return transact(ctl, begin(ctl, ctl->family, RGATE_CMD_RING_GET, NLM_F_DUMP),
			&a);
}

int rgate_ctl_atts(struct rgate_ctl *ctl, rgate_att_fn fn, void *arg)
{
	struct att_walk w = { .fn = fn, .arg = arg };
	struct answer a = { .fn = on_att, .arg = &w };

	return transact(ctl, begin(ctl, ctl->family, RGATE_CMD_ATT_GET, NLM_F_DUMP),
			&a);
}

/* Events */

int rgate_ctl_subscribe(struct rgate_ctl *ctl)
{
	uint32_t group = ctl->group;

	if (!group)
		return -EPROTO;
	return mnl_socket_setsockopt(ctl->nl, NETLINK_ADD_MEMBERSHIP, &group,
				     sizeof(group)) < 0 ? -errno : 0;
}

int rgate_ctl_fd(const struct rgate_ctl *ctl)
{
	return mnl_socket_get_fd(ctl->nl);
}

int rgate_ctl_event(struct rgate_ctl *ctl, struct rgate_event_info *ev,
		    int timeout_ms)
{
	struct pollfd pfd = { .fd = mnl_socket_get_fd(ctl->nl), .events = POLLIN };
	uint64_t end = rgate_clock_now(CLOCK_MONOTONIC);
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)ctl->rx;

	if (timeout_ms > 0)
		end += (uint64_t)timeout_ms * 1000000;
	for (;;) {
		uint64_t now = rgate_clock_now(CLOCK_MONOTONIC);
		ssize_t len;
		int n;

		n = poll(&pfd, 1, timeout_ms < 0 ? -1 : now >= end ? 0 :
			 (int)((end - now + 999999) / 1000000));
		if (n <= 0)
			return n ? -errno : 0;
		len = mnl_socket_recvfrom(ctl->nl, ctl->rx, BUF_SIZE);
		if (len < 0)
			return errno == ENOSPC ? -EPROTO : -errno;
		/* one notification a message */
		if (whole(nlh, (int)len) && nlh->nlmsg_type == ctl->family)
			return rgate_parse_event(nlh, ev) ? -EPROTO : 1;
	}
}

/* Shorthands for one ring */

int rgate_ring_attach(struct rgate_ring *ring, const char *ifname,
		      const struct rgate_attach_opts *opts, struct rgate_ident *att)
{
	struct rgate_ident ident;
	struct rgate_ctl *ctl;
	int err;

	rgate_ring_ident(ring, &ident);
	if (!ident.id)
		return -EOPNOTSUPP;
	err = rgate_ctl_open(&ctl);
	if (err)
		return err;
	/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): errno is not 0 */
	err = rgate_ctl_attach(ctl, ifname, &ident, 1, opts, att);
	rgate_ctl_close(ctl);
	return err;
}

int rgate_ring_detach(struct rgate_ring *ring, const struct rgate_ident *att)
{
	struct rgate_ctl *ctl;
	int err;

	if (!rgate_ring_id(ring))
		return -EOPNOTSUPP;
	err = rgate_ctl_open(&ctl);
	if (err)
		return err;
	/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): errno is not 0 */
	err = rgate_ctl_detach(ctl, att);
	rgate_ctl_close(ctl);
	return err;
}
