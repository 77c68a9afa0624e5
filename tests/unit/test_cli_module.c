// SPDX-License-Identifier: MIT OR GPL-2.0
/* What the command line says of a module, and asks of it, against one of the test's own. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "module.h"
#include "said.h"

static unsigned int too_many;	/* the n-th reallocarray() of a command fails; 0: none */

extern __typeof__(reallocarray) __real_reallocarray, __wrap_reallocarray;
void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	if (!too_many || --too_many)
		return __real_reallocarray(p, n, size);
	errno = ENOMEM;
	return NULL;
}

static void status(void **state)
{
	(void)state;
	cli_is("status", 0, SAID_STATUS, "");
	cli_is("status --json", 0, SAID_STATUS_JSON SAID_ALL_JSON, "");
	cli_file("/sys/module/ringgate/refcnt", "1\n");
	fake->nrings = fake->natts = 0;
	cli_is("status", 0, "module: loaded, version 0.1.0, 1 reference\n"
	       "tool and library: version 0.1.0\n\nno rings in this network namespace\n\n"
	       "no attachments in this network namespace\n", "");
	cli_gone("/sys/module/ringgate/version");
	cli_gone("/sys/module/ringgate/refcnt");
	cli_says("status", 0, "module: loaded, version ?, ? references\n");
	cli_says("status --json", 0, "\"version\": null,");
	fake->rings = -EIO;
	cli_is("status", 1, "", "ringgate status: cannot list rings and attachments: Input/output error\n");
	fake->rings = 0;
	fake->atts = -EIO;
	cli_is("status", 1, "", "ringgate status: cannot list rings and attachments: Input/output error\n");
	fake->open = -EACCES;
	cli_says("status", 1, "ringgate status: cannot reach the module over netlink: Permission denied\n");
	fake->open = -ENOENT;
	cli_says("status", 3, "ringgate status: the ringgate module is not loaded: `sudo ringgate load`\n");
	cli_gone("/sys/module/ringgate");
	cli_is("status", 3, "module: not loaded (run `ringgate load`)\n"
	       "tool and library: version 0.1.0\n", "");
	cli_is("status -j", 3, "{\n  \"version\": \"0.1.0\",\n  \"module\": {\n"
	       "    \"loaded\": false\n  },\n  \"rings\": [],\n  \"attachments\": []\n}\n", "");
}

/* No room for what is listed: two rings, and two attachments */
static void no_memory(void **state)
{
	(void)state;
	for (too_many = 1; too_many <= 4; too_many++)
		cli_is("status", 1, "", "ringgate status: cannot list rings and attachments: "
		       "Cannot allocate memory\n");
	too_many = 0;
}

/* What is not usual: flags, numbers that have no name, names that many rings have */
static void odd(void **state)
{
	unsigned int i;

	(void)state;
	fake->ring[0].flags = RGATE_RING_RW_SLOTS;
	fake->ring[1].flags = 0;
	fake->ring[1].policy = 99;
	snprintf(fake->ring[1].name, sizeof(fake->ring[1].name), "dns");
	cli_says("status", 0, "   1  dns    4096  2048  9.0 MiB  unknown  realtime  -            3"
		 "   any  1001        100\n"
		 "   2  dns    8192  2048  9.0 MiB  spill    tai       rw           3"
		 "     0  1002        200\n");
	fake->a[0].kind = RGATE_KIND_TRANSMIT;
	cli_says("status", 0, "  transmit  -       ");
	fake->a[0].thread = 40;
	cli_says("status", 0, "  transmit  thread 40%     all");
	fake->a[0].kind = fake->a[0].thread = 0;
	cli_is("stats dns", 1, "", "ringgate stats: several rings are called 'dns' (1 and 2 are): "
	       "use the number\n");
	cli_says("stats 1", 0, "1  dns         100");
	cli_is("stats 3", 1, "", "ringgate stats: there is no ring '3' in this network namespace; "
	       "`ringgate status` lists them\n");
	/* more than has room in a cell */
	fake->natts = FAKE_ATTS;
	fake->nrings = 1;
	for (i = 0; i < FAKE_ATTS; i++) {
		fake->a[i].att_id = i + 1;
		fake->a[i].nrings = 1;
		fake->a[i].rings[0].id = i < FAKE_ATTS - 1 ? 2 : 5;
		memset(fake->a[i].ifname, 'a' + (int)i, 15);
	}
	cli_says("top -n 1 -d 0.01", 0, " aaaaaaaaaaaaaaa,bbbbbbbbbbbbbbb,ccccccccccccccc,dddddddddddd...   8192");
	fake->nrings = 2;
	cli_says("top -n 1 -d 0.01", 0, "   1  dns   -  ");
	fake->nrings = 1;
	fake->ring[0].ring_id = 5;
	cli_says("top -n 1 -d 0.01", 0, "   5  dns   fffffffffffffff   8192");
}

