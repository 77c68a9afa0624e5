// SPDX-License-Identifier: MIT OR GPL-2.0
#include "why.h"

#include <errno.h>
#include <stddef.h>

#define MORE_FILES	"too many open files: `ulimit -n 4096`, and once more"
#define NO_DEVICE	"no such device in this network namespace: `ip link` lists them"

/* One cause, and behind it what to do: in each context the likeliest alone */
static const struct {
	enum why ctx;
	int err;
	const char *text;
} texts[] = {
	{ WHY_RING, EACCES, "no permission to open /dev/ringgate: `sudo chmod 666 /dev/ringgate`" },
	{ WHY_RING, EPERM, "no permission to open /dev/ringgate: `sudo chmod 666 /dev/ringgate`" },
	{ WHY_RING, ENOMEM, "not enough memory: give fewer --slots" },
	{ WHY_RING, ENOSPC, "not enough memory: give fewer --slots" },
	{ WHY_RING, ENOBUFS, "over the limit of locked memory: `ulimit -l unlimited` as root, or "
			     "give fewer --slots" },
	{ WHY_RING, EMFILE, MORE_FILES },
	{ WHY_RING, EOPNOTSUPP, "this machine's memory is not coherent for DMA: `ringgate capture "
				"--userspace` does without" },
	{ WHY_MEMFD, ENOMEM, "not enough memory: give fewer --slots" },
	{ WHY_MEMFD, EFBIG, "larger than a file may be: `ulimit -f unlimited`, or give fewer "
			    "--slots" },
	{ WHY_MEMFD, EMFILE, MORE_FILES },
	{ WHY_ATTACH, EPERM, "this needs CAP_NET_ADMIN: run it with sudo" },
	{ WHY_ATTACH, ENODEV, NO_DEVICE },
	{ WHY_ATTACH, ENOENT, "the ring is gone: `ringgate status` lists what is there" },
	{ WHY_ATTACH, ENOMEM, "not enough memory" },
	{ WHY_TRANSMIT, EPERM, "this needs CAP_NET_ADMIN and CAP_NET_RAW: run it with sudo" },
	{ WHY_TRANSMIT, ENODEV, NO_DEVICE },
	{ WHY_TRANSMIT, ENETDOWN, "the device is down: `sudo ip link set DEVICE up`" },
	{ WHY_TRANSMIT, ENOTCONN, "the device is gone: `ip link` lists those that are there" },
	{ WHY_TRANSMIT, EPROTOTYPE, "its frames are not those of Ethernet: `ip link` tells which "
				    "devices' are" },
	{ WHY_TRANSMIT, EINVAL, "the ring is for receiving: `ringgate status` tells which "
				"transmit" },
	{ WHY_TRANSMIT, EBUSY, "the ring sends through a device already: `ringgate status` tells "
			       "which, `ringgate detach` ends it" },
	{ WHY_TRANSMIT, ENOENT, "the ring is gone: `ringgate status` lists what is there" },
	{ WHY_TRANSMIT, ENOMEM, "not enough memory" },
	{ WHY_TRANSMIT, ENOBUFS, "no memory for frames: `free -m`" },
	{ WHY_PACKET, EPERM, "a packet socket needs CAP_NET_RAW: run it with sudo" },
	{ WHY_PACKET, ENODEV, NO_DEVICE },
	{ WHY_PACKET, ENETDOWN, "the device is down: `sudo ip link set DEVICE up`" },
	{ WHY_PACKET, EMFILE, MORE_FILES },
	{ WHY_UDP, EADDRINUSE, "another socket has this address and port: `ss -lunp` tells whose "
			       "it is" },
	{ WHY_UDP, EADDRNOTAVAIL, "this machine has no such address: `ip addr` lists them" },
	{ WHY_UDP, EACCES, "ports below 1024 are root's: take another, or run it with sudo" },
	{ WHY_UDP, EMFILE, MORE_FILES },
	{ WHY_DAEMON, ENOENT, "no ringgated runs here: `sudo systemctl start ringgated`" },
	{ WHY_DAEMON, ECONNREFUSED, "no ringgated runs here: `sudo systemctl start ringgated`" },
	{ WHY_DAEMON, EACCES, "ringgated's socket is not for this user: run it with sudo" },
	{ WHY_DAEMON, EPERM, "ringgated's socket is not for this user: run it with sudo" },
	{ WHY_DAEMON, ETIMEDOUT, "ringgated runs here, and does not answer: `journalctl -u "
				 "ringgated`" },
	{ WHY_NODE, ENOMEM, "not enough memory for the node's buffers" },
	{ WHY_NODE, EMFILE, MORE_FILES },
	{ WHY_PEER, ETIMEDOUT, "no answer: `systemctl status ringgated` on that node" },
	{ WHY_PEER, EHOSTUNREACH, "no answer: `systemctl status ringgated` on that node" },
	{ WHY_PEER, EACCES, "the keys do not fit: compare what `ringgate cluster show` prints here "
			    "and there" },
	{ WHY_SPAWN, ETIMEDOUT, "it runs nothing for others: `ringgated --spawn 'policy FILE'` on "
				"that node" },
	{ WHY_SPAWN, EOPNOTSUPP, "it runs nothing for others: `ringgated --spawn 'policy FILE'` on "
				 "that node" },
	{ WHY_SPAWN, ECONNRESET, "the node is gone: `systemctl status ringgated` on it" },
	{ WHY_SPAWN, ENOTCONN, "the node is gone: `systemctl status ringgated` on it" },
	{ WHY_SPAWN, EPIPE, "ringgated of this machine has ended: `systemctl status ringgated`" },
	{ WHY_SPAWN, EDQUOT, "this user has as many processes as he may: `limit` in the file of "
			     "ringgated's `requests policy`" },
	{ WHY_SPAWN, ENOBUFS, "no memory for one more: `pool` in ringgated's configuration, or end "
			      "others" },
	{ WHY_SYNC, ENOENT, "it is not there, and only its owner can make it: `ringgate lock --list` "
			    "shows what is" },
	{ WHY_SYNC, ECONNREFUSED, "no ringgated runs here: `sudo systemctl start ringgated`" },
	{ WHY_SYNC, EACCES, "it is not for this user: its owner makes it with --others, and the "
			    "file of ringgated's `requests policy` allows `lock barrier`" },
	{ WHY_SYNC, ENXIO, "there is no such node: `ringgate cluster status` lists them" },
	{ WHY_SYNC, ETIMEDOUT, "its node does not answer: `systemctl status ringgated` on it" },
	{ WHY_SYNC, ENOTCONN, "its node is not there: `systemctl status ringgated` on it" },
	{ WHY_SYNC, ECONNRESET, "its node is gone: `systemctl status ringgated` on it" },
	{ WHY_SYNC, ESTALE, "its node was gone: `systemctl status ringgated` on it" },
	{ WHY_SYNC, EPIPE, "ringgated of this machine has ended: `systemctl status ringgated`" },
	{ WHY_SYNC, EOPNOTSUPP, "this ringgated has no locks: install one of this version" },
	{ WHY_SYNC, EUSERS, "it has all its members: give it another name" },
	{ WHY_SYNC, EDQUOT, "this user has as many as he may: `limit` in the file of ringgated's "
			    "`requests policy`" },
	{ WHY_FILE, ENOSPC, "the disk is full: `df -h` shows which" },
	{ WHY_FILE, ENOENT, "its directory does not exist" },
	{ WHY_FILE, EACCES, "no permission to write there" },
	{ WHY_FILE, EISDIR, "it is a directory" },
	{ WHY_FILE, EFBIG, "larger than a file may be: `ulimit -f unlimited`" },
	{ WHY_READ, ENOENT, "there is no such file: `ls` lists those that are there" },
	{ WHY_READ, EACCES, "no permission to read it: run it with sudo" },
	{ WHY_READ, EISDIR, "it is a directory" },
};

const char *why_text(enum why ctx, int err)
{
	size_t i;

	if (err > 0 || err < -4095)
		return NULL;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].ctx == ctx && texts[i].err == -err)
			return texts[i].text;
	return NULL;
}
