// SPDX-License-Identifier: MIT OR GPL-2.0
/* tcpdump expressions: what compiles, what does not, and what comes out. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/capability.h>
#include <unistd.h>

#include "filter.h"

static void compiles(void **state)
{
	static const char *const good[] = {
		"", "ip", "udp port 53", "tcp and not port 22", "host 10.0.0.1",
		"ip6 and icmp6", "ether host 02:00:00:00:00:01",
		"(udp or tcp) and net 192.0.2.0/24", "greater 1000", "ip[8] = 64",
	};
	const unsigned int fds = unit_entries("/proc/self/fd");
	struct sock_fprog prog;
	char err[200];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(rgate_filter_compile(NULL, good[i], &prog, err,
						      sizeof(err)), 0);
		assert_true(prog.len > 0 && prog.len <= RGATE_FILTER_LEN_MAX);
		assert_string_equal(err, "");
		/* a program ends in a return, or the kernel refuses it */
		assert_int_equal(BPF_CLASS(prog.filter[prog.len - 1].code), BPF_RET);
		rgate_filter_free(&prog);
		assert_null(prog.filter);
		rgate_filter_free(&prog);
	}
	assert_int_equal(unit_entries("/proc/self/fd"), fds);
}

static void refused(void **state)
{
	static const char *const bad[] = {
		"foo", "udp port", "port 99999", "host 300.1.1.1", "udp and (tcp",
		"ip[99999999999]", "\"", "ether host nonsense", "and",
	};
	struct sock_fprog prog;
	char err[200], tiny[5];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(rgate_filter_compile(NULL, bad[i], &prog, err,
						      sizeof(err)), -EINVAL);
		assert_true(strlen(err) > 3);
		assert_null(prog.filter);
	}
	assert_int_equal(rgate_filter_compile(NULL, "foo", &prog, tiny, sizeof(tiny)),
			 -EINVAL);
	assert_int_equal(strlen(tiny), sizeof(tiny) - 1);
	assert_int_equal(rgate_filter_compile(NULL, "foo", &prog, NULL, 0), -EINVAL);
}

/* It compiles, to what no kernel runs: said here, not by an EINVAL of attaching. */
static void not_for_the_kernel(void **state)
{
	struct sock_fprog prog;
	char err[200];

	(void)state;
	assert_int_equal(rgate_filter_compile(NULL, "ip6 protochain 17", &prog, err,
					      sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "protochain"));
	assert_null(prog.filter);
}

static void devices(void **state)
{
	struct sock_fprog prog;
	char err[200];

	(void)state;
	assert_int_equal(rgate_filter_compile("lo", "udp", &prog, err, sizeof(err)), 0);
	rgate_filter_free(&prog);
	assert_int_equal(rgate_filter_compile("nosuchdev0", "udp", &prog, err,
					      sizeof(err)), -ENODEV);
	assert_non_null(strstr(err, "nosuchdev0"));
	assert_int_equal(rgate_filter_compile("a-name-that-is-much-too-long", "udp",
					      &prog, err, sizeof(err)), -ENODEV);
}

static char said[256];

static void on_log(void *ctx, enum rgate_log_level level, const char *msg)
{
	(void)ctx;
	if (level == RGATE_LOG_ERROR)
		snprintf(said, sizeof(said), "%s", msg);
}

/* What is wrong is told to who asked, and to the log. */
static void told(void **state)
{
	struct sock_fprog prog;
	char err[200], want[240];

	(void)state;
	rgate_log_set(on_log, NULL);
	assert_int_equal(rgate_filter_compile("nosuchdev0", "udp", &prog, err, sizeof(err)),
			 -ENODEV);
	snprintf(want, sizeof(want), "nosuchdev0: %s",
		 rgate_strerror("rgate_filter_compile", -ENODEV));
	assert_string_equal(err, want);
	snprintf(want, sizeof(want), "filter: %s", err);
	assert_string_equal(said, want);
	assert_int_equal(rgate_filter_compile(NULL, "foo bar", &prog, err, sizeof(err)), -EINVAL);
	snprintf(want, sizeof(want), "filter: %s", err);
	assert_string_equal(said, want);
	rgate_log_set(NULL, NULL);
}

