// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <string.h>

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
		say("filter '%s': %s: `man pcap-filter`", opts->filter, why);
		return EXIT_FAIL;
	}
	if (err)
		return fail(err, "filter '%s'", opts->filter);
	opts->prog = prog;
	opts->filter = NULL;
	return EXIT_OK;
}

const char *arg_filter(const char *text)
{
	return text[strspn(text, " \t\n")] ? text : NULL;
}

void arg_steal(struct argp_state *state, bool steal, bool filter, bool all)
{
	if (all && !steal)
		argp_error(state, "--all says what --steal takes: without it nothing is taken");
	if (all && filter)
		argp_error(state, "--all and a filter exclude each other");
	if (steal && !filter && !all)
		argp_error(state, "--steal without a filter takes every frame, those of your own "
			   "session too: give a filter, or --all");
}

uint32_t arg_att(struct argp_state *state, const char *text)
{
	return arg_number(state, "attachment", text, 1, UINT32_MAX);
}

int find_att(struct rgate_ctl *ctl, uint32_t id, struct rgate_ident *att)
{
	struct rgate_att_info info;
	int err = rgate_ctl_att(ctl, id, &info);

	if (err)
		return fail_att(err, id, "find");
	att->id = info.att_id;
	att->cookie = info.cookie;
	return EXIT_OK;
}

int fail_att(int err, uint32_t att_id, const char *what)
{
	/* ESTALE: it ended, and its number was given again, since we looked */
	if (err == -ENOENT || err == -ESTALE) {
		say("there is no attachment %u in this network namespace; "
		    "`ringgate status` lists them", att_id);
		return EXIT_FAIL;
	}
	return fail_in("rgate_ctl_set", err, "cannot %s attachment %u", what, att_id);
}
