// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent_packet.h"

struct rgate_sockets {
	bool there;
	unsigned char *mem;
	size_t len;
	int fd;
	uint32_t places, under_way, nopened;
	struct rgate_socket names;	/* what asks for names is begun on this one */
};

struct op {
	struct rgate_socket *s;		/* NULL: free */
	struct rgate_socket_io io;
	struct rgate_socket *made;
	bool ended;
	int32_t result;
	uint64_t order, sum, value;
};

struct served served;
static struct rgate_sockets sets[SERVED_SETS];
static struct rgate_socket sockets[SERVED_SOCKETS];
static struct op ops[SERVED_OPS];
static uint64_t orders;

void served_begin(void)
{
	served = (struct served){ .error = -EACCES };
	memset(sets, 0, sizeof(sets));
	memset(sockets, 0, sizeof(sockets));
	memset(ops, 0, sizeof(ops));
}

void served_check(void)
{
	unsigned int i;

	for (i = 0; i < SERVED_SETS; i++)
		FUZZ_CHECK(!sets[i].there);
	for (i = 0; i < SERVED_SOCKETS; i++)
		FUZZ_CHECK(!sockets[i].set);
	for (i = 0; i < SERVED_OPS; i++)
		FUZZ_CHECK(!ops[i].s);
	FUZZ_CHECK(!served.under_way);
}

unsigned char served_byte(const struct rgate_socket *s, bool up, uint64_t at)
{
	return (unsigned char)(s->number * 29 + (up ? 113 : 7) + at * 5 + (at >> 8) * 3);
}

struct rgate_socket *served_at(uint32_t number)
{
	return number < served.nsockets ? &sockets[number] : NULL;
}

static struct rgate_socket *make(struct rgate_sockets *set)
{
	struct rgate_socket *s;

	if (served.nsockets == SERVED_SOCKETS)
		return NULL;
	s = &sockets[served.nsockets];
	*s = (struct rgate_socket){ .set = set, .number = served.nsockets++ };
	return s;
}

static struct rgate_socket_addr addr_of(const struct rgate_socket *s)
{
	return (struct rgate_socket_addr){ .family = RGATE_SOCKET_INET, .addr = { 10, 0, 0, 1 },
					   .port = (uint16_t)(SERVED_PORT + s->number) };
}

static void put(struct op *op)
{
	op->s->set->under_way--;
	served.under_way--;
	op->s = NULL;
}

/* ---- Sessions ---- */

int __wrap_rgate_sockets_open(struct rgate_sockets **out, const struct rgate_sockets_opts *o)
{
	struct rgate_sockets *set = sets;

	if (served.refuses & SERVED_NO_SET)
		return served.error;
	while (set < sets + SERVED_SETS && set->there)
		set++;
	if (set == sets + SERVED_SETS)
		return -EDQUOT;
	*set = (struct rgate_sockets){ .len = o->memory, .places = o->requests };
	set->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (set->fd < 0)
		return -errno;
	set->mem = malloc(set->len);
	FUZZ_CHECK(set->mem);
	set->there = true;
	set->names.set = set;
	*out = set;
	return 0;
}

void __wrap_rgate_sockets_close(struct rgate_sockets *set)
{
	unsigned int i;

	FUZZ_CHECK(set->there);
	for (i = 0; i < SERVED_OPS; i++)
		if (ops[i].s == &set->names)
			put(&ops[i]);
	FUZZ_CHECK(!set->under_way);
	for (i = 0; i < SERVED_SOCKETS; i++)
		FUZZ_CHECK(sockets[i].set != set);
	close(set->fd);
	free(set->mem);
	set->there = false;
}

void *__wrap_rgate_sockets_memory(const struct rgate_sockets *set, size_t *len)
{
	FUZZ_CHECK(set->there);
	if (len)
		*len = set->len;
	return set->mem;
}

int __wrap_rgate_sockets_fd(const struct rgate_sockets *set)
{
	FUZZ_CHECK(set->there);
	return set->fd;
}

int __wrap_rgate_sockets_arm(struct rgate_sockets *set)
{
	unsigned int i;

	FUZZ_CHECK(set->there);
	for (i = 0; i < SERVED_OPS; i++)
		if (ops[i].s && ops[i].s->set == set && ops[i].ended)
			return 1;
	return 0;
}

