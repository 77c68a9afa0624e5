// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate attach: hook rings to a device. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "att_filter.h"
#include "cmd.h"
#include "names.h"
#include "snapshot.h"
#include "util.h"
#include "xdp_link.h"

struct attach_args {
	const char *ifname;
	const char *rings[RGATE_ATT_RINGS_MAX];
	unsigned int nrings;
	struct rgate_attach_opts opts;
	bool all;
	bool generic;
	bool transmit;
	bool json;
};

/* Percent of a CPU for --thread, if nothing is said */
#define THREAD_SHARE	50

enum { KEY_STEAL = 256, KEY_ALL, KEY_XDP, KEY_XDP_GENERIC, KEY_TRANSMIT, KEY_THREAD };

static const struct argp_option options[] = {
	{ "ring", 'r', "RING", 0,
	  "Ring by number or name; give it once a ring, in fan-out order", 0 },
	{ "filter", 'f', "TEXT", 0, "tcpdump expression (default: all frames)",
	  0 },
	{ "steal", KEY_STEAL, NULL, 0, "The network stack does not see what a ring took (default: "
	  "it does, too); needs --filter or --all", 0 },
	{ "all", KEY_ALL, NULL, 0, "Steal every frame of the device", 0 },
	{ "fanout", 'F', "RULE", 0,
	  "Which ring gets a frame: cpu (default), queue, hash, rollover", 0 },
	{ "priority", 'p', "N", 0, "Netfilter hook priority (default 0)", 0 },
	{ "xdp", KEY_XDP, NULL, 0, "By an XDP program in the driver, before the kernel makes a "
	  "packet of a frame", 0 },
	{ "xdp-generic", KEY_XDP_GENERIC, NULL, 0, "By an XDP program behind the driver, where "
	  "that one has no XDP", 0 },
	{ "transmit", KEY_TRANSMIT, NULL, 0, "The other way: what programs put into the rings, "
	  "which are made for it, is sent through the device; of the other options only --filter, "
	  "for what may be sent, and --thread", 0 },
	{ "thread", KEY_THREAD, "PERCENT", OPTION_ARG_OPTIONAL, "With --transmit: a thread of the "
	  "kernel's looks for what programs put into a ring, so that they need not ask; it takes at "
	  "most PERCENT of one CPU (default 50)", 0 },
	{ "sample", 's', "N", 0, "Take one in N of the frames that match", 0 },
	OPT_JSON,
	{ 0 }
};

