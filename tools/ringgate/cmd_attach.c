// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate attach: hook rings to a device. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "att_filter.h"
#include "cmd.h"
#include "names.h"
#include "snapshot.h"
#include "util.h"

struct attach_args {
	const char *ifname;
	const char *rings[RGATE_ATT_RINGS_MAX];
	unsigned int nrings;
	struct rgate_attach_opts opts;
	bool json;
};

static const struct argp_option options[] = {
	{ "ring", 'r', "RING", 0,
	  "Ring by number or name; give it once a ring, in fan-out order", 0 },
	{ "filter", 'f', "TEXT", 0, "tcpdump expression (default: all frames)",
	  0 },
	{ "action", 'a', "ACTION", 0,
	  "steal (default): the network stack does not see what a ring took; "
	  "mirror: it does", 0 },
	{ "fanout", 'F', "RULE", 0,
	  "Which ring gets a frame: cpu (default), queue, hash, rollover", 0 },
	{ "priority", 'p', "N", 0, "Netfilter hook priority (default 0)", 0 },
	{ "sample", 's', "N", 0, "Take one in N of the frames that match", 0 },
	OPT_JSON,
	{ 0 }
};

static int32_t arg_priority(struct argp_state *state, const char *arg)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(arg, &end, 0);
	if (end == arg || *end || errno || v < INT32_MIN || v > INT32_MAX)
		argp_error(state, "priority: '%s' is not a number from %d to "
			   "%d", arg, INT32_MIN, INT32_MAX);
	return v;
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
		a->opts.filter = arg;
		break;
	case 'a':
		a->opts.action = arg_action(state, arg);
		break;
	case 'F':
		a->opts.fanout = arg_fanout(state, arg);
		break;
	case 'p':
		a->opts.priority = arg_priority(state, arg);
		break;
	case 's':
		a->opts.sample = arg_number(state, "sample", arg, 1, UINT32_MAX);
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
	       "Needs CAP_NET_ADMIN.",
};

static int find_rings(struct rgate_ctl *ctl, const struct attach_args *a,
		      uint32_t ids[RGATE_ATT_RINGS_MAX])
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
		ids[i] = r->ring_id;
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

int cmd_attach(int argc, char **argv)
{
	struct attach_args a = { .opts.sz = sizeof(a.opts) };
	uint32_t ids[RGATE_ATT_RINGS_MAX], id = 0;
	struct sock_fprog prog = { 0 };
	struct rgate_ctl *ctl;
	int err, ret;

	cmd_parse(&argp, argc, argv, &a);
	ret = ctl_open(&ctl);
	if (ret)
		return ret;
	ret = find_rings(ctl, &a, ids);
	if (!ret)
		ret = att_filter(a.ifname, &a.opts, &prog);
	if (ret)
		goto close;
	err = rgate_ctl_attach(ctl, a.ifname, ids, a.nrings, &a.opts, &id);
	if (err)
		ret = fail(err, "cannot attach to %s", a.ifname);
	else
		print_id(id, a.json);
	rgate_filter_free(&prog);
close:
	rgate_ctl_close(ctl);
	return ret;
}
