/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The generic netlink family, raw. All return -errno on failure. */
#ifndef VT_NL_H
#define VT_NL_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/filter.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <ringgate/netlink.h>
#include <ringgate/ring.h>

#define VT_NL_BUF	65536

struct vt_nl {
	struct mnl_socket *sock;
	uint32_t seq;
	uint16_t family;
	uint32_t group;
	int dump_msgs;		/* datagrams of the last dump */
	bool intr;		/* the last dump was marked inconsistent */
	char why[128];		/* extended ack of the last request, or empty */
};

/* A socket in the present namespace; the case ends if it fails */
void vt_nl_open(struct vt_nl *nl);
int vt_nl_try_open(struct vt_nl *nl);
void vt_nl_close(struct vt_nl *nl);
/* Request header in @buf */
struct nlmsghdr *vt_nl_req(struct vt_nl *nl, void *buf, uint8_t cmd, uint16_t flags);
typedef void (*vt_nl_fn)(const struct nlmsghdr *nlh, void *arg);
/* Sends @nlh, hands every reply to @fn, until ACK, error or end of dump */
int vt_nl_talk(struct vt_nl *nl, struct nlmsghdr *nlh, vt_nl_fn fn, void *arg);
/* Attributes by type, @max the highest; unknown ones left out */
void vt_nl_parse(const void *attrs, size_t len, const struct nlattr **tb, int max);
void vt_nl_parse_msg(const struct nlmsghdr *nlh, const struct nlattr **tb, int max);

struct vt_att {
	uint32_t ifindex;
	const char *ifname;
	uint32_t rings[RGATE_ATT_RINGS_MAX];
	unsigned int n;
	int32_t prio;
	uint32_t action;	/* 0: steal, so that the stack adds nothing to a test */
	uint32_t fanout;
	uint32_t sample;
	uint32_t kind;		/* enum rgate_kind */
	uint32_t thread;	/* percent of a CPU */
	const struct sock_filter *filter;
	unsigned int nfilter;
};

/* The attributes by which a request names an attachment, a ring */
void vt_nl_put_att(struct nlmsghdr *nlh, uint32_t id, uint64_t cookie);
void vt_nl_put_ring(struct nlmsghdr *nlh, uint32_t id, uint64_t cookie);

/*
 * From here on numbers are enough: the cookies are asked for first. What has no
 * such number is asked for all the same, with a cookie of nobody.
 */

/* Attachment's number, or -errno */
int vt_att_new(struct vt_nl *nl, const struct vt_att *a);
/* One ring on one device, steal, match all; the case ends if it fails */
uint32_t vt_att_simple(struct vt_nl *nl, const char *ifname, uint32_t ring);
int vt_att_del(struct vt_nl *nl, uint32_t id);
int vt_att_join(struct vt_nl *nl, uint32_t id, uint32_t ring);
int vt_att_leave(struct vt_nl *nl, uint32_t id, uint32_t ring);

struct vt_att_info {
	uint32_t id, ifindex, action, fanout, sample, filter_len, kind, thread;
	uint64_t cookie;
	int32_t prio;
	char ifname[32];
	uint32_t rings[RGATE_ATT_RINGS_MAX];
	uint64_t ring_cookies[RGATE_ATT_RINGS_MAX];
	unsigned int n;
	uint64_t st[RGATE_A_ATT_STATS_MAX + 1];	/* by enum rgate_a_att_stats */
};

/* The cookie of the attachment that has the number now; 1: there is none */
uint64_t vt_att_cookie(struct vt_nl *nl, uint32_t id);
int vt_att_get(struct vt_nl *nl, uint32_t id, struct vt_att_info *info);
/* One counter of an attachment; the case ends if it fails */
uint64_t vt_att_stat(struct vt_nl *nl, uint32_t id, int which);

struct vt_ring_info {
	uint32_t id, slots, slot_size, flags, policy, clock, generation, handles, uid;
	uint64_t cookie;
	int32_t node;
	char name[RGATE_NAME_LEN];
	uint64_t mem_bytes, head;
	uint64_t st[RGATE_A_STATS_MAX + 1];	/* by enum rgate_a_stats */
};

int vt_ring_info(struct vt_nl *nl, uint32_t id, struct vt_ring_info *info);
/* How many rings, attachments a dump shows in this namespace */
int vt_nl_count(struct vt_nl *nl, uint8_t cmd);

struct vt_event {
	uint32_t type, ring_id, att_id, ifindex;
	uint64_t full_events, dropped;
};

int vt_nl_subscribe(struct vt_nl *nl);
/* 1: one; 0: none within @ms */
int vt_nl_event(struct vt_nl *nl, struct vt_event *ev, int ms);
/* Reads events until one of @type for @att (0: any) comes; 1 or 0 */
int vt_nl_event_of(struct vt_nl *nl, uint32_t type, uint32_t att,
		   struct vt_event *ev, int ms);

#endif