static void stats(void **state)
{
	(void)state;
	cli_is("stats", 0, SAID_STATS, "");
	cli_is("stats dns", 0, SAID_STATS_OF_2, "");
	cli_is("stats 2", 0, SAID_STATS_OF_2, "");
	cli_is("stats --json", 0, "{\n  \"time_ns\": 1700000000123456789,\n" SAID_ALL_JSON, "");
	cli_run("stats -j dns");
	assert_non_null(strstr(cli.out, "\"name\": \"dns\""));
	assert_null(strstr(cli.out, "\"name\": \"web\""));
	assert_non_null(strstr(cli.out, "\"ifname\": \"eth0\""));
	assert_null(strstr(cli.out, "\"ifname\": \"lo\""));
	cli.still = true;
	cli_is("stats -n 2", 0, SAID_STATS "\n" SAID_STATS, "");
	cli_is("stats -n 1 -w -d 5", 0, SAID_STATS, "");
	cli.tty = true;
	cli_is("stats -n 1", 0, "\033[?25l\033[2J\033[H\033[J" SAID_STATS "\033[?25h", "");
	cli.tty = false;
	/* a line each time */
	cli_run("stats -j -n 2");
	assert_non_null(strchr(cli.out, '\n'));
	assert_string_equal(strchr(strchr(cli.out, '\n') + 1, '\n'), "\n");
	fake->rings = -EIO;
	fake->good = 1;
	cli_is("stats -n 3", 1, SAID_STATS, "ringgate stats: cannot read the counters: Input/output error\n");
	fake->open = -ENXIO;
	cli_says("stats", 3, "not loaded");
}

static void top(void **state)
{
	(void)state;
	cli.still = true;
	fake->step = 1000;
	cli_is("top -n 2 -d 2", 0, SAID_TOP, "");
	cli_run("top -n 1 -d 0.5 --json");
	assert_non_null(strstr(cli.out, "{\"time_ns\": 1700000000123456789, \"interval_s\": 0.500, "
			       "\"rings\": [{\"id\": 1, "));
	assert_non_null(strstr(cli.out, "\"full_events\": 48111}, \"per_second\": {\"frames\": "
			       "2000.000, \"bytes\": 4000.000, \"dropped\": 14000.000, "
			       "\"overwritten\": 10000.000, \"passed\": 12000.000, \"wakeups\": "
			       "22000.000}}, {\"id\": 2, "));
	assert_non_null(strstr(cli.out, "}}], \"attachments\": [{\"id\": 7, "));
	assert_non_null(strstr(cli.out, "\"spilled\": 28, \"bad_length\": 29, "
			       "\"bad_flags\": 30, \"refused\": 31}}]}\n"));
	cli.tty = true;
	cli_says("top -n 1", 0, "\033[?25l\033[2J\033[H\033[Jringgate 22:13:20  rings: 2  "
		 "attachments: 2  per second over 1.0 s:\n");
	cli_says("top -n 1", 0, "\033[?25h");
	/* counters that went back are those of another ring of that number */
	fake->step = (uint64_t)-10;
	cli_says("top -n 1 -j", 0, "\"per_second\": {\"frames\": 0.000, \"bytes\": 0.000, \"dropped\": "
		 "0.000, \"overwritten\": 0.000, \"passed\": 0.000, \"wakeups\": 0.000}");
	fake->step = 0;
	fake->rings = -EIO;
	cli_says("top -n 1", 1, "cannot read the counters: Input/output error");
	fake->good = 2;
	cli_says("top -n 3", 1, "cannot read the counters: Input/output error");
	fake->open = -ENXIO;
	cli_says("top", 3, "not loaded");
}

