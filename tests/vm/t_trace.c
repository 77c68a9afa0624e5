// SPDX-License-Identifier: MIT OR GPL-2.0
/* Tracepoints, module parameters, and what the module says of itself. */
#include "lib/vt.h"
#include "lib/vt_send.h"

#include <sys/mount.h>

#define TRACEFS	"/sys/kernel/tracing"
#define EVENTS	TRACEFS "/events/ringgate/"

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_TRUNC), r;

	if (fd < 0)
		return -errno;
	r = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return r;
}

/* Lines of the trace with both texts */
static unsigned int lines(const char *a, const char *b)
{
	FILE *f = fopen(TRACEFS "/trace", "r");
	unsigned int n = 0;
	char line[512];

	REQUIRE(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, a) && strstr(line, b);
	fclose(f);
	return n;
}

/* tracefs, with nothing in its trace */
static void trace_on(void)
{
	if (access(TRACEFS "/trace", R_OK) &&
	    mount("none", TRACEFS, "tracefs", 0, NULL))
		vt_skip("no tracefs: %s", strerror(errno));
	REQUIRE(!put(TRACEFS "/trace", ""));
	/* The names of tasks come by tracepoints in the scheduler; patching these under two
	 * emulated CPUs can leave one of them in their breakpoint for ever (QEMU 7.2). */
	REQUIRE(!put(TRACEFS "/options/record-cmd", "0"));
	/* What came first is what is asked for: on a busy machine as much traffic follows it as
	 * fills the buffer. */
	REQUIRE(!put(TRACEFS "/options/overwrite", "0"));
}

/* What is sent, and the thread that goes to sleep */
static void transmit(void)
{
	char id[32], want[64];
	struct vt_send s;
	struct vt_nl nl;
	unsigned int i;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_send_open(&s, 64, 256);
	vt_send_bind_thread(&nl, &s, "va", 50);
	trace_on();
	snprintf(id, sizeof(id), "ring=%u ", s.r.id);
	REQUIRE(!put(EVENTS "enable", "1"));
	for (i = 0; i < 40; i++)
		REQUIRE(vt_send_udp(&s, 100, i));
	vt_send_publish(&s, 9, 0);
	EXPECT(VT_UNTIL(vt_send_kick(&s, 0, NULL) >= 0 && s.r.prod->head == 41, 3000));
	EXPECT(VT_UNTIL(lines("rgate_thread_sleep: ", id), 3000));
	EXPECT(!put(EVENTS "enable", "0"));
	EXPECT_GE(lines("rgate_send: ", id), 2);
	snprintf(want, sizeof(want), " filtered=0 refused=0 bad=1");
	EXPECT_EQ(lines(id, want), 1);
	vt_ring_close(&s.r);
}

static void tracepoints(void)
{
	char id[32], len[32];
	struct vt_ring r;
	struct vt_nl nl;
	int tx;

	vt_veth("va", "vb", 0);
	vt_nl_open(&nl);
	vt_ring_open(&r, 64, 512, 0, 0);
	vt_att_simple(&nl, "vb", r.id);
	tx = vt_tx_open("va");
	trace_on();
	REQUIRE(!put(EVENTS "enable", "1"));
	snprintf(id, sizeof(id), "ring=%u ", r.id);
	snprintf(len, sizeof(len), "wire_len=%u ", 130);
	vt_tx_burst(tx, 130, 0, 70);
	EXPECT(VT_UNTIL(vt_ring_stats(&r).dropped_full == 6, 3000));
	EXPECT_EQ(vt_ring_drain(&r), 64);
	EXPECT(!vt_ring_arm(&r));
	{
		struct pollfd p = { .fd = r.fd, .events = POLLIN };
		struct vt_traffic t = { .ifname = "va", .len = 130 };

		vt_traffic_start(&t);
		EXPECT_EQ(poll(&p, 1, 3000), 1);
		vt_traffic_stop(&t);
	}
	EXPECT(!put(EVENTS "enable", "0"));
	EXPECT_GE(lines("rgate_deliver: ", id), 64);
	EXPECT_GE(lines("rgate_deliver: ", len), 64);
	EXPECT_GE(lines("rgate_drop: ", id), 6);
	EXPECT_GE(lines("rgate_drop: ", "reason=full-drop"), 6);
	EXPECT_GE(lines("rgate_wake: ", id), 1);
	/* off: nothing more */
	put(TRACEFS "/trace", "");
	vt_ring_drain(&r);
	vt_tx_burst(tx, 130, 0, 5);
	EXPECT_EQ(lines("rgate_", id), 0);
	vt_ring_close(&r);
}

static void modinfo(void)
{
	const char *ko = getenv("RGATE_KO");

	if (!ko)
		vt_skip("RGATE_KO is not set");
	vt_must("modinfo -F license '%s' | grep -q GPL", ko);
	vt_must("modinfo -F version '%s' | grep -q '^[0-9]*\\.[0-9]*\\.[0-9]*$'", ko);
	vt_must("modinfo -F description '%s' | grep -q .", ko);
	/* every parameter there is has its line of description */
	vt_must("for p in $(ls /sys/module/ringgate/parameters 2>/dev/null); do "
		"modinfo -p '%s' | grep -q \"^$p:..\" || exit 1; done", ko);
}

static void bad_parameters(void)
{
	static const char *const bad[] = {
		"fail_alloc=-1", "fail_alloc=x", "fail_alloc=99999999999999",
		"fail_alloc=", "fail_alloc",
	};
	size_t i;

	if (access("/sys/module/ringgate/parameters/fail_alloc", R_OK))
		vt_skip("no such parameter");
	REQUIRE(!vt_rmmod());
	for (i = 0; i < VT_COUNT(bad); i++) {
		if (!vt_insmod(bad[i])) {
			FAIL("insmod took '%s'", bad[i]);
			vt_rmmod();
		}
		EXPECT(!vt_loaded());
	}
	REQUIRE(!vt_insmod("fail_alloc=0"));
}

static void loaded_twice(void)
{
	EXPECT_EQ(vt_insmod(""), -EEXIST);
	EXPECT(vt_loaded());
}

static const struct vt_case cases[] = {
	{ .name = "tracepoints: deliver, drop, wake", .fn = tracepoints },
	{ .name = "tracepoints: send, and its thread asleep", .fn = transmit },
	{ .name = "modinfo", .fn = modinfo },
	{ .name = "bad parameters keep the module out", .fn = bad_parameters },
	{ .name = "loaded twice", .fn = loaded_twice },
};

VT_MAIN(cases)
