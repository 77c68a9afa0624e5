// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The serving side of lib/spawn against a client that lies, over connections that fail, with
 * a spawner that says anything. It reads and writes no memory but what it was lent over this
 * connection, logs no odd byte, and has nothing left in the end.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "spawn_peer.h"
#include "spawnd.h"

#define STEPS	200
#define PROCS	16
#define MEMORY	(1U << 16)		/* of a client that means well */

static const char policy_text[] = "node 1 user root admin\nallow 1 any\nmax-running 4\n"
				  "max-queued 6\nenv * *\n";
static struct rgate_spawner_shared *shared;
static int null_fd;

static struct {				/* the spawner */
	struct {
		uint64_t id;
		uint32_t slot;
		int in, out;
	} proc[PROCS];
	unsigned int n;
	struct rgate_spawner_packet packet;
	bool has_packet, dead;
} sp;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	signal(SIGPIPE, SIG_IGN);
	spawn_peer_init();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	FUZZ_CHECK(shared != MAP_FAILED);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	FUZZ_CHECK(null_fd >= 0);
	return 0;
}

/* The spawner */

int __wrap_rgate_policy_load(struct rgate_spawn_policy **policy, const struct rgate_cluster *c,
			     const char *path)
{
	(void)path;
	return rgate_policy_parse(policy, c, "fuzz", policy_text, sizeof(policy_text) - 1);
}

int __wrap_rgate_spawner_create(struct rgate_spawner *s, const struct rgate_spawner_opts *o)
{
	(void)o;
	s->sock = dup(peer_ready_fd);
	s->null_fd = null_fd;
	s->shared = shared;
	return s->sock < 0 ? -errno : 0;
}

static void end_process(unsigned int i)
{
	close(sp.proc[i].in);
	close(sp.proc[i].out);
	sp.proc[i] = sp.proc[--sp.n];
}

void __wrap_rgate_spawner_destroy(struct rgate_spawner *s)
{
	while (sp.n)
		end_process(0);
	close(s->sock);
}

struct rgate_order *__wrap_rgate_spawner_order(struct rgate_spawner *s)
{
	unsigned int slot;

	if (s->used == UINT32_MAX || sp.dead)
		return NULL;
	if (fuzz_u8(&peer.in) & 1)
		s->used = 0;	/* it has copied them */
	slot = (unsigned int)__builtin_ctz(~s->used);
	s->used |= 1U << slot;
	return &s->shared->orders[slot];
}

void __wrap_rgate_spawner_cancel(struct rgate_spawner *s, const struct rgate_order *order)
{
	s->used &= ~(1U << (order - s->shared->orders));
}

int __wrap_rgate_spawner_start(struct rgate_spawner *s, struct rgate_order *order,
			       const int fds[3])
{
	struct rgate_spawn_parsed req;
	const char *why;

	/* What the spawner will decide about is what was asked for. */
	FUZZ_CHECK(!rgate_spawn_decode(order->record, order->record_len, &req, &why));
	rgate_spawn_parsed_free(&req);
	FUZZ_CHECK(fds[0] >= 0 && fds[1] >= 0 && fds[2] >= 0);
	if (sp.n == PROCS || !(fuzz_u8(&peer.in) & 15)) {
		__wrap_rgate_spawner_cancel(s, order);
		return sp.dead ? -EPIPE : -EAGAIN;
	}
	sp.proc[sp.n].id = order->id;
	sp.proc[sp.n].slot = (uint32_t)(order - s->shared->orders);
	sp.proc[sp.n].in = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
	sp.proc[sp.n].out = fcntl(fds[1], F_DUPFD_CLOEXEC, 0);
	sp.n++;
	return 0;
}

int __wrap_rgate_spawner_tell(struct rgate_spawner *s, uint32_t type, uint64_t id, int32_t a,
			      int32_t b)
{
	(void)s;
	(void)id;
	(void)a;
	(void)b;
	FUZZ_CHECK(type == RGATE_SPAWNER_SIGNAL || type == RGATE_SPAWNER_FINISH);
	if (sp.dead)
		return -EPIPE;
	return fuzz_u8(&peer.in) & 15 ? 0 : -EAGAIN;
}

