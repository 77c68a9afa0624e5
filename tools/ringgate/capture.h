/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What `ringgate capture` was asked for. */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <ringgate/netlink.h>

#define CAPTURE_DEVS_MAX	32

struct capture_opts {
	char devs[CAPTURE_DEVS_MAX][IF_NAMESIZE];
	unsigned int ndevs;
	bool any;		/* packet socket on all devices */
	bool userspace;
	bool udp;
	bool remote;		/* a ring that the cluster's gateway fills */
	const char *daemon;	/* ringgated's socket; NULL: the usual one */
	struct sockaddr_storage addr;
	socklen_t addrlen;
	const char *addr_text;
	char *filter;		/* NULL: all */
	bool steal;
	bool all;		/* what it steals is every frame */
	bool chain;
	bool promisc;
	uint32_t rings;
	uint32_t fanout;
	uint32_t slots;
	uint32_t slot_size;
	const char *file;	/* NULL: print lines; "-": standard output */
	bool print;
	bool json;
	bool quiet;
	uint64_t count;		/* 0: no limit */
	uint64_t time_ns;
};

#endif