static void events(void **state)
{
	static const struct rgate_event_info happened[] = {
		{ RGATE_EVENT_RING_FULL, 1, 0, 0, 5, 6, { 0 } },
		{ RGATE_EVENT_RING_ROOM, 2, 0, 0, 7, 8, { 0 } },
		{ RGATE_EVENT_DEVICE_GONE, 0, 7, 1, 0, 0, { 0 } },
		{ RGATE_EVENT_DEVICE_GONE, 0, 8, 4711, 0, 0, { 0 } },
		{ RGATE_EVENT_RING_GONE, 9, 0, 0, 0, 0, { 0 } },
	};
	static const char all[] =
		"22:13:20.123456 ring-full   ring 1, 5 times full, 6 dropped\n"
		"22:13:20.123456 ring-room   ring 2, 7 times full, 8 dropped\n"
		"22:13:20.123456 device-gone attachment 7, device lo 1\n"
		"22:13:20.123456 device-gone attachment 8, device 4711\n"
		"22:13:20.123456 ring-gone   ring 9\n";

	(void)state;
	fake->nevents = ARRAY_LEN(happened);
	memcpy(fake->event, happened, sizeof(happened));
	cli_is("events -n 5", 0, all, "");
	cli_is("events -t 1", 0, all, "");
	assert_string_equal(fake->log, "");
	cli_is("events -n 1", 0, "22:13:20.123456 ring-full   ring 1, 5 times full, 6 dropped\n", "");
	cli_is("events -n 2 --json", 0,
	       "{\"time_ns\": 1700000000123456789, \"event\": \"ring-full\", \"ring\": 1, "
	       "\"attachment\": 0, \"ifindex\": 0, \"full_events\": 5, \"dropped\": 6}\n"
	       "{\"time_ns\": 1700000000123456789, \"event\": \"ring-room\", \"ring\": 2, "
	       "\"attachment\": 0, \"ifindex\": 0, \"full_events\": 7, \"dropped\": 8}\n", "");
	/* those that are lost are told, and the rest is read */
	fake->event_err[0] = -ENOBUFS;
	fake->event_err[1] = -EINTR;
	cli_is("events -n 1", 0, "22:13:20.123456 device-gone attachment 7, device lo 1\n",
	       "ringgate events: some events were lost: they came faster than they were read\n");
	fake->event_err[2] = -EPROTO;
	cli_says("events -n 1", 1, "cannot read events: Protocol error");
	fake->subscribe = -EPERM;
	cli_is("events -n 1", 1, "", "ringgate events: cannot subscribe to events: Operation not permitted\n");
	fake->open = -ENXIO;
	cli_says("events", 3, "not loaded");
}

/* One command, and what the module was asked by it */
static void asks(const char *line, const char *out, const char *log)
{
	*fake->log = '\0';
	cli_is(line, 0, out, "");
	assert_string_equal(fake->log, log);
}

/* One that is refused, after these questions */
static void refused(const char *line, const char *why, const char *log)
{
	char err[512];

	*fake->log = '\0';
	snprintf(err, sizeof(err), "ringgate %.*s: %s\n", (int)strcspn(line, " "), line, why);
	cli_is(line, 1, "", err);
	assert_string_equal(fake->log, log);
}

#define NO_ATT	"there is no attachment 9 in this network namespace; `ringgate status` lists them"
#define NO_RING	"there is no ring 'nosuch' in this network namespace; `ringgate status` lists them"

