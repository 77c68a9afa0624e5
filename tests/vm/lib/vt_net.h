/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Network namespaces, devices and senders. Failures end the case. */
#ifndef VT_NET_H
#define VT_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs a shell command line; its exit status */
int vt_sh(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, but it has to succeed */
void vt_must(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Puts this process into a new namespace: lo up, no IPv6 noise */
void vt_netns_fresh(void);

/* Devices made from now on send no router solicitations and the like between the
 * test's own frames; a fresh namespace begins so */
void vt_ipv6_off(void);

/* A new namespace; this process stays where it is. Returns its descriptor */
int vt_netns_new(void);
int vt_netns_self(void);
void vt_netns_enter(int fd);
/* Runs a command line in the namespace @fd */
void vt_netns_must(int fd, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* "/proc/PID/fd/N", as ip(8) takes it for a namespace */
const char *vt_netns_path(int fd);

/* A veth pair in this namespace, both ends up; MTU 0: 1500 */
void vt_veth(const char *a, const char *b, unsigned int mtu);
/* @b in namespace @ns, addresses 10.9.0.1 (a) and 10.9.0.2 (b), /24 */
void vt_veth_ns(const char *a, const char *b, int ns, unsigned int mtu);
/* The kernel acts on a carrier by and by. Until then what is sent is taken, told as sent, and
 * thrown away; waits for the end of that
 */
void vt_wait_active(const char *ifname);
unsigned int vt_ifindex(const char *ifname);
void vt_mac(const char *ifname, uint8_t mac[6]);

/* A raw AF_PACKET sender on @ifname */
int vt_tx_open(const char *ifname);
/* 0 or -errno */
int vt_tx_send(int fd, const void *frame, size_t len);
/* @n UDP frames of @len bytes, sequence numbers from @seq; how many were sent */
unsigned int vt_tx_burst(int fd, size_t len, uint64_t seq, unsigned int n);

/* What the stack sees: a packet socket behind the ingress hook */
int vt_stack_open(const char *ifname);
/* Frames there now, all read; waits for the first up to @ms */
unsigned int vt_stack_drain(int fd, unsigned int ms);

/* A thread that sends without end */
struct vt_traffic {
	const char *ifname;
	size_t len;
	unsigned int pause_us;	/* after every 16 frames */
	unsigned int cpu;
	int stop;
	int fd;
	int err;		/* ended by this error */
	uint64_t sent;
	unsigned long thread;
};

void vt_traffic_start(struct vt_traffic *t);
void vt_traffic_stop(struct vt_traffic *t);

/* tun/tap; @flags of IFF_*; brings it up */
int vt_tun_open(const char *ifname, int flags, unsigned int mtu);

#endif
