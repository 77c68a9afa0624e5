// SPDX-License-Identifier: MIT OR GPL-2.0
/* The table of `ringgate probe`: kinds of memory by what can be done with them. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ringgate/rgate_mem.h>

#include "cmd.h"
#include "json.h"
#include "probe_child.h"
#include "probe_fs.h"
#include "probe_row.h"
#include "probe_why.h"
#include "table.h"
#include "util.h"

#define ROWS_MAX	32
#define ENV_SECONDS	60
#define ROW_SECONDS	90

/* What children write is shared with them; one mapping for all. */
struct result {
	struct probe_env env;
	struct probe_row rows[ROWS_MAX];
};

static const struct {
	const char *title, *key;
} cols[COLS] = {
	[COL_LOCAL] = { "LOCAL", "local_write" },
	[COL_READ] = { "READ", "remote_read" },
	[COL_WRITE] = { "WRITE", "remote_write" },
	[COL_ATOMIC] = { "ATOMIC", "remote_atomic" },
	[COL_RELAXED] = { "RELAXED", "relaxed_ordering" },
	[COL_READONLY] = { "RDONLY", "read_only" },
	[COL_ODP] = { "ODP", "on_demand" },
	[COL_TRANSFER] = { "TRANSFER", "transfer" },
	[COL_PIN] = { "KERNEL", "kernel" },
	[COL_COPY] = { "COPY", "kernel_copy" },
	[COL_CPU] = { "CPU", "cpu" },
	[COL_GPU] = { "GPU", "gpu" },
};

static const char *cell_text(const struct result *r, const struct probe_row *row,
			     enum probe_col col)
{
	const struct probe_cell *c = &row->cell[col];

	if (c->state == PROBE_OK)
		return "ok";
	if (c->state == PROBE_FAILED)
		return probe_err_name(c->err);
	return r->env.device_err && col < COLS_RDMA ? "no device" : "-";
}

static void progress(const char *name)
{
	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K");
	if (name)
		fprintf(stderr, "%s...", name);
}

static int probe_rows(const struct probe_opts *o, struct result *r)
{
	const struct probe_type *t;
	unsigned int i;
	int err;

	for (i = 0; (t = probe_type(i)) && i < ROWS_MAX && !util_stop; i++) {
		struct probe_job job = { t, &r->env, o->dir, &r->rows[i] };

		if (o->only && strcmp(o->only, t->name))
			continue;
		progress(t->name);
		err = probe_child(probe_row, &job, ROW_SECONDS, &r->rows[i].end,
				  &r->rows[i].end_value);
		if (err)
			return err;
	}
	progress(NULL);
	return 0;
}

static bool shown(const struct probe_opts *o, const struct probe_type *t)
{
	return !o->only || !strcmp(o->only, t->name);
}

static void print_head(const struct probe_opts *o, const struct result *r)
{
	const struct rgate_device_info *d = &r->env.device;

	if (r->env.device_err)
		printf("RDMA: no device (%s)\n", probe_err_name(r->env.device_err));
	else
		printf("RDMA: %s port %u, %s, %s\n", d->name, d->port,
		       *d->driver ? d->driver : "unknown driver", d->addr);
	printf("GPU: %s\n", r->env.gpu_err ? r->env.gpu_why : r->env.gpu);
	printf("files: %s (%s)\n\n", o->dir, r->env.fs);
}

/* Without a device one column says so, not eight. */
static int add_cells(struct table *t, const struct result *r, const struct probe_row *row)
{
	unsigned int i;
	int err = 0;

	if (r->env.device_err)
		err = table_cell(t, "no device");
	for (i = r->env.device_err ? COLS_RDMA : 0; !err && i < COLS; i++)
		err = table_cell(t, "%s", cell_text(r, row, i));
	return err;
}

static void titles(const struct result *r, char *buf, size_t len)
{
	size_t n = (size_t)snprintf(buf, len, "<MEMORY%s", r->env.device_err ? " RDMA" : "");
	unsigned int i;

	for (i = r->env.device_err ? COLS_RDMA : 0; i < COLS && n < len; i++)
		n += (size_t)snprintf(buf + n, len - n, " %s", cols[i].title);
}

