// SPDX-License-Identifier: MIT OR GPL-2.0
/* What this user may do. */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ringgate/ring.h>

#include "caps.h"
#include "doctor.h"
#include "fmt.h"
#include "util.h"

static void check_cap(struct checks *c, const char *name, int cap,
		      const char *needed_for, const char *lower)
{
	struct check *k = check_add(c, name, NEED_NOTHING);

	if (caps_have(cap)) {
		check_set(k, CHECK_OK, "there%s", caps_in_userns() ?
			  ", in this user namespace only" : "");
		return;
	}
	check_set(k, CHECK_WARN, "not there: %s", needed_for);
	check_fix(k, "run as root, or: setcap %s+ep PROGRAM", lower);
}

/* Producer area, consumer area with its credits, and the slots, whole pages */
static uint64_t ring_bytes(uint64_t slots, uint64_t slot_size)
{
	uint64_t page = sysconf(_SC_PAGESIZE);
	uint64_t cons = RGATE_CREDITS_OFF + slots / RGATE_BATCH * sizeof(__u64);

	return page + (cons + page - 1) / page * page + slots * slot_size;
}

static void check_memlock(struct checks *c)
{
	uint64_t need = ring_bytes(RGATE_SLOTS_DEFAULT, RGATE_SLOT_SIZE_DEFAULT);
	struct check *k = check_add(c, "RLIMIT_MEMLOCK", NEED_NOTHING);
	char have[FMT_LEN], want[FMT_LEN];
	struct rlimit r;

	fmt_bytes(want, need);
	if (getrlimit(RLIMIT_MEMLOCK, &r)) {
		check_set(k, CHECK_WARN, "cannot be read");
		return;
	}
	if (caps_have(CAP_IPC_LOCK) && !caps_in_userns()) {
		check_set(k, CHECK_OK, "does not bind (CAP_IPC_LOCK)");
	} else if (r.rlim_cur == RLIM_INFINITY) {
		check_set(k, CHECK_OK, "unlimited");
	} else if (r.rlim_cur >= need) {
		check_set(k, CHECK_OK, "%s; a ring of default size takes %s",
			  fmt_bytes(have, r.rlim_cur), want);
	} else {
		check_set(k, CHECK_WARN, "%s is less than a ring of default "
			  "size (%s)", fmt_bytes(have, r.rlim_cur), want);
		check_fix(k, r.rlim_max >= need ? "ulimit -l %llu" :
			  "echo '* - memlock %llu' >/etc/security/limits.d/ringgate.conf"
			  " and log in again",
			  (unsigned long long)(need + 1023) / 1024);
	}
}

static void check_memfd(struct checks *c)
{
	struct check *k = check_add(c, "memfd", NEED_USERSPACE);
	int fd = memfd_create("ringgate-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, 1 << 20)) {
		check_set(k, CHECK_MISSING, "cannot be made: the userspace source "
			  "needs it");
		check_fix(k, "allow memfd_create in the seccomp profile");
	} else {
		check_set(k, CHECK_OK, "the userspace source (UDP) can be used");
	}
	if (fd >= 0)
		close(fd);
}

void doctor_rights(struct checks *c)
{
	check_cap(c, "CAP_NET_ADMIN", CAP_NET_ADMIN,
		  "rings cannot be attached to devices", "cap_net_admin");
	check_cap(c, "CAP_NET_RAW", CAP_NET_RAW,
		  "no packet socket source, no vlan in filters", "cap_net_raw");
	check_cap(c, "CAP_IPC_LOCK", CAP_IPC_LOCK,
		  "RLIMIT_MEMLOCK binds", "cap_ipc_lock");
	check_memlock(c);
	check_memfd(c);
}