/* A device of each type, which a filter for it can be compiled for, or not */
static int in_namespace(int sock, void *arg)
{
	static const struct {
		int type;
		uint32_t first;		/* the first load of the filter "ip" is of this byte */
	} types[] = {
		{ ARPHRD_ETHER, 12 }, { ARPHRD_LOOPBACK, 12 }, { ARPHRD_NONE, 0 },
		{ 519 /* ARPHRD_RAWIP */, 0 }, { ARPHRD_PPP, 0 }, { ARPHRD_TUNNEL, 0 },
		{ ARPHRD_TUNNEL6, 0 }, { ARPHRD_SIT, 0 }, { ARPHRD_IPGRE, 0 },
	};
	struct ifreq ifr = { .ifr_name = "rgt0", .ifr_flags = IFF_TUN | IFF_NO_PI };
	struct sock_fprog prog;
	char err[200];
	size_t i;
	int fd;

	(void)sock;
	(void)arg;
	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return 1;
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr))
		return 1;
	for (i = 0; i < ARRAY_LEN(types); i++) {
		if (ioctl(fd, TUNSETLINK, types[i].type))
			return 1;
		unit_require(!rgate_filter_compile("rgt0", "ip", &prog, err, sizeof(err)));
		unit_require(BPF_CLASS(prog.filter[0].code) == BPF_LD);
		unit_require(prog.filter[0].k == types[i].first);
		rgate_filter_free(&prog);
	}
	unit_require(!ioctl(fd, TUNSETLINK, ARPHRD_IEEE80211_RADIOTAP));
	unit_require(!rgate_filter_compile("rgt0", "wlan type data", &prog, err, sizeof(err)));
	rgate_filter_free(&prog);
	unit_require(!ioctl(fd, TUNSETLINK, ARPHRD_INFINIBAND));
	unit_require(rgate_filter_compile("rgt0", "ip", &prog, err, sizeof(err)) == -EOPNOTSUPP);
	unit_require(!strcmp(err, "rgt0: filters are not known for this type of device"));
	close(fd);
	return 0;
}

static void link_types(void **state)
{
	int sock, st, pid = unit_fork(in_namespace, NULL, &sock);

	(void)state;
	assert_int_equal(waitpid(pid, &st, 0), pid);
	close(sock);
	if (WIFEXITED(st) && WEXITSTATUS(st) == 1)
		unit_skip("no network namespace with devices of its own");
	assert_int_equal(st, 0);
}

static void vlan_word(void **state)
{
	(void)state;
	assert_true(rgate_filter_uses_vlan("vlan"));
	assert_true(rgate_filter_uses_vlan("vlan 5 and udp"));
	assert_true(rgate_filter_uses_vlan("(vlan)"));
	assert_true(rgate_filter_uses_vlan("not vlan||udp"));
	assert_true(rgate_filter_uses_vlan("host my-vlan or vlan"));
	assert_false(rgate_filter_uses_vlan(""));
	assert_false(rgate_filter_uses_vlan("host vlanserver"));
	assert_false(rgate_filter_uses_vlan("host my-vlan"));
	assert_false(rgate_filter_uses_vlan("host vlan.example"));
}

/* The tag is in the metadata, so a load of SKF_AD_VLAN_* has to be there. */
static bool loads_vlan_tag(const struct sock_fprog *prog)
{
	unsigned int i;

	for (i = 0; i < prog->len; i++)
		if (BPF_CLASS(prog->filter[i].code) == BPF_LD &&
		    (prog->filter[i].k == (uint32_t)(SKF_AD_OFF + SKF_AD_VLAN_TAG) ||
		     prog->filter[i].k ==
		     (uint32_t)(SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT)))
			return true;
	return false;
}

static void vlan(void **state)
{
	struct sock_fprog prog;
	int err = rgate_filter_compile(NULL, "vlan 5", &prog, NULL, 0);

	(void)state;
	if (err == -EPERM)
		unit_skip("libpcap may not open a socket");
	assert_int_equal(err, 0);
	assert_true(loads_vlan_tag(&prog));
	rgate_filter_free(&prog);
	assert_int_equal(rgate_filter_compile("lo", "vlan and ip", &prog, NULL, 0), 0);
	assert_true(loads_vlan_tag(&prog));
	rgate_filter_free(&prog);
}

static int child_unprivileged(int sock, void *arg)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { 0 };
	struct sock_fprog prog;
	char err[200];

	(void)sock;
	(void)arg;
	unit_require(!syscall(SYS_capset, &h, d));
	unit_require(rgate_filter_compile("lo", "vlan 5", &prog, err, sizeof(err)) ==
		     -EPERM);
	unit_require(strstr(err, "CAP_NET_RAW"));
	unit_require(!rgate_filter_compile("lo", "udp", &prog, err, sizeof(err)));
	rgate_filter_free(&prog);
	return 0;
}

static void unprivileged(void **state)
{
	int sock, pid = unit_fork(child_unprivileged, NULL, &sock);

	(void)state;
	unit_reap(pid, 0);
	close(sock);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(compiles),
	cmocka_unit_test(refused),
	cmocka_unit_test(not_for_the_kernel),
	cmocka_unit_test(devices),
	cmocka_unit_test(told),
	cmocka_unit_test(link_types),
	cmocka_unit_test(vlan_word),
	cmocka_unit_test(vlan),
	cmocka_unit_test(unprivileged),
};

UNIT_MAIN_ALONE(tests)