/* ---- What is begun ---- */

static bool is_up(const struct rgate_socket_io *io)
{
	return io->what == RGATE_SOCKET_DO_SEND || io->what == RGATE_SOCKET_DO_SHUTDOWN ||
	       (io->what == RGATE_SOCKET_DO_POLL && io->events == RGATE_SOCKET_OUT);
}

static uint64_t sum_of(const struct rgate_socket_io *io)
{
	const unsigned char *p = io->buf;
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < io->len; i++)
		sum = sum * 31 + p[i];
	return sum;
}

/* Memory of the session, that nothing else which is under way has */
static void check_buffer(const struct rgate_socket *s, const struct rgate_socket_io *io)
{
	const struct rgate_sockets *set = s->set;
	const unsigned char *p = io->buf, *q;
	unsigned int i;

	FUZZ_CHECK(io->flags == RGATE_SOCKET_NOW && io->len <= (s->datagram ? 64U : 192U) << 10);
	FUZZ_CHECK(io->len || s->datagram);
	FUZZ_CHECK(p >= set->mem && p + io->len <= set->mem + set->len);
	for (i = 0; i < SERVED_OPS; i++) {
		q = ops[i].io.buf;
		if (ops[i].s && ops[i].s->set == set && q)
			FUZZ_CHECK(p + io->len <= q || q + ops[i].io.len <= p);
	}
}

void served_check_send(const struct rgate_socket *s, const struct rgate_socket_io *io)
{
	const unsigned char *p = io->buf;
	uint32_t i;

	check_buffer(s, io);
	if (s->datagram) {
		/* What waited meanwhile was sent when it was the former one. */
		FUZZ_CHECK(s->wild || packet_is(s, true, p, io->len) ||
			   (served.lost && packet_is_some(p, io->len)));
		return;
	}
	FUZZ_CHECK(s->stream && !s->shut && !s->broken);
	if (s->wild)
		return;
	FUZZ_CHECK(!s->spoilt && s->sent + io->len <= s->written);
	for (i = 0; i < io->len; i++)
		FUZZ_CHECK(p[i] == served_byte(s, true, s->sent + i));
}

static void check_begin(const struct rgate_socket *s, const struct rgate_socket_io *io)
{
	unsigned int i;

	/* One each way at a time */
	for (i = 0; i < SERVED_OPS; i++)
		FUZZ_CHECK(ops[i].s != s || ((s->stream || s->datagram) &&
					     is_up(&ops[i].io) != is_up(io)));
	switch (io->what) {
	case RGATE_SOCKET_DO_SEND:
		served_check_send(s, io);
		break;
	case RGATE_SOCKET_DO_RECV:
		check_buffer(s, io);
		FUZZ_CHECK(s->datagram || (s->stream && !s->over));
		break;
	case RGATE_SOCKET_DO_POLL:
		FUZZ_CHECK(s->stream || s->datagram);
		break;
	case RGATE_SOCKET_DO_SHUTDOWN:
		FUZZ_CHECK(s->stream && !s->shut && io->events == RGATE_SOCKET_SHUT_SEND);
		/* All that the program has sent went before its end. */
		FUZZ_CHECK(s->wild || (s->ended && !s->spoilt && s->sent == s->written));
		break;
	case RGATE_SOCKET_DO_CONNECT:
		FUZZ_CHECK(!s->stream && io->addr);
		break;
	default:
		FUZZ_CHECK(io->what == RGATE_SOCKET_DO_ACCEPT && s->listens);
	}
}

static int begin(struct rgate_socket *s, const struct rgate_socket_io *io)
{
	struct op *op = ops;

	if (served.gone)
		return -EPIPE;
	if (served.refuses & SERVED_NO_PLACE || s->set->under_way == s->set->places)
		return -EAGAIN;
	while (op < ops + SERVED_OPS && op->s)
		op++;
	if (op == ops + SERVED_OPS)
		return -EAGAIN;
	*op = (struct op){ .s = s, .io = *io };
	op->io.addr = NULL;
	if (io->what == RGATE_SOCKET_DO_SEND)
		op->sum = sum_of(&op->io);
	if (io->what == RGATE_SOCKET_DO_SHUTDOWN)
		s->shut = true;
	s->set->under_way++;
	served.under_way++;
	return 0;
}

