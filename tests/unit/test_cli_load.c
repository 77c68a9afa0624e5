// SPDX-License-Identifier: MIT OR GPL-2.0
/* Loading the module, taking it out, and what the doctor says of a machine. */
#include "unit.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "kmod.h"

#define BUILT	"/src/build/kmod-" CLI_RELEASE "/ringgate.ko"
#define SIGNED	"code~Module signature appended~\n"

static int begin(void **state)
{
	memset(&fake_kmod, 0, sizeof(fake_kmod));
	return cli_begin(state);
}

static void load(void **state)
{
	char line[512];

	(void)state;
	cli.still = true;
	cli_is("load", 1, "", "ringgate load: there is no module for the running kernel: `sudo make dkms`\n");
	cli_file("/src/kmod/dkms.conf", "");
	snprintf(line, sizeof(line), "no module for the running kernel: `sudo make -C %s dkms`\n",
		 cli_path("/src"));
	cli_says("load", 1, line);

	/* of the tree that the program lies in */
	cli_file(BUILT, "code");
	fake_kmod.depends = "udp_tunnel,nf_defrag";
	snprintf(line, sizeof(line), "loaded ringgate 0.1.0 from %s\n", cli_path(BUILT));
	cli_is("load max_rings=5 'a=b c'", 0, line,
	       "kmod: probe udp_tunnel flags 0 options none\n"
	       "kmod: probe nf_defrag flags 0 options none\n"
	       "kmod: insert " BUILT " flags 0 options max_rings=5 a=b c\n");
	cli_is("load", 0, "", "ringgate load: version 0.1.0 is loaded already\n");
	cli_is("load x=1", 1, "", "ringgate load: version 0.1.0 is loaded already: run `ringgate unload` "
	       "first to load it anew\n");
	cli_is("load -m /x.ko", 1, "", "ringgate load: version 0.1.0 is loaded already: run `ringgate "
	       "unload` first to load it anew\n");

	/* the installed one */
	cli_gone("/sys/module");
	cli_gone("/dev/ringgate");
	fake_kmod.installed = "/lib/modules/x/ringgate.ko";
	cli_is("load --installed", 0, "loaded ringgate 0.1.0\n",
	       "kmod: probe ringgate flags 0x20 options none\n");
	cli_gone("/sys/module");
	cli_gone(BUILT);
	fake_kmod.no_device = true;
	cli_gone("/dev/ringgate");
	cli_is("load", 0, "loaded ringgate 0.1.0\n", "kmod: probe ringgate flags 0x20 options none\n"
	       "ringgate load: the module is loaded, and /dev/ringgate cannot be opened: "
	       "`ringgate doctor`\n");
	cli_gone("/sys/module");
	fake_kmod.insert = 5;
	cli_says("load", 1, "/lib/modules/x/ringgate.ko is blacklisted: `grep -r ringgate "
		 "/etc/modprobe.d`\n");
	fake_kmod.no_module = true;
	cli_is("load", 1, "", "ringgate load: cannot look up the module: Cannot allocate memory\n");
	fake_kmod.no_context = true;
	cli_is("load", 1, "", "ringgate load: libkmod: Cannot allocate memory\n");
}

static void load_fails(void **state)
{
	static const struct {
		int err;
		const char *why;
	} cases[] = {
		{ EKEYREJECTED, "this kernel takes only modules signed with a key it knows "
				"(Secure Boot): `sudo mokutil --import /var/lib/dkms/mok.pub && "
				"sudo reboot`" },
		{ EPERM, "this kernel takes only modules signed" },
		{ ENOKEY, "this kernel takes only modules signed" },
		{ ENOEXEC, "it is no module for the running kernel: `sudo make dkms`" },
		{ ENOENT, "the kernel lacks something that it needs: `sudo dmesg | tail`" },
		{ EINVAL, "an option or the file is not right: `modinfo /boot/x.ko`" },
		{ EIO, "Input/output error" },
	};
	char text[300];
	unsigned int i;

	(void)state;
	cli_says("load -m /boot/x.ko", 1, "cannot read /boot/x.ko: No such file or directory\n");
	cli_file("/boot/x.ko", "");
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		fake_kmod.insert = -cases[i].err;
		snprintf(text, sizeof(text), "cannot load /boot/x.ko: %s", cases[i].why);
		cli_says("load -m /boot/x.ko", 1, text);
	}
	fake_kmod.no_module = true;
	cli_is("load -m /boot/x.ko", 1, "", "ringgate load: /boot/x.ko is no kernel module\n");
}

