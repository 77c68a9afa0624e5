// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate join, leave: rings into and out of a live attachment. */
#include <errno.h>

#include "att_filter.h"
#include "cmd.h"
#include "snapshot.h"
#include "util.h"

struct join_args {
	uint32_t att;
	const char *ring;
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct join_args *a = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (state->arg_num == 0)
			a->att = arg_att(state, arg);
		else if (state->arg_num == 1)
			a->ring = arg;
		else
			argp_error(state, "an attachment and one ring are "
				   "expected");
		break;
	case ARGP_KEY_END:
		if (state->arg_num < 2)
			argp_error(state, "an attachment and a ring are "
				   "expected; `ringgate status` lists them");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

typedef int (*change_fn)(struct rgate_ctl *ctl, const struct rgate_ident *att,
			 const struct rgate_ident *ring);

static int explain(int err, const struct join_args *a, const char *what)
{
	switch (err) {
	case -EEXIST:
		say("ring %s is part of attachment %u already", a->ring, a->att);
		return EXIT_FAIL;
	case -EBUSY:
		say("ring %s is the only one of attachment %u: join another "
		    "first, or `ringgate detach %u`", a->ring, a->att, a->att);
		return EXIT_FAIL;
	default:
		return fail_att(err, a->att, what);
	}
}

static int change(int argc, char **argv, const struct argp *argp,
		  change_fn fn, const char *what)
{
	const struct rgate_ring_info *r;
	struct rgate_ident att, ring;
	struct join_args a = { 0 };
	struct rgate_ctl *ctl;
	struct snapshot s;
	int err, ret;

	cmd_parse(argp, argc, argv, &a);
	ret = ctl_open(&ctl);
	if (ret)
		return ret;
	err = snapshot_get(&s, ctl);
	if (err) {
		ret = fail(err, "cannot list the rings");
		goto out;
	}
	r = snapshot_find(&s, a.ring);
	if (!r) {
		ret = EXIT_FAIL;
		goto out;
	}
	ring = (struct rgate_ident){ r->ring_id, r->cookie };
	ret = find_att(ctl, a.att, &att);
	if (ret)
		goto out;
	err = fn(ctl, &att, &ring);
	if (err)
		ret = explain(err, &a, what);
out:
	snapshot_free(&s);
	rgate_ctl_close(ctl);
	return ret;
}

int cmd_join(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_opt,
		.args_doc = "ATTACHMENT RING",
		.doc = "Add a ring to an attachment, while frames come in. It "
		       "becomes the last in fan-out order.",
	};

	return change(argc, argv, &argp, rgate_ctl_join, "add a ring to");
}

int cmd_leave(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_opt,
		.args_doc = "ATTACHMENT RING",
		.doc = "Take a ring out of an attachment, while frames come "
		       "in. The rings behind it move up in fan-out order.",
	};

	return change(argc, argv, &argp, rgate_ctl_leave, "take a ring out of");
}
