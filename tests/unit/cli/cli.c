// SPDX-License-Identifier: MIT OR GPL-2.0
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

#define ARGS_MAX	300
#define SECONDS		60	/* that a command may take */
#define EPOCH		1700000000

#define PROBE_PROGRAM	"/ringgate-probe"	/* as which the second one is executed */

/* main() of the programs */
int ringgate_main(int argc, char **argv);
int ringgate_probe_main(int argc, char **argv);

struct cli cli;

static const char *const redirected[] = {
	"/proc/modules", "/proc/kallsyms", "/proc/meminfo", "/proc/sys", "/proc/self/status",
	"/proc/self/uid_map", "/sys", "/dev/ringgate", "/dev/infiniband", "/boot", "/lib/modules", "/usr/bin",
	"/usr/local/cuda",
};

static bool inside;	/* in the child, where all of this holds */
static uint64_t now_ns = 1000 * 1000000000ULL;

const char *cli_path(const char *path)
{
	static char text[4][512];
	static unsigned int turn;
	char *to = text[turn++ % 4];

	snprintf(to, sizeof(text[0]), "%s%s", cli.root, path);
	return to;
}

static const char *real(const char *path)
{
	unsigned int i;
	size_t len;

	if (inside && cli.processes && !strncmp(path, "/proc", 5) &&
	    (!path[5] || (path[6] >= '0' && path[6] <= '9')))
		return cli_path(path);
	/* what is listed of it; files in it are this machine's */
	if (inside && !strcmp(path, "/dev"))
		return cli_path(path);
	for (i = 0; inside && i < ARRAY_LEN(redirected); i++) {
		len = strlen(redirected[i]);
		if (!strncmp(path, redirected[i], len) && (!path[len] || path[len] == '/'))
			return cli_path(path);
	}
	return path;
}

/* Wrapped by the linker. What asks for more than the path goes to the real one. */
int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
	return __real_access(real(path), mode);
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	return __real_fopen(real(path), mode);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, int) : 0;
	va_end(ap);
	return __real_open(real(path), flags, mode);
}

extern __typeof__(opendir) __real_opendir, __wrap_opendir;
DIR *__wrap_opendir(const char *path)
{
	return __real_opendir(real(path));
}

int __real_glob(const char *pattern, int flags, int (*fn)(const char *path, int err), glob_t *g);
int __wrap_glob(const char *pattern, int flags, int (*fn)(const char *path, int err), glob_t *g);
int __wrap_glob(const char *pattern, int flags, int (*fn)(const char *path, int err), glob_t *g)
{
	return __real_glob(real(pattern), flags, fn, g);
}

ssize_t __real_readlink(const char *path, char *buf, size_t len);
ssize_t __wrap_readlink(const char *path, char *buf, size_t len);
ssize_t __wrap_readlink(const char *path, char *buf, size_t len)
{
	ssize_t n;

	if (!inside || strcmp(path, "/proc/self/exe"))
		return __real_readlink(real(path), buf, len);
	n = snprintf(buf, len, "%s/src/build/tools/ringgate", cli.root);
	return n;
}

/* In this process, as what is wrapped here is not in another one */
int __real_execv(const char *path, char *const argv[]);
int __wrap_execv(const char *path, char *const argv[]);
int __wrap_execv(const char *path, char *const argv[])
{
	int argc = 0;

	if (!inside || strcmp(path, PROBE_PROGRAM))
		return __real_execv(path, argv);
	while (argv[argc])
		argc++;
	exit(ringgate_probe_main(argc, (char **)argv));
}

int __real_uname(struct utsname *u);
int __wrap_uname(struct utsname *u);
int __wrap_uname(struct utsname *u)
{
	int err = __real_uname(u);

	if (inside)
		snprintf(u->release, sizeof(u->release), "%s", cli.release ?: CLI_RELEASE);
	return err;
}

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);
uid_t __wrap_geteuid(void)
{
	return inside ? cli.uid : __real_geteuid();
}

int __real_getrlimit(int what, struct rlimit *r);
int __wrap_getrlimit(int what, struct rlimit *r);
int __wrap_getrlimit(int what, struct rlimit *r)
{
	if (!inside || what != RLIMIT_MEMLOCK)
		return __real_getrlimit(what, r);
	*r = cli.memlock;
	return 0;
}

int __real_isatty(int fd);
int __wrap_isatty(int fd);
int __wrap_isatty(int fd)
{
	if (!inside || fd > STDERR_FILENO)
		return __real_isatty(fd);
	return fd == STDOUT_FILENO ? cli.tty : fd == STDERR_FILENO && cli.tty_err;
}

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (!inside || clock != CLOCK_REALTIME)
		return __real_clock_gettime(clock, ts);
	*ts = (struct timespec){ .tv_sec = EPOCH, .tv_nsec = 123456789 };
	return 0;
}

