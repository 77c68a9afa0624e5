// SPDX-License-Identifier: MIT OR GPL-2.0
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ringgate/rgate_producer.h>
#include <ringgate/rgate_ring.h>

#include "cli.h"
#include "module.h"

/* There is none until a test says so. */
static struct fake_module none = { .open = -ENOENT, .ring_open = -ENOENT };
struct fake_module *fake = &none;

struct rgate_ctl {
	int fd;
	unsigned int next;	/* event */
};

static struct rgate_ring *opened[RGATE_ATT_RINGS_MAX];
static unsigned int nopened;
static struct rgate_producer producers[RGATE_ATT_RINGS_MAX];
static unsigned int nproducers;

__attribute__((format(printf, 1, 2)))
static void note(const char *fmt, ...)
{
	size_t n = strlen(fake->log);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fake->log + n, sizeof(fake->log) - n, fmt, ap);
	va_end(ap);
}

int __wrap_rgate_ctl_open(struct rgate_ctl **ctl);
int __wrap_rgate_ctl_open(struct rgate_ctl **ctl)
{
	if (fake->open)
		return fake->open;
	*ctl = calloc(1, sizeof(**ctl));
	(*ctl)->fd = eventfd(0, EFD_CLOEXEC);
	return 0;
}

void __wrap_rgate_ctl_close(struct rgate_ctl *ctl);
void __wrap_rgate_ctl_close(struct rgate_ctl *ctl)
{
	close(ctl->fd);
	free(ctl);
}

/* All counters stand side by side; the n-th grows n times as fast. */
static void grow(struct rgate_stats *s)
{
	uint64_t *v = (uint64_t *)s;
	unsigned int i;

	for (i = 0; i < sizeof(*s) / sizeof(*v); i++)
		v[i] += fake->step * (i + 1);
}

int __wrap_rgate_ctl_rings(struct rgate_ctl *ctl, rgate_ring_fn fn, void *arg);
int __wrap_rgate_ctl_rings(struct rgate_ctl *ctl, rgate_ring_fn fn, void *arg)
{
	unsigned int i;
	int err;

	(void)ctl;
	if (fake->rings && !fake->good--)
		return fake->rings;
	for (i = 0; i < fake->nrings; i++) {
		err = fn(&fake->ring[i], arg);
		if (err)
			return err;
		grow(&fake->ring[i].stats);
	}
	return 0;
}

int __wrap_rgate_ctl_atts(struct rgate_ctl *ctl, rgate_att_fn fn, void *arg);
int __wrap_rgate_ctl_atts(struct rgate_ctl *ctl, rgate_att_fn fn, void *arg)
{
	unsigned int i;
	int err = fake->atts;

	(void)ctl;
	for (i = 0; !err && i < fake->natts; i++)
		err = fn(&fake->a[i], arg);
	return err;
}

int __wrap_rgate_ctl_att(struct rgate_ctl *ctl, uint32_t att_id, struct rgate_att_info *info);
int __wrap_rgate_ctl_att(struct rgate_ctl *ctl, uint32_t att_id, struct rgate_att_info *info)
{
	unsigned int i;

	(void)ctl;
	for (i = 0; !fake->att && i < fake->natts; i++)
		if (fake->a[i].att_id == att_id) {
			*info = fake->a[i];
			return 0;
		}
	return fake->att ? fake->att : -ENOENT;
}

static void note_opts(const struct rgate_attach_opts *o)
{
	if (o->kind == RGATE_KIND_TRANSMIT)
		note(" transmit by %u", o->thread);
	note(" action %u fanout %u sample %u priority %d filter %s%u\n", o->action, o->fanout,
	     o->sample, o->priority, o->filter ? "text " : "", o->prog ? o->prog->len : 0);
}

/* The frames that @ring gets, with numbers as their content */
static void fill(struct rgate_ring *ring)
{
	const struct rgate_slot hdr = {
		.ifindex = 1, .l3_off = RGATE_OFF_NONE,
		.l4_off = RGATE_OFF_NONE, .protocol = 0x88b5, .dev_type = 1,
	};
	unsigned char data[64];
	struct rgate_producer *p = &producers[nproducers];
	unsigned int i;

	if (rgate_producer_init(p, ring))
		abort();
	nproducers++;
	rgate_producer_stamp(p);
	for (i = 0; i < fake->frames; i++) {
		memset(data, (int)i, sizeof(data));
		if (rgate_producer_write(p, &hdr, data, sizeof(data), 100))
			abort();
	}
	rgate_producer_flush(p);
}

