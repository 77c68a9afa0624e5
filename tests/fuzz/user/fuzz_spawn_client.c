// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The asking side of lib/spawn against a server that lies, and writes anything to the memory
 * that it was lent. What callers get is within bounds, and nothing is left in the end.
 */
#include <endian.h>
#include <errno.h>
#include <signal.h>

#include "spawn_client.h"
#include "spawn_peer.h"

#define STEPS	200

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	spawn_peer_init();
	return 0;
}

/* What a server may say */
static void to_client(void)
{
	const uint8_t how = fuzz_u8(&peer.in);
	struct rgate_spawn_answer *m = (void *)peer.msg;
	struct rgate_spawn_status st;
	unsigned int i;

	memset(peer.msg, 0, sizeof(peer.msg));
	m->h.service = htole32(RGATE_SPAWN_ASKER);
	m->h.version = RGATE_SPAWN_VERSION;
	m->h.type = RGATE_SPAWN_UPDATE + how % 4;
	m->error = htole32(fuzz_u8(&peer.in) & 1 ? ENOENT : 0);
	peer.msg_len = m->h.type == RGATE_SPAWN_UPDATE ? sizeof(m->h) : sizeof(*m);
	if (how & 128)
		peer.msg_len = 1 + fuzz_bytes(&peer.in, peer.msg, fuzz_u8(&peer.in)) % 255;
	if (!peer.njobs)
		return;
	i = fuzz_u8(&peer.in) % peer.njobs;
	m->h.cookie = peer.cookie[i];
	if (!peer.status[i])
		return;
	if (how & 64) {
		(void)fuzz_bytes(&peer.in, peer.status[i], fuzz_u16(&peer.in) % peer.room[i]);
		return;
	}
	memcpy(&st, peer.status[i], sizeof(st));
	st.state = htole64(1 + fuzz_u8(&peer.in) % 4);
	st.id = htole64(5 + i);
	st.ended = htole32(fuzz_u8(&peer.in) & 7);
	st.signals = htole32(fuzz_u8(&peer.in));
	st.produced[0] = htole64(le64toh(st.produced[0]) + fuzz_u8(&peer.in));
	st.produced[1] = htole64(le64toh(st.produced[1]) + fuzz_u8(&peer.in));
	st.taken = htole64(le64toh(st.taken) + fuzz_u8(&peer.in));
	memcpy(peer.status[i], &st, sizeof(st));
}

static void start_one(struct rgate_spawn *spawn, struct rgate_spawn_job **job)
{
	static const char *const argv[] = { "/bin/true", NULL };
	const uint8_t modes = fuzz_u8(&peer.in);
	const struct rgate_spawn_request req = RGATE_OPTS(rgate_spawn_request, .argv = argv,
		.stdin_mode = modes & 1, .stdout_mode = modes >> 1 & 1,
		.stderr_mode = modes >> 2 & 1, .flags = modes >> 3 & 1, .ring_bytes = 4096);

	if (modes & 128)
		FUZZ_CHECK(!rgate_spawn_attach(spawn, 5, 4096, job));
	else
		FUZZ_CHECK(!rgate_spawn_start(spawn, &req, job));
}

/* A function of a job. False: its handle is gone */
static bool use(struct rgate_spawn_job *job)
{
	struct rgate_spawn_result r = { .sz = sizeof(r) };
	char buf[600];
	ssize_t n;

	switch (fuzz_u8(&peer.in) % 7) {
	case 0:
		n = rgate_spawn_job_read(job, 1 + (fuzz_u8(&peer.in) & 1), buf, sizeof(buf), 0);
		FUZZ_CHECK(n <= (ssize_t)sizeof(buf));
		return true;
	case 1:
		memset(buf, 'x', sizeof(buf));
		n = rgate_spawn_job_write(job, buf, sizeof(buf), 0);
		FUZZ_CHECK(n <= (ssize_t)sizeof(buf));
		return true;
	case 2:
		(void)rgate_spawn_job_close_stdin(job);
		return true;
	case 3:
		(void)rgate_spawn_job_kill(job, SIGTERM, RGATE_SPAWN_TO_TREE);
		return true;
	case 4:
		if (!rgate_spawn_job_wait(job, &r, 0))
			FUZZ_CHECK(r.state >= RGATE_SPAWN_COMPLETE);
		FUZZ_CHECK(memchr(r.reason, 0, sizeof(r.reason)));
		return true;
	case 5:
		return rgate_spawn_job_detach(job, 0) != 0;
	default:
		rgate_spawn_job_close(job);
		return false;
	}
}

/* Memory that the client has back is not written by this peer: it means no harm to others. */
static void forget_memory(const struct rgate_spawn *spawn)
{
	const struct rgate_spawn_job *job;
	unsigned int i;

	for (i = 0; i < peer.njobs; i++) {
		job = spawn->jobs;
		while (job && htole64(job->cookie) != peer.cookie[i])
			job = job->next;
		if (!job)
			peer.status[i] = NULL;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct rgate_spawn_opts o = RGATE_OPTS(rgate_spawn_opts, .answer_ms = 1000000,
						     .reconnect_ms = 1000000);
	struct rgate_spawn_job *job[PEER_JOBS] = { NULL }, *news;
	struct rgate_spawn *spawn;
	unsigned int i, k;

	spawn_peer_begin(data, size);
	FUZZ_CHECK(!rgate_spawn_open(&spawn, (struct rgate_node *)&peer, (struct rgate_peer *)&peer,
				     &o));
	for (i = 0; i < STEPS && peer.in.len; i++) {
		k = fuzz_u8(&peer.in);
		forget_memory(spawn);
		switch (k % 8) {
		case 0: case 1: case 2:
			to_client();
			break;
		case 3:
			(void)rgate_spawn_process(spawn);
			break;
		case 4: case 5:
			k = k / 8 % PEER_JOBS;
			if (!job[k])
				start_one(spawn, &job[k]);
			else if (!use(job[k]))
				job[k] = NULL;
			break;
		case 6:
			(void)rgate_spawn_next(spawn, &news, 0);
			peer.done = peer.posted;
			break;
		default:
			if (!(fuzz_u8(&peer.in) & 7))
				spawn_peer_connection(fuzz_u8(&peer.in));
		}
	}
	peer.msg_len = 0;
	spawn_peer_connection(0);
	for (k = 0; k < PEER_JOBS; k++)
		rgate_spawn_job_close(job[k]);
	rgate_spawn_close(spawn);
	spawn_peer_check_pool();
	return 0;
}