int __wrap_rgate_socket_begin(struct rgate_socket *s, const struct rgate_socket_io *io)
{
	FUZZ_CHECK(s->set && s->set->there);
	check_begin(s, io);
	return begin(s, io);
}

int __wrap_rgate_sockets_resolve_begin(struct rgate_sockets *set,
				       const struct rgate_socket_query *q)
{
	const struct rgate_socket_io io = RGATE_OPTS(rgate_socket_io,
		.what = RGATE_SOCKET_DO_RESOLVE, .flags = RGATE_SOCKET_NOW, .buf = q->buf,
		.len = q->len, .cookie = q->cookie);

	FUZZ_CHECK(set->there && q->name && q->deadline_us);
	FUZZ_CHECK(*q->name && strlen(q->name) <= RGATE_SOCKET_NAME_MAX);
	if (q->flags & ~RGATE_SOCKET_RESOLVE_FLAGS)
		return -EINVAL;
	check_buffer(&set->names, &io);
	return begin(&set->names, &io);
}

/* ---- How it ends ---- */

static const int errors[] = {
	-ECONNRESET, -ECONNREFUSED, -ETIMEDOUT, -EPIPE, -EMFILE, -ENOBUFS, -EHOSTUNREACH, -EINVAL,
};

static int error_of(uint16_t number)
{
	return errors[number % (sizeof(errors) / sizeof(errors[0]))];
}

static void end(struct op *op, int32_t result)
{
	if (op->io.what == RGATE_SOCKET_DO_SEND)
		FUZZ_CHECK(sum_of(&op->io) == op->sum);
	op->ended = true;
	op->result = result;
	op->order = orders++;
}

/* What has not ended is cancelled, or cannot be any more */
int __wrap_rgate_sockets_cancel(struct rgate_sockets *set, uint64_t cookie)
{
	struct op *op;

	FUZZ_CHECK(set->there);
	if (served.gone)
		return -EPIPE;
	if (served.refuses & SERVED_NO_PLACE)
		return -EAGAIN;
	for (op = ops; op < ops + SERVED_OPS; op++)
		if (op->s == &set->names && op->io.cookie == cookie && !op->ended)
			end(op, -ECANCELED);
	return 1;
}

static void end_recv(struct op *op, uint32_t n, uint32_t lie)
{
	unsigned char *p = op->io.buf;
	uint32_t i;

	if (op->s->datagram)
		packet_fill(op->s, false, p, n);
	for (i = 0; i < n && !op->s->datagram; i++)
		p[i] = served_byte(op->s, false, op->s->given + i);
	end(op, (int32_t)(n + lie));
}

static void end_accept(struct op *op)
{
	op->made = make(op->s->set);
	if (!op->made) {
		end(op, -EMFILE);
		return;
	}
	op->made->accepted = true;
	end(op, 0);
}

/* As many addresses as there is room for, or as it says in vain */
static void end_names(struct op *op, uint8_t how, uint16_t n)
{
	memset(op->io.buf, how, op->io.len);
	op->value = (uint64_t)(how & 1 ? n : n & 255) << 32 | n;
	end(op, how & 2 ? n : n & 63);
}

static void end_well(struct op *op)
{
	switch (op->io.what) {
	case RGATE_SOCKET_DO_RESOLVE:
		end_names(op, 0, 2);
		break;
	case RGATE_SOCKET_DO_SEND:
		end(op, (int32_t)op->io.len);
		break;
	case RGATE_SOCKET_DO_RECV:
		end(op, -EAGAIN);
		break;
	case RGATE_SOCKET_DO_ACCEPT:
		end_accept(op);
		break;
	default:
		end(op, 0);
	}
}

static void end_data(struct op *op, uint8_t how, uint16_t bytes)
{
	const uint32_t len = op->io.len, n = len ? bytes % len : 0;

	if (how == 5)
		end(op, -EAGAIN);
	else if (op->io.what == RGATE_SOCKET_DO_SEND)
		end(op, how == 4 ? (int32_t)len + 1 : (int32_t)(how & 1 ? n : len));
	else if (how == 4)
		end_recv(op, len, 1 + n);
	else
		end_recv(op, how == 3 ? 0 : how & 1 ? 1 + n : len, 0);
}