static void attach(void **state)
{
	static const char log[] = "attach lo rings 1/c0ffee01 action 0 fanout 0 sample 0 priority 0 "
				  "filter 0\n";

	(void)state;
	asks("attach lo --ring web -r 2 --priority -3 --sample 4 -F hash", "8\n",
	     "attach lo rings 1/c0ffee01 2/c0ffee02 action 0 fanout 2 sample 4 priority -3 filter 0\n");
	asks("attach lo -r web -f udp --steal -j", "{\"attachment\": 8}\n",
	     "attach lo rings 1/c0ffee01 action 2 fanout 0 sample 0 priority 0 filter 12\n");
	asks("attach lo -r 1 --steal --all", "8\n",
	     "attach lo rings 1/c0ffee01 action 2 fanout 0 sample 0 priority 0 filter 0\n");
	asks("attach lo -r web --transmit", "8\n", "attach lo rings 1/c0ffee01 transmit by 0 "
	     "action 0 fanout 0 sample 0 priority 0 filter 0\n");
	asks("attach lo -r web --transmit --thread -f udp", "8\n", "attach lo rings 1/c0ffee01 "
	     "transmit by 50 action 0 fanout 0 sample 0 priority 0 filter 12\n");
	asks("attach lo --thread=7 -r web --transmit", "8\n", "attach lo rings 1/c0ffee01 "
	     "transmit by 7 action 0 fanout 0 sample 0 priority 0 filter 0\n");
	refused("attach lo -r nosuch", NO_RING, "");
	refused("attach lo -r web -f portt", "filter 'portt': can't parse filter expression: syntax "
		"error: `man pcap-filter`", "");
	fake->attach = -ENODEV;
	refused("attach lo -r 1", "cannot attach to lo: no such device in this network namespace: "
		"`ip link` lists them", log);
	fake->attach = -ESTALE;
	refused("attach lo -r 1", "a ring was closed while we looked; `ringgate status` lists those "
		"that are there", log);
	fake->attach = -ENOENT;
	refused("attach lo -r 1", "a ring was closed while we looked; `ringgate status` lists those "
		"that are there", log);
	fake->rings = -EIO;
	refused("attach lo -r 1", "cannot list the rings: Input/output error", "");
	fake->open = -ENXIO;
	cli_says("attach lo -r 1", 3, "not loaded");
}

static void set(void **state)
{
	(void)state;
	asks("set 7 --mirror -s 3", "", "set 7/a77007 what 3 action 1 fanout 0 sample 3 priority 0 filter 0\n");
	asks("set 8 -f udp", "", "set 8/a77008 what 4 action 0 fanout 0 sample 0 priority 0 filter 12\n");
	asks("set 8 -f ''", "", "set 8/a77008 what 4 action 0 fanout 0 sample 0 priority 0 filter 0\n");
	asks("set 7 --steal", "", "set 7/a77007 what 1 action 2 fanout 0 sample 0 priority 0 filter 0\n");
	asks("set 8 --steal -f udp", "", "set 8/a77008 what 5 action 2 fanout 0 sample 0 priority 0 filter 12\n");
	asks("set 8 --steal --all", "", "set 8/a77008 what 1 action 2 fanout 0 sample 0 priority 0 filter 0\n");
	refused("set 7 -f ''", "attachment 7 would take every frame of eth0, those of your own session "
		"too: give a filter, or --all", "");
	refused("set 8 --steal", "attachment 8 would take every frame of lo, those of your own session "
		"too: give a filter, or --all", "");
	refused("set 9 --steal --all", NO_ATT, "");
	refused("set 8 -f portt", "filter 'portt': can't parse filter expression: syntax error: "
		"`man pcap-filter`", "");
	fake->set = -ESTALE;
	refused("set 8 -s 2", "there is no attachment 8 in this network namespace; `ringgate status` "
		"lists them", "set 8/a77008 what 2 action 0 fanout 0 sample 2 priority 0 filter 0\n");
	fake->set = -EPERM;
	refused("set 8 -s 2", "cannot change attachment 8: this needs CAP_NET_ADMIN: run it with sudo",
		"set 8/a77008 what 2 action 0 fanout 0 sample 2 priority 0 filter 0\n");
	fake->open = -ENXIO;
	cli_says("set 8 -s 2", 3, "not loaded");
}

static void members(void **state)
{
	(void)state;
	asks("join 8 dns", "", "join 8/a77008 2/c0ffee02\n");
	asks("leave 7 1", "", "leave 7/a77007 1/c0ffee01\n");
	refused("join 9 dns", NO_ATT, "");
	refused("join 7 nosuch", NO_RING, "");
	fake->join = -EEXIST;
	refused("join 7 dns", "ring dns is part of attachment 7 already", "join 7/a77007 2/c0ffee02\n");
	fake->leave = -EBUSY;
	refused("leave 8 web", "ring web is the only one of attachment 8: join another first, or "
		"`ringgate detach 8`", "leave 8/a77008 1/c0ffee01\n");
	fake->join = fake->leave = -EPERM;
	refused("join 7 dns", "cannot add a ring to attachment 7: this needs CAP_NET_ADMIN: run it with "
		"sudo", "join 7/a77007 2/c0ffee02\n");
	refused("leave 7 dns", "cannot take a ring out of attachment 7: this needs CAP_NET_ADMIN: run "
		"it with sudo", "leave 7/a77007 2/c0ffee02\n");
	fake->rings = -EIO;
	refused("join 7 dns", "cannot list the rings: Input/output error", "");
	fake->open = -ENXIO;
	cli_says("leave 8 web", 3, "not loaded");
}

