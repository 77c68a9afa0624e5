/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The gateway's inside. Sources and destinations are the forwarding thread's. Others,
 * the hub's thread among them, read them, mark them, and put new ones into `arrivals`
 * under the lock, which the thread takes to change the lists.
 */
#ifndef RGATE_NET_GATEWAY_H
#define RGATE_NET_GATEWAY_H

#include <pthread.h>

#include <ringgate/rgate_consumer.h>
#include <ringgate/rgate_gateway.h>
#include <ringgate/rgate_source.h>

#include "spin.h"
#include "steer.h"
#include "net_wire.h"
#include "xfer.h"

#define GW_QUEUE	16384U	/* frames queued for one ring, power of two */
#define GW_FLIGHTS	64U	/* posts under way to one ring, power of two */
#define GW_DESTS	(RGATE_NODES_MAX * NET_RINGS_MAX)
#define GW_OPS		RGATE_POST_MAX

enum gw_item_flags {
	GW_FULL_DROP = 1U << 0,
	GW_DOWN_DROP = 1U << 1,	/* or a copy: nobody else shall have it */
};

struct gw_item {		/* a frame on its way to one ring */
	uint32_t slot;		/* of the source */
	uint8_t source;
	uint8_t parts;		/* slots of it */
	uint8_t flags;
	uint8_t reserved;
};

struct gw_flight {		/* a post under way */
	struct xfer xfer;
	struct gw_dest *dest;
	uint32_t end;		/* items before this one are done with it */
	uint64_t pack_end;	/* packed: and the stage up to here */
};

/* Packed, see net_wire.h: the stage is what the inbox shall be, at the same positions */
struct gw_pack {
	uint32_t size;		/* bytes of both; 0: not packed */
	const struct rgate_buf *stage;
	struct rgate_remote inbox;
	uint64_t pos;		/* behind the last chunk */
	uint64_t read;		/* the node read up to here, as it told last */
	uint64_t landed;	/* and the device */
};

struct gw_source {
	struct rgate_ring *ring;	/* NULL: none */
	struct rgate_source *driven;	/* fills it, by this thread; NULL: somebody else does */
	bool quiet;			/* poll(2) has just seen nothing at its socket */
	struct rgate_share *share;
	struct rgate_consumer c;
	uint64_t next;		/* position not yet looked at; c.done: not yet given back */
	uint8_t *refs;		/* for each slot: rings that its frame goes to yet */
	uint32_t lkey;
	uint32_t room;
	bool leaving;		/* atomic: to be removed */
	bool failed;		/* no more of it: its memory cannot be mapped or shared */
};

struct gw_dest {
	uint32_t id;		/* for the hash: the same after a reconnection */
	uint32_t node;
	uint32_t ring;		/* its number there */
	char name[RGATE_NAME_LEN];
	struct rgate_gateway *gw;
	struct xfer_list xfers;
	uint32_t epoch;		/* the connection that its memory was lent over */
	struct rgate_remote slots_at;
	struct rgate_remote mail_at;
	uint32_t slots;
	uint32_t lap_shift;
	uint32_t size_shift;
	uint64_t head;		/* next position to write */
	uint64_t free;		/* as the node told last */
	const struct rgate_buf *credit;	/* where it tells it: see struct net_taken */
	struct gw_pack pack;
	const struct rgate_buf *scratch; /* struct gw_scratch */
	bool dead;		/* atomic: the connection is gone */
	bool withdrawn;		/* atomic: the node wants it back */
	bool asked;		/* for slots */
	bool bell;		/* its slots' memory has one, or the node says so */
	bool mail_due;
	uint64_t mail_by;	/* bell: when the mail is due, ns; 0: it was sent */
	unsigned int quiet;	/* posts since the last notice */
	uint64_t mailed;	/* head that the node was told */
	uint32_t gap;		/* frames dropped since the last one */
	struct gw_item *items;
	uint32_t in, posted, done; /* of items */
	struct gw_flight flights[GW_FLIGHTS];
	uint32_t flight_in;	/* the next one's number; they end in their order */
	uint64_t ended_frames, ended_bytes; /* by this reaping */
	struct rgate_stats stats; /* of this session, for the node */
	struct rgate_gateway_ring info;
	struct gw_dest *next;	/* in arrivals */
};

