// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * `ringgate attach --xdp` and what takes its programs away, on a kernel of the test's own: its
 * objects are files that say what they are, and one that is kept lies in the machine's
 * BPF file system. xdp_prog.c: test_cli_xdp.
 */
#include "unit.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cli.h"
#include "module.h"

#define PINS	"/sys/fs/bpf/ringgate"

static struct kernel {
	bool no_fs, no_types, no_function;
	int btf_err, vmlinux_err, load_err, link_err, pin_err, query_err, mkdir_err;
	uint32_t on_device;	/* the program there */
	bool open_to_others;	/* the directory of what is kept */
} kernel;

__attribute__((format(printf, 1, 2)))
static void note(const char *fmt, ...)
{
	size_t n = strlen(fake->log);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fake->log + n, sizeof(fake->log) - n, fmt, ap);
	va_end(ap);
}

static int refuses(int err)
{
	errno = err;
	return -err;
}

/* An object of the kernel's, as text */
static int object(const char *text)
{
	int fd = memfd_create("object", MFD_CLOEXEC);

	unit_require(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	return fd;
}

static void text_of(int fd, char text[64])
{
	ssize_t n = pread(fd, text, 63, 0);

	unit_require(n >= 0);
	text[n] = '\0';
}

static const char *moved(const char *path)
{
	return strncmp(path, "/sys/fs/bpf", 11) ? path : cli_path(path);
}

int __real_statfs(const char *path, struct statfs *fs);
int __wrap_statfs(const char *path, struct statfs *fs);
int __wrap_statfs(const char *path, struct statfs *fs)
{
	if (moved(path) == path)
		return __real_statfs(path, fs);
	fs->f_type = kernel.no_fs ? TMPFS_MAGIC : BPF_FS_MAGIC;
	return 0;
}

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
	if (moved(path) != path && kernel.mkdir_err)
		return refuses(kernel.mkdir_err) < 0 ? -1 : 0;
	if (moved(path) != path)
		unit_require(mode == 0700);
	return __real_mkdir(moved(path), mode);
}

int __real_lstat(const char *path, struct stat *st);
int __wrap_lstat(const char *path, struct stat *st);
int __wrap_lstat(const char *path, struct stat *st)
{
	int ret = __real_lstat(moved(path), st);

	if (moved(path) != path) {
		st->st_uid = 0;
		st->st_mode |= kernel.open_to_others ? 020 : 0;
	}
	return ret;
}

int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
	return __real_unlink(moved(path));
}

/* Types of two modules; the first one is gone when it is asked for. */
int __wrap_bpf_btf_get_next_id(uint32_t id, uint32_t *next);
int __wrap_bpf_btf_get_next_id(uint32_t id, uint32_t *next)
{
	if (id == (kernel.no_types ? 3 : 4))
		return refuses(ENOENT);
	*next = id + 1;
	return 0;
}

int __wrap_bpf_btf_get_fd_by_id(uint32_t id);
int __wrap_bpf_btf_get_fd_by_id(uint32_t id)
{
	static const char *const text[] = { "btf 1 vmlinux", "btf 0 ringgate", "btf 1 ringgate" };

	if (id == 1 || kernel.btf_err)
		return refuses(id == 1 ? ENOENT : kernel.btf_err);
	return object(text[id - 2]);
}

int __wrap_bpf_prog_get_fd_by_id(uint32_t id);
int __wrap_bpf_prog_get_fd_by_id(uint32_t id)
{
	return id == 99 ? refuses(ENOENT) : object("program holder");
}