/* Where no file would help */
static void barred(void **state)
{
	(void)state;
	fake_kmod.installed = "/x.ko";
	cli_file("/proc/self/status", "CapEff:\t0000000000000000\n");
	cli.uid = 1000;
	cli_is("load", 1, "", "ringgate load: only root may load modules: `sudo ringgate load`\n");
	cli_says("capture lo", 3, "the ringgate module is not loaded: `sudo ringgate load`\n");
	/* without a file that is the first thing to be mended */
	fake_kmod.installed = NULL;
	cli_says("load", 1, "there is no module for the running kernel: `sudo make dkms`\n");
	cli_says("load -m /x.ko", 1, "only root may load modules: `sudo ringgate load`\n");
	cli.uid = 0;
	cli_is("load", 1, "", "ringgate load: this container may not load modules: `sudo ringgate load` on "
	       "its host, or `ringgate capture --userspace`\n");
	cli_file("/proc/self/status", "CapEff:\t000001ffffffffff\n");
	cli_file("/proc/self/uid_map", "0 100000 65536\n");
	cli_says("load", 1, "this container may not load modules");
	cli.uid = 1000;
	cli_says("load", 1, "this container may not load modules");
	cli_file("/proc/sys/kernel/modules_disabled", "1\n");
	cli_is("load", 1, "", "ringgate load: loading modules is switched off until the next boot "
	       "(kernel.modules_disabled): `ringgate capture --userspace` does without\n");
	cli_says("doctor", 1, "missing  module             loading modules is switched off until the next "
		 "boot (kernel.modules_disabled)\n                            -> `ringgate capture "
		 "--userspace` does without\n");
	cli_gone("/proc/modules");
	cli_is("load", 1, "", "ringgate load: this kernel has no loadable modules: `ringgate capture "
	       "--userspace` does without\n");
	cli_says("capture lo", 3, "not loaded: this kernel has no loadable modules");
	cli_run("doctor");
	assert_null(strstr(cli.out, "netfilter ingress"));
}

/* ---- XDP programs, which the kernel has or not ---- */

#define PUSH	0x1234		/* where the function is, from where BPF's calls are counted */

static struct program {
	uint32_t id;
	int32_t calls;
	const char *name;
} programs[3];

int __wrap_bpf_prog_get_next_id(uint32_t id, uint32_t *next);
int __wrap_bpf_prog_get_next_id(uint32_t id, uint32_t *next)
{
	const struct program *p;

	for (p = programs; p < programs + ARRAY_LEN(programs); p++)
		if (p->id > id) {
			*next = p->id;
			return 0;
		}
	errno = ENOENT;
	return -ENOENT;
}

/* A file whose offset tells which */
int __wrap_bpf_prog_get_fd_by_id(uint32_t id);
int __wrap_bpf_prog_get_fd_by_id(uint32_t id)
{
	int fd = memfd_create("program", MFD_CLOEXEC);
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(programs) && programs[i].id != id; i++)
		;
	unit_require(i < ARRAY_LEN(programs) && fd >= 0 && lseek(fd, i, SEEK_SET) == i);
	return fd;
}