int __wrap_rgate_spawner_recv(struct rgate_spawner *s, struct rgate_spawner_packet *packet)
{
	(void)s;
	if (sp.dead)
		return -EPIPE;
	if (!sp.has_packet)
		return 0;
	*packet = sp.packet;
	sp.has_packet = false;
	return 1;
}

/* Something happens to a process. */
static void process_step(void)
{
	const uint8_t what = fuzz_u8(&peer.in);
	unsigned int i;
	char buf[5000];

	if (!sp.n) {
		sp.dead |= what == 255;
		return;
	}
	i = fuzz_u8(&peer.in) % sp.n;
	sp.packet = (struct rgate_spawner_packet){
		.id = sp.proc[i].id, .slot = sp.proc[i].slot, .flags = what >> 4,
	};
	switch (what % 6) {
	case 0:
		sp.packet.type = RGATE_SPAWNER_STARTED;
		sp.packet.a = what & 64 ? -ENOENT : 100;
		sp.packet.b = what & 32 ? RGATE_SPAWN_AT_EXEC : RGATE_SPAWN_AT_REQUEST;
		sp.packet.wall_ms = what & 16 ? 1 : 0;
		sp.has_packet = true;
		break;
	case 1:
		sp.packet.type = RGATE_SPAWNER_EXITED;
		sp.packet.b = what >> 7;
		sp.has_packet = true;
		break;
	case 2:
		sp.packet.type = RGATE_SPAWNER_FINISHED;
		sp.has_packet = true;
		break;
	case 3:
		(void)fcntl(sp.proc[i].out, F_SETFL, O_NONBLOCK);
		memset(buf, what, sizeof(buf));
		(void)!write(sp.proc[i].out, buf, 1 + fuzz_u16(&peer.in) % sizeof(buf));
		break;
	case 4:
		(void)fcntl(sp.proc[i].in, F_SETFL, O_NONBLOCK);
		(void)!read(sp.proc[i].in, buf, sizeof(buf));
		break;
	default:
		end_process(i);
	}
}

/* What a client may say */

static void fill_desc(struct rgate_desc *d)
{
	*d = (struct rgate_desc){
		.magic = htole16(RGATE_DESC_MAGIC), .version = RGATE_DESC_VERSION,
		.access = RGATE_ACCESS_REMOTE, .rkey = htole32(fuzz_u8(&peer.in)),
		.addr = htole64((uint64_t)fuzz_u8(&peer.in) << 16), .length = htole64(MEMORY),
	};
}

static size_t fill_start(struct rgate_spawn_start *m)
{
	const uint8_t rings = fuzz_u8(&peer.in);
	int i;

	fill_desc(&m->memory);
	/* Other memory than what is written */
	m->lent = m->memory;
	m->lent.rkey ^= htole32(0x100);
	m->record = htole32(512);
	/* As long as what read_from() has, or not */
	m->record_len = htole32(rings & 128 ? fuzz_u16(&peer.in) :
				sizeof(struct rgate_spawn_record) + 10 + 22);
	for (i = 0; i < 3; i++) {
		m->ring[i] = htole32(8192U * (unsigned int)(i + 1));
		m->ring_len[i] = htole32(rings >> i & 1 ? 4096U << (rings >> 6 & 1) : 0);
	}
	for (i = 0; i < 2; i++)
		m->consumed[i] = rings & 32 ? UINT64_MAX : htole64(fuzz_u16(&peer.in));
	m->incarnation = htole64(peer.incarnation);
	m->owner = htole32(rings >> 3 & 3);
	return sizeof(*m);
}

static size_t fill_control(struct rgate_spawn_control *m)
{
	m->consumed[0] = htole64(fuzz_u16(&peer.in));
	m->consumed[1] = htole64(fuzz_u16(&peer.in));
	m->given = htole64(fuzz_u16(&peer.in));
	m->given_all = htole32(fuzz_u8(&peer.in) & 1);
	m->signals = htole32(fuzz_u8(&peer.in));
	m->signal = htole32(fuzz_u8(&peer.in));
	m->scope = htole32(fuzz_u8(&peer.in));
	return sizeof(*m);
}