static bool is_open(const struct op *op)
{
	return op->s && op->s != served.good && !op->ended;
}

void served_end(struct fuzz_in *in)
{
	uint32_t which = fuzz_u8(in), i, n = 0;
	const uint8_t how = fuzz_u8(in) % 8;
	const uint16_t how_much = fuzz_u16(in);

	for (i = 0; i < SERVED_OPS; i++)
		n += is_open(&ops[i]);
	if (!n)
		return;
	which %= n;
	for (i = 0; !is_open(&ops[i]) || which--; i++)
		;
	if (how >= 6)
		end(&ops[i], error_of(how_much));
	else if (ops[i].io.what == RGATE_SOCKET_DO_RESOLVE)
		end_names(&ops[i], how, how_much);
	else if (ops[i].io.buf)
		end_data(&ops[i], how, how_much);
	else
		end_well(&ops[i]);
}

void served_end_well(const struct rgate_socket *with, bool all)
{
	struct op *op;

	for (op = ops; op < ops + SERVED_OPS; op++) {
		const bool mine = with && op->s == with;

		if (!op->s || op->ended)
			continue;
		if (mine && op->io.what == RGATE_SOCKET_DO_RECV)
			end_recv(op, 1, 0);
		else if (all || mine || op->io.buf || is_up(&op->io))
			end_well(op);
	}
}

/* The agent is told of it. */
static void told(struct op *op, struct rgate_socket_end *e)
{
	struct rgate_socket *s = op->s;
	const uint32_t n = op->result < 0 ? 0 : (uint32_t)op->result;

	served.lost |= op->result == -ECONNRESET;
	/* What a poll says of it a send or a receive says, too. */
	if (op->io.what != RGATE_SOCKET_DO_POLL && op->io.what != RGATE_SOCKET_DO_ACCEPT)
		s->broken |= op->result < 0 && op->result != -EAGAIN;
	switch (op->io.what) {
	case RGATE_SOCKET_DO_SEND:
		s->sent += n < op->io.len ? n : op->io.len;
		served.sent += n < op->io.len ? n : op->io.len;
		break;
	case RGATE_SOCKET_DO_RECV:
		s->given += n < op->io.len ? n : op->io.len;
		served.received += n < op->io.len ? n : op->io.len;
		s->over |= !op->result;
		e->addr = packet_from(s);
		break;
	case RGATE_SOCKET_DO_CONNECT:
		s->stream = !op->result;
		served.connected += !op->result;
		break;
	case RGATE_SOCKET_DO_ACCEPT:
		if (op->result)
			break;
		e->accepted = op->made;
		e->addr = addr_of(op->made);
		op->made->stream = true;
		op->made->cut = s->cut;
		served.accepted++;
		break;
	default:
		break;
	}
}

int __wrap_rgate_sockets_next(struct rgate_sockets *set, struct rgate_socket_end *e,
			      int timeout_ms)
{
	struct op *op, *first = NULL;

	FUZZ_CHECK(set->there && !timeout_ms);
	if (served.gone)
		return -EPIPE;
	for (op = ops; op < ops + SERVED_OPS; op++)
		if (op->s && op->ended && op->s->set == set && (!first || op->order < first->order))
			first = op;
	if (!first)
		return 0;
	*e = (struct rgate_socket_end){
		.sz = sizeof(*e), .cookie = first->io.cookie, .result = first->result,
		.socket = first->s == &set->names ? NULL : first->s, .what = first->io.what,
		.value = first->s == &set->names ? first->value : first->io.events,
	};
	told(first, e);
	put(first);
	return 1;
}

/* ---- Calls that wait ---- */

