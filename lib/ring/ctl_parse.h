/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Reading the module's netlink messages. Every function takes a message whose
 * nlmsg_len is within its buffer, checks all lengths inside it, ignores unknown
 * attributes, and returns 0 or -EPROTO.
 */
#ifndef RGATE_LIB_CTL_PARSE_H
#define RGATE_LIB_CTL_PARSE_H

#include <linux/netlink.h>

#include <ringgate/rgate_ctl.h>

int rgate_parse_ring(const struct nlmsghdr *nlh, struct rgate_ring_info *info);
int rgate_parse_att(const struct nlmsghdr *nlh, struct rgate_att_info *info);
int rgate_parse_att_ident(const struct nlmsghdr *nlh, struct rgate_ident *ident);
int rgate_parse_event(const struct nlmsghdr *nlh, struct rgate_event_info *ev);

/* Answer to CTRL_CMD_GETFAMILY; @group 0 if the family has no group "events" */
int rgate_parse_family(const struct nlmsghdr *nlh, uint16_t *family,
		       uint32_t *group);

/*
 * NLMSG_ERROR: returns 0 for an acknowledgment, the kernel's -errno, or -EPROTO.
 * @msg: out, the kernel's words, "" if none
 */
int rgate_parse_error(const struct nlmsghdr *nlh, char *msg, size_t len);

#endif
