// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate detach: end attachments. */
#include "att_filter.h"
#include "cmd.h"
#include "snapshot.h"
#include "util.h"
#include "xdp_link.h"

#define DETACH_MAX	256

struct detach_args {
	uint32_t ids[DETACH_MAX];
	unsigned int n;
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct detach_args *a = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (a->n == DETACH_MAX)
			argp_error(state, "at most %d at once", DETACH_MAX);
		a->ids[a->n++] = arg_att(state, arg);
		break;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which attachment? `ringgate status` lists "
			   "them");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.parser = parse_opt,
	.args_doc = "ATTACHMENT...",
	.doc = "End attachments, by their numbers. The rings stay. Needs "
	       "CAP_NET_ADMIN.",
};

int cmd_detach(int argc, char **argv)
{
	struct detach_args a = { 0 };
	struct rgate_ctl *ctl;
	unsigned int i;
	int ret;

	cmd_parse(&argp, argc, argv, &a);
	ret = ctl_open(&ctl);
	if (ret)
		return ret;
	for (i = 0; i < a.n; i++) {
		struct rgate_ident att;
		int err = find_att(ctl, a.ids[i], &att);

		if (err) {
			ret = err;
			continue;
		}
		err = rgate_ctl_detach(ctl, &att);
		if (err)
			ret = fail_att(err, att.id, "end");
	}
	xdp_sweep(ctl);
	rgate_ctl_close(ctl);
	return ret;
}
