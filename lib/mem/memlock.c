// SPDX-License-Identifier: MIT OR GPL-2.0
#include <inttypes.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "log.h"
#include "memlock.h"

/* A line of /proc/self/status whose value is in KiB, or in hexadecimal; 0 without it */
static uint64_t status_value(const char *name, bool hex)
{
	char line[256], key[64];
	uint64_t v = 0, found = 0;
	FILE *f = fopen("/proc/self/status", "re");

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		if (hex ? sscanf(line, "%63[^:]: %" SCNx64, key, &v) != 2 :
			  sscanf(line, "%63[^:]: %" SCNu64, key, &v) != 2)
			continue;
		if (!__builtin_strcmp(key, name)) {
			found = v;
			break;
		}
	}
	fclose(f);
	return found;
}

static bool may_lock_all(void)
{
	return status_value("CapEff", true) >> CAP_IPC_LOCK & 1;
}

bool rgate_memlock_short(const void *addr, size_t len)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t pinned, need;
	struct rlimit lim;

	if (getrlimit(RLIMIT_MEMLOCK, &lim) || lim.rlim_cur == RLIM_INFINITY || may_lock_all())
		return false;
	/* RDMA counts what it pinned apart from what is locked (VmPin, VmLck). */
	pinned = status_value("VmPin", false) * 1024;
	need = ((uintptr_t)addr % page + len + page - 1) / page * page;
	if (pinned + need <= lim.rlim_cur)
		return false;
	rgate_err("%" PRIu64 " KiB more would be locked than the %" PRIu64 " KiB this user may "
		  "(RLIMIT_MEMLOCK): "
		  "`ulimit -l %" PRIu64 "` before the program starts (as root, or by "
		  "/etc/security/limits.conf), LimitMEMLOCK=infinity in its systemd unit, or "
		  "`prlimit --pid %d --memlock=unlimited`",
		  (pinned + need - lim.rlim_cur) / 1024, (uint64_t)lim.rlim_cur / 1024,
		  (pinned + need) / 1024, (int)getpid());
	return true;
}
