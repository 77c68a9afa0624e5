// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate load: the kernel module, installed or from a build tree. */
#define _GNU_SOURCE
#include <errno.h>
#include <libkmod.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringgate/ioctl.h>

#include "cmd.h"
#include "module.h"
#include "util.h"

struct load_args {
	const char *path;
	char *options;		/* "key=value key=value" */
	bool installed;
};

static const struct argp_option options[] = {
	{ "module", 'm', "PATH", 0, "Load this file", 0 },
	{ "installed", 'i', NULL, 0,
	  "Load the installed module even where this program lies in a build "
	  "tree", 0 },
	{ 0 }
};

static void add_option(struct load_args *a, const char *arg,
		       struct argp_state *state)
{
	char *all;

	if (!strchr(arg, '=') || *arg == '=')
		argp_error(state, "'%s' is not of the form NAME=VALUE", arg);
	if (asprintf(&all, "%s%s%s", a->options ?: "", a->options ? " " : "",
		     arg) < 0)
		argp_failure(state, EXIT_FAIL, ENOMEM, "module options");
	free(a->options);
	a->options = all;
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct load_args *a = state->input;

	switch (key) {
	case 'm':
		a->path = arg;
		break;
	case 'i':
		a->installed = true;
		break;
	case ARGP_KEY_ARG:
		add_option(a, arg, state);
		break;
	case ARGP_KEY_END:
		if (a->path && a->installed)
			argp_error(state, "--module and --installed exclude "
				   "each other");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.args_doc = "[OPTION=VALUE...]",
	.doc = "Load the kernel module ringgate.\v"
	       "Takes build/kmod-RELEASE/ringgate.ko of the build tree this "
	       "program lies in, else the module installed under /lib/modules. "
	       "Arguments of the form NAME=VALUE are module options (`modinfo "
	       "ringgate` lists them).",
};

/* What the kernel means by its refusal of a module, and what to do */
static int explain(const char *path, int err)
{
	switch (-err) {
	case EPERM:
	case EKEYREJECTED:
	case ENOKEY:
		/* that root may load modules at all was looked at before */
		say("cannot load %s: %s: `%s`", path, MODULE_UNSIGNED_WHY, MODULE_UNSIGNED_FIX);
		break;
	case ENOEXEC:
		say("cannot load %s: it is no module for the running kernel: `%s`", path,
		    module_make());
		break;
	case ENOENT:
		say("cannot load %s: the kernel lacks something that it needs: `sudo dmesg | tail`",
		    path);
		break;
	case EINVAL:
		say("cannot load %s: an option or the file is not right: `modinfo %s`", path, path);
		break;
	default:
		say("cannot load %s: %s", path, strerror(-err));
	}
	return EXIT_FAIL;
}

/* A file outside /lib/modules: modules.dep does not know it, so load what it
 * says it depends on first. */
static void load_depends(struct kmod_ctx *ctx, struct kmod_module *mod)
{
	struct kmod_list *info = NULL, *l;

	if (kmod_module_get_info(mod, &info) < 0)
		return;
	kmod_list_foreach(l, info) {
		char *names, *name, *save;

		if (strcmp(kmod_module_info_get_key(l), "depends"))
			continue;
		names = strdup(kmod_module_info_get_value(l));
		for (name = strtok_r(names, ",", &save); name;
		     name = strtok_r(NULL, ",", &save)) {
			struct kmod_module *dep;

			if (kmod_module_new_from_name(ctx, name, &dep))
				continue;
			kmod_module_probe_insert_module(dep, 0, NULL, NULL,
							NULL, NULL);
			kmod_module_unref(dep);
		}
		free(names);
	}
	kmod_module_info_free_list(info);
}

static int load_path(struct kmod_ctx *ctx, const char *path, const char *opts)
{
	struct kmod_module *mod;
	int err;

	if (access(path, R_OK))
		return fail(-errno, "cannot read %s", path);
	err = kmod_module_new_from_path(ctx, path, &mod);
	if (err) {
		say("%s is no kernel module", path);
		return EXIT_FAIL;
	}
	load_depends(ctx, mod);
	err = kmod_module_insert_module(mod, 0, opts);
	kmod_module_unref(mod);
	return err ? explain(path, err) : EXIT_OK;
}

static int load_installed(struct kmod_ctx *ctx, const char *opts)
{
	struct kmod_module *mod;
	char path[PATH_MAX];
	int err;

	if (!module_installed(path)) {
		say("there is no module for the running kernel: `%s`", module_make());
		return EXIT_FAIL;
	}
	err = kmod_module_new_from_name(ctx, MODULE_NAME, &mod);
	if (err)
		return fail(err, "cannot look up the module");
	err = kmod_module_probe_insert_module(mod, KMOD_PROBE_FAIL_ON_LOADED,
					      opts, NULL, NULL, NULL);
	kmod_module_unref(mod);
	if (err > 0) {
		say("%s is blacklisted: `grep -r ringgate /etc/modprobe.d`", path);
		return EXIT_FAIL;
	}
	return err ? explain(path, err) : EXIT_OK;
}

/* udev, where it runs, sets owner and mode a moment after the device appears. */
static bool wait_device(void)
{
	uint64_t end = util_now() + 2 * NSEC;

	while (access(RGATE_DEVICE, R_OK | W_OK)) {
		if (util_now() > end)
			return false;
		util_sleep(util_now() + 10000000);
	}
	return true;
}

static int already_loaded(const struct load_args *a)
{
	char version[64] = "?";

	module_attr("version", version, sizeof(version));
	say("version %s is loaded already%s", version,
	    a->options || a->path ?
	    ": run `ringgate unload` first to load it anew" : "");
	return a->options || a->path ? EXIT_FAIL : EXIT_OK;
}

/* Is there any use in trying? That a file is missing comes before that sudo is. */
static int check_may(const struct load_args *a)
{
	enum module_bar bar = module_bar();
	char path[PATH_MAX];

	if (bar == MODULE_BAR_NONE ||
	    (bar == MODULE_BAR_USER && !a->path && !module_built(path) && !module_installed(path)))
		return EXIT_OK;
	say("%s", module_bar_text(bar));
	return EXIT_FAIL;
}

int cmd_load(int argc, char **argv)
{
	struct load_args a = { 0 };
	char built[PATH_MAX], version[64] = "?";
	struct kmod_ctx *ctx;
	int ret;

	cmd_parse(&argp, argc, argv, &a);
	if (module_loaded()) {
		ret = already_loaded(&a);
		goto out;
	}
	ret = check_may(&a);
	if (ret)
		goto out;
	ctx = module_kmod();
	if (!ctx) {
		ret = fail(-ENOMEM, "libkmod");
		goto out;
	}
	if (!a.path && !a.installed && module_built(built))
		a.path = built;
	ret = a.path ? load_path(ctx, a.path, a.options) :
		       load_installed(ctx, a.options);
	kmod_unref(ctx);
	if (ret)
		goto out;
	module_attr("version", version, sizeof(version));
	printf("loaded ringgate %s%s%s\n", version, a.path ? " from " : "",
	       a.path ?: "");
	if (!wait_device())
		say("the module is loaded, and %s cannot be opened: `ringgate doctor`",
		    RGATE_DEVICE);
out:
	free(a.options);
	return ret;
}
