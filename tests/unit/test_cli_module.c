#include "unit.h"
#include <stdio.h>
#include <string.h>
#include "cli.h"
#include "module.h"
#define X(n, l) fprintf(stderr, "@@@%s\n", n); cli_run(l); fputs(cli.out, stderr); fputs(cli.err, stderr)
#define Y(l) cli_run(l); fprintf(stderr, "== %s: %d\n%s--\n%s", l, cli.status, cli.out, cli.err); fprintf(stderr, "log %s\n", fake->log); *fake->log=0
static void status(void **state)
{
	(void)state;
	X("STATUS", "status");
	X("JSON", "status --json");
	X("STATS", "stats");
	X("STATS2", "stats 2");
	X("STATS2J", "stats dns -j");
	cli.still = true;
	fake->step = 1000;
	X("TOP", "top -n 2 -d 2");
	fake->step = 0;
	fprintf(stderr, "@@@REST\n");
	fake->nevents = 5;
	fake->event[0] = (struct rgate_event_info){ RGATE_EVENT_RING_FULL, 1, 0, 0, 5, 6};
	fake->event[1] = (struct rgate_event_info){ RGATE_EVENT_RING_ROOM, 2, 0, 0, 7, 8};
	fake->event[2] = (struct rgate_event_info){ RGATE_EVENT_DEVICE_GONE, 0, 7, 1, 0, 0};
	fake->event[3] = (struct rgate_event_info){ RGATE_EVENT_DEVICE_GONE, 0, 7, 4711, 0, 0};
	fake->event[4] = (struct rgate_event_info){ RGATE_EVENT_RING_GONE, 2, 0, 0, 0, 0};
	Y("events -n 5");
	cli.still = false;
	Y("events -t 0.01");
	Y("events -n 2 --json");
	Y("attach lo --ring web -r 2 --priority -3 --sample 4 -F hash");
	Y("attach lo --ring web -f udp --steal -j");
	Y("attach lo --ring nosuch");
	Y("set 7 --mirror -s 3");
	Y("set 7 -f ''");
	Y("set 8 --steal");
	Y("set 8 --steal --all");
	Y("set 9 --steal --all");
	Y("join 7 dns");
	Y("leave 8 1");
	Y("leave 9 1");
	Y("detach 7 8 9");
	fake->frames = 3;
	Y("capture lo -c 3");
	Y("capture lo -c 3 -j");
	Y("capture lo -c 3 --rings 2 --steal udp");
	Y("doctor");
}
static const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(status, fake_begin, fake_end), };
UNIT_MAIN(tests)
