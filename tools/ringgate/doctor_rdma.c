// SPDX-License-Identifier: MIT OR GPL-2.0
/* What RDMA and large registered regions need. */
#define _GNU_SOURCE
#include <errno.h>
#include <glob.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ringgate/rgate_device.h>

#include "caps.h"
#include "doctor.h"
#include "fmt.h"
#include "util.h"

#define REGION	(128ULL << 20)	/* the smallest region of a pool by default */

static size_t matches(const char *pattern)
{
	glob_t g;
	size_t n = glob(pattern, 0, NULL, &g) ? 0 : g.gl_pathc;

	if (n)
		globfree(&g);
	return n;
}

/* Names of the devices; false: there are none */
static bool check_devices(struct checks *c)
{
	struct check *k = check_add(c, "RDMA", NEED_NOTHING);
	char names[128] = "";
	size_t i, n = 0;
	glob_t g;

	if (glob("/sys/class/infiniband/*", 0, NULL, &g)) {
		check_set(k, CHECK_WARN, "no device: needed for several machines only%s",
			  access("/sys/class/infiniband", F_OK) ?
			  " (no RDMA in this kernel, or not loaded)" : "");
		check_fix(k, "modprobe rdma_rxe && rdma link add rxe0 type rxe netdev "
			  "DEVICE (in software, for tests)");
		return false;
	}
	for (i = 0; i < g.gl_pathc && n < sizeof(names); i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i ? " " : "",
				      strrchr(g.gl_pathv[i], '/') + 1);
	globfree(&g);
	check_set(k, CHECK_OK, "%s", names);
	return true;
}

/* The device files through which programs come to it */
static void check_verbs(struct checks *c)
{
	struct check *k = check_add(c, "RDMA verbs", NEED_NOTHING);
	size_t i, may = 0;
	glob_t g;

	if (glob("/dev/infiniband/uverbs*", 0, NULL, &g)) {
		check_set(k, CHECK_WARN, "no /dev/infiniband/uverbs*: no program can use "
			  "the devices");
		check_fix(k, access("/sys/module/ib_uverbs", F_OK) ?
			  "modprobe ib_uverbs" : "install rdma-core (its udev rules), or "
			  "start the container with --device=/dev/infiniband");
		return;
	}
	for (i = 0; i < g.gl_pathc; i++)
		may += !access(g.gl_pathv[i], R_OK | W_OK);
	if (may == g.gl_pathc) {
		check_set(k, CHECK_OK, "may be opened");
	} else {
		check_set(k, CHECK_WARN, "no permission on %zu of %zu of "
			  "/dev/infiniband/uverbs*", g.gl_pathc - may, g.gl_pathc);
		check_fix(k, "chmod 666 /dev/infiniband/uverbs* (rdma-core's udev rules do "
			  "so), or run as root");
	}
	globfree(&g);
}

struct addresses {
	unsigned int ports, active, with;
	char without[64], netdev[16];
};

static int look(void *ctx, const struct rgate_device_info *d)
{
	struct addresses *a = ctx;
	bool with = strchr(d->addr, '.') && d->gid_type == RGATE_GID_ROCE_V2;

	a->ports++;
	a->active += d->active;
	/* InfiniBand proper is addressed by other means */
	a->with += with || !d->ethernet;
	if (!with && d->ethernet && !*a->without) {
		snprintf(a->without, sizeof(a->without), "%s", d->name);
		snprintf(a->netdev, sizeof(a->netdev), "%s", d->netdev);
	}
	return 0;
}

static void check_address(struct checks *c)
{
	struct check *k = check_add(c, "RDMA address", NEED_NOTHING);
	struct addresses a = { 0 };
	int err = rgate_device_each(look, &a);

	if (err || !a.ports) {
		check_set(k, CHECK_WARN, "the devices cannot be asked (%s)",
			  err ? strerrorname_np(-err) : "none can be opened");
		check_fix(k, "see RDMA verbs; a device's library may be missing: install "
			  "ibverbs-providers");
	} else if (a.with < a.ports) {
		check_set(k, CHECK_WARN, "%s has no RoCE v2 address of IPv4", a.without);
		check_fix(k, "ip addr add ADDRESS/24 dev %s && ip link set %s up",
			  *a.netdev ? a.netdev : "DEVICE", *a.netdev ? a.netdev : "DEVICE");
	} else if (a.active < a.ports) {
		check_set(k, CHECK_WARN, "%u of %u ports are not active",
			  a.ports - a.active, a.ports);
		check_fix(k, "ip link set DEVICE up (ringgate probe --list shows which)");
	} else {
		check_set(k, CHECK_OK, "%u port%s active, with an address", a.ports,
			  a.ports > 1 ? "s" : "");
	}
}

static void check_pinned(struct checks *c)
{
	struct check *k = check_add(c, "RDMA memory", NEED_NOTHING);
	char have[FMT_LEN], want[FMT_LEN];
	struct rlimit r;

	fmt_bytes(want, REGION);
	if (getrlimit(RLIMIT_MEMLOCK, &r)) {
		check_set(k, CHECK_WARN, "RLIMIT_MEMLOCK cannot be read");
	} else if ((caps_have(CAP_IPC_LOCK) && !caps_in_userns()) ||
		   r.rlim_cur == RLIM_INFINITY) {
		check_set(k, CHECK_OK, "as much as there is may be registered");
	} else if (r.rlim_cur >= REGION) {
		check_set(k, CHECK_OK, "%s may be registered (RLIMIT_MEMLOCK)",
			  fmt_bytes(have, r.rlim_cur));
	} else {
		check_set(k, CHECK_WARN, "%s may be registered (RLIMIT_MEMLOCK): less than "
			  "a region of a pool (%s)", fmt_bytes(have, r.rlim_cur), want);
		check_fix(k, r.rlim_max >= REGION ? "ulimit -l %llu" :
			  "echo '* - memlock unlimited' >/etc/security/limits.d/ringgate.conf"
			  " and log in again", REGION / 1024);
	}
}

/* Registering is faster and the device's tables are smaller with them. */
static void check_huge(struct checks *c)
{
	struct check *k = check_add(c, "huge pages", NEED_NOTHING);
	char total[32] = "", thp[64] = "";
	long n = 0;

	if (!util_read_line("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
			    total, sizeof(total)))
		n = atol(total);
	util_read_line("/sys/kernel/mm/transparent_hugepage/enabled", thp, sizeof(thp));
	if (n > 0) {
		check_set(k, CHECK_OK, "%ld of 2 MiB are free; transparent: %s", n,
			  *thp ? thp : "not in this kernel");
	} else if (*thp && !strstr(thp, "[never]")) {
		check_set(k, CHECK_OK, "none of 2 MiB are free; transparent: %s", thp);
	} else {
		check_set(k, CHECK_WARN, "none: registering large memory is slower");
		check_fix(k, matches("/sys/kernel/mm/hugepages/hugepages-2048kB") ?
			  "sysctl vm.nr_hugepages=64 (128 MiB)" :
			  "a kernel with CONFIG_HUGETLBFS or transparent huge pages");
	}
}

void doctor_rdma(struct checks *c)
{
	if (check_devices(c)) {
		check_verbs(c);
		check_address(c);
	}
	check_pinned(c);
	check_huge(c);
}
