// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate set: change a live attachment. */
#include <stdio.h>

#include "att_filter.h"
#include "cmd.h"
#include "names.h"
#include "snapshot.h"
#include "util.h"

struct set_args {
	uint32_t att;
	uint32_t what;		/* RGATE_SET_* */
	bool all;
	struct rgate_attach_opts opts;
};

enum { KEY_STEAL = 256, KEY_ALL, KEY_MIRROR };

static const struct argp_option options[] = {
	{ "filter", 'f', "TEXT", 0, "tcpdump expression from now on; \"\" for "
	  "all frames", 0 },
	{ "steal", KEY_STEAL, NULL, 0, "Take what matches from the network stack; needs a filter, "
	  "or --all", 0 },
	{ "all", KEY_ALL, NULL, 0, "Steal every frame of the device", 0 },
	{ "mirror", KEY_MIRROR, NULL, 0, "The network stack gets it, too", 0 },
	{ "sample", 's', "N", 0, "Take one in N of the frames that match", 0 },
	{ 0 }
};

static void set_action(struct set_args *a, struct argp_state *state, uint32_t action)
{
	if (a->what & RGATE_SET_ACTION && a->opts.action != action)
		argp_error(state, "--steal and --mirror exclude each other");
	a->opts.action = action;
	a->what |= RGATE_SET_ACTION;
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct set_args *a = state->input;

	switch (key) {
	case 'f':
		a->opts.filter = arg_filter(arg);
		a->what |= RGATE_SET_FILTER;
		break;
	case KEY_STEAL:
		set_action(a, state, RGATE_ACTION_STEAL);
		break;
	case KEY_MIRROR:
		set_action(a, state, RGATE_ACTION_MIRROR);
		break;
	case KEY_ALL:
		a->all = true;
		break;
	case 's':
		a->opts.sample = arg_number(state, "--sample", arg, 1, UINT32_MAX);
		a->what |= RGATE_SET_SAMPLE;
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			argp_error(state, "one attachment is expected");
		a->att = arg_att(state, arg);
		break;
	case ARGP_KEY_END:
		if (!state->arg_num)
			argp_error(state, "which attachment? `ringgate status` "
				   "lists them");
		if (a->all && a->opts.filter)
			argp_error(state, "--all and a filter exclude each other");
		if (!a->what)
			argp_error(state, "nothing to change: give --filter, "
				   "--steal, --mirror or --sample");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.args_doc = "ATTACHMENT",
	.doc = "Change an attachment while frames come in. What is not given "
	       "stays as it is. Needs CAP_NET_ADMIN.",
};

/*
 * Frames are taken from the stack only with a filter, or by the word --all: so is what a
 * change makes of an attachment. Not a lock: who else changes it meanwhile is root, too.
 */
static int check_steal(const struct set_args *a, const struct rgate_att_info *was)
{
	bool steal = (a->what & RGATE_SET_ACTION ? a->opts.action : was->action) ==
		     RGATE_ACTION_STEAL;
	bool filter = a->what & RGATE_SET_FILTER ? !!a->opts.filter : was->filter_len;

	if (!steal || filter || a->all)
		return EXIT_OK;
	say("attachment %u would take every frame of %s, those of your own session too: give "
	    "a filter, or --all", a->att, was->ifname);
	return EXIT_FAIL;
}

int cmd_set(int argc, char **argv)
{
	struct set_args a = { .opts.sz = sizeof(a.opts) };
	struct rgate_att_info info;
	struct rgate_ident att;
	struct sock_fprog prog = { 0 };
	struct rgate_ctl *ctl;
	int err, ret;

	cmd_parse(&argp, argc, argv, &a);
	ret = ctl_open(&ctl);
	if (ret)
		return ret;
	/* The filter is compiled for the link type of the device. */
	err = rgate_ctl_att(ctl, a.att, &info);
	if (err) {
		ret = fail_att(err, a.att, "find");
		goto close;
	}
	ret = check_steal(&a, &info);
	if (!ret)
		ret = att_filter(info.ifname, &a.opts, &prog);
	if (ret)
		goto close;
	att = (struct rgate_ident){ info.att_id, info.cookie };
	err = rgate_ctl_set(ctl, &att, a.what, &a.opts);
	if (err)
		ret = fail_att(err, a.att, "change");
	rgate_filter_free(&prog);
close:
	rgate_ctl_close(ctl);
	return ret;
}
