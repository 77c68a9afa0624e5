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
	struct rgate_attach_opts opts;
};

static const struct argp_option options[] = {
	{ "filter", 'f', "TEXT", 0, "tcpdump expression from now on; \"\" for "
	  "all frames", 0 },
	{ "action", 'a', "ACTION", 0, "steal or mirror", 0 },
	{ "sample", 's', "N", 0, "Take one in N of the frames that match", 0 },
	{ 0 }
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct set_args *a = state->input;

	switch (key) {
	case 'f':
		a->opts.filter = *arg ? arg : NULL;
		a->what |= RGATE_SET_FILTER;
		break;
	case 'a':
		a->opts.action = arg_action(state, arg);
		a->what |= RGATE_SET_ACTION;
		break;
	case 's':
		a->opts.sample = arg_number(state, "sample", arg, 1, UINT32_MAX);
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
		if (!a->what)
			argp_error(state, "nothing to change: give --filter, "
				   "--action or --sample");
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

int cmd_set(int argc, char **argv)
{
	struct set_args a = { .opts.sz = sizeof(a.opts) };
	struct rgate_att_info info;
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
	ret = att_filter(info.ifname, &a.opts, &prog);
	if (ret)
		goto close;
	err = rgate_ctl_set(ctl, a.att, a.what, &a.opts);
	if (err)
		ret = fail_att(err, a.att, "change");
	rgate_filter_free(&prog);
close:
	rgate_ctl_close(ctl);
	return ret;
}