/* They stay as long as the command: a ring whose producer ends has ended. */
__attribute__((destructor))
static void end_producers(void)
{
	while (nproducers)
		rgate_producer_fini(&producers[--nproducers]);
}

int __wrap_rgate_ctl_attach(struct rgate_ctl *ctl, const char *ifname,
			    const struct rgate_ident *rings, unsigned int n,
			    const struct rgate_attach_opts *opts, struct rgate_ident *att);
int __wrap_rgate_ctl_attach(struct rgate_ctl *ctl, const char *ifname,
			    const struct rgate_ident *rings, unsigned int n,
			    const struct rgate_attach_opts *opts, struct rgate_ident *att)
{
	unsigned int i;

	(void)ctl;
	note("attach %s rings", ifname);
	for (i = 0; i < n; i++)
		note(" %u/%llx", rings[i].id, (unsigned long long)rings[i].cookie);
	note_opts(opts);
	if (fake->attach)
		return fake->attach;
	*att = (struct rgate_ident){ fake->a[0].att_id, fake->a[0].cookie };
	for (i = 0; i < nopened; i++)
		fill(opened[i]);
	return 0;
}

int __wrap_rgate_ctl_detach(struct rgate_ctl *ctl, const struct rgate_ident *att);
int __wrap_rgate_ctl_detach(struct rgate_ctl *ctl, const struct rgate_ident *att)
{
	(void)ctl;
	note("detach %u/%llx\n", att->id, (unsigned long long)att->cookie);
	return fake->detach;
}

int __wrap_rgate_ctl_join(struct rgate_ctl *ctl, const struct rgate_ident *att,
			  const struct rgate_ident *ring);
int __wrap_rgate_ctl_join(struct rgate_ctl *ctl, const struct rgate_ident *att,
			  const struct rgate_ident *ring)
{
	(void)ctl;
	note("join %u/%llx %u/%llx\n", att->id, (unsigned long long)att->cookie, ring->id,
	     (unsigned long long)ring->cookie);
	return fake->join;
}

int __wrap_rgate_ctl_leave(struct rgate_ctl *ctl, const struct rgate_ident *att,
			   const struct rgate_ident *ring);
int __wrap_rgate_ctl_leave(struct rgate_ctl *ctl, const struct rgate_ident *att,
			   const struct rgate_ident *ring)
{
	(void)ctl;
	note("leave %u/%llx %u/%llx\n", att->id, (unsigned long long)att->cookie, ring->id,
	     (unsigned long long)ring->cookie);
	return fake->leave;
}

int __wrap_rgate_ctl_set(struct rgate_ctl *ctl, const struct rgate_ident *att, uint32_t what,
			 const struct rgate_attach_opts *opts);
int __wrap_rgate_ctl_set(struct rgate_ctl *ctl, const struct rgate_ident *att, uint32_t what,
			 const struct rgate_attach_opts *opts)
{
	(void)ctl;
	note("set %u/%llx what %u", att->id, (unsigned long long)att->cookie, what);
	note_opts(opts);
	return fake->set;
}

int __wrap_rgate_ctl_subscribe(struct rgate_ctl *ctl);
int __wrap_rgate_ctl_subscribe(struct rgate_ctl *ctl)
{
	if (fake->nevents)
		eventfd_write(ctl->fd, 1);
	return fake->subscribe;
}

int __wrap_rgate_ctl_fd(const struct rgate_ctl *ctl);
int __wrap_rgate_ctl_fd(const struct rgate_ctl *ctl)
{
	return ctl->fd;
}

