// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate status: the module, the rings and the attachments. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "fmt.h"
#include "module.h"
#include "names.h"
#include "snapshot.h"
#include "table.h"
#include "util.h"

static const struct argp_option options[] = { OPT_JSON, { 0 } };

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	bool *json = state->input;

	switch (key) {
	case 'j':
		*json = true;
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
	.doc = "Show the kernel module, and the rings and attachments of this "
	       "network namespace.\vExit status 3: the module is not loaded.",
};

static void json_parameters(struct json *j)
{
	char path[300], value[256];
	struct dirent *e;
	DIR *d;

	json_object(j, "parameters");
	d = opendir("/sys/module/" MODULE_NAME "/parameters");
	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "parameters/%s", e->d_name);
		if (*e->d_name != '.' && module_attr(path, value, sizeof(value)))
			json_str(j, e->d_name, value);
	}
	if (d)
		closedir(d);
	json_object_end(j);
}

static void json_module(struct json *j, bool loaded)
{
	char v[64];

	json_object(j, "module");
	json_bool(j, "loaded", loaded);
	if (loaded) {
		json_str(j, "version", module_attr("version", v, sizeof(v)) ?
			 v : NULL);
		json_str(j, "srcversion",
			 module_attr("srcversion", v, sizeof(v)) ? v : NULL);
		if (module_attr("refcnt", v, sizeof(v)))
			json_u64(j, "references", strtoull(v, NULL, 10));
		json_parameters(j);
	}
	json_object_end(j);
}

static void status_json(bool loaded, const struct snapshot *s)
{
	struct json j;
	size_t i;

	json_init(&j, stdout, true);
	json_object(&j, NULL);
	json_str(&j, "version", rgate_version());
	json_module(&j, loaded);
	json_array(&j, "rings");
	for (i = 0; i < s->nrings; i++) {
		json_object(&j, NULL);
		json_ring(&j, &s->rings[i]);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_array(&j, "attachments");
	for (i = 0; i < s->natts; i++) {
		json_object(&j, NULL);
		json_att(&j, &s->atts[i]);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	json_end(&j);
}

static void print_module(void)
{
	char version[64] = "?", refs[32] = "?";

	module_attr("version", version, sizeof(version));
	module_attr("refcnt", refs, sizeof(refs));
	printf("module: loaded, version %s, %s reference%s\n", version, refs,
	       strcmp(refs, "1") ? "s" : "");
	printf("tool and library: version %s\n", rgate_version());
}

static void cell_flags(struct table *t, uint32_t flags)
{
	const char *rw = flags & RGATE_RING_TRANSMIT ? "transmit" :
			 flags & RGATE_RING_RW_SLOTS ? "rw" : "";

	if (!(flags & RGATE_RING_CHAIN))
		table_cell(t, "%s", *rw ? rw : "-");
	else
		table_cell(t, "chain%s%s", *rw ? "," : "", rw);
}

static void print_rings(const struct snapshot *s)
{
	char mem[FMT_LEN];
	struct table t;
	size_t i;

	if (!s->nrings) {
		printf("\nno rings in this network namespace\n");
		return;
	}
	table_init(&t, "RING <NAME SLOTS SIZE MEMORY <POLICY <CLOCK <FLAGS "
		   "HANDLES NODE UID DELIVERED");
	for (i = 0; i < s->nrings; i++) {
		const struct rgate_ring_info *r = &s->rings[i];
		uint32_t f = r->flags;

		table_cell(&t, "%u", r->ring_id);
		table_cell(&t, "%s", r->name);
		table_cell(&t, "%u", r->slots);
		table_cell(&t, "%u", r->slot_size);
		table_cell(&t, "%s", fmt_bytes(mem, r->mem_bytes));
		table_cell(&t, "%s", policy_name(r->policy));
		table_cell(&t, "%s", clock_name(r->clock));
		cell_flags(&t, f);
		table_cell(&t, "%u", r->handles);
		table_cell(&t, r->node < 0 ? "any" : "%d", r->node);
		table_cell(&t, "%u", r->uid);
		table_cell(&t, "%llu",
			   (unsigned long long)r->stats.delivered);
	}
	putchar('\n');
	table_print(&t, stdout);
	table_free(&t);
}

static void cell_rings(struct table *t, const struct rgate_att_info *a)
{
	char text[12 * RGATE_ATT_RINGS_MAX] = "";
	size_t n = 0;
	uint32_t i;

	for (i = 0; i < a->nrings; i++)
		n += snprintf(text + n, sizeof(text) - n, "%s%u", i ? "," : "",
			      a->rings[i].id);
	table_cell(t, "%s", text);
}

/* What becomes of the frames, and by which of the rings; of those that go out, by whom */
static void cells_action(struct table *t, const struct rgate_att_info *a)
{
	if (a->kind != RGATE_KIND_TRANSMIT) {
		table_cell(t, "%s", action_name(a->action));
		table_cell(t, "%s", fanout_name(a->fanout));
		return;
	}
	table_cell(t, "transmit");
	table_cell(t, a->thread ? "thread %u%%" : "-", a->thread);
}

static void print_atts(const struct snapshot *s)
{
	struct table t;
	size_t i;

	if (!s->natts) {
		printf("\nno attachments in this network namespace\n");
		return;
	}
	table_init(&t, "ATTACHMENT <DEVICE <RINGS <ACTION <FANOUT SAMPLE "
		   "<FILTER PRIORITY SEEN DELIVERED");
	for (i = 0; i < s->natts; i++) {
		const struct rgate_att_info *a = &s->atts[i];

		table_cell(&t, "%u", a->att_id);
		table_cell(&t, "%s", a->ifname);
		cell_rings(&t, a);
		cells_action(&t, a);
		table_cell(&t, a->sample > 1 ? "1/%u" : "all", a->sample);
		if (a->kind == RGATE_KIND_XDP)
			table_cell(&t, "XDP program");
		else
			table_cell(&t, a->filter_len ? "%u instructions" : "none",
				   a->filter_len);
		table_cell(&t, "%d", a->priority);
		table_cell(&t, "%llu", (unsigned long long)a->seen);
		table_cell(&t, "%llu", (unsigned long long)a->delivered);
	}
	putchar('\n');
	table_print(&t, stdout);
	table_free(&t);
}

int cmd_status(int argc, char **argv)
{
	struct snapshot s = { 0 };
	struct rgate_ctl *ctl;
	bool json = false;
	int err, ret;

	cmd_parse(&argp, argc, argv, &json);
	if (!module_loaded()) {
		if (json)
			status_json(false, &s);
		else
			printf("module: not loaded (run `ringgate load`)\n"
			       "tool and library: version %s\n",
			       rgate_version());
		return EXIT_NO_MODULE;
	}
	ret = ctl_open(&ctl);
	if (ret)
		return ret;
	err = snapshot_get(&s, ctl);
	if (err) {
		ret = fail(err, "cannot list rings and attachments");
	} else if (json) {
		status_json(true, &s);
	} else {
		print_module();
		print_rings(&s);
		print_atts(&s);
	}
	snapshot_free(&s);
	rgate_ctl_close(ctl);
	return ret;
}
