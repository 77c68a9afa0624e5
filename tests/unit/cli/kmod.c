// SPDX-License-Identifier: MIT OR GPL-2.0
#include "unit.h"

#include <errno.h>
#include <libkmod.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "kmod.h"

struct fake_kmod fake_kmod;

/* One of each at a time, but for contexts and modules, which are counted. */
struct kmod_ctx {
	int n;
};

struct kmod_module {
	int n;
	char name[300];
};

struct kmod_list {
	const char *key, *value;
	struct kmod_module *mod;
	struct kmod_list *next;
};

static struct kmod_ctx ctx;
static struct kmod_module ours, other;
static struct kmod_list info[2], holders;

struct kmod_ctx *kmod_new(const char *dir, const char *const *paths)
{
	(void)dir;
	(void)paths;
	if (fake_kmod.no_context)
		return NULL;
	ctx.n++;
	return &ctx;
}

struct kmod_ctx *kmod_unref(struct kmod_ctx *c)
{
	if (c->n-- <= 0)
		fputs("kmod: too many unrefs\n", stderr);
	return NULL;
}

void kmod_set_log_priority(struct kmod_ctx *c, int priority)
{
	(void)c;
	if (priority)
		fprintf(stderr, "kmod: it may print, at %d\n", priority);
}

static struct kmod_module *get(struct kmod_module *m, const char *name)
{
	snprintf(m->name, sizeof(m->name), "%s", name);
	m->n++;
	return m;
}

struct kmod_module *kmod_module_unref(struct kmod_module *m)
{
	if (m->n-- <= 0)
		fputs("kmod: too many unrefs of a module\n", stderr);
	return NULL;
}

int kmod_module_new_from_lookup(struct kmod_ctx *c, const char *name, struct kmod_list **list)
{
	(void)c;
	if (!fake_kmod.installed)
		return 0;
	holders = (struct kmod_list){ .mod = &ours };
	get(&ours, name)->n--;
	*list = &holders;
	return 0;
}

struct kmod_module *kmod_module_get_module(const struct kmod_list *entry)
{
	entry->mod->n++;
	return entry->mod;
}

const char *kmod_module_get_path(const struct kmod_module *m)
{
	(void)m;
	return fake_kmod.installed;
}

const char *kmod_module_get_name(const struct kmod_module *m)
{
	return m->name;
}

int kmod_module_unref_list(struct kmod_list *list)
{
	(void)list;
	return 0;
}

struct kmod_list *kmod_list_next(const struct kmod_list *list, const struct kmod_list *cur)
{
	(void)list;
	return cur->next;
}

int kmod_module_new_from_path(struct kmod_ctx *c, const char *path, struct kmod_module **m)
{
	(void)c;
	if (fake_kmod.no_module)
		return -ENOEXEC;
	*m = get(&ours, path);
	return 0;
}

int kmod_module_new_from_name(struct kmod_ctx *c, const char *name, struct kmod_module **m)
{
	(void)c;
	if (fake_kmod.no_module)
		return -ENOMEM;
	*m = get(strcmp(name, "ringgate") ? &other : &ours, name);
	return 0;
}

int kmod_module_get_info(const struct kmod_module *m, struct kmod_list **list)
{
	(void)m;
	if (!fake_kmod.vermagic && !fake_kmod.depends)
		return -ENOENT;
	info[0] = (struct kmod_list){ .key = "depends", .value = fake_kmod.depends ?: "",
				      .next = fake_kmod.vermagic ? &info[1] : NULL };
	info[1] = (struct kmod_list){ .key = "vermagic", .value = fake_kmod.vermagic };
	*list = info;
	return 2;
}

const char *kmod_module_info_get_key(const struct kmod_list *entry)
{
	return entry->key;
}

const char *kmod_module_info_get_value(const struct kmod_list *entry)
{
	return entry->value;
}

void kmod_module_info_free_list(struct kmod_list *list)
{
	(void)list;
}

static int loaded(void)
{
	if (fake_kmod.insert)
		return fake_kmod.insert;
	cli_file("/sys/module/ringgate/version", "0.1.0\n");
	if (!fake_kmod.no_device)
		cli_file("/dev/ringgate", "");
	return 0;
}

int kmod_module_insert_module(struct kmod_module *m, unsigned int flags, const char *options)
{
	fprintf(stderr, "kmod: insert %s flags %u options %s\n",
		m->name + (strncmp(m->name, cli.root, strlen(cli.root)) ? 0 : strlen(cli.root)),
		flags, options ?: "none");
	return loaded();
}

int kmod_module_probe_insert_module(struct kmod_module *m, unsigned int flags, const char *options,
				    int (*run)(struct kmod_module *m, const char *cmd, void *data),
				    const void *data,
				    void (*print)(struct kmod_module *m, bool install,
						  const char *options))
{
	(void)run;
	(void)data;
	(void)print;
	fprintf(stderr, "kmod: probe %s flags %#x options %s\n", m->name, flags, options ?: "none");
	return m == &ours ? loaded() : 0;
}

int kmod_module_remove_module(struct kmod_module *m, unsigned int flags)
{
	fprintf(stderr, "kmod: remove %s flags %u\n", m->name, flags);
	if (fake_kmod.busy) {
		fake_kmod.busy--;
		return -EAGAIN;
	}
	return fake_kmod.remove;
}

int kmod_module_get_refcnt(const struct kmod_module *m)
{
	(void)m;
	return 3;
}

struct kmod_list *kmod_module_get_holders(const struct kmod_module *m)
{
	(void)m;
	if (!fake_kmod.holder)
		return NULL;
	get(&other, fake_kmod.holder)->n--;
	holders = (struct kmod_list){ .mod = &other };
	return &holders;
}

/* What was not given back, at the end of a command */
__attribute__((destructor))
static void left(void)
{
	if (ctx.n || ours.n || other.n)
		fprintf(stderr, "kmod: %d contexts, %d and %d modules are left\n", ctx.n, ours.n,
			other.n);
}
