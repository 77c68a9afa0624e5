// SPDX-License-Identifier: MIT OR GPL-2.0
#include "requests_net.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "gate_service.h"
#include "journal.h"
#include "queue_service.h"
#include "requests_clients.h"
#include "socket_service.h"
#include "util.h"

int net_check(const char *path)
{
	struct socket_policy *policy = NULL;
	int err = socket_policy_load(&policy, path);

	socket_policy_free(policy);
	return err;
}

/* Half of the descriptors are for what else the daemon does. */
static uint32_t most_sockets(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur / 2 > UINT32_MAX)
		return 0;
	return lim.rlim_cur > 1 ? (uint32_t)lim.rlim_cur / 2 : 1;
}

int net_start(void **service, struct requests *rq)
{
	struct socket_opts o = RGATE_OPTS(socket_opts, .most = most_sockets());
	struct socket_service *sv;
	int err;

	err = socket_policy_load(&o.policy, rq->sockets_path);
	if (err)
		return err;
	err = socket_service_create(&sv, &o);
	if (err) {
		socket_policy_free(o.policy);
		return err;
	}
	err = socket_service_add(sv, rq->engine);
	if (err) {
		socket_service_destroy(sv);
		return err;
	}
	rq->sockets = sv;
	*service = sv;
	return 0;
}

void net_stop(void *service)
{
	socket_service_destroy(service);
}

int net_reload(const char *path, struct socket_policy **policy)
{
	return socket_policy_load(policy, path);
}

void net_keep(struct requests *rq, struct socket_policy *policy)
{
	if (rq->sockets)
		socket_service_policy(rq->sockets, policy);
	else
		socket_policy_free(policy);
}

bool net_serves(const struct daemon *d)
{
	return d->requests->sockets;
}

/* As ss(8) calls them */
static const char *state_of(const struct socket_info *in)
{
	static const char *const names[] = {
		[TCP_ESTABLISHED] = "ESTAB", [TCP_SYN_SENT] = "SYN-SENT",
		[TCP_SYN_RECV] = "SYN-RECV", [TCP_FIN_WAIT1] = "FIN-WAIT-1",
		[TCP_FIN_WAIT2] = "FIN-WAIT-2", [TCP_TIME_WAIT] = "TIME-WAIT",
		[TCP_CLOSE] = "UNCONN", [TCP_CLOSE_WAIT] = "CLOSE-WAIT",
		[TCP_LAST_ACK] = "LAST-ACK", [TCP_LISTEN] = "LISTEN", [TCP_CLOSING] = "CLOSING",
	};

	if (in->type == RGATE_SOCKET_DGRAM)
		return in->peer.family ? "ESTAB" : "UNCONN";
	return in->state < ARRAY_SIZE(names) && names[in->state] ? names[in->state] : "CLOSED";
}

static void list_one(FILE *f, const struct socket_info *in)
{
	char local[SOCKET_ADDR_TEXT], peer[SOCKET_ADDR_TEXT];

	fprintf(f, "%" PRIu64 " %s %s %s %s %u %u %" PRIu64 " %" PRIu64 " %u %u\n", in->id,
		in->type == RGATE_SOCKET_STREAM ? "tcp" : "udp", state_of(in),
		socket_addr_text(&in->local, local), socket_addr_text(&in->peer, peer),
		in->unread, in->unsent, in->received, in->sent, in->under_way,
		(unsigned int)in->uid);
}

void net_list(struct daemon *d, FILE *f, uint64_t after)
{
	struct socket_info in[32];
	unsigned int i, n, lines = 0;

	do {
		n = socket_service_list(d->requests->sockets, after, in, ARRAY_SIZE(in));
		for (i = 0; i < n && lines < NET_LINES; i++, lines++)
			list_one(f, &in[i]);
		after = n ? in[n - 1].id : after;
	} while (n && lines < NET_LINES);
}

/* Sessions of other nodes, and what those were asked for by this one's */
static void json_gate(struct json *j, const struct gate_stats *gs)
{
	json_u64(j, "guests", gs->guests);
	json_u64(j, "guests_came", gs->came);
	json_u64(j, "guests_turned_away", gs->turned_away);
	json_u64(j, "docks_again", gs->docks_again);
}

static void json_journal(struct daemon *d, struct json *j)
{
	struct journal_stats js = { .sz = sizeof(js) };

	if (!d->requests->queues || queue_service_journal(d->requests->queues, &js))
		return;
	json_object(j, "journal");
	json_str(j, "directory", d->conf.journal);
	json_u64(j, "bytes", js.bytes);
	json_u64(j, "live_bytes", js.live);
	json_u64(j, "files", js.segments);
	json_u64(j, "records", js.records);
	json_u64(j, "writes", js.batches);
	json_u64(j, "syncs", js.syncs);
	json_u64(j, "refused", js.refused);
	json_u64(j, "failed", js.failed);
	json_u64(j, "restored", js.restored);
	json_str(j, "error", js.error ? strerror(-js.error) : "");
	json_object_end(j);
}

static void json_queues(struct daemon *d, struct json *j)
{
	struct queue_kept_stats ks = { .sz = sizeof(ks) };
	struct gate_stats gs = { .sz = sizeof(gs) };

	if (d->requests->queue_gate)
		(void)gate_service_stats(d->requests->queue_gate, &gs);
	if (d->requests->queues)
		(void)queue_service_kept(d->requests->queues, &ks);
	json_object(j, "queues");
	json_gate(j, &gs);
	json_u64(j, "kept", ks.tasks);
	json_u64(j, "kept_bytes", ks.bytes);
	json_u64(j, "kept_again", ks.again);
	json_u64(j, "kept_refused", ks.refused);
	json_u64(j, "kept_late", ks.late);
	json_u64(j, "kept_lost", ks.lost);
	json_u64(j, "copies", ks.copies);
	json_u64(j, "unmirrored", ks.unmirrored);
	json_journal(d, j);
	json_object_end(j);
}

void net_json(struct daemon *d, struct json *j)
{
	struct socket_stats st = { .sz = sizeof(st) };
	struct gate_stats gs = { .sz = sizeof(gs) };

	if (d->requests->gate)
		(void)gate_service_stats(d->requests->gate, &gs);
	if (d->requests->sockets)
		(void)socket_service_stats(d->requests->sockets, &st);
	json_object(j, "sockets");
	json_u64(j, "open", st.sockets);
	json_u64(j, "opened", st.opened);
	json_u64(j, "accepted", st.accepted);
	json_u64(j, "refused", st.refused);
	json_u64(j, "killed", st.killed);
	json_u64(j, "sent", st.sent);
	json_u64(j, "received", st.received);
	json_gate(j, &gs);
	json_object_end(j);
	json_queues(d, j);
}

int net_kill(struct daemon *d, uint64_t id)
{
	return socket_service_kill(d->requests->sockets, id);
}
