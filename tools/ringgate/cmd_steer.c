// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate steer: which node gets which frames. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "daemon.h"
#include "util.h"

#define REQUEST_MAX	4000

struct steer_args {
	const char *socket;
	const char *before;
	const char *verb;
	bool json;
	size_t len;
	char rule[REQUEST_MAX];
};

static int do_list(const struct steer_args *a)
{
	char *text;
	int ret = daemon_ask(a->socket, a->json ? "steer list-json" : "steer list", &text);

	if (ret == EXIT_OK)
		fputs(text, stdout);
	free(text);
	return ret;
}

static int change(const struct steer_args *a, const char *verb)
{
	char request[REQUEST_MAX + 128], *text;
	int ret;

	if (a->before)
		snprintf(request, sizeof(request), "steer insert %s %s", a->before, a->rule);
	else
		snprintf(request, sizeof(request), "steer %s %s", verb, a->rule);
	ret = daemon_ask(a->socket, request, &text);
	free(text);
	return ret;
}

/* A rule may be given as one argument or as several. */
static void add_word(struct steer_args *a, struct argp_state *state, const char *word)
{
	const size_t len = strlen(word);

	if (a->len + len + 2 > sizeof(a->rule) || strchr(word, '\n'))
		argp_error(state, "a rule is one line of less than %d bytes", REQUEST_MAX);
	if (a->len)
		a->rule[a->len++] = ' ';
	memcpy(a->rule + a->len, word, len + 1);
	a->len += len;
}

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct steer_args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		break;
	case 's':
		a->socket = arg;
		break;
	case 'b':
		if (!*arg || strlen(arg) > 100 || strchr(arg, ' '))
			argp_error(state, "'%s' is no rule's name", arg);
		a->before = arg;
		break;
	case ARGP_KEY_ARG:
		if (!a->verb)
			a->verb = arg;
		else
			add_word(a, state, arg);
		break;
	case ARGP_KEY_END:
		if (!a->verb)
			argp_error(state, "list, add or remove?");
		else if (strcmp(a->verb, "list") && !a->len)
			argp_error(state, "%s what?", a->verb);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp_option options[] = {
	OPT_JSON,
	{ "socket", 's', "PATH", 0, "The daemon's socket", 0 },
	{ "before", 'b', "NAME", 0, "add: in front of that rule, not behind all but default", 0 },
	{ 0 }
};

static const struct argp argp = {
	.options = options,
	.parser = parse_opt,
	.args_doc = "list\nadd NAME TARGET [full=wait|drop] [down=next|drop] [FILTER]\nremove NAME",
	.doc = "Which node of the cluster gets which frames: rules of the gateway, of which "
	       "the first that matches wins; the one named default is always the last. They "
	       "hold from the next frame on, and are kept in the gateway's file.\v"
	       "TARGET is node:NODE[/RING], hash:NODE,... (flows spread over nodes; * is "
	       "all), all:NODE,... (copies) or drop. FILTER is tcpdump's language.\n\n"
	       "Example: ringgate steer add dns node:1 udp port 53",
};

int cmd_steer(int argc, char **argv)
{
	struct steer_args a = { 0 };

	cmd_parse(&argp, argc, argv, &a);
	if (!strcmp(a.verb, "list"))
		return do_list(&a);
	if (!strcmp(a.verb, "add"))
		return change(&a, "add");
	if (!strcmp(a.verb, "remove")) {
		a.before = NULL;
		return change(&a, "remove");
	}
	say("'%s' is none of list, add, remove", a.verb);
	return EXIT_USAGE;
}