/* What says which frames come, and whereto, says nothing of those that go. */
static void arg_transmit(struct argp_state *state, struct attach_args *a)
{
	if (a->opts.kind || a->opts.action || a->all || a->opts.fanout || a->opts.priority ||
	    a->opts.sample)
		argp_error(state, "--transmit has --ring, --filter and --thread, and nothing else");
	a->opts.kind = RGATE_KIND_TRANSMIT;
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct attach_args *a = state->input;

	switch (key) {
	case 'r':
		if (a->nrings == RGATE_ATT_RINGS_MAX)
			argp_error(state, "an attachment has at most %d rings",
				   RGATE_ATT_RINGS_MAX);
		a->rings[a->nrings++] = arg;
		break;
	case 'f':
		a->opts.filter = arg_filter(arg);
		break;
	case KEY_STEAL:
		a->opts.action = RGATE_ACTION_STEAL;
		break;
	case KEY_ALL:
		a->all = true;
		break;
	case 'F':
		a->opts.fanout = arg_fanout(state, arg);
		break;
	case 'p':
		a->opts.priority = arg_signed(state, "--priority", arg, INT32_MIN,
					      INT32_MAX);
		break;
	case KEY_XDP_GENERIC:
		a->generic = true;
		/* fall through */
	case KEY_XDP:
		a->opts.kind = RGATE_KIND_XDP;
		break;
	case KEY_TRANSMIT:
		a->transmit = true;
		break;
	case KEY_THREAD:
		a->opts.thread = arg ? arg_number(state, "--thread", arg, 1, 100) : THREAD_SHARE;
		break;
	case 's':
		a->opts.sample = arg_number(state, "--sample", arg, 1, UINT32_MAX);
		break;
	case 'j':
		a->json = true;
		break;
	case ARGP_KEY_ARG:
		if (a->ifname)
			argp_error(state, "one device is expected; a filter "
				   "goes behind --filter, in quotes");
		a->ifname = arg;
		break;
	case ARGP_KEY_END:
		if (!a->ifname)
			argp_error(state, "which device?");
		if (a->opts.thread && !a->transmit)
			argp_error(state, "--thread is for --transmit");
		if (a->transmit)
			arg_transmit(state, a);
		arg_steal(state, a->opts.action, a->opts.filter, a->all);
		if (a->opts.kind == RGATE_KIND_XDP && a->opts.priority)
			argp_error(state, "XDP knows no priorities");
		if (!a->nrings)
			argp_error(state, "which ring? give --ring; `ringgate "
				   "status` lists them");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.args_doc = "DEVICE",
	.doc = "Hook rings to a network device of this namespace and print the "
	       "number of the attachment.\v"
	       "A ring exists while a program has it open. The attachment ends "
	       "by `ringgate detach`, with its device, or with its last ring. "
	       "Needs CAP_NET_ADMIN, and to transmit CAP_NET_RAW.",
};

static int find_rings(struct rgate_ctl *ctl, const struct attach_args *a,
		      struct rgate_ident rings[RGATE_ATT_RINGS_MAX])
{
	struct snapshot s;
	unsigned int i;
	int ret = EXIT_OK;
	int err = snapshot_get(&s, ctl);

	if (err) {
		ret = fail(err, "cannot list the rings");
		goto out;
	}
	for (i = 0; i < a->nrings; i++) {
		const struct rgate_ring_info *r = snapshot_find(&s, a->rings[i]);

		if (!r) {
			ret = EXIT_FAIL;
			goto out;
		}
		rings[i].id = r->ring_id;
		rings[i].cookie = r->cookie;
	}
out:
	snapshot_free(&s);
	return ret;
}

static void print_id(uint32_t id, bool json)
{
	struct json j;

	if (!json) {
		printf("%u\n", id);
		return;
	}
	json_init(&j, stdout, false);
	json_object(&j, NULL);
	json_u64(&j, "attachment", id);
	json_object_end(&j);
	json_end(&j);
}

/* What was attached ends again if its program does not get to its place. */
static int attach(struct rgate_ctl *ctl, const struct attach_args *a,
		  const struct rgate_ident *rings, const struct xdp_ready *xdp)
{
	struct rgate_attach_opts opts = a->opts;
	static const struct sock_fprog all;
	struct rgate_ident att = { 0 };
	int err, ret = EXIT_OK;

	/* The program has it, not the module. */
	if (xdp)
		opts.prog = NULL;
	err = rgate_ctl_attach(ctl, a->ifname, rings, a->nrings, &opts, &att);
	if (err == -ENOENT || err == -ESTALE) {
		say("a ring was closed while we looked; `ringgate status` lists "
		    "those that are there");
		return EXIT_FAIL;
	}
	/* root here, and yet not of the machine */
	if (err == -EPERM && a->opts.thread && !geteuid()) {
		say("cannot attach to %s: in a container there are no threads: leave out --thread",
		    a->ifname);
		return EXIT_FAIL;
	}
	if (err)
		return fail_in(a->transmit ? "rgate_ctl_attach:transmit" : "rgate_ctl_attach", err,
			       "cannot attach to %s", a->ifname);
	if (xdp)
		ret = xdp_bind(xdp, a->ifname, &att, a->opts.prog ? a->opts.prog : &all,
			       a->generic);
	if (ret)
		rgate_ctl_detach(ctl, &att);
	else
		print_id(att.id, a->json);
	return ret;
}

int cmd_attach(int argc, char **argv)
{
	struct attach_args a = { .opts.sz = sizeof(a.opts) };
	struct rgate_ident rings[RGATE_ATT_RINGS_MAX];
	struct sock_fprog prog = { 0 };
	struct xdp_ready xdp;
	struct rgate_ctl *ctl;
	int ret;

	cmd_parse(&argp, argc, argv, &a);
	ret = ctl_open(&ctl);
	if (ret)
		return ret;
	ret = find_rings(ctl, &a, rings);
	if (!ret)
		ret = att_filter(a.ifname, &a.opts, &prog);
	if (ret)
		goto close;
	if (a.opts.kind != RGATE_KIND_XDP) {
		ret = attach(ctl, &a, rings, NULL);
	} else {
		ret = xdp_prepare(&xdp);
		if (!ret) {
			xdp_sweep(ctl);
			ret = attach(ctl, &a, rings, &xdp);
			xdp_unprepare(&xdp);
		}
	}
	rgate_filter_free(&prog);
close:
	rgate_ctl_close(ctl);
	return ret;
}
