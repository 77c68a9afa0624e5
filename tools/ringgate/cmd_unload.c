// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate unload: take the module out, or say who keeps it. */
#include <errno.h>
#include <fcntl.h>
#include <libkmod.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ringgate/ioctl.h>

#include "cmd.h"
#include "module.h"
#include "util.h"
#include "xdp_link.h"

/* How long the kernel may take to let go of programs that were taken away */
#define SWEPT_NS	(10 * NSEC)

static const struct argp_option options[] = {
	{ "wait", 'w', "SECONDS", 0,
	  "Try for so long while the module is in use", 0 },
	{ 0 }
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	uint64_t *wait_ns = state->input;

	switch (key) {
	case 'w':
		*wait_ns = arg_seconds(state, "--wait", arg);
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "no argument is expected, '%s' is one", arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.doc = "Take the kernel module ringgate out.\v"
	       "Fails while a process has a ring open or mapped, while an XDP "
	       "program calls the module, or while another module or a device "
	       "(RDMA, GPU) holds ring memory; processes and programs are named "
	       "where the kernel shows them.",
};

/* XDP programs whose attachments are over; were there any? */
static bool sweep(void)
{
	struct rgate_ctl *ctl;
	unsigned int n;

	if (rgate_ctl_open(&ctl))
		return false;
	n = xdp_sweep(ctl);
	rgate_ctl_close(ctl);
	return n;
}

static void list_users(void)
{
	unsigned int programs = xdp_list_holders();
	struct module_user *users;
	bool hidden;
	int i, n;

	n = module_users(&users, &hidden);
	for (i = 0; i < n; i++)
		fprintf(stderr, "  pid %d (%s): %s%s%s\n", users[i].pid,
			users[i].comm, users[i].open ? RGATE_DEVICE " open" : "",
			users[i].open && users[i].mapped ? ", " : "",
			users[i].mapped ? "ring mapped" : "");
	if (n <= 0 && !programs)
		fprintf(stderr, "  no process seen here has %s open or mapped: "
			"look in other containers,%s for a driver that "
			"pins ring memory, or for a dma-buf of it: `sudo grep -ls "
			"'exp_name:.*ringgate' /proc/[0-9]*/fdinfo/*`\n", RGATE_DEVICE,
			hidden ? " as root," : "");
	else if (hidden)
		fprintf(stderr, "  (run as root to see all processes)\n");
	free(users);
}

static void list_holders(struct kmod_module *mod)
{
	struct kmod_list *holders = kmod_module_get_holders(mod), *l;

	kmod_list_foreach(l, holders) {
		struct kmod_module *h = kmod_module_get_module(l);

		fprintf(stderr, "  module %s\n", kmod_module_get_name(h));
		kmod_module_unref(h);
	}
	kmod_module_unref_list(holders);
}

static int explain(struct kmod_module *mod, int err)
{
	switch (-err) {
	case EAGAIN:
	case EBUSY:
		say("the module is in use (reference count %d) by",
		    kmod_module_get_refcnt(mod));
		list_holders(mod);
		list_users();
		fprintf(stderr, "End these, or give --wait SECONDS.\n");
		return EXIT_FAIL;
	case EPERM:
		say("only root may take modules out: `sudo ringgate unload`");
		return EXIT_FAIL;
	default:
		return fail(err, "cannot take the module out");
	}
}

int cmd_unload(int argc, char **argv)
{
	uint64_t wait_ns = 0, end;
	struct kmod_module *mod;
	struct kmod_ctx *ctx;
	int err, ret = EXIT_OK;

	cmd_parse(&argp, argc, argv, &wait_ns);
	if (!module_loaded()) {
		say("the module is not loaded");
		return EXIT_NO_MODULE;
	}
	ctx = module_kmod();
	if (!ctx)
		return fail(-ENOMEM, "libkmod");
	err = kmod_module_new_from_name(ctx, MODULE_NAME, &mod);
	if (err) {
		kmod_unref(ctx);
		return fail(err, "cannot look up the module");
	}
	if (sweep() && wait_ns < SWEPT_NS)
		wait_ns = SWEPT_NS;
	util_catch_signals();
	end = util_now() + wait_ns;
	while ((err = kmod_module_remove_module(mod, 0)) &&
	       (err == -EAGAIN || err == -EBUSY) && util_now() < end &&
	       !util_stop)
		util_sleep(util_now() + 100000000);
	if (err)
		ret = explain(mod, err);
	else
		printf("unloaded\n");
	kmod_module_unref(mod);
	kmod_unref(ctx);
	return ret;
}