static int print_rows(const struct probe_opts *o, const struct result *r)
{
	const struct probe_type *t;
	struct table table;
	unsigned int i;
	char head[256];
	int err;

	titles(r, head, sizeof(head));
	err = table_init(&table, head);
	for (i = 0; !err && (t = probe_type(i)); i++) {
		if (!shown(o, t))
			continue;
		err = table_cell(&table, "%s", t->name);
		if (!err)
			err = add_cells(&table, r, &r->rows[i]);
	}
	if (!err)
		table_print(&table, stdout);
	table_free(&table);
	return err;
}

/* What is told below the table: once, for all kinds that it is true of */
struct remark {
	char names[512], text[1024];
};

struct remarks {
	struct remark *v;
	size_t n;
};

static void remark(struct remarks *all, const char *name, const char *text)
{
	struct remark *v;
	size_t i, len;

	for (i = 0; i < all->n && strcmp(all->v[i].text, text); i++)
		;
	if (i == all->n) {
		v = reallocarray(all->v, all->n + 1, sizeof(*v));
		if (!v)
			return;
		all->v = v;
		all->n++;
		v[i] = (struct remark){ 0 };
		snprintf(v[i].text, sizeof(v[i].text), "%s", text);
	}
	len = strlen(all->v[i].names);
	snprintf(all->v[i].names + len, sizeof(all->v[i].names) - len, "%s%s",
		 len ? ", " : "", name);
}

/* Columns that failed alike are told together. */
static void remark_cells(struct remarks *all, const struct result *r,
			 const struct probe_type *t, const struct probe_row *row)
{
	bool told[COLS] = { false };
	unsigned int i, k;

	for (i = 0; i < COLS; i++) {
		const struct probe_cell *c = &row->cell[i];
		char titles[128], text[1024];
		const char *why;
		size_t n;

		if (c->state != PROBE_FAILED || told[i])
			continue;
		why = probe_why(t, &r->env, i, c);
		n = (size_t)snprintf(titles, sizeof(titles), "%s", cols[i].title);
		for (k = i + 1; k < COLS; k++) {
			const struct probe_cell *other = &row->cell[k];

			if (other->state != PROBE_FAILED || other->err != c->err ||
			    probe_why(t, &r->env, k, other) != why || n >= sizeof(titles))
				continue;
			told[k] = true;
			n += (size_t)snprintf(titles + n, sizeof(titles) - n, ", %s",
					      cols[k].title);
		}
		n = (size_t)snprintf(text, sizeof(text), "%s: %s: %s", titles,
				     probe_err_name(c->err), why);
		if ((i == COL_GPU || i == COL_TRANSFER) && *c->why)
			snprintf(text + n, sizeof(text) - n, " (%s)", c->why);
		remark(all, t->name, text);
	}
}

static void remark_row(struct remarks *all, const struct result *r,
		       const struct probe_type *t, const struct probe_row *row)
{
	char text[2 * PROBE_TEXT];

	probe_why_ended(row, text, sizeof(text));
	if (*text)
		remark(all, t->name, text);
	if (row->made < 0)
		snprintf(text, sizeof(text), "not probed: %s", row->note);
	else
		snprintf(text, sizeof(text), "%s", row->note);
	if (*text)
		remark(all, t->name, text);
	if (row->device_err) {
		snprintf(text, sizeof(text), "the device could not be opened: %s",
			 rgate_strerror("rgate_mem_", row->device_err));
		remark(all, t->name, text);
	}
	remark_cells(all, r, t, row);
}

static void explain(const struct probe_opts *o, const struct result *r)
{
	struct remarks all = { 0 };
	const struct probe_type *t;
	size_t i;

	if (r->env.device_err)
		remark(&all, "RDMA", *r->env.device_why ? r->env.device_why :
		       rgate_strerror("rgate_mem_", r->env.device_err));
	for (i = 0; (t = probe_type(i)); i++)
		if (shown(o, t))
			remark_row(&all, r, t, &r->rows[i]);
	if (all.n)
		putchar('\n');
	for (i = 0; i < all.n; i++)
		printf("%s: %s\n", all.v[i].names, all.v[i].text);
	free(all.v);
}

/* The library makes a device an object of its own. */
static void json_device(struct json *j, const struct probe_env *env)
{
	char *text = NULL;
	int n;

	n = env->device_err ? -1 : rgate_device_json(&env->device, NULL, 0);
	if (n > 0)
		text = malloc((size_t)n + 1);
	if (text)
		n = rgate_device_json(&env->device, text, (size_t)n + 1);
	json_raw(j, "device", text && n > 0 ? text : "null");
	free(text);
	json_str(j, "device_error", env->device_err ? probe_err_name(env->device_err) : NULL);
	json_str(j, "device_why", env->device_err ? *env->device_why ? env->device_why :
		 rgate_strerror("rgate_mem_", env->device_err) : NULL);
}

