// SPDX-License-Identifier: MIT OR GPL-2.0
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "module.h"
#include "xdp.h"

#define PROG_NAME	"ringgate"

/* A descriptor of the module's types, or -errno */
static int open_btf(void)
{
	uint32_t id = 0;

	while (!bpf_btf_get_next_id(id, &id)) {
		struct bpf_btf_info info = { 0 };
		char name[64] = "";
		uint32_t len = sizeof(info);
		int fd = bpf_btf_get_fd_by_id(id);

		if (fd < 0 && errno == ENOENT)
			continue;	/* gone since */
		if (fd < 0)
			return -errno;
		info.name = (uintptr_t)name;
		info.name_len = sizeof(name);
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) && info.kernel_btf &&
		    !strcmp(name, MODULE_NAME))
			return fd;
		close(fd);
	}
	return errno == ENOENT ? -ENOENT : -errno;
}

int xdp_func(int *btf_fd, uint32_t *id)
{
	struct btf *kernel, *own;
	int fd, err;

	fd = open_btf();
	if (fd < 0)
		return fd;
	kernel = btf__load_vmlinux_btf();
	if (!kernel) {
		err = -errno;
		goto close_fd;
	}
	own = btf__load_module_btf(MODULE_NAME, kernel);
	if (!own) {
		err = -errno;
		goto free_kernel;
	}
	err = btf__find_by_name_kind(own, XDP_FUNC, BTF_KIND_FUNC);
	btf__free(own);
	if (err > 0) {
		*btf_fd = fd;
		*id = err;
		err = 0;
	}
free_kernel:
	btf__free(kernel);
close_fd:
	if (err)
		close(fd);
	return err;
}

struct bpf_insn xdp_call(uint32_t id)
{
	return (struct bpf_insn){
		.code = BPF_JMP | BPF_CALL,
		.src_reg = BPF_PSEUDO_KFUNC_CALL,
		.off = 1,	/* place in fd_array of xdp_load() */
		.imm = (int32_t)id,
	};
}

int xdp_load(int btf_fd, const struct bpf_insn *insns, size_t n, char *log, size_t len)
{
	/* the first would be the kernel's own types */
	const int fds[] = { 0, btf_fd };
	const struct bpf_prog_load_opts opts = {
		.sz = sizeof(opts),
		.fd_array = fds,
		.prog_flags = BPF_F_XDP_HAS_FRAGS,
		.log_buf = log,
		.log_size = len,
		.log_level = log ? 1 : 0,
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, PROG_NAME, "GPL", insns, n, &opts);

	return fd < 0 ? -errno : fd;
}
