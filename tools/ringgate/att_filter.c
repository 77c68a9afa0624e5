// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>

#include "att_filter.h"
#include "cmd.h"
#include "util.h"

int att_filter(const char *ifname, struct rgate_attach_opts *opts,
	       struct sock_fprog *prog)
{
	char why[256] = "";
	int err;

	*prog = (struct sock_fprog){ 0 };
	if (!opts->filter)
		return EXIT_OK;
	err = rgate_filter_compile(ifname, opts->filter, prog, why, sizeof(why));
	if (err && *why) {
		say("filter '%s': %s", opts->filter, why);
		return EXIT_FAIL;
	}
	if (err)
		return fail(err, "filter '%s'", opts->filter);
	opts->prog = prog;
	opts->filter = NULL;
	return EXIT_OK;
}

uint32_t arg_att(struct argp_state *state, const char *text)
{
	return arg_number(state, "attachment", text, 0, UINT32_MAX);
}

int fail_att(int err, uint32_t att_id, const char *what)
{
	if (err == -ENOENT) {
		say("there is no attachment %u in this network namespace; "
		    "`ringgate status` lists them", att_id);
		return EXIT_FAIL;
	}
	return fail(err, "cannot %s attachment %u", what, att_id);
}
