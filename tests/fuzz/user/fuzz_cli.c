// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The whole CLI, in this process: the input is its arguments, one a line. Whatever
 * would change something or wait for something is replaced by the linker (see the
 * Makefile): no device, no module, no socket, no second process or thread, no file
 * written, no signal caught. What follows from that is an error that is told, so it
 * has to be told; what is printed in JSON has to be JSON; nothing may be left open or
 * allocated. Input that begins with '=' is a number of an argument instead.
 */
#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sanitizer/allocator_interface.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <ringgate/ringgate.h>

#include "bench.h"
#include "cmd.h"
#include "fuzz.h"
#include "spawn_run.h"
#include "util.h"

#define ARGS_MAX	24
#define KEPT_MAX	4096
#define TEXT_MAX	(1U << 20)

/* main() of the CLI, and of what it becomes */
int ringgate_main(int argc, char **argv);
int ringgate_probe_main(int argc, char **argv);

static jmp_buf end;	/* where exit() leads to */
static bool number_only;
static bool became;	/* another program, which has returned from its main() */
static unsigned int waits;

/*
 * What was allocated while arguments were parsed: it is rightly left to exit(), as a
 * mistake in them ends the program there.
 */
static struct {
	bool on;
	unsigned int n;
	const volatile void *p[KEPT_MAX];
} kept;

static void on_malloc(const volatile void *p, size_t len)
{
	(void)len;
	if (kept.on && kept.n < KEPT_MAX)
		kept.p[kept.n++] = p;
}

static void on_free(const volatile void *p)
{
	unsigned int i;

	for (i = kept.n; i; i--) {
		if (kept.p[i - 1] == p) {
			kept.p[i - 1] = kept.p[--kept.n];
			return;
		}
	}
}

static void drop_kept(void)
{
	kept.on = false;
	while (kept.n)
		free((void *)(uintptr_t)kept.p[kept.n - 1]);
}

static void __attribute__((noreturn)) leave(int status)
{
	drop_kept();
	longjmp(end, status + 1);
}

void fuzz_exit(int status)
{
	leave(status);
}

/* argp ends the program by itself where it does not like an argument. */

error_t fuzz_argp_parse(const struct argp *argp, int argc, char **argv, unsigned int flags,
			int *arg_index, void *input)
{
	error_t err;

	kept.on = true;
	err = argp_parse(argp, argc, argv, flags | ARGP_NO_EXIT, arg_index, input);
	kept.on = false;
	return err;
}

void fuzz_argp_error(const struct argp_state *state, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	if (!number_only)
		argp_state_help(state, stderr, ARGP_HELP_STD_ERR);
	leave(EXIT_USAGE);
}

void fuzz_argp_failure(const struct argp_state *state, int status, int err,
		       const char *fmt, ...)
{
	va_list ap;

	(void)state;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, ": %s\n", strerror(err));
	if (status)
		leave(status);
}

void fuzz_argp_state_help(const struct argp_state *state, FILE *f, unsigned int flags)
{
	argp_state_help(state, f, flags);
	leave(EXIT_USAGE);
}

/* Files: what the kernel tells is read, a file to write is the one that takes all. */

FILE *fuzz_fopen(const char *path, const char *mode);

static bool readable(const char *path)
{
	return !strncmp(path, "/proc/", 6) || !strncmp(path, "/sys/", 5);
}

int fuzz_open(const char *path, int flags, ...)
{
	if ((flags & O_ACCMODE) != O_RDONLY && strncmp(path, "/dev/", 5))
		return open("/dev/null", O_WRONLY | O_CLOEXEC);
	if ((flags & O_ACCMODE) == O_RDONLY && readable(path))
		return open(path, flags);
	errno = ENOENT;
	return -1;
}

FILE *fuzz_fopen(const char *path, const char *mode)
{
	if (mode[0] == 'r' && !strchr(mode, '+') && readable(path))
		return fopen(path, mode);
	errno = ENOENT;
	return NULL;
}

/* Names of this machine and of the net are not looked up. */

int fuzz_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		     struct addrinfo **res)
{
	struct addrinfo numeric = *hints;
	bool was = kept.on;
	int err;

	numeric.ai_flags |= AI_NUMERICHOST | AI_NUMERICSERV;
	kept.on = false;	/* libc keeps something of its own */
	err = getaddrinfo(node, service, &numeric, res);
	kept.on = was;
	return err;
}

/* What fails, always in the same way. Each stands in for one of the same name. */

#define FAILS(name, error, value) \
int fuzz_##name(void) \
{ \
	errno = (error); \
	return value; \
}

#define NONE(name, error) \
void *fuzz_##name(void) \
{ \
	errno = (error); \
	return NULL; \
}