static void json_cell(struct json *j, const struct result *r, const struct probe_type *t,
		      const struct probe_row *row, enum probe_col col)
{
	const struct probe_cell *c = &row->cell[col];

	json_object(j, cols[col].key);
	json_str(j, "result", cell_text(r, row, col));
	if (c->state == PROBE_FAILED) {
		json_str(j, "why", probe_why(t, &r->env, col, c));
		json_str(j, "said", *c->why ? c->why : NULL);
	}
	json_object_end(j);
}

static void json_row(struct json *j, const struct result *r, const struct probe_type *t,
		     const struct probe_row *row)
{
	char ended[PROBE_TEXT];
	unsigned int i;

	probe_why_ended(row, ended, sizeof(ended));
	json_object(j, NULL);
	json_str(j, "name", t->name);
	json_str(j, "what", t->what);
	json_bool(j, "probed", row->made == 1);
	json_str(j, "error", row->made < 0 ? probe_err_name(row->made) : NULL);
	json_str(j, "note", *row->note ? row->note : NULL);
	json_str(j, "ended", *ended ? ended : NULL);
	json_u64(j, "length", row->len);
	json_u64(j, "page_size", row->page);
	for (i = 0; i < COLS; i++)
		json_cell(j, r, t, row, i);
	json_object_end(j);
}

static void print_json(const struct probe_opts *o, const struct result *r)
{
	const struct probe_type *t;
	struct utsname uts = { 0 };
	unsigned int i;
	struct json j;

	uname(&uts);
	json_init(&j, stdout, true);
	json_object(&j, NULL);
	json_str(&j, "kernel", uts.release);
	json_device(&j, &r->env);
	json_str(&j, "gpu", r->env.gpu_err ? NULL : r->env.gpu);
	json_str(&j, "gpu_why", r->env.gpu_err ? r->env.gpu_why : NULL);
	json_str(&j, "directory", o->dir);
	json_str(&j, "file_system", r->env.fs);
	json_array(&j, "memory");
	for (i = 0; (t = probe_type(i)); i++)
		if (shown(o, t))
			json_row(&j, r, t, &r->rows[i]);
	json_array_end(&j);
	json_object_end(&j);
	json_end(&j);
}

static int find_env(const struct probe_opts *o, struct result *r)
{
	struct probe_env_job job = { o->device, o->dir, &r->env };
	enum probe_end end;
	int value, err;

	/* for the case that the child does not come to say so */
	r->env.device_err = r->env.gpu_err = -EIO;
	snprintf(r->env.gpu_why, sizeof(r->env.gpu_why), "asking for it did not end well");
	err = probe_fs(o->dir, r->env.fs, sizeof(r->env.fs));
	if (err) {
		say("%s: %s: give another directory with --dir", o->dir,
		    strerrordesc_np(-err));
		return EXIT_FAIL;
	}
	progress("devices");
	err = probe_child(probe_env, &job, ENV_SECONDS, &end, &value);
	progress(NULL);
	if (err)
		return fail(err, "cannot start a process");
	if (o->device && r->env.device_err)
		return probe_fail(r->env.device_err, o->device, r->env.device_why);
	return EXIT_OK;
}

static bool known(const char *name)
{
	const struct probe_type *t;
	unsigned int i;

	for (i = 0; (t = probe_type(i)); i++)
		if (!strcmp(t->name, name))
			return true;
	say("there is no kind of memory '%s'; without --memory all are shown", name);
	return false;
}

int probe_table(const struct probe_opts *o)
{
	struct result *r;
	int ret, err;

	if (o->only && !known(o->only))
		return EXIT_USAGE;
	r = probe_shared(sizeof(*r));
	if (!r)
		return fail(-ENOMEM, "cannot begin");
	util_catch_signals();
	ret = find_env(o, r);
	if (ret)
		goto out;
	err = probe_rows(o, r);
	if (err) {
		ret = fail(err, "cannot start a process");
		goto out;
	}
	if (util_stop) {
		ret = EXIT_FAIL;
		goto out;
	}
	if (o->json) {
		print_json(o, r);
	} else {
		print_head(o, r);
		if (print_rows(o, r))
			ret = fail(-ENOMEM, "cannot print");
		else
			explain(o, r);
	}
out:
	probe_unshare(r, sizeof(*r));
	return ret;
}
