/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Steering: which node gets which frames. A table of rules, the first that matches
 * wins; a frame that none matches is dropped and counted. A rule is a line of text:
 *
 *	NAME TARGET [full=wait|drop] [down=next|drop] [FILTER]
 *
 *	dns    node:1              udp port 53
 *	flows  hash:1,2            ip or ip6
 *	gpu    node:rack2/gpu0 full=drop  udp dst port 4791
 *	ctl    all:*               icmp or icmp6
 *	rest   drop
 *
 * TARGET:  node:NODE[/RING]  that node, or that ring of it
 *          hash:NODE,...     one of these nodes, the same for all frames of a flow and of
 *                            its other direction; `*' is all compute nodes
 *          all:NODE,...      a copy to each
 *          drop
 * full:    where the node has no free slot: wait, so that frames stay in the gateway's
 *          ring and its policy says what comes next (the default), or drop
 * down:    while none of the nodes is there (for node: and all:), or for what is queued
 *          for one that went (hash:): the next rule that matches, or, for what was
 *          queued, the flow's new node (the default); or drop
 * FILTER:  tcpdump's language (pcap-filter(7)), for an Ethernet frame; none: all
 *
 * A node with several rings has its flows spread over them.
 *
 * The rule named "default" is always the last one, whenever it is added and wherever it
 * stands in a file: what is added later comes before it.
 */
#ifndef RINGGATE_RGATE_STEER_H
#define RINGGATE_RGATE_STEER_H

#include <ringgate/rgate_cluster.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RGATE_RULES_MAX		256
#define RGATE_RULE_NAME_MAX	32	/* with the NUL */
#define RGATE_RULE_DEFAULT	"default"

struct rgate_steer;

/* rgate_steer_create - a table without rules; @cluster must stay as long as the table.
 * A table belongs to one thread at a time. */
RGATE_API int rgate_steer_create(struct rgate_steer **steer,
				 const struct rgate_cluster *cluster);
RGATE_API void rgate_steer_destroy(struct rgate_steer *steer);	/* NULL is allowed */

/*
 * rgate_steer_add - a rule from its text
 * @before: name of the rule that it goes before; NULL: to the end, but for the default
 * @errbuf: out, what is wrong with @line; may be NULL
 * -EINVAL, also where the default is to go before another; -EEXIST: the name is taken;
 * -ENOENT: no rule @before; -ENOSPC; -ENOMEM
 */
RGATE_API int rgate_steer_add(struct rgate_steer *steer, const char *line,
			      const char *before, char *errbuf, size_t errlen);
/* -ENOENT */
RGATE_API int rgate_steer_remove(struct rgate_steer *steer, const char *name);

/*
 * rgate_steer_parse - rules from the text of a file: lines, # begins a comment
 * @name: of the file, for the log. All or none. -EINVAL: the log says where. The log warns
 * of a rule that stands behind the default, which it comes before.
 */
RGATE_API int rgate_steer_parse(struct rgate_steer *steer, const char *name,
				const char *text, size_t len);

RGATE_API unsigned int rgate_steer_count(const struct rgate_steer *steer);
/* The @i-th rule's text, owned by the table; NULL: there are fewer */
RGATE_API const char *rgate_steer_line(const struct rgate_steer *steer, unsigned int i);

#ifdef __cplusplus
}
#endif
#endif