/* What the device reads besides slots: stays as it is until written */
struct gw_scratch {
	struct rgate_slot pad;
	uint64_t laps[64];		/* lap L stands at L modulo 64 */
	struct rgate_slot heads[GW_FLIGHTS]; /* changed headers, by flight */
	struct net_mail mails[GW_FLIGHTS];
};

struct rgate_gateway {
	struct rgate_hub *hub;
	struct rgate_node *node;
	struct rgate_gateway_opts o;
	struct rgate_spin spin;		/* the thread's */
	pthread_t thread;
	int wake_fd;
	bool stop;			/* atomic */

	pthread_mutex_t lock;
	pthread_cond_t changed;		/* a source was added or removed */
	uint64_t instance;
	struct rgate_ring *adding;	/* to be a source; then add_err */
	struct rgate_source *adding_driven;
	int add_err;
	struct rgate_steer *steer;	/* new rules go here ... */
	bool new_rules;			/* atomic */
	struct gw_dest *arrivals;
	struct gw_dest *waiting;	/* for their inboxes */
	bool pack;			/* whoever can shall have one */

	struct rgate_steer *rules;	/* ... and the thread takes them from there */
	struct gw_source sources[RGATE_GATEWAY_RINGS_MAX];
	struct gw_dest *dests[GW_DESTS];
	unsigned int ndests;
	struct rgate_gateway_stats stats;
	struct rgate_gateway_node nodes[RGATE_NODES_MAX];
};

/* Counters have one writer and any readers */
static inline void gw_count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static inline bool gw_flag(const bool *b)
{
	return __atomic_load_n(b, __ATOMIC_ACQUIRE);
}

static inline void gw_unref(struct rgate_gateway *gw, const struct gw_item *item)
{
	gw->sources[item->source].refs[item->slot]--;
}

/* gw_dest.c */
#define GW_HEAD_BYTES	(RGATE_SLOT_HDR - 8U)	/* a slot's header without its sequence */

/* What the slots of a ring need: the most that a source has. With the lock */
uint32_t gw_slot_size(const struct rgate_gateway *gw);
int gw_dest_create(struct gw_dest **dest, struct rgate_gateway *gw, uint32_t node,
		   const struct net_offer *offer);
void gw_dest_free(struct rgate_gateway *gw, struct gw_dest *dest);

static inline uint32_t gw_dest_room(const struct gw_dest *dest)
{
	return GW_QUEUE - (dest->in - dest->done);
}

/* gw_send.c: what was done, so that the thread knows whether to go on */
unsigned int gw_dest_reap(struct rgate_gateway *gw, struct gw_dest *dest);
unsigned int gw_dest_send(struct rgate_gateway *gw, struct gw_dest *dest);

/* gw_pack.c */
/* CPU time of an operation, here, over the node's own device; 0: that is not known */
uint64_t gw_pack_cost(struct rgate_node *node);
/* Decides, for a ring of @offer: with the inbox's size in pack.size, or 0. 0, -ENOMEM */
int gw_pack_want(struct rgate_gateway *gw, struct gw_dest *dest, const struct net_offer *offer);
/* The answer. False: it cannot be packed */
bool gw_pack_inbox(struct gw_dest *dest, const struct net_inbox *msg);
/* Where the next chunk goes, room for any; NULL: none now */
struct net_chunk *gw_pack_next(const struct gw_dest *dest);
/* Behind a chunk of @bytes of slots there would be no room for another one */
bool gw_pack_last(const struct gw_dest *dest, uint32_t bytes);
/* Slot @s but for its sequence, with @len bytes behind the header, to @to; what it took */
uint32_t gw_pack_slot(void *to, const struct rgate_slot *s, uint32_t len, uint32_t gap);

/* gw_source.c */
int gw_source_bind(struct rgate_gateway *gw, struct gw_source *src);
void gw_source_unbind(struct gw_source *src);
unsigned int gw_source_take(struct rgate_gateway *gw, struct gw_source *src);
unsigned int gw_source_release(struct gw_source *src);
/* To whom the frame goes; @past: from a ring that is gone. False: to nobody */
bool gw_steer(struct rgate_gateway *gw, const struct gw_item *frame, bool past);

/* gw_loop.c */
void *gw_main(void *gw);

static inline const struct rgate_slot *gw_slot(const struct rgate_gateway *gw,
					       const struct gw_item *item)
{
	return rgate_consumer_slot(&gw->sources[item->source].c, item->slot);
}

#endif