FAILS(fork, EAGAIN, -1)
FAILS(socket, EPERM, -1)
FAILS(socketpair, EMFILE, -1)
FAILS(memfd_create, EMFILE, -1)
FAILS(mkostemp, EACCES, -1)
FAILS(unlink, EACCES, -1)
FAILS(rename, EACCES, -1)
FAILS(shmget, ENOSPC, -1)
FAILS(setrlimit, EPERM, -1)
FAILS(prctl, EPERM, -1)
FAILS(kill, EPERM, -1)
NONE(dlopen, 0)
NONE(kmod_new, ENOMEM)
NONE(mnl_socket_open2, EPROTONOSUPPORT)
NONE(ibv_get_device_list, ENOSYS)
FAILS(pthread_create, 0, EAGAIN)
FAILS(pthread_setaffinity_np, 0, EINVAL)
FAILS(isatty, ENOTTY, 0)
FAILS(sigaction, 0, 0)
FAILS(signalfd, EMFILE, -1)
NONE(signal, 0)
FAILS(raise, 0, 0)
FAILS(nanosleep, 0, 0)

/* What the CLI becomes for some commands is in this process, too. */

int fuzz_execv(const char *path, char *const argv[])
{
	int argc = 0, status;

	FUZZ_CHECK(strstr(path, "ringgate-probe"));
	while (argv[argc])
		argc++;
	status = ringgate_probe_main(argc, (char **)argv);
	became = true;
	longjmp(end, status + 1);
}

/* Nothing comes, at once; who waits again and again is stopped as by a signal. */

int fuzz_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *ts, const sigset_t *set)
{
	(void)fds;
	(void)n;
	(void)ts;
	(void)set;
	if (++waits > 3)
		util_stop = 2;
	return 0;
}

int fuzz_poll(struct pollfd *fds, nfds_t n, int ms)
{
	(void)ms;
	return fuzz_ppoll(fds, n, NULL, NULL);
}

/* A ring may be as large as the machine allows. */

int __wrap_rgate_ring_open_memfd(struct rgate_ring **ring, const struct rgate_ring_opts *opts)
{
	(void)ring;
	(void)opts;
	return -ENOMEM;
}

/* Measuring takes its time, and the figures do not matter. */

int __wrap_bench_rate(const struct bench_opts *o, struct bench_rate *r)
{
	(void)o;
	r->frames = 1000;
	r->seconds = 0.5;
	return 0;
}

int __wrap_bench_latency(const struct bench_opts *o, struct bench_latency *l)
{
	(void)o;
	*l = (struct bench_latency){ .samples = 1 };
	return 0;
}

/* One run */

struct run {
	char *text;		/* the arguments, each ended by NUL */
	char *argv[ARGS_MAX + 2];
	int argc;
	const char *out, *err;
	size_t out_len, err_len;
	int status;
	bool left;		/* by exit() */
	bool relays;		/* ends as another command does, or as none does: see relays() */
};

/*
 * Those whose status is that of what they run: what they say themselves is beyond a program's
 * own. Their daemon is never reached here, so nothing runs and only "lost" remains.
 */
static bool relays(const char *word)
{
	return !strcmp(word, "spawn") || !strcmp(word, "lock") || !strcmp(word, "barrier");
}

static void split(struct run *r, const uint8_t *data, size_t size)
{
	char *p, *nl;

	r->text = calloc(1, size + 1);
	FUZZ_CHECK(r->text);
	memcpy(r->text, data, size);
	r->argv[r->argc++] = (char *)"ringgate";
	for (p = r->text; p && r->argc <= ARGS_MAX; p = nl) {
		nl = strchr(p, '\n');
		if (nl)
			*nl++ = 0;
		if (nl || *p) {
			r->relays |= relays(p);
			r->argv[r->argc++] = p;
		}
	}
}

/* Output into memory that needs no allocation: see kept */
static FILE *open_text(char *text, char *buf)
{
	FILE *f = fmemopen(text, TEXT_MAX, "w");

	FUZZ_CHECK(f && !setvbuf(f, buf, _IOFBF, BUFSIZ));
	return f;
}

static size_t close_text(FILE *f)
{
	long len;

	fflush(f);
	len = ftell(f);
	FUZZ_CHECK(len >= 0 && !fclose(f));
	return (size_t)len;
}

static void run(struct run *r)
{
	static char out_text[TEXT_MAX], err_text[TEXT_MAX], buf[2][BUFSIZ];
	FILE *out = stdout, *err = stderr;
	int status;

	stdout = open_text(out_text, buf[0]);
	stderr = open_text(err_text, buf[1]);
	util_set_name("ringgate");
	util_stop = 0;
	waits = 0;
	became = false;
	status = setjmp(end);
	if (!status)
		r->status = ringgate_main(r->argc, r->argv);
	else
		r->status = status - 1;
	r->left = status && !became;
	kept.n = 0;
	r->out_len = close_text(stdout);
	r->err_len = close_text(stderr);
	r->out = out_text;
	r->err = err_text;
	stdout = out;
	stderr = err;
}

