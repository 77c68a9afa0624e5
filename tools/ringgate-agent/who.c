// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "keeper.h"

int keeper_who_is(int sock, struct keeper_who *who)
{
	socklen_t len = sizeof(struct ucred);
	struct ucred cred;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	/* Nobody's: in a namespace of users that this one knows nothing of */
	if (cred.uid == (uid_t)-1 || cred.gid == (gid_t)-1)
		return -EPERM;
	who->uid = cred.uid;
	who->gid = cred.gid;
	len = sizeof(who->groups);
	/* Of a process with more groups only its own one counts. */
	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, who->groups, &len) < 0)
		len = 0;
	who->n = (unsigned int)(len / sizeof(gid_t));
	return 0;
}

static bool has(const struct keeper_who *who, gid_t gid)
{
	unsigned int i;

	for (i = 0; i < who->n; i++)
		if (who->groups[i] == gid)
			return true;
	return who->gid == gid;
}

bool keeper_has_all(const struct keeper_who *who, const struct keeper_who *other)
{
	unsigned int i;

	for (i = 0; i < other->n; i++)
		if (!has(who, other->groups[i]))
			return false;
	return has(who, other->gid);
}

int keeper_become(const struct keeper_who *who)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	if (geteuid() != 0)
		return geteuid() == who->uid ? 0 : -EPERM;
	if (setgroups(who->n, who->groups) < 0 || setresgid(who->gid, who->gid, who->gid) < 0 ||
	    setresuid(who->uid, who->uid, who->uid) < 0)
		return -errno;
	/* Whoever is not root can be nobody else any more. */
	return who->uid && !setresuid(0, 0, 0) ? -EPERM : 0;
}
