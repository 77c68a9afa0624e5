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

struct later {
	int tx;
	unsigned int us;
};

static void *send_later(void *arg)
{
	const struct later *l = arg;

	vt_usleep(l->us);
	vt_tx_burst(l->tx, 130, 0, 1);
	return NULL;
}

/* Sleeps until a frame comes, which is sent some time after this has begun */
static void wake_after(struct vt_ring *r, int tx, unsigned int us)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };
	struct later l = { .tx = tx, .us = us };
	pthread_t th;

	vt_ring_drain(r);
	EXPECT(!vt_ring_arm(r));
	REQUIRE(!pthread_create(&th, NULL, send_later, &l));
	EXPECT_EQ(poll(&p, 1, 3000), 1);
	pthread_join(th, NULL);
}

static void tracepoints(void)
{
	char id[32], len[32];
	struct vt_ring r;
	struct vt_nl nl;
	unsigned int i;
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
	/* Who is not asleep yet when a frame comes is not woken: it may come too early. */
	for (i = 1; i <= 10 && !lines("rgate_wake: ", id); i++)
		wake_after(&r, tx, i * 20000);
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