/* One value, or one a line */
static bool json(const char *text, size_t len)
{
	const char *p = text, *last = text + len, *nl;

	if (fuzz_json_ok(text, len))
		return true;
	for (; p < last; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(last - p));
		if (!nl || !fuzz_json_ok(p, (size_t)(nl - p)))
			return false;
	}
	return true;
}

static void check(const struct run *r)
{
	FUZZ_CHECK((r->status >= EXIT_OK && r->status <= EXIT_NO_MODULE) ||
		   (r->relays && r->status == SPAWN_EXIT_LOST));
	/* doctor and the like tell on the output what is wrong */
	if (r->status)
		FUZZ_CHECK(r->err_len || r->out_len);
	if (r->status == EXIT_USAGE || r->left)
		FUZZ_CHECK(r->err_len);
	FUZZ_CHECK(r->out_len < TEXT_MAX - 1 && r->err_len < TEXT_MAX - 1);
	if (r->out_len && (r->out[0] == '{' || r->out[0] == '['))
		FUZZ_CHECK(json(r->out, r->out_len));
}

/* --HANG is glibc's, for those who debug argp: it sleeps for an hour. */
static bool hangs(const struct run *r)
{
	int i;

	for (i = 1; i < r->argc; i++)
		if (!strncmp(r->argv[i], "--H", 3))
			return true;
	return false;
}

static void command(const uint8_t *data, size_t size)
{
	struct run r = { 0 };
	int before = dup(0), after;

	split(&r, data, size);
	if (hangs(&r)) {
		close(before);
		free(r.text);
		return;
	}
	run(&r);
	check(&r);
	close(before);
	after = dup(0);
	FUZZ_CHECK(after == before);
	close(after);
	free(r.text);
}

/* Numbers, reckoned a second time */

static unsigned int digit(char c)
{
	return isdigit((unsigned char)c) ? (unsigned int)(c - '0') :
	       isxdigit((unsigned char)c) ? (unsigned int)(tolower(c) - 'a' + 10) : 99;
}

/* false: not a number, or one of more than 64 bits */
static bool reckon(const char *p, bool suffix, uint64_t *v)
{
	unsigned int base = 10, n = 0;
	const char *units = "KMG", *unit;

	if (p[0] == '0' && (p[1] | 32) == 'x') {
		base = 16;
		p += 2;
	}
	for (*v = 0; digit(*p) < base; p++, n++)
		if (__builtin_mul_overflow(*v, base, v) ||
		    __builtin_add_overflow(*v, digit(*p), v))
			return false;
	if (!n)
		return false;
	if (suffix && *p) {
		unit = strchr(units, toupper((unsigned char)*p));
		if (!unit || __builtin_mul_overflow(*v, 1ULL << 10 * (unit - units + 1), v))
			return false;
		p++;
	}
	return !*p;
}

static void number(const uint8_t *data, size_t size)
{
	static char said[TEXT_MAX], buf[BUFSIZ];
	char *text = strndup((const char *)data, size);
	FILE *err = stderr;
	uint64_t right;
	volatile bool taken = false;
	volatile uint64_t v = 0;
	bool good, suffix = size & 1;

	FUZZ_CHECK(text);
	good = reckon(text, suffix, &right) && right >= 3 && right <= 1ULL << 40;
	stderr = open_text(said, buf);
	number_only = true;
	if (!setjmp(end)) {
		v = suffix ? arg_size(NULL, "n", text, 3, 1ULL << 40) :
			     arg_number(NULL, "n", text, 3, 1ULL << 40);
		taken = true;
	}
	if (!setjmp(end)) {
		uint64_t ns = arg_seconds(NULL, "t", text);

		FUZZ_CHECK(ns >= 999999 && ns <= 1000000000ULL * NSEC);
	}
	number_only = false;
	close_text(stderr);
	stderr = err;
	FUZZ_CHECK(taken == good);
	FUZZ_CHECK(!good || v == right);
	free(text);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char first[] = "doctor\n";
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)argc;
	(void)argv;
	/* pcapng goes to the descriptor, and private keys come from one */
	FUZZ_CHECK(null >= 0 && dup2(null, STDOUT_FILENO) == STDOUT_FILENO &&
		   dup2(null, STDIN_FILENO) == STDIN_FILENO);
	close(null);
	setenv("ARGP_HELP_FMT", "", 1);
	/* what libc allocates once and for all */
	command((const uint8_t *)first, sizeof(first) - 1);
	FUZZ_CHECK(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size && data[0] == '=')
		number(data + 1, size - 1);
	else
		command(data, size);
	return 0;
}