time_t __real_time(time_t *t);
time_t __wrap_time(time_t *t);
time_t __wrap_time(time_t *t)
{
	return inside ? EPOCH : __real_time(t);
}

uint64_t __real_util_now(void);
uint64_t __wrap_util_now(void);
uint64_t __wrap_util_now(void)
{
	if (!cli.still)
		return __real_util_now();
	now_ns += cli.tick;
	cli.tick += cli.tick / 100;
	return now_ns;
}

void __real_util_sleep(uint64_t until_ns);
void __wrap_util_sleep(uint64_t until_ns);
void __wrap_util_sleep(uint64_t until_ns)
{
	if (!cli.still)
		__real_util_sleep(until_ns);
	else if (until_ns > now_ns)
		now_ns = until_ns;
}

/* Of that machine */

static void make_directories(const char *path)
{
	char text[512], *p;

	snprintf(text, sizeof(text), "%s", path);
	for (p = strchr(text + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		assert_true(!mkdir(text, 0755) || errno == EEXIST);
		*p = '/';
	}
}

void cli_file(const char *path, const char *text)
{
	FILE *f;

	make_directories(cli_path(path));
	f = __real_fopen(cli_path(path), "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

void cli_link(const char *path, const char *to)
{
	make_directories(cli_path(path));
	assert_int_equal(symlink(to, cli_path(path)), 0);
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void cli_gone(const char *path)
{
	(void)nftw(cli_path(path), drop, 16, FTW_DEPTH | FTW_PHYS);
}

int cli_begin(void **state)
{
	(void)state;
	memset(&cli, 0, sizeof(cli));
	cli.memlock = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
	snprintf(cli.root, sizeof(cli.root), "/tmp/ringgate-unit.XXXXXX");
	if (!mkdtemp(cli.root))
		return -1;
	setenv("TZ", "UTC", 1);
	setenv("TERM", "xterm", 1);
	setenv("RGATE_PROBE", PROBE_PROGRAM, 1);
	cli_file("/proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n");
	cli_file("/proc/self/uid_map", "         0          0 4294967295\n");
	cli_file("/proc/modules", "");
	cli_file("/proc/meminfo", "MemTotal:    16000000 kB\nMemFree:           1 kB\n"
		 "MemAvailable: 8000000 kB\nSlab:           1000 kB\n");
	return 0;
}

int cli_end(void **state)
{
	(void)state;
	cli_gone("");
	return 0;
}

static int split(char *line, char *args[ARGS_MAX])
{
	int n = 0;
	char *p = line;

	args[n++] = "ringgate";
	for (;;) {
		p += strspn(p, " ");
		if (!*p)
			break;
		assert_true(n < ARGS_MAX - 1);
		if (*p == '\'') {
			args[n++] = ++p;
			p = strchr(p, '\'');
			assert_non_null(p);
		} else {
			args[n++] = p;
			p += strcspn(p, " ");
		}
		if (*p)
			*p++ = '\0';
	}
	args[n] = NULL;
	return n;
}

static void read_back(FILE *f, char *text, size_t len)
{
	size_t n;

	rewind(f);
	n = fread(text, 1, len - 1, f);
	text[n] = '\0';
	fclose(f);
}

void cli_run(const char *line)
{
	char words[2048], *args[ARGS_MAX];
	FILE *out = tmpfile(), *err = tmpfile();
	int n, status;
	pid_t pid;

	assert_true(out && err && strlen(line) < sizeof(words));
	snprintf(words, sizeof(words), "%s", line);
	n = split(words, args);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(SECONDS * unit_patience());
		dup2(fileno(out), STDOUT_FILENO);
		dup2(fileno(err), STDERR_FILENO);
		/* cmocka's are not the program's */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		signal(SIGILL, SIG_DFL);
		signal(SIGFPE, SIG_DFL);
		inside = true;
		exit(ringgate_main(n, args));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	cli.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	read_back(out, cli.out, sizeof(cli.out));
	read_back(err, cli.err, sizeof(cli.err));
}

static void must(const char *line, bool holds, const char *what)
{
	if (holds)
		return;
	print_message("# %s: %s\n# status %d\n%s%s", line, what, cli.status, cli.out, cli.err);
	fail();
}

void cli_is(const char *line, int status, const char *out, const char *err)
{
	cli_run(line);
	must(line, cli.status == status, "another status");
	must(line, !strcmp(cli.out, out), out);
	must(line, !strcmp(cli.err, err), err);
}

void cli_says(const char *line, int status, const char *text)
{
	cli_run(line);
	must(line, cli.status == status, "another status");
	must(line, strstr(cli.out, text) || strstr(cli.err, text), text);
}
