/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Control of the kernel module over generic netlink: attach rings to devices,
 * read counters, hear events. Works in the caller's network namespace; changes
 * need CAP_NET_ADMIN there. A struct rgate_ctl belongs to one thread at a time.
 *
 * Rings and attachments are looked up by number and changed by struct rgate_ident: a
 * number may be another's by the time that it is used, and then nothing happens to
 * that one (-ESTALE).
 */
#ifndef RINGGATE_RGATE_CTL_H
#define RINGGATE_RGATE_CTL_H

#include <ringgate/rgate_ring.h>
#include <ringgate/netlink.h>
#include <linux/filter.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rgate_ctl;

/*
 * rgate_ctl_open - -ENOENT: the module is not loaded
 * Every call below sends one request and waits for its answer, -ETIMEDOUT after
 * 5 s: whether it was done is not known then, rgate_ctl_atts() shows what is there.
 * The kernel's own words on an error go to rgate_log_set()'s callback.
 */
RGATE_API int rgate_ctl_open(struct rgate_ctl **ctl);
RGATE_API void rgate_ctl_close(struct rgate_ctl *ctl);

/*
 * rgate_filter_compile - tcpdump expression to classic BPF, by libpcap
 * @ifname: device it is meant for (its link type and VLAN handling); NULL:
 *	Ethernet
 * @prog: out; free with rgate_filter_free()
 * @errbuf: out, what is wrong with @text; may be NULL
 * -EINVAL: does not compile, or to what the kernel does not run (protochain, which
 * loops); -EPERM: `vlan` needs CAP_NET_RAW to be compiled for a live device.
 */
RGATE_API int rgate_filter_compile(const char *ifname, const char *text,
				   struct sock_fprog *prog, char *errbuf,
				   size_t errlen);
RGATE_API void rgate_filter_free(struct sock_fprog *prog);

struct rgate_attach_opts {
	size_t sz;
	int32_t priority;		/* netfilter ingress hook priority */
	uint32_t action;		/* enum rgate_action; 0: mirror */
	uint32_t fanout;		/* enum rgate_fanout */
	uint32_t sample;		/* 1 in N; 0, 1: all */
	const char *filter;		/* tcpdump expression; NULL: all */
	const struct sock_fprog *prog;	/* or classic BPF; not both */
	uint32_t kind;			/* enum rgate_kind; of kind XDP, the program filters */
	uint32_t thread;		/* of kind TRANSMIT: see rgate_ctl_attach() */
};

/*
 * rgate_ctl_attach - hook rings to a device
 * @rings: @n rings, 1 to RGATE_ATT_RINGS_MAX, in fan-out order
 * @att: out, the attachment; may be NULL
 * It lasts until rgate_ctl_detach(), until its last ring closes, or its device
 * goes. -ENODEV, -ENOENT: no such ring; -ESTALE: another ring has that number now;
 * -EPERM; -EINVAL; -EOPNOTSUPP: kind XDP with a filter or a priority, or on a device
 * without Ethernet headers.
 *
 * One of kind TRANSMIT sends what is put into its rings (ringgate/rgate_sender.h), which
 * are made with RGATE_RING_TRANSMIT; it needs CAP_NET_RAW, too. Of the options it has the
 * filter and thread, and no other: -EOPNOTSUPP. Where @opts->thread is 1 to 100, each ring
 * has a thread of the kernel's that looks for frames and sends them, and takes no more than
 * that many percent of one CPU's time; 0: frames are sent when users ask. It needs
 * CAP_NET_ADMIN outside of user namespaces, too. -ERANGE: it is more; -EINVAL: rings of
 * both directions; -EBUSY: a ring sends through another attachment.
 *
 * One of kind XDP gets its frames from XDP programs on the device, which call
 * bpf_ringgate_push() with @att's number and cookie (ringgate/netlink.h); loading such
 * a program is the caller's matter. Documentation/examples/xdp_filter.bpf.c is one.
 */
RGATE_API int rgate_ctl_attach(struct rgate_ctl *ctl, const char *ifname,
			       const struct rgate_ident *rings, unsigned int n,
			       const struct rgate_attach_opts *opts,
			       struct rgate_ident *att);
RGATE_API int rgate_ctl_detach(struct rgate_ctl *ctl, const struct rgate_ident *att);
RGATE_API int rgate_ctl_join(struct rgate_ctl *ctl, const struct rgate_ident *att,
			     const struct rgate_ident *ring);
