// SPDX-License-Identifier: MIT OR GPL-2.0
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent_program.h"
#include "agent_raw.h"

#define JUNK	10U

bool raw_littered;
static int junk[JUNK];

void raw_init(void)
{
	int pair[2];

	junk[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
	FUZZ_CHECK(!pipe2(pair, O_CLOEXEC));
	junk[1] = pair[0];
	junk[2] = pair[1];
	FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	junk[3] = pair[0];
	close(pair[1]);
	junk[4] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	junk[5] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	junk[6] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	FUZZ_CHECK(!bind(junk[6], &(struct sockaddr){ .sa_family = AF_UNIX }, sizeof(sa_family_t)));
	FUZZ_CHECK(!listen(junk[6], 1));
	junk[7] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	junk[8] = epoll_create1(EPOLL_CLOEXEC);
	junk[9] = memfd_create("fuzz", MFD_CLOEXEC);
}

int raw_fd(uint8_t number)
{
	return junk[number % JUNK];
}

unsigned int raw_fds(struct fuzz_in *in, int *fds, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		const uint8_t which = fuzz_u8(in);
		const struct program_fd *p = program_fd(which);

		fds[i] = which & 64 || !p ? raw_fd(which) : p->fd;
	}
	return n;
}

/* ---- Past the library ---- */

static void path_of(uint64_t id, struct sockaddr_un *un, const char *before)
{
	*un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	(void)snprintf(un->sun_path, sizeof(un->sun_path), "%s/%s%llu", agent_dir(program_agent),
		       before, (unsigned long long)id);
}

/* A socket that is called as another one, or nearly so */
static void forge(struct program_fd *p, uint8_t how)
{
	static const char *const before[] = { "", "0x", "+", " ", "000", "-" };
	static const int type[] = { SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM };
	struct sockaddr_un un;
	int fd = socket(AF_UNIX, type[how % 3] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	FUZZ_CHECK(fd >= 0);
	path_of(p->id, &un, before[how / 3 % 6]);
	if (p->s)
		p->s->wild = true;
	raw_littered |= !bind(fd, (struct sockaddr *)&un, sizeof(un));
	(void)program_new(fd);
}

void raw_connect(int fd, const struct sockaddr_un *un)
{
	const int flags = fcntl(fd, F_GETFL);

	(void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	(void)connect(fd, (const struct sockaddr *)un, sizeof(*un));
	(void)fcntl(fd, F_SETFL, flags);
}

void raw_step(struct fuzz_in *in)
{
	struct program_fd *p = program_fd(fuzz_u8(in)), *other;
	const uint8_t what = fuzz_u8(in), how = fuzz_u8(in);
	const int size = how << (how & 7);
	struct sockaddr_un un;
	int fds[RAW_FDS_MAX];

	if (!p)
		return;
	path_of(p->id, &un, "");
	switch (what % 9) {
	case 0:
		(void)unlink(un.sun_path);
		break;
	case 1:
		(void)snprintf(un.sun_path, sizeof(un.sun_path), "%s/%s", agent_dir(program_agent),
			       how & 1 ? AGENT_DATA : AGENT_CONTROL "1");
		raw_connect(p->fd, &un);
		break;
	case 2:
		other = program_fd(how);
		if (other)
			raw_connect(other->fd, &un);
		break;
	case 3:
		(void)setsockopt(p->fd, SOL_SOCKET, how & 8 ? SO_SNDBUF : SO_RCVBUF, &size,
				 sizeof(size));
		break;
	case 4:
		if (p->s)
			p->s->wild = true;
		(void)send(p->fd, "!", 1, MSG_OOB | MSG_DONTWAIT | MSG_NOSIGNAL);
		break;
	case 5:
		if (p->s)
			p->s->wild = true;
		program_say(p->fd, "with", 1 + (how >> 6), fds,
			    raw_fds(in, fds, how & RAW_FDS_MAX));
		break;
	case 6:
		forge(p, how);
		break;
	case 7:
		(void)listen(p->fd, how);
		break;
	default:
		p = program_new(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
		raw_connect(p->fd, &un);
	}
}