static void detach(void **state)
{
	(void)state;
	asks("detach 7 8", "", "detach 7/a77007\ndetach 8/a77008\n");
	/* the others go all the same */
	refused("detach 9 8", NO_ATT, "detach 8/a77008\n");
	fake->detach = -ENOENT;
	refused("detach 8", "there is no attachment 8 in this network namespace; `ringgate status` lists "
		"them", "detach 8/a77008\n");
	fake->detach = -EPERM;
	refused("detach 8", "cannot end attachment 8: this needs CAP_NET_ADMIN: run it with sudo",
		"detach 8/a77008\n");
	fake->att = -EIO;
	refused("detach 8", "cannot find attachment 8: Input/output error", "");
	fake->open = -ENXIO;
	cli_says("detach 8", 3, "not loaded");
}

static void capture(void **state)
{
	static const char frames[] =
		"22:13:20.123456789 lo 64/100 0x88b5 00:00:00:00:00:00 > 00:00:00:00:00:00\n"
		"22:13:20.123456789 lo 64/100 0x88b5 01:01:01:01:01:01 > 01:01:01:01:01:01\n"
		"22:13:20.123456789 lo 64/100 0x88b5 02:02:02:02:02:02 > 02:02:02:02:02:02\n";
	static const char sum[] =
		"3 packets captured (192 B), 3 of them cut short\n"
		"lo: 20 received, 43 filtered out, 78 dropped (more --slots would help)\n";

	(void)state;
	fake->frames = 3;
	cli_is("capture lo -c 3", 0, frames, sum);
	assert_string_equal(fake->log, "attach lo rings 0/0 action 1 fanout 0 sample 0 priority 0 "
			    "filter 0\ndetach 8/a77008\n");
	*fake->log = '\0';
	cli_is("capture lo -c 3 --rings 2 --fanout hash --steal udp -q", 0, frames, "");
	assert_string_equal(fake->log, "attach lo rings 0/0 0/0 action 2 fanout 2 sample 0 priority 0 "
			    "filter 12\ndetach 8/a77008\n");
	*fake->log = '\0';
	cli_says("capture lo -c 3 --steal --all -j", 0,
		 "{\"packets\": 3, \"bytes\": 192, \"truncated\": 3, \"misfits\": 0, \"sources\": "
		 "[{\"name\": \"lo\", \"received\": 20, \"filtered\": 43, \"dropped\": 78}]}\n");
	assert_string_equal(fake->log, "attach lo rings 0/0 action 2 fanout 0 sample 0 priority 0 "
			    "filter 0\ndetach 8/a77008\n");
	/* the attachment ends by itself, or is another one that got its number */
	fake->natts = 0;
	*fake->log = '\0';
	cli_says("capture lo -t 5", 1, "lo is gone\n");
	cli_says("capture lo -t 5", 1, "no device is left to capture from\n");
	assert_null(strstr(fake->log, "detach"));
	cli_says("capture lo -c 3 portt", 1, "filter 'portt': can't parse");
	cli_says("capture nodev0 -c 3", 1, "nodev0: no such device");
	fake->attach = -EPERM;
	cli_says("capture lo -c 3", 1, "cannot attach to lo: this needs CAP_NET_ADMIN: run it with sudo");
	fake->ring_open = -EACCES;
	cli_says("capture lo -c 3", 1, "cannot make a ring of 4096 slots of 2048 bytes: no permission to "
		 "open /dev/ringgate");
	fake->ring_open = -ENOMEM;
	cli_says("capture lo -c 3 --slots 64 --slot-size 256", 1,
		 "cannot make a ring of 64 slots of 256 bytes: not enough memory: give fewer slots");
	fake->ring_open = -ENOENT;
	cli_says("capture lo -c 3", 3, "not loaded");
	fake->ring_open = 0;
	fake->open = -ENXIO;
	cli_says("capture lo -c 3", 3, "not loaded");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fake_begin, fake_end)
static const struct CMUnitTest tests[] = {
	TEST(status), TEST(no_memory), TEST(odd), TEST(stats), TEST(top), TEST(events),
	TEST(attach), TEST(set), TEST(members), TEST(detach), TEST(capture),
};

UNIT_MAIN_ALONE(tests)