RGATE_API int rgate_ctl_leave(struct rgate_ctl *ctl, const struct rgate_ident *att,
			      const struct rgate_ident *ring);

/* What rgate_ctl_set() changes */
#define RGATE_SET_ACTION	(1U << 0)	/* 0 is none: -EINVAL */
#define RGATE_SET_SAMPLE	(1U << 1)
#define RGATE_SET_FILTER	(1U << 2)	/* both NULL: match all */
RGATE_API int rgate_ctl_set(struct rgate_ctl *ctl, const struct rgate_ident *att,
			    uint32_t what, const struct rgate_attach_opts *opts);

struct rgate_ring_info {
	uint32_t ring_id;
	uint64_t cookie;	/* with ring_id: struct rgate_ident */
	char name[RGATE_NAME_LEN];
	uint32_t slots;
	uint32_t slot_size;
	uint32_t flags;
	uint32_t policy;
	uint32_t clock;
	uint32_t generation;
	uint32_t handles;
	int32_t node;
	uint32_t uid;
	uint64_t mem_bytes;
	uint64_t head;
	struct rgate_stats stats;
	uint64_t reserved[8];	/* 0 */
};

struct rgate_att_info {
	uint32_t att_id;
	uint64_t cookie;	/* with att_id: struct rgate_ident */
	uint32_t ifindex;
	char ifname[16];
	int32_t priority;
	uint32_t action;
	uint32_t fanout;
	uint32_t sample;
	uint32_t filter_len;	/* instructions */
	uint32_t nrings;
	struct rgate_ident rings[RGATE_ATT_RINGS_MAX];
	uint64_t seen;
	uint64_t filtered;
	uint64_t sampled_out;
	uint64_t delivered;
	uint64_t bytes;
	uint64_t dropped_full;
	uint64_t dropped_fault;
	uint64_t passed;
	uint64_t spilled;
	uint32_t kind;		/* enum rgate_kind */
	uint32_t thread;	/* of kind TRANSMIT: percent of a CPU; 0: none */
	uint64_t bad_length;	/* of kind TRANSMIT, as the next two */
	uint64_t bad_flags;
	uint64_t refused;
	uint64_t reserved[5];	/* 0 */
};

/* Called once an object; a return other than 0 ends the walk and is returned.
 * The walk continues to receive until the dump is complete. The callback must not
 * use the same struct rgate_ctl. */
typedef int (*rgate_ring_fn)(const struct rgate_ring_info *info, void *arg);
typedef int (*rgate_att_fn)(const struct rgate_att_info *info, void *arg);
RGATE_API int rgate_ctl_rings(struct rgate_ctl *ctl, rgate_ring_fn fn, void *arg);
RGATE_API int rgate_ctl_atts(struct rgate_ctl *ctl, rgate_att_fn fn, void *arg);
RGATE_API int rgate_ctl_ring(struct rgate_ctl *ctl, uint32_t ring_id,
			     struct rgate_ring_info *info);
RGATE_API int rgate_ctl_att(struct rgate_ctl *ctl, uint32_t att_id,
			    struct rgate_att_info *info);

struct rgate_event_info {
	uint32_t type;		/* enum rgate_event */
	uint32_t ring_id;
	uint32_t att_id;
	uint32_t ifindex;
	uint64_t full_events;
	uint64_t dropped;
	uint64_t reserved[4];	/* 0 */
};

/*
 * Events: subscribe once, then read when the fd is readable. rgate_ctl_event()
 * waits up to @timeout_ms; 1: one read; 0: time is up; -ENOBUFS: some were lost.
 * Subscribing needs CAP_NET_ADMIN (-EPERM). A ring that never was attached is not
 * told of. Use a struct rgate_ctl of its own for events.
 */
RGATE_API int rgate_ctl_subscribe(struct rgate_ctl *ctl);
RGATE_API int rgate_ctl_fd(const struct rgate_ctl *ctl);
RGATE_API int rgate_ctl_event(struct rgate_ctl *ctl, struct rgate_event_info *ev,
			      int timeout_ms);

/* Shorthands: attach one ring that is open here, with filter text */
RGATE_API int rgate_ring_attach(struct rgate_ring *ring, const char *ifname,
				const struct rgate_attach_opts *opts,
				struct rgate_ident *att);
RGATE_API int rgate_ring_detach(struct rgate_ring *ring,
				const struct rgate_ident *att);

#ifdef __cplusplus
}
#endif
#endif
