// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate doctor: what is missing on this machine, and what mends it. */
#include <stdio.h>
#include <unistd.h>

#include "cmd.h"
#include "doctor.h"
#include "json.h"
#include "util.h"

struct doctor_args {
	bool json;
	bool userspace;
};

static const struct argp_option options[] = {
	OPT_JSON,
	{ "userspace", 'u', NULL, 0, "The exit status is about the userspace "
	  "source, not the module", 0 },
	{ 0 }
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct doctor_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		break;
	case 'u':
		a->userspace = true;
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
	.doc = "Say what is missing on this machine, and the command that mends "
	       "it.\v"
	       "Exit status 0: rings of the module (or with --userspace those "
	       "of the userspace source) can be used here and now; 1: they "
	       "cannot.",
};

static const char *const state_names[] = {
	[CHECK_OK] = "ok",
	[CHECK_WARN] = "warn",
	[CHECK_MISSING] = "missing",
};

static bool usable(const struct check *v, size_t n, unsigned int need)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (v[i].need & need && v[i].state == CHECK_MISSING)
			return false;
	return true;
}

static void print_text(const struct check *v, size_t n)
{
	static const char *const colours[] = { "\033[32m", "\033[33m",
					       "\033[31m" };
	bool colour = isatty(STDOUT_FILENO);
	size_t i;

	for (i = 0; i < n; i++) {
		printf("%s%-7s%s  %-17s  %s\n",
		       colour ? colours[v[i].state] : "",
		       state_names[v[i].state], colour ? "\033[0m" : "",
		       v[i].name, v[i].text);
		if (*v[i].fix)
			printf("%28s-> %s\n", "", v[i].fix);
	}
	printf("\nmodule rings: %susable; userspace source: %susable\n",
	       usable(v, n, NEED_MODULE) ? "" : "not ",
	       usable(v, n, NEED_USERSPACE) ? "" : "not ");
}

static void print_json(const struct check *v, size_t n)
{
	struct json j;
	size_t i;

	json_init(&j, stdout, true);
	json_object(&j, NULL);
	json_bool(&j, "module_usable", usable(v, n, NEED_MODULE));
	json_bool(&j, "userspace_usable", usable(v, n, NEED_USERSPACE));
	json_array(&j, "checks");
	for (i = 0; i < n; i++) {
		json_object(&j, NULL);
		json_str(&j, "name", v[i].name);
		json_str(&j, "state", state_names[v[i].state]);
		json_str(&j, "text", v[i].text);
		json_str(&j, "fix", *v[i].fix ? v[i].fix : NULL);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	json_end(&j);
}

int cmd_doctor(int argc, char **argv)
{
	struct check checks[CHECKS_MAX];
	struct doctor_args a = { 0 };
	size_t n;

	cmd_parse(&argp, argc, argv, &a);
	n = doctor_run(checks);
	if (a.json)
		print_json(checks, n);
	else
		print_text(checks, n);
	return usable(checks, n, a.userspace ? NEED_USERSPACE : NEED_MODULE) ?
	       EXIT_OK : EXIT_FAIL;
}