int __wrap_bpf_obj_get_info_by_fd(int fd, void *to, uint32_t *len);
int __wrap_bpf_obj_get_info_by_fd(int fd, void *to, uint32_t *len)
{
	struct bpf_link_info *link = to;
	struct bpf_prog_info *prog = to;
	struct bpf_btf_info *btf = to;
	char text[64], name[32];
	uint32_t a, b, c;

	text_of(fd, text);
	if (sscanf(text, "btf %u %31s", &a, name) == 2) {
		unit_require(*len == sizeof(*btf));
		btf->kernel_btf = a;
		snprintf((char *)(uintptr_t)btf->name, btf->name_len, "%s", name);
	} else if (sscanf(text, "program %15s", name) == 1) {
		unit_require(*len == sizeof(*prog));
		snprintf(prog->name, sizeof(prog->name), "%.15s", name);
	} else if (sscanf(text, "link %u %u %u", &a, &b, &c) == 3) {
		unit_require(*len == sizeof(*link));
		link->type = a;
		link->xdp.ifindex = b;
		link->prog_id = c;
	} else {
		return refuses(EINVAL);
	}
	return 0;
}

/* Not looked into: they come from here, and go back */
static char types[2];

struct btf *__wrap_btf__load_vmlinux_btf(void);
struct btf *__wrap_btf__load_vmlinux_btf(void)
{
	if (kernel.vmlinux_err) {
		refuses(kernel.vmlinux_err);
		return NULL;
	}
	types[0]++;
	return (struct btf *)&types[0];
}

struct btf *__wrap_btf__load_module_btf(const char *name, struct btf *vmlinux);
struct btf *__wrap_btf__load_module_btf(const char *name, struct btf *vmlinux)
{
	unit_require(!strcmp(name, "ringgate") && vmlinux == (struct btf *)&types[0]);
	types[1]++;
	return (struct btf *)&types[1];
}

int __wrap_btf__find_by_name_kind(const struct btf *btf, const char *name, uint32_t kind);
int __wrap_btf__find_by_name_kind(const struct btf *btf, const char *name, uint32_t kind)
{
	unit_require(btf == (struct btf *)&types[1] && kind == BTF_KIND_FUNC);
	unit_require(!strcmp(name, "bpf_ringgate_push"));
	return kernel.no_function ? -ENOENT : 4711;
}

void __wrap_btf__free(struct btf *btf);
void __wrap_btf__free(struct btf *btf)
{
	--*(char *)btf;
}

/* What is loaded calls the function, with the number that it has, in the types of the module. */
int __wrap_bpf_prog_load(enum bpf_prog_type type, const char *name, const char *license,
			 const struct bpf_insn *insns, size_t n,
			 const struct bpf_prog_load_opts *opts);
int __wrap_bpf_prog_load(enum bpf_prog_type type, const char *name, const char *license,
			 const struct bpf_insn *insns, size_t n,
			 const struct bpf_prog_load_opts *opts)
{
	unsigned int i, calls = 0;
	char text[64];

	unit_require(type == BPF_PROG_TYPE_XDP && !strcmp(license, "GPL"));
	unit_require(opts->prog_flags == BPF_F_XDP_HAS_FRAGS && !opts->log_level && !opts->log_buf);
	text_of(opts->fd_array[1], text);
	unit_require(!strcmp(text, "btf 1 ringgate"));
	for (i = 0; i < n; i++)
		calls += insns[i].code == (BPF_JMP | BPF_CALL) && insns[i].imm == 4711 &&
			 insns[i].src_reg == BPF_PSEUDO_KFUNC_CALL && insns[i].off == 1;
	note("load %s: %s, %u call\n", name, n > 24 ? "long" : "short", calls);
	return kernel.load_err ? refuses(kernel.load_err) : object("program ringgate");
}

int __wrap_bpf_link_create(int prog, int ifindex, enum bpf_attach_type type,
			   const struct bpf_link_create_opts *opts);
int __wrap_bpf_link_create(int prog, int ifindex, enum bpf_attach_type type,
			   const struct bpf_link_create_opts *opts)
{
	char text[64];

	text_of(prog, text);
	unit_require(type == BPF_XDP);
	note("link %s to %d, flags %u\n", text, ifindex, opts->flags);
	if (kernel.link_err)
		return refuses(kernel.link_err);
	return object("link 6 1 5");
}