int __wrap_rgate_socket_open(struct rgate_sockets *set, struct rgate_socket **out,
			     uint32_t family, uint32_t type)
{
	struct rgate_socket *s;

	FUZZ_CHECK(set->there && (type == RGATE_SOCKET_STREAM || type == RGATE_SOCKET_DGRAM));
	FUZZ_CHECK(family == RGATE_SOCKET_INET || family == RGATE_SOCKET_INET6);
	if (served.refuses & SERVED_NO_SOCKET)
		return served.error;
	if (served.refuses & SERVED_OTHER_GATEWAY && set->nopened) {
		served.lost = true;
		return -ECONNRESET;
	}
	s = make(set);
	if (!s)
		return -EMFILE;
	s->family = family;
	s->datagram = type == RGATE_SOCKET_DGRAM;
	set->nopened++;
	*out = s;
	return 0;
}

bool served_has_buffer(const struct rgate_socket *s)
{
	const struct op *op = ops;

	while (op < ops + SERVED_OPS && (op->s != s || !op->io.buf))
		op++;
	return op < ops + SERVED_OPS;
}

int __wrap_rgate_socket_close(struct rgate_socket *s)
{
	struct op *op;

	FUZZ_CHECK(s->set && s->set->there);
	for (op = ops; op < ops + SERVED_OPS; op++) {
		if (op->s == s && op->made)
			op->made->set = NULL;
		if (op->s == s)
			put(op);
	}
	/* A stream that was cut short does not look as if it had come to its end. */
	if (s->stream && !s->cut && !s->broken && !s->wild)
		FUZZ_CHECK(s->sent == s->written && !s->spoilt);
	s->set = NULL;
	return served.gone ? -EPIPE : 0;
}

static int name_call(const struct rgate_socket *s)
{
	FUZZ_CHECK(s->set && s->set->there);
	return served.refuses & SERVED_NO_NAME ? served.error : 0;
}

int __wrap_rgate_socket_bind(struct rgate_socket *s, const struct rgate_socket_addr *addr)
{
	FUZZ_CHECK(addr->family == RGATE_SOCKET_INET || addr->family == RGATE_SOCKET_INET6);
	return name_call(s);
}

int __wrap_rgate_socket_connect(struct rgate_socket *s, const struct rgate_socket_addr *addr)
{
	const int err = name_call(s);

	FUZZ_CHECK(s->datagram && (!addr->family || addr->family == s->family));
	served.connected += !err && addr->family;
	return err;
}

int __wrap_rgate_socket_listen(struct rgate_socket *s, int backlog)
{
	const int err = name_call(s);

	(void)backlog;
	FUZZ_CHECK(!s->stream);
	s->listens |= !err;
	return err;
}

int __wrap_rgate_socket_name(struct rgate_socket *s, struct rgate_socket_addr *addr)
{
	FUZZ_CHECK(s->set && s->set->there);
	*addr = addr_of(s);
	return 0;
}

/* Somebody at this machine, whom no name is of */
int __wrap_rgate_socket_peer(struct rgate_socket *s, struct rgate_socket_addr *addr)
{
	FUZZ_CHECK(s->set && s->set->there);
	*addr = addr_of(s);
	return 0;
}

/* What is under way stays so: it ends with the close that follows. */
int __wrap_rgate_socket_shutdown(struct rgate_socket *s, uint32_t how)
{
	FUZZ_CHECK(s->set && s->set->there && how == RGATE_SOCKET_SHUT_SEND);
	return 0;
}

int __wrap_rgate_socket_setopt(struct rgate_socket *s, uint32_t option, const void *value,
			       uint32_t len)
{
	struct rgate_socket_linger linger;

	FUZZ_CHECK(s->set && s->set->there && len <= RGATE_SOCKET_OPTION_MAX);
	if (option != RGATE_SOCKET_LINGER)
		return served.refuses & SERVED_NO_OPTION ? served.error : 0;
	FUZZ_CHECK(len == sizeof(linger));
	memcpy(&linger, value, sizeof(linger));
	s->cut = linger.on && !linger.seconds;
	return 0;
}

int __wrap_rgate_socket_getopt(struct rgate_socket *s, uint32_t option, void *value,
			       uint32_t len)
{
	FUZZ_CHECK(s->set && s->set->there && len <= RGATE_SOCKET_OPTION_MAX);
	if (served.refuses & SERVED_NO_OPTION)
		return served.error;
	memset(value, (int)option, len);
	return (int)len;
}