int __wrap_rgate_ctl_event(struct rgate_ctl *ctl, struct rgate_event_info *ev, int timeout_ms);
int __wrap_rgate_ctl_event(struct rgate_ctl *ctl, struct rgate_event_info *ev, int timeout_ms)
{
	const unsigned int i = ctl->next++;
	eventfd_t v;

	if (timeout_ms)
		note("event: waits %d ms\n", timeout_ms);
	if (ctl->next >= fake->nevents)
		eventfd_read(ctl->fd, &v);	/* no more */
	*ev = fake->event[i];
	return fake->event_err[i] ? fake->event_err[i] : 1;
}

int __wrap_rgate_ring_open(struct rgate_ring **ring, const struct rgate_ring_opts *o);
int __wrap_rgate_ring_open(struct rgate_ring **ring, const struct rgate_ring_opts *o)
{
	struct rgate_ring_opts mine = *o;
	int err;

	if (fake->ring_open)
		return fake->ring_open;
	mine.device = NULL;
	/* of the module alone */
	mine.flags &= ~(RGATE_RING_TRANSMIT | RGATE_RING_RW_SLOTS);
	err = rgate_ring_open_memfd(ring, &mine);
	if (!err)
		opened[nopened++] = *ring;
	return err;
}

static void some_ring(struct rgate_ring_info *r, uint32_t id, const char *name)
{
	uint64_t *v = (uint64_t *)&r->stats;
	unsigned int i;

	*r = (struct rgate_ring_info){
		.ring_id = id, .cookie = 0xc0ffee00 + id, .slots = 4096 * id, .slot_size = 2048,
		.flags = RGATE_RING_CHAIN | (id == 1 ? 0 : RGATE_RING_RW_SLOTS),
		.policy = id == 1 ? RGATE_POLICY_DROP : RGATE_POLICY_SPILL,
		.clock = id == 1 ? RGATE_CLOCK_REALTIME : RGATE_CLOCK_TAI,
		.generation = 5, .handles = 3, .node = id == 1 ? -1 : 0, .uid = 1000 + id,
		.mem_bytes = 9 << 20, .head = 12345,
	};
	snprintf(r->name, sizeof(r->name), "%s", name);
	for (i = 0; i < sizeof(r->stats) / sizeof(*v); i++)
		v[i] = id * 100 + i;
}

static void some_att(struct rgate_att_info *a, uint32_t id, const char *ifname)
{
	*a = (struct rgate_att_info){
		.att_id = id, .cookie = 0xa77000 + id, .ifindex = 1, .priority = -5,
		.action = id == 7 ? RGATE_ACTION_STEAL : RGATE_ACTION_MIRROR,
		.fanout = id == 7 ? RGATE_FANOUT_HASH : RGATE_FANOUT_CPU,
		.sample = id == 7 ? 10 : 1, .filter_len = id == 7 ? 12 : 0,
		.nrings = id == 7 ? 2 : 1, .rings = { { 1, 0xc0ffee01 }, { 2, 0xc0ffee02 } },
		.seen = 20, .filtered = 21, .sampled_out = 22, .delivered = 23, .bytes = 24,
		.dropped_full = 25, .dropped_fault = 26, .passed = 27, .spilled = 28,
		.bad_length = 29, .bad_flags = 30, .refused = 31,
	};
	snprintf(a->ifname, sizeof(a->ifname), "%s", ifname);
}

int fake_begin(void **state)
{
	if (cli_begin(state))
		return -1;
	fake = mmap(NULL, sizeof(*fake), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		    0);
	if (fake == MAP_FAILED)
		return -1;
	cli_file("/sys/module/ringgate/version", "0.1.0\n");
	cli_file("/sys/module/ringgate/srcversion", "ABCDEF\n");
	cli_file("/sys/module/ringgate/refcnt", "2\n");
	cli_file("/sys/module/ringgate/parameters/max_rings", "64\n");
	/* as the kernel tells them: in no order */
	some_ring(&fake->ring[0], 2, "dns");
	some_ring(&fake->ring[1], 1, "web");
	some_att(&fake->a[0], 8, "lo");
	some_att(&fake->a[1], 7, "eth0");
	fake->nrings = fake->natts = 2;
	return 0;
}

int fake_end(void **state)
{
	munmap(fake, sizeof(*fake));
	fake = &none;
	return cli_end(state);
}
