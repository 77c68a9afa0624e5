// SPDX-License-Identifier: MIT OR GPL-2.0
/* The gateway's rings and rules. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "address.h"
#include "file.h"
#include "gateway.h"
#include "util.h"

#define STEER_FILE_MAX	(1U << 20)

static int open_module(const struct source_conf *c, struct source *s, struct rgate_ring_opts *o)
{
	const struct rgate_attach_opts a = RGATE_OPTS(rgate_attach_opts, .filter = c->filter,
						      .action = c->steal ?
						      RGATE_ACTION_STEAL : RGATE_ACTION_MIRROR);
	int err;

	/* The device reads the slots: see rgate_gateway_add() */
	o->flags |= RGATE_RING_RW_SLOTS;
	err = rgate_ring_open(&s->ring, o);
	if (err) {
		(void)fail(err, "no ring for %s", c->at);
		return err;
	}
	err = rgate_ring_attach(s->ring, c->at, &a, NULL);
	if (err) {
		say("cannot attach a ring to %s: %s", c->at,
		    rgate_strerror("rgate_ctl_attach", err));
		rgate_ring_close(s->ring);
	}
	return err;
}

static int start_udp(const struct source_conf *c, struct source *s,
		     const struct rgate_source_opts *so)
{
	struct sockaddr_storage addr;
	const char *why;
	socklen_t len;
	int err;

	err = address_parse(c->at, &addr, &len, &why);
	if (err)
		return err;
	return rgate_source_start_udp(&s->src, &s->ring, 1, (const struct sockaddr *)&addr, len,
				      so);
}

static int open_socket(const struct source_conf *c, struct source *s,
		       const struct rgate_ring_opts *o)
{
	const struct rgate_source_opts so = RGATE_OPTS(rgate_source_opts, .filter = c->filter,
						       .rcvbuf = 16 << 20, .driven = 1);
	int err;

	err = rgate_ring_open_memfd(&s->ring, o);
	if (err) {
		say("no ring for %s: %s", c->at, rgate_strerror("rgate_ring_open", err));
		return err;
	}
	if (c->kind == SOURCE_UDP)
		err = start_udp(c, s, &so);
	else
		err = rgate_source_start_packet(&s->src, &s->ring, 1, c->at, &so);
	if (err) {
		say("cannot receive from %s: %s", c->at, rgate_strerror("rgate_source_", err));
		rgate_ring_close(s->ring);
	}
	return err;
}

static void close_source(struct daemon *d, struct source *s)
{
	if (!s->ring)
		return;
	if (s->added)
		(void)rgate_gateway_remove(d->gw, s->ring);
	if (s->src)
		rgate_source_stop(s->src);
	rgate_ring_close(s->ring);
	memset(s, 0, sizeof(*s));
}

static int open_source(struct daemon *d, unsigned int i)
{
	const struct source_conf *c = &d->conf.sources[i];
	struct source *s = &d->sources[i];
	struct rgate_ring_opts o = {
		.sz = sizeof(o), .slots = c->slots, .slot_size = c->slot_size,
		.flags = RGATE_RING_CHAIN, .policy = c->policy,
	};
	int err;

	err = c->kind == SOURCE_MODULE ? open_module(c, s, &o) : open_socket(c, s, &o);
	if (err) {
		memset(s, 0, sizeof(*s));
		return err;
	}
	err = rgate_gateway_add_source(d->gw, s->ring, s->src);
	if (err) {
		say("cannot forward from %s: %s", c->at, rgate_strerror("rgate_gateway_add", err));
		close_source(d, s);
		return err;
	}
	s->added = true;
	return 0;
}

/* @d->steer is what is changed; the gateway gets copies */
static int give_rules(struct daemon *d)
{
	struct rgate_steer *copy;
	unsigned int i;
	int err;

	err = rgate_steer_create(&copy, d->cluster);
	for (i = 0; !err && i < rgate_steer_count(d->steer); i++)
		err = rgate_steer_add(copy, rgate_steer_line(d->steer, i), NULL, NULL, 0);
	if (!err)
		err = rgate_gateway_steer(d->gw, copy);
	if (err)
		rgate_steer_destroy(copy);
	return err;
}