int __wrap_bpf_obj_get_info_by_fd(int fd, void *to, uint32_t *len);
int __wrap_bpf_obj_get_info_by_fd(int fd, void *to, uint32_t *len)
{
	const struct program *p = &programs[lseek(fd, 0, SEEK_CUR)];
	struct bpf_prog_info *info = to;
	const struct bpf_insn code[] = {
		{ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_KFUNC_CALL, .imm = p->calls },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	unit_require(*len == sizeof(*info));
	if (info->xlated_prog_insns) {
		unit_require(info->xlated_prog_len == sizeof(code));
		memcpy((void *)(uintptr_t)info->xlated_prog_insns, code, sizeof(code));
	}
	info->xlated_prog_len = sizeof(code);
	snprintf(info->name, sizeof(info->name), "%s", p->name);
	return 0;
}

/* What holds the module may be a program: of those, only one that calls it. */
static void held_by_programs(void **state)
{
	(void)state;
	programs[0] = (struct program){ .id = 3, .calls = PUSH, .name = "caller" };
	programs[1] = (struct program){ .id = 4, .calls = PUSH + 1, .name = "other" };
	programs[2] = (struct program){ .id = 9, .calls = PUSH, .name = "another" };
	cli.processes = true;
	cli_file("/proc/version", "");
	cli_file("/sys/module/ringgate/version", "0.1.0\n");
	cli_file("/proc/kallsyms", "no symbol\n"
		 "ffffffff81000000 T __bpf_call_base\n"
		 "ffffffff81000001 T bpf_ringgate_push\n"
		 "ffffffff81001234 T bpf_ringgate_push\t[ringgate]\n");
	fake_kmod.busy = 1;
	cli_is("unload", 1, "", "kmod: remove ringgate flags 0\n"
	       "ringgate unload: the module is in use (reference count 3) by\n"
	       "  XDP program 3 (caller)\n  XDP program 9 (another)\n"
	       "End these, or give --wait SECONDS.\n");
	/* Others than root are not told where things are. */
	cli_file("/proc/kallsyms", "0000000000000000 T __bpf_call_base\n"
		 "0000000000000000 T bpf_ringgate_push\t[ringgate]\n");
	cli_says("unload", 1, "  no process seen here has /dev/ringgate open or mapped");
	assert_null(strstr(cli.err, "XDP program"));
	memset(programs, 0, sizeof(programs));
}

static void unload(void **state)
{
	(void)state;
	cli_is("unload", 3, "", "ringgate unload: the module is not loaded\n");
	cli_file("/sys/module/ringgate/version", "0.1.0\n");
	cli_is("unload", 0, "unloaded\n", "kmod: remove ringgate flags 0\n");
	cli.still = true;
	fake_kmod.busy = 2;
	cli_is("unload --wait 1", 0, "unloaded\n", "kmod: remove ringgate flags 0\n"
	       "kmod: remove ringgate flags 0\nkmod: remove ringgate flags 0\n");
	fake_kmod.busy = 100;
	cli_says("unload --wait 1", 1, "ringgate unload: the module is in use (reference count 3) by\n");
	fake_kmod.busy = 1;
	cli.processes = true;
	cli_file("/proc/version", "");
	cli_is("unload", 1, "", "kmod: remove ringgate flags 0\n"
	       "ringgate unload: the module is in use (reference count 3) by\n"
	       "  no process seen here has /dev/ringgate open or mapped: look in other containers, for a "
	       "driver that pins ring memory, or for a dma-buf of it: `sudo grep -ls "
	       "'exp_name:.*ringgate' /proc/[0-9]*/fdinfo/*`\nEnd these, or give --wait SECONDS.\n");
	/* one that has it open, one that maps it, both, and neither */
	cli_link("/proc/11/fd/3", "/dev/null");
	cli_link("/proc/11/fd/4", "/dev/ringgate");
	cli_file("/proc/11/comm", "opens\n");
	cli_link("/proc/12/fd/3", "/dev/ringgate2");
	cli_file("/proc/12/maps", "0-1 r--s 0 0 0 /x\n0-1 r--s 0 0 0  /dev/ringgate\n");
	cli_file("/proc/12/comm", "maps\n");
	cli_link("/proc/13/fd/4", "/dev/ringgate");
	cli_file("/proc/13/maps", "0-1 r--s 0 0 0  /dev/ringgate (deleted)\n");
	cli_link("/proc/14/fd/4", "/dev/ringgates");
	fake_kmod.holder = "rdma_x";
	cli_run("unload");
	assert_int_equal(cli.status, 1);
	assert_non_null(strstr(cli.err, "  module rdma_x\n"));
	assert_non_null(strstr(cli.err, "  pid 11 (opens): /dev/ringgate open\n"));
	assert_non_null(strstr(cli.err, "  pid 12 (maps): ring mapped\n"));
	assert_non_null(strstr(cli.err, "  pid 13 (?): /dev/ringgate open, ring mapped\n"));
	assert_null(strstr(cli.err, "pid 14"));
	assert_null(strstr(cli.err, "as root"));
	/* whose files cannot be seen */
	cli_file("/proc/15/fd", "");
	cli_says("unload", 1, "  (run as root to see all processes)\n");
	cli_gone("/proc/11");
	cli_gone("/proc/12");
	cli_gone("/proc/13");
	cli_says("unload", 1, "look in other containers, as root, for a driver");
	fake_kmod.busy = 0;
	fake_kmod.remove = -EPERM;
	cli_says("unload", 1, "only root may take modules out: `sudo ringgate unload`\n");
	fake_kmod.remove = -ENOENT;
	cli_says("unload", 1, "cannot take the module out: No such file or directory\n");
	fake_kmod.no_module = true;
	cli_is("unload", 1, "", "ringgate unload: cannot look up the module: Cannot allocate memory\n");
	fake_kmod.no_context = true;
	cli_is("unload", 1, "", "ringgate unload: libkmod: Cannot allocate memory\n");
}

/* A line of the doctor's, and what mends it; NULL: nothing does */
static void finds(const char *what, const char *fix)
{
	char text[1024];
	const char *at;

	cli_run("doctor");
	at = strstr(cli.out, what);
	if (!at)
		print_message("# no line '%s'\n%s", what, cli.out);
	assert_non_null(at);
	at = strchr(at, '\n') + 1;
	if (!fix) {
		assert_int_not_equal(*at, ' ');
		return;
	}
	snprintf(text, sizeof(text), "%28s-> %s\n", "", fix);
	if (strncmp(at, text, strlen(text)))
		print_message("# %s: not '%s' but %s", what, text, at);
	assert_int_equal(strncmp(at, text, strlen(text)), 0);
}

static void doctor_kernel(void **state)
{
	(void)state;
	finds("ok       kernel             6.6.6-test\n", NULL);
	cli.release = "6.1.0";
	finds("ok       kernel             6.1.0\n", NULL);
	cli.release = "7.0.0";
	finds("ok       kernel             7.0.0\n", NULL);
	cli.release = "6.0.9";
	finds("missing  kernel             6.0.9 is older than 6.1\n", "boot Linux 6.1 or later");
	/* what would follow from it is left out */
	assert_null(strstr(cli.out, "  module "));
	cli.release = "5.9.0";
	finds("missing  kernel             5.9.0 is older than 6.1\n", "boot Linux 6.1 or later");
	cli.release = NULL;
	finds("warn     netfilter ingress  the kernel's configuration is not readable here\n",
	      NULL);
	cli_file("/lib/modules/" CLI_RELEASE "/build/.config", "CONFIG_NETFILTER_INGRESS=y\n");
	finds("ok       netfilter ingress  CONFIG_NETFILTER_INGRESS=y\n", NULL);
	cli_file("/boot/config-" CLI_RELEASE, "# CONFIG_NETFILTER_INGRESS is not set\nCONFIG_NETFILTER=y\n");
	finds("missing  netfilter ingress  the kernel has no CONFIG_NETFILTER_INGRESS\n",
	      "boot a kernel built with it");
	cli_file("/sys/module/ringgate/version", "0.1.0\n");
	finds("ok       netfilter ingress  there, as the module is loaded\n", NULL);
}

static void doctor_module(void **state)
{
	(void)state;
	finds("missing  module             none for this kernel, and no headers to build it\n",
	      "install the package linux-headers-" CLI_RELEASE " (Debian) or kernel-devel-"
	      CLI_RELEASE " (Fedora)");
	cli_link("/usr/bin/zypper", "/bin/true");
	finds("missing  module             none", "sudo zypper install kernel-devel-" CLI_RELEASE);
	cli_link("/usr/bin/dnf", "/bin/true");
	finds("missing  module             none", "sudo dnf install kernel-devel-" CLI_RELEASE);
	cli_link("/usr/bin/apt-get", "/bin/true");
	finds("missing  module             none",
	      "sudo apt-get install linux-headers-" CLI_RELEASE);
	cli_file("/lib/modules/" CLI_RELEASE "/build/Makefile", "");
	finds("missing  module             none for this kernel\n", "sudo make dkms");
	cli_file(BUILT, "code");
	fake_kmod.vermagic = "5.5.5 SMP";
	finds("missing  module             none for this kernel\n", "sudo make dkms");
	fake_kmod.vermagic = CLI_RELEASE " SMP";
	finds("missing  module             not loaded\n", "sudo ringgate load");
	fake_kmod.vermagic = NULL;
	fake_kmod.depends = "x";
	finds("missing  module             not loaded\n", "sudo ringgate load");
	cli_file("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	finds("missing  module             this kernel takes only modules signed",
	      "sudo mokutil --import /var/lib/dkms/mok.pub && sudo reboot");
	cli_file("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	finds("missing  module             this kernel takes only modules signed", "sudo mokutil --import "
	      "/var/lib/dkms/mok.pub && sudo reboot");
	cli_file("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
	finds("missing  module             not loaded\n", "sudo ringgate load");
	cli_file("/sys/module/module/parameters/sig_enforce", "Y\n");
	finds("missing  module             this kernel takes only", "sudo mokutil --import "
	      "/var/lib/dkms/mok.pub && sudo reboot");
	cli_file(BUILT, SIGNED);
	finds("missing  module             not loaded\n", "sudo ringgate load");
	cli_gone(BUILT);
	/* how a compressed one is signed does not show */
	fake_kmod.installed = "/lib/modules/x/ringgate.ko.xz";
	finds("missing  module             not loaded\n", "sudo ringgate load");
	cli.uid = 1000;
	cli_file("/proc/self/status", "CapEff:\t0000000000000000\n");
	finds("missing  module             not loaded\n", "sudo ringgate load");
	assert_int_equal(cli.status, 1);
	cli_run("doctor --userspace");
	assert_int_equal(cli.status, 0);
}

static void doctor_device(void **state)
{
	(void)state;
	cli_file("/sys/module/ringgate/version", "0.1.0\n");
	finds("missing  module             loaded, and no /dev/ringgate: /dev is no devtmpfs\n",
	      "sudo mknod -m 666 /dev/ringgate c 10 $(awk '/ringgate/{print $1}' /proc/misc)");
	cli_file("/dev/ringgate", "");
	finds("ok       module             version 0.1.0, /dev/ringgate can be opened\n", NULL);
	assert_int_equal(cli.status, 0);
	assert_non_null(strstr(cli.out, "\nmodule rings: usable; userspace source: usable\n"));
	cli_says("doctor --json", 0, "{\n  \"module_usable\": true,\n  \"userspace_usable\": true,\n"
		 "  \"checks\": [\n    {\n      \"name\": \"kernel\",\n      \"state\": \"ok\",\n"
		 "      \"text\": \"" CLI_RELEASE "\",\n      \"fix\": null\n    },\n");
	cli.tty = true;
	cli_says("doctor", 0, "\033[32mok     \033[0m  kernel  ");
	cli_says("doctor", 0, "\033[33mwarn   \033[0m  ");
	cli.release = "5.0";
	cli_says("doctor", 1, "\033[31mmissing\033[0m  kernel  ");
	cli.release = NULL;
	cli.tty = false;
	cli_file("/sys/module/ringgate/version", "0.0.9\n");
	finds("warn     module             version 0.0.9 is loaded, and this program is 0.1.0\n",
	      "sudo ringgate unload && sudo ringgate load");
	cli_gone("/dev/ringgate");
	cli_link("/dev/ringgate", "ringgate");
	finds("missing  module             /dev/ringgate: Too many levels of symbolic links\n",
	      "sudo dmesg | tail");
}

static void doctor_rights(void **state)
{
	(void)state;
	finds("ok       CAP_NET_ADMIN      there\n", NULL);
	cli_file("/proc/self/uid_map", "0 100000 65536\n");
	finds("ok       CAP_NET_RAW        there, in this user namespace only\n", NULL);
	cli_file("/proc/self/status", "CapEff:\t0000000000002000\n");	/* CAP_NET_RAW */
	finds("ok       CAP_NET_RAW        there", NULL);
	finds("warn     CAP_NET_ADMIN      not there: rings cannot be attached to devices\n",
	      "run as root, or: setcap cap_net_admin+ep PROGRAM");
	finds("warn     CAP_IPC_LOCK       not there: RLIMIT_MEMLOCK binds\n",
	      "run as root, or: setcap cap_ipc_lock+ep PROGRAM");
	finds("ok       memfd              the userspace source (UDP) can be used\n", NULL);
	finds("ok       RLIMIT_MEMLOCK     unlimited\n", NULL);
	finds("ok       RDMA memory        as much as there is may be registered\n", NULL);
	cli.memlock = (struct rlimit){ 1 << 28, 1 << 28 };
	finds("ok       RLIMIT_MEMLOCK     256.0 MiB; a ring of default size takes 8.0 MiB\n",
	      NULL);
	finds("ok       RDMA memory        256.0 MiB may be registered (RLIMIT_MEMLOCK)\n", NULL);
	cli.memlock = (struct rlimit){ 65536, 1 << 28 };
	finds("warn     RLIMIT_MEMLOCK     64.0 KiB is less than a ring of default size (8.0 MiB)\n",
	      "ulimit -l 8204");
	finds("warn     RDMA memory        64.0 KiB may be registered (RLIMIT_MEMLOCK): less than a region "
	      "of a pool (128.0 MiB)\n", "ulimit -l 131072");
	cli.memlock = (struct rlimit){ 65536, 65536 };
	finds("warn     RLIMIT_MEMLOCK     64.0 KiB is less", "echo '* - memlock 8204' "
	      ">/etc/security/limits.d/ringgate.conf and log in again");
	finds("warn     RDMA memory        64.0 KiB may", "echo '* - memlock unlimited' "
	      ">/etc/security/limits.d/ringgate.conf and log in again");
}

static void doctor_hardware(void **state)
{
	(void)state;
	finds("ok       NUMA               one node\n", NULL);
	cli_file("/sys/devices/system/node/node0/x", "");
	cli_file("/sys/devices/system/node/nodes", "");
	finds("ok       NUMA               one node\n", NULL);
	cli_file("/sys/devices/system/node/node1/x", "");
	finds("ok       NUMA               2 nodes: put a ring on that of its device "
	      "(/sys/class/net/DEVICE/device/numa_node)\n", NULL);
	finds("warn     huge pages         none: registering large memory is slower\n",
	      "a kernel with CONFIG_HUGETLBFS or transparent huge pages");
	cli_file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0\n");
	cli_file("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
	finds("warn     huge pages         none: registering large memory is slower\n",
	      "sysctl vm.nr_hugepages=64 (128 MiB)");
	cli_file("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
	finds("ok       huge pages         none of 2 MiB are free; transparent: [always] madvise never\n",
	      NULL);
	cli_file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "7\n");
	finds("ok       huge pages         7 of 2 MiB are free; transparent: [always] madvise never\n",
	      NULL);
	cli_gone("/sys/kernel/mm/transparent_hugepage");
	finds("ok       huge pages         7 of 2 MiB are free; transparent: not in this kernel\n",
	      NULL);
}

/* What GPU consumers need: a driver, its devices, and to be built */
static void doctor_cuda(void **state)
{
	static const char *const nvcc[] = { "/usr/bin/nvcc", "/usr/local/cuda/bin/nvcc" };
	char *path = strdup(getenv("PATH") ?: "");
	size_t i;

	(void)state;
	assert_non_null(path);
	finds("warn     CUDA               no GPU and no driver: needed for GPU consumers only\n",
	      "install the NVIDIA driver, where there is a GPU");
	cli.cuda = true;
	cli_file("/dev/nvidiactl", "");
	finds("warn     CUDA               no GPU (/dev/nvidia*): needed for GPU consumers only\n",
	      "nvidia-modprobe -c 0");
	cli_file("/dev/nvidia0", "");
	setenv("PATH", "/nowhere:/usr/bin", 1);
	finds("ok       CUDA               driver, 1 GPU, no nvcc (GPU code cannot be built)\n",
	      "install the CUDA toolkit");
	for (i = 0; i < ARRAY_LEN(nvcc); i++) {
		cli_file(nvcc[i], "");
		assert_int_equal(chmod(cli_path(nvcc[i]), 0755), 0);
		finds("ok       CUDA               driver, 1 GPU, nvcc\n", NULL);
		cli_gone(nvcc[i]);
	}
	cli.cuda = false;
	finds("warn     CUDA               nvidia0, but no libcuda.so.1\n",
	      "install the user part of the NVIDIA driver (libcuda1)");
	cli.cuda = true;
	cli_file("/dev/nvidia1", "");
	finds("ok       CUDA               driver, 2 GPUs, no nvcc", "install the CUDA toolkit");
	setenv("PATH", path, 1);
	free(path);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, cli_end)
static const struct CMUnitTest tests[] = {
	TEST(load), TEST(load_fails), TEST(barred), TEST(unload), TEST(held_by_programs),
	TEST(doctor_kernel), TEST(doctor_module), TEST(doctor_device), TEST(doctor_rights),
	TEST(doctor_hardware), TEST(doctor_cuda),
};

UNIT_MAIN_ALONE(tests)