int __wrap_bpf_obj_pin(int fd, const char *path);
int __wrap_bpf_obj_pin(int fd, const char *path)
{
	char text[64];

	text_of(fd, text);
	note("keep %s in %s\n", text, path);
	if (kernel.pin_err)
		return refuses(kernel.pin_err);
	cli_file(path, text);
	return 0;
}

int __wrap_bpf_obj_get(const char *path);
int __wrap_bpf_obj_get(const char *path)
{
	return open(cli_path(path), O_RDONLY | O_CLOEXEC);
}

int __wrap_bpf_xdp_query_id(int ifindex, int flags, uint32_t *id);
int __wrap_bpf_xdp_query_id(int ifindex, int flags, uint32_t *id)
{
	unit_require(ifindex == 1 && !flags);
	*id = kernel.on_device;
	return -kernel.query_err;
}

/* A command, and what became of it: all of what it opened is closed by then */
static void does(const char *line, int status, const char *out, const char *err, const char *log)
{
	*fake->log = '\0';
	cli_is(line, status, out, err);
	assert_string_equal(fake->log, log);
}

#define ATTACH	"attach lo rings 1/c0ffee01 action 0 fanout 0 sample 0 priority 0 filter 0\n"
#define DETACH	"detach 8/a77008\n"
#define REFUSED	"ringgate attach: "

static void attaches(void **state)
{
	static const char kept[] = "keep link 6 1 5 in " PINS "/8-0000000000a77008\n";
	char log[512];

	(void)state;
	snprintf(log, sizeof(log), ATTACH "load ringgate: short, 1 call\n"
		 "link program ringgate to 1, flags 4\n%s", kept);
	does("attach lo -r web --xdp", 0, "8\n", "", log);
	/* as it was left: the directory is there */
	snprintf(log, sizeof(log), ATTACH "load ringgate: long, 1 call\n"
		 "link program ringgate to 1, flags 2\n%s", kept);
	does("attach lo -r web --xdp-generic -f udp -j", 0, "{\"attachment\": 8}\n", "", log);
}

static void not_there(void **state)
{
	(void)state;
	cli.uid = 1000;
	does("attach lo -r web --xdp", 1, "", REFUSED "XDP programs are root's: run it with "
	     "sudo\n", "");
	cli.uid = 0;
	kernel.no_types = true;
	does("attach lo -r web --xdp", 1, "", REFUSED "the kernel does not know the module's types "
	     "(BTF), so no XDP program can call it: `ringgate doctor` says what to do\n", "");
	kernel.no_types = false;
	kernel.no_function = true;
	does("attach lo -r web --xdp", 1, "", REFUSED "the kernel does not know the module's types "
	     "(BTF), so no XDP program can call it: `ringgate doctor` says what to do\n", "");
	kernel.no_function = false;
	kernel.btf_err = EPERM;
	cli_says("attach lo -r web --xdp", 1, "cannot look up the module's function for XDP: ");
	kernel.btf_err = 0;
	kernel.vmlinux_err = EIO;
	does("attach lo -r web --xdp", 1, "", REFUSED "cannot look up the module's function for XDP: "
	     "Input/output error\n", "");
	kernel.vmlinux_err = 0;
	kernel.no_fs = true;
	does("attach lo -r web --xdp", 1, "", REFUSED "programs are kept in the BPF file system, which "
	     "is not there: `sudo mount -t bpf -o mode=700 bpf /sys/fs/bpf`\n", "");
	kernel.no_fs = false;
	kernel.mkdir_err = EROFS;
	does("attach lo -r web --xdp", 1, "", REFUSED "cannot make " PINS ": Read-only "
	     "file system\n", "");
	kernel.mkdir_err = 0;
	kernel.open_to_others = true;
	does("attach lo -r web --xdp", 1, "", REFUSED PINS " is not root's alone, so nothing is kept "
	     "there: look who made it, and take it away\n", "");
}