/* What the file says; without one every flow goes somewhere */
static int read_rules(struct daemon *d, struct rgate_steer **out)
{
	struct rgate_steer *steer;
	char *text = NULL;
	size_t len = 0;
	int err;

	err = rgate_steer_create(&steer, d->cluster);
	if (err)
		return err;
	if (d->conf.steer)
		err = rgate_file_read(d->conf.steer, STEER_FILE_MAX, &text, &len);
	if (err == -ENOENT || !d->conf.steer)
		err = rgate_steer_add(steer, RGATE_RULE_DEFAULT " hash:*", NULL, NULL, 0);
	else if (!err)
		err = rgate_steer_parse(steer, d->conf.steer, text, len);
	free(text);
	if (err) {
		say("cannot use the rules%s%s: %s", d->conf.steer ? " of " : "",
		    d->conf.steer ? d->conf.steer : "", strerror(-err));
		rgate_steer_destroy(steer);
		return err;
	}
	*out = steer;
	return 0;
}

int rules_check(struct daemon *d)
{
	struct rgate_steer *steer;
	int err = read_rules(d, &steer);

	if (!err)
		rgate_steer_destroy(steer);
	return err;
}

static int load_rules(struct daemon *d)
{
	struct rgate_steer *steer;
	int err = read_rules(d, &steer);

	if (err)
		return err;
	rgate_steer_destroy(d->steer);
	d->steer = steer;
	return give_rules(d);
}

static int gateway_reload(struct daemon *d)
{
	int err = d->gw ? load_rules(d) : 0;

	return err ? err : d->gw != NULL;
}

/* The new file takes the place of the old one when it is whole. */
static int save_rules(struct daemon *d)
{
	char path[512];
	unsigned int i;
	int err = 0;
	FILE *f;

	if (!d->conf.steer)
		return 0;
	snprintf(path, sizeof(path), "%s.new", d->conf.steer);
	f = fopen(path, "we");
	if (!f)
		return -errno;
	fprintf(f, "# Rules of the gateway, see ringgate-steer(1). Written by ringgated.\n");
	for (i = 0; i < rgate_steer_count(d->steer); i++)
		fprintf(f, "%s\n", rgate_steer_line(d->steer, i));
	if (fflush(f) || fsync(fileno(f)))
		err = -errno;
	if (fclose(f) && !err)
		err = -errno;
	if (!err && rename(path, d->conf.steer))
		err = -errno;
	if (err)
		(void)unlink(path);
	return err;
}

static int changed(struct daemon *d, char *why, size_t len)
{
	int err = give_rules(d);

	if (!err)
		err = save_rules(d);
	if (err)
		snprintf(why, len, "the rules hold, but %s cannot be written: %s",
			 d->conf.steer ? d->conf.steer : "they", strerror(-err));
	return err;
}

int gateway_steer_add(struct daemon *d, const char *before, const char *line, char *why,
		      size_t len)
{
	int err = rgate_steer_add(d->steer, line, before, why, len);

	return err ? err : changed(d, why, len);
}

int gateway_steer_remove(struct daemon *d, const char *name, char *why, size_t len)
{
	int err = rgate_steer_remove(d->steer, name);

	if (err) {
		snprintf(why, len, "there is no rule '%s'", name);
		return err;
	}
	return changed(d, why, len);
}

static void gateway_stop(struct daemon *d)
{
	unsigned int i;

	if (!d->gw)
		return;
	for (i = 0; i < SOURCES_MAX; i++)
		close_source(d, &d->sources[i]);
	rgate_gateway_destroy(d->gw);
	rgate_steer_destroy(d->steer);
	d->gw = NULL;
	d->steer = NULL;
}

static int gateway_start(struct daemon *d)
{
	const struct rgate_gateway_opts o = RGATE_OPTS(rgate_gateway_opts,
						       .spin_us = d->conf.spin_us,
						       .pack = d->conf.pack);
	unsigned int i;
	int err;

	if (d->self.role != RGATE_ROLE_GATEWAY)
		return 0;
	err = rgate_gateway_create(&d->gw, d->hub, &o);
	if (err) {
		say("cannot be the gateway: %s", strerror(-err));
		return err;
	}
	err = load_rules(d);
	for (i = 0; !err && i < d->conf.nsources; i++)
		err = open_source(d, i);
	if (err)
		(void)gateway_stop(d);
	return err;
}

const struct module gateway_module = {
	.check = gateway_check,
	.start = gateway_start,
	.stop = gateway_stop,
	.reload = gateway_reload,
	.files = "the rules were read",
	.status_json = gateway_json,
	.status_text = gateway_text,
	.peer_json = gateway_peer_json,
	.counters = gateway_counters,
};
