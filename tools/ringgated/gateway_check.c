// SPDX-License-Identifier: MIT OR GPL-2.0
/* What the gateway's rules and sources would be refused for */
#include <errno.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "gateway.h"
#include "preflight.h"
#include "util.h"

static int check_size(const struct source_conf *s, const char *what, uint32_t v, uint32_t least,
		      uint32_t most)
{
	if (!v || (v >= least && v <= most && !(v & (v - 1))))
		return 0;
	say("source %s: %s: %u is no power of two from %u to %u", s->at, what, v, least, most);
	return -EINVAL;
}

static int check_filter(const struct source_conf *s)
{
	struct sock_fprog prog;
	char why[256] = "";
	int err;

	if (!s->filter)
		return 0;
	if (s->kind == SOURCE_UDP) {
		say("source %s: a UDP socket takes no filter", s->at);
		return -EINVAL;
	}
	err = rgate_filter_compile(s->at, s->filter, &prog, why, sizeof(why));
	if (err)
		say("source %s: filter: %s", s->at, *why ? why : strerror(-err));
	else
		rgate_filter_free(&prog);
	return err;
}

/* The address is one of this machine: at a port that nobody has, as it may be in use */
static int check_udp(const struct source_conf *s)
{
	struct sockaddr_storage addr;
	const char *why;
	socklen_t len;
	int sock, err;

	err = address_parse(s->at, &addr, &len, &why);
	if (err) {
		say("source %s: %s", s->at, why);
		return err;
	}
	sock = socket(addr.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	/* at the same place in both */
	((struct sockaddr_in *)(void *)&addr)->sin_port = 0;
	err = bind(sock, (struct sockaddr *)&addr, len) < 0 ? -errno : 0;
	close(sock);
	if (err)
		say("source %s: %s", s->at, strerror(-err));
	return err;
}

/* May it be opened? */
static int check_kind(const struct source_conf *s)
{
	struct rgate_ctl *ctl;
	int err, sock;

	if (!if_nametoindex(s->at)) {
		say("source %s: there is no such network device", s->at);
		return -ENODEV;
	}
	if (s->kind == SOURCE_MODULE) {
		err = rgate_ctl_open(&ctl);
		if (err == -ENOENT)
			say("source %s: the module is not loaded: ringgate load", s->at);
		else if (err)
			say("source %s: the module does not answer: %s", s->at, strerror(-err));
		else
			rgate_ctl_close(ctl);
		return err;
	}
	/* of no protocol: nothing is received */
	sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (sock < 0) {
		err = -errno;
		say("source %s: no packet socket: %s", s->at, strerror(-err));
		return err;
	}
	close(sock);
	return 0;
}

static int check_source(const struct source_conf *s)
{
	int err = check_size(s, "slots", s->slots, RGATE_SLOTS_MIN, RGATE_SLOTS_MAX);

	if (!err)
		err = check_size(s, "slot_size", s->slot_size, RGATE_SLOT_SIZE_MIN,
				 RGATE_SLOT_SIZE_MAX);
	if (!err)
		err = s->kind == SOURCE_UDP ? check_udp(s) : check_kind(s);
	return err ? err : check_filter(s);
}

int gateway_check(struct daemon *d)
{
	const struct config *c = &d->conf;
	unsigned int i;
	int err;

	if (d->self.role != RGATE_ROLE_GATEWAY)
		return 0;
	if (c->ring_memory) {
		say("ring-memory is for compute nodes, and this one is the gateway");
		return -EINVAL;
	}
	err = rules_check(d);
	if (!err && c->steer)
		err = check_directory("the rules", c->steer);
	for (i = 0; !err && i < c->nsources; i++)
		err = check_source(&c->sources[i]);
	return err;
}