/* What was attached ends again. */
static void refused(void **state)
{
	(void)state;
	kernel.load_err = EINVAL;
	cli_says("attach lo -r web --xdp", 1, REFUSED "the kernel refuses the XDP program: ");
	assert_string_equal(fake->log, ATTACH "load ringgate: short, 1 call\n" DETACH);
	kernel.load_err = 0;
	kernel.link_err = EOPNOTSUPP;
	cli_says("attach lo -r web --xdp", 1, REFUSED "the driver of lo has no XDP: --xdp-generic does it "
		 "behind the driver, at the cost of an skb\n");
	cli_says("attach lo -r web --xdp-generic", 1, REFUSED "cannot put an XDP program on lo: ");
	kernel.link_err = EBUSY;
	cli_says("attach lo -r web --xdp", 1, REFUSED "lo has an XDP program already\n");
	kernel.on_device = 3;
	cli_says("attach lo -r web --xdp", 1, "lo has an XDP program already (number 3, holder), and there "
		 "can be one: end that first, or attach without --xdp\n");
	kernel.on_device = 99;
	kernel.link_err = EEXIST;
	cli_says("attach lo -r web --xdp", 1, "already (number 99, ?), and");
	kernel.link_err = 0;
	kernel.pin_err = ENOSPC;
	*fake->log = '\0';
	cli_says("attach lo -r web --xdp", 1, "cannot keep the XDP program in " PINS
		 "/8-0000000000a77008: ");
	assert_non_null(strstr(fake->log, DETACH));
	cli_says("attach nodev0 -r web --xdp", 1, "cannot find nodev0: ");
}

static bool is_kept(const char *name)
{
	return !access(cli_path(name), F_OK);
}

/* Of those that are kept, these go: on no device any more, or of an attachment that ended */
static void sweeps(void **state)
{
	(void)state;
	kernel.on_device = 5;
	cli_file(PINS "/8-0000000000a77008", "link 6 1 5");	/* goes on */
	cli_file(PINS "/8-0000000000a77009", "link 6 1 5");	/* that number is another's */
	cli_file(PINS "/9-0000000000a77010", "link 6 1 5");	/* there is none */
	cli_file(PINS "/9-0000000000a77011", "link 6 1 6");	/* not on this device of ours */
	cli_file(PINS "/9-0000000000a77012", "link 6 0 6");	/* the device is gone */
	cli_file(PINS "/9-0000000000a77013", "link 5 0 6");	/* no XDP link */
	cli_file(PINS "/9-0000000000a77014", "a map");
	cli_file(PINS "/other", "link 6 0 6");
	kernel.open_to_others = true;
	cli_is("detach 8", 0, "", "");
	assert_true(is_kept(PINS "/9-0000000000a77012"));
	kernel.open_to_others = false;
	kernel.query_err = EIO;
	cli_is("detach 8", 0, "", "");
	assert_true(is_kept(PINS "/9-0000000000a77010"));
	assert_false(is_kept(PINS "/9-0000000000a77012"));
	kernel.query_err = 0;
	cli_is("detach 8", 0, "", "");
	assert_true(is_kept(PINS "/8-0000000000a77008"));
	assert_false(is_kept(PINS "/8-0000000000a77009"));
	assert_false(is_kept(PINS "/9-0000000000a77010"));
	assert_true(is_kept(PINS "/9-0000000000a77011"));
	assert_true(is_kept(PINS "/9-0000000000a77013"));
	assert_true(is_kept(PINS "/9-0000000000a77014"));
	assert_true(is_kept(PINS "/other"));
	fake->att = -EIO;
	cli_file(PINS "/9-0000000000a77010", "link 6 1 5");
	cli_says("detach 8", 1, "cannot find attachment 8");
	assert_true(is_kept(PINS "/9-0000000000a77010"));
}

static int begin(void **state)
{
	memset(&kernel, 0, sizeof(kernel));
	if (fake_begin(state))
		return -1;
	cli_file("/sys/fs/bpf/.keep", "");
	return 0;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, fake_end)
static const struct CMUnitTest tests[] = {
	TEST(attaches), TEST(not_there), TEST(refused), TEST(sweeps),
};

UNIT_MAIN_ALONE(tests)
