// SPDX-License-Identifier: MIT OR GPL-2.0
#include "module.h"

#include "util.h"

/* That all peers go when the daemon ends is no news: so who tells of them is stopped first. */
static const struct module *const modules[] = {
	&gateway_module,
	&inlet_module,
	&spawn_module,
	&requests_module,
	&agents_module,
	&peers_module,
};

int modules_check(struct daemon *d)
{
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < ARRAY_SIZE(modules); i++)
		if (modules[i]->check)
			err = modules[i]->check(d);
	return err;
}

static void discard(struct daemon *d, unsigned int n)
{
	while (n--)
		if (modules[n]->discard)
			modules[n]->discard(d);
}

int modules_prepare(struct daemon *d)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(modules); i++) {
		err = modules[i]->prepare ? modules[i]->prepare(d) : 0;
		if (err)
			break;
	}
	if (err)
		discard(d, i);
	return err;
}

void modules_discard(struct daemon *d)
{
	discard(d, ARRAY_SIZE(modules));
}

static void close_some(struct daemon *d, unsigned int n)
{
	while (n--)
		if (modules[n]->close)
			modules[n]->close(d);
}

int modules_open(struct daemon *d)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(modules); i++) {
		err = modules[i]->open ? modules[i]->open(d) : 0;
		if (err)
			break;
	}
	if (err)
		close_some(d, i);
	return err;
}

void modules_close(struct daemon *d)
{
	close_some(d, ARRAY_SIZE(modules));
}

static void stop(struct daemon *d, unsigned int n)
{
	while (n--)
		if (modules[n]->stop)
			modules[n]->stop(d);
}

int modules_start(struct daemon *d)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(modules); i++) {
		err = modules[i]->start ? modules[i]->start(d) : 0;
		if (err)
			break;
	}
	if (err)
		stop(d, i);
	return err;
}

void modules_stop(struct daemon *d)
{
	stop(d, ARRAY_SIZE(modules));
}

void modules_reload(struct daemon *d)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(modules); i++)
		if (modules[i]->reload && modules[i]->reload(d) > 0)
			say("%s again", modules[i]->files);
}

void modules_status_json(struct daemon *d, struct json *j)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(modules); i++)
		if (modules[i]->status_json)
			modules[i]->status_json(d, j);
}

void modules_status_text(struct daemon *d, FILE *f)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(modules); i++)
		if (modules[i]->status_text)
			modules[i]->status_text(d, f);
}

void modules_peer_json(struct daemon *d, struct json *j, uint32_t node)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(modules); i++)
		if (modules[i]->peer_json)
			modules[i]->peer_json(d, j, node);
}

void modules_counters(struct daemon *d, FILE *f)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(modules); i++)
		if (modules[i]->counters)
			modules[i]->counters(d, f);
}
