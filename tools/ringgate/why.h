/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What an error means where it came, and what to type next. */
#ifndef WHY_H
#define WHY_H

/*
 * What was tried. An errno alone says little: -ENOENT is a module that is not loaded, a
 * ring that is gone, or a file.
 */
enum why {
	WHY_SYSTEM,	/* what the system says is all there is to say */
	WHY_RING,	/* making a ring of the module */
	WHY_MEMFD,	/* making a ring without it */
	WHY_ATTACH,	/* attaching rings, or changing that */
	WHY_TRANSMIT,	/* sending through a device */
	WHY_PACKET,	/* a packet socket */
	WHY_UDP,	/* a UDP socket */
	WHY_DAEMON,	/* asking the daemon of this machine */
	WHY_NODE,	/* becoming a node of the cluster */
	WHY_PEER,	/* reaching another node */
	WHY_SPAWN,	/* having it run something */
	WHY_SYNC,	/* locks and barriers */
	WHY_FILE,	/* writing a file */
	WHY_READ,	/* reading one */
};

/* why_text - words for -errno @err, static; NULL: nothing is known of it there */
const char *why_text(enum why ctx, int err);

#endif
