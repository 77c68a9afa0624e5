/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Memory of this node's sessions that was exported, and what is done to it: by sessions of
 * this node and, with the words of their node, by those of others. Nothing outside of a
 * region is touched, whatever is asked for.
 *
 * No lock: whoever owns the table calls its functions one at a time. So all that is done to a
 * region is in one order, and nothing is done to it once regions_remove() has returned.
 */
#ifndef RGATE_MEMORY_REGIONS_H
#define RGATE_MEMORY_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <ringgate/memory.h>

#define REGIONS_BITS	10
#define REGIONS_MAX	(1U << REGIONS_BITS)	/* of all users, */
#define REGIONS_UID	256U			/* and of one */

struct region {
	uint64_t id;		/* that no other one has had or will have; 0: free */
	uint64_t len;
	unsigned char *addr;
	uint32_t mode;		/* RGATE_MEMORY_MODE() */
	uid_t owner;
	char name[RGATE_MEMORY_NAME_MAX + 1];
};

struct regions {
	uint64_t serial;	/* of the last one */
	struct region table[REGIONS_MAX];
};

/* What is asked for; also the types of messages */
enum memory_op {
	MEMORY_OPEN = 1,
	MEMORY_READ = 2,
	MEMORY_WRITE = 3,
	MEMORY_FETCH_ADD = 4,
	MEMORY_CMP_SWAP = 5,
	MEMORY_FLUSH = 6,
};

struct memory_access {
	enum memory_op op;	/* but MEMORY_OPEN */
	uid_t uid;		/* who asks */
	uint64_t region;
	uint64_t off;
	uint32_t len;		/* of @data */
	uint64_t operand;	/* is added, or compared with */
	uint64_t swap;
	void *data;		/* MEMORY_READ: is written; MEMORY_WRITE: is read */
};

/* Ids begin at a number that nobody knows before. -errno of getrandom(2) */
int regions_init(struct regions *t);

/*
 * regions_add - a region from now on
 * @as: id is not looked at; the memory has to stay until regions_remove()
 * -EINVAL: mode, name, or not at a multiple of 8; -EEXIST: the user has that name; -EDQUOT: as
 * many as he may have; -ENOSPC: as there can be
 */
int regions_add(struct regions *t, const struct region *as, struct region **out);
void regions_remove(struct region *r);

/* Can it be a name? @name need not end with a NUL */
bool regions_name_ok(const char *name, size_t len);

/*
 * regions_open - the region of @owner with that name, for @uid to do what @rights say
 * -ENOENT; -EACCES: its mode does not allow that; -EINVAL: no rights, or unknown ones
 */
int regions_open(const struct regions *t, uid_t uid, uid_t owner, const char *name,
		 uint32_t rights, const struct region **out);

/* What the operation needs; 0: nothing but the region */
uint32_t memory_right(enum memory_op op);

/*
 * regions_access - does it
 * @value: out: what an atomic has found
 * -ESTALE: there is no such region any more; -EACCES; -ERANGE: not inside of it; -EINVAL: an atomic
 * that is not aligned
 */
int regions_access(const struct regions *t, const struct memory_access *a, uint64_t *value);

#endif
