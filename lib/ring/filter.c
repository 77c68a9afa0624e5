// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * tcpdump expressions to classic BPF. Linux takes the VLAN tag off a frame before
 * any hook sees it, so `vlan` must test the packet's metadata; libpcap emits that
 * code for a live device only, and opening one needs CAP_NET_RAW.
 */
#include <ctype.h>
#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ringgate/rgate_ctl.h>

#include "filter.h"
#include "log.h"

#define SNAPLEN 262144	/* what tcpdump has: a match takes the whole frame */

_Static_assert(sizeof(struct bpf_insn) == sizeof(struct sock_filter),
	       "libpcap's and the kernel's instructions are the same");

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

bool rgate_filter_uses_vlan(const char *text)
{
	const char *p = text;

	while ((p = strstr(p, "vlan"))) {
		if ((p == text || !word_char(p[-1])) && !word_char(p[4]))
			return true;
		p += 4;
	}
	return false;
}

static void say(char *errbuf, size_t errlen, const char *what, const char *why)
{
	rgate_err("filter: %s%s%s", what, why ? ": " : "", why ? why : "");
	if (errbuf && errlen)
		snprintf(errbuf, errlen, "%s%s%s", what, why ? ": " : "",
			 why ? why : "");
}

/* The link type libpcap knows for a device, or -errno */
static int link_type(const char *ifname)
{
	struct ifreq ifr;
	int fd, err = 0;

	memset(&ifr, 0, sizeof(ifr));
	if (strlen(ifname) >= sizeof(ifr.ifr_name))
		return -ENODEV;
	memcpy(ifr.ifr_name, ifname, strlen(ifname));
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, SIOCGIFHWADDR, &ifr) < 0)
		err = -errno;
	close(fd);
	if (err)
		return err;
	switch (ifr.ifr_hwaddr.sa_family) {
	case ARPHRD_ETHER:
	case ARPHRD_LOOPBACK:
		return DLT_EN10MB;
	case ARPHRD_NONE:
	case ARPHRD_RAWIP:
	case ARPHRD_PPP:
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
	case ARPHRD_IPGRE:
		return DLT_RAW;
	case ARPHRD_IEEE80211_RADIOTAP:
		return DLT_IEEE802_11_RADIO;
	default:
		return -EOPNOTSUPP;
	}
}

/* A live handle on a device, or NULL */
static pcap_t *open_live(const char *ifname)
{
	char errbuf[PCAP_ERRBUF_SIZE];
	pcap_t *pc = pcap_create(ifname, errbuf);

	if (!pc)
		return NULL;
	pcap_set_snaplen(pc, SNAPLEN);
	pcap_set_timeout(pc, 100);
	pcap_set_buffer_size(pc, 1 << 20);	/* nothing is read from it */
	if (pcap_activate(pc) < 0) {
		pcap_close(pc);
		return NULL;
	}
	return pc;
}

static int open_pcap(const char *ifname, const char *text, pcap_t **out,
		     char *errbuf, size_t errlen)
{
	int dlt = ifname ? link_type(ifname) : DLT_EN10MB;
	bool vlan = rgate_filter_uses_vlan(text);

	if (dlt < 0) {
		say(errbuf, errlen, ifname, dlt == -EOPNOTSUPP ?
		    "filters are not known for this type of device" :
		    rgate_strerror("rgate_filter_compile", dlt));
		return dlt;
	}
	/* The loopback device stands in for any Ethernet. */
	*out = vlan ? open_live(ifname ? ifname : "lo") : NULL;
	if (!*out && vlan) {
		say(errbuf, errlen, "`vlan` in a filter needs CAP_NET_RAW",
		    "libpcap compiles it for a live device only");
		return -EPERM;
	}
	if (!*out)
		*out = pcap_open_dead(dlt, SNAPLEN);
	return *out ? 0 : -ENOMEM;
}

/*
 * libpcap compiles some expressions to programs for itself only: with jumps back
 * (protochain), or reads of words that were not written (some with geneve). The kernel
 * says so for any socket; a lack of memory for that one does not matter here.
 */
static bool refused(const struct bpf_program *bpf)
{
	struct sock_fprog prog = {
		.len = (unsigned short)bpf->bf_len,
		.filter = (struct sock_filter *)bpf->bf_insns,
	};
	int fd, err;

	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;	/* it will be said when the filter is attached */
	err = setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) < 0 ?
	      errno : 0;
	close(fd);
	return err == EINVAL;
}

int rgate_filter_compile(const char *ifname, const char *text,
			 struct sock_fprog *prog, char *errbuf, size_t errlen)
{
	struct bpf_program bpf;
	pcap_t *pc;
	int err;

	prog->len = 0;
	prog->filter = NULL;
	if (errbuf && errlen)
		errbuf[0] = 0;
	err = open_pcap(ifname, text, &pc, errbuf, errlen);
	if (err)
		return err;
	if (pcap_compile(pc, &bpf, text, 1, PCAP_NETMASK_UNKNOWN) < 0) {
		say(errbuf, errlen, pcap_geterr(pc), NULL);
		pcap_close(pc);
		return -EINVAL;
	}
	if (!bpf.bf_len || bpf.bf_len > RGATE_FILTER_LEN_MAX) {
		say(errbuf, errlen, "the program is too long", NULL);
		err = -EINVAL;
		goto out;
	}
	if (refused(&bpf)) {
		say(errbuf, errlen, "the kernel cannot run this filter",
		    "protochain, and some of geneve, only work in user space");
		err = -EINVAL;
		goto out;
	}
	prog->filter = malloc(bpf.bf_len * sizeof(*prog->filter));
	if (!prog->filter) {
		err = -ENOMEM;
		goto out;
	}
	memcpy(prog->filter, bpf.bf_insns, bpf.bf_len * sizeof(*prog->filter));
	prog->len = (unsigned short)bpf.bf_len;
out:
	pcap_freecode(&bpf);
	pcap_close(pc);
	return err;
}

void rgate_filter_free(struct sock_fprog *prog)
{
	free(prog->filter);
	prog->filter = NULL;
	prog->len = 0;
}