static void to_server(struct rgate_spawnd *sd)
{
	union {
		struct rgate_spawn_msg h;
		struct rgate_spawn_start start;
		struct rgate_spawn_control control;
		struct rgate_spawn_ask ask;
		uint8_t bytes[256];
	} m;
	const uint8_t how = fuzz_u8(&peer.in);
	size_t len = sizeof(m.h);
	struct rgate_msg msg;

	memset(&m, 0, sizeof(m));
	m.h.service = htole32(RGATE_SPAWN_SERVICE);
	m.h.version = RGATE_SPAWN_VERSION;
	m.h.type = 1 + how % 8;
	m.h.cookie = htole64(fuzz_u8(&peer.in) % 8);
	if (sp.n && how & 64)
		m.h.id = htole64(sp.proc[fuzz_u8(&peer.in) % sp.n].id);
	else if (how & 32)
		m.h.id = htole64(fuzz_u64(&peer.in));
	if (m.h.type == RGATE_SPAWN_START || m.h.type == RGATE_SPAWN_ATTACH) {
		len = fill_start(&m.start);
	} else if (m.h.type == RGATE_SPAWN_CONTROL) {
		len = fill_control(&m.control);
	} else if (m.h.type == RGATE_SPAWN_LIST || m.h.type == RGATE_SPAWN_KILL) {
		fill_desc(&m.ask.memory);
		m.ask.signal = htole32(fuzz_u8(&peer.in));
		m.ask.scope = htole32(fuzz_u8(&peer.in) % 4);
		len = sizeof(m.ask);
	}
	if (how & 128)
		m.bytes[fuzz_u8(&peer.in) % len] ^= fuzz_u8(&peer.in);
	if (how == 255)
		len = fuzz_bytes(&peer.in, m.bytes, fuzz_u8(&peer.in));
	msg = (struct rgate_msg){ .epoch = peer.epoch, .len = len };
	/* of a connection that is no more, and what was lent over it is not lent */
	if (peer.epoch > 1 && !(fuzz_u8(&peer.in) & 7))
		msg.epoch--;
	if (len >= sizeof(m.start) && msg.epoch == peer.epoch) {
		spawn_peer_lend(&m.start.memory, RGATE_ACCESS_REMOTE_WRITE);
		spawn_peer_lend(&m.start.lent, RGATE_ACCESS_REMOTE_READ);
	}
	if (len >= sizeof(m.ask) && msg.epoch == peer.epoch)
		spawn_peer_lend(&m.ask.memory, RGATE_ACCESS_REMOTE_WRITE);
	(void)rgate_spawnd_message(sd, 1, &msg, m.bytes);
}

static void on_log(void *ctx, const char *line)
{
	(void)ctx;
	for (; *line; line++)
		FUZZ_CHECK(*line >= ' ' && *line < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct rgate_spawnd_opts o = RGATE_OPTS(rgate_spawnd_opts, .policy = "/none",
		.flags = RGATE_SPAWND_SHARED, .stage_bytes = 1 << 16, .log = on_log,
		.reconnect_ms = 1000000);
	struct rgate_spawnd *sd;
	unsigned int i;

	spawn_peer_begin(data, size);
	memset(&sp, 0, sizeof(sp));
	FUZZ_CHECK(!rgate_spawnd_create(&sd, peer_cluster, &o));
	FUZZ_CHECK(!rgate_spawnd_attach(sd, (struct rgate_node *)&peer));
	FUZZ_CHECK(!rgate_spawnd_add_peer(sd, (struct rgate_peer *)&peer));
	for (i = 0; i < STEPS && peer.in.len; i++) {
		switch (fuzz_u8(&peer.in) % 8) {
		case 0: case 1: case 2:
			to_server(sd);
			break;
		case 3: case 4:
			process_step();
			break;
		case 5:
			peer.done += fuzz_u8(&peer.in) % 4;
			if (peer.done > peer.posted)
				peer.done = peer.posted;
			break;
		case 6:
			(void)rgate_spawnd_process(sd);
			break;
		default:
			if (!(fuzz_u8(&peer.in) & 7))
				spawn_peer_connection(fuzz_u8(&peer.in));
		}
	}
	rgate_spawnd_destroy(sd);
	spawn_peer_check_pool();
	return 0;
}
