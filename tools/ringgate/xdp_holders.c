// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Which programs call the module. The kernel counts them and does not say who they
 * are; but their instructions can be read, and a call has the function's address in it.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "module.h"
#include "xdp.h"
#include "xdp_link.h"

/* What a call of the function has for an address: how far it is from where all of BPF's
 * are counted. False: not to be known, as for others than root */
static bool call_address(int32_t *imm)
{
	unsigned long long base = 0, func = 0, at;
	char *line = NULL, name[128];
	FILE *f = fopen("/proc/kallsyms", "re");
	size_t cap = 0;

	if (!f)
		return false;
	while ((!base || !func) && getline(&line, &cap, f) > 0) {
		if (sscanf(line, "%llx %*c %127s", &at, name) != 2)
			continue;
		if (!strcmp(name, "__bpf_call_base"))
			base = at;
		else if (!strcmp(name, XDP_FUNC) && strstr(line, "[" MODULE_NAME "]"))
			func = at;
	}
	free(line);
	fclose(f);
	*imm = (int32_t)(func - base);
	return base && func;
}

static bool calls(int fd, int32_t imm)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info), bytes, i;
	struct bpf_insn *v;
	bool found = false;

	if (bpf_obj_get_info_by_fd(fd, &info, &len) || !info.xlated_prog_len)
		return false;
	bytes = info.xlated_prog_len;
	v = malloc(bytes);
	if (!v)
		return false;
	memset(&info, 0, sizeof(info));
	info.xlated_prog_insns = (uintptr_t)v;
	info.xlated_prog_len = bytes;
	len = sizeof(info);
	if (!bpf_obj_get_info_by_fd(fd, &info, &len) && info.xlated_prog_insns)
		for (i = 0; i < bytes / sizeof(*v) && !found; i++)
			found = v[i].code == (BPF_JMP | BPF_CALL) &&
				v[i].src_reg == BPF_PSEUDO_KFUNC_CALL && v[i].imm == imm;
	free(v);
	return found;
}

unsigned int xdp_list_holders(void)
{
	unsigned int n = 0;
	uint32_t id = 0;
	int32_t imm;

	if (!call_address(&imm))
		return 0;
	while (!bpf_prog_get_next_id(id, &id)) {
		struct bpf_prog_info info = { 0 };
		uint32_t len = sizeof(info);
		int fd = bpf_prog_get_fd_by_id(id);

		if (fd < 0)
			continue;
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) && calls(fd, imm)) {
			fprintf(stderr, "  XDP program %" PRIu32 " (%s)\n", id, info.name);
			n++;
		}
		close(fd);
	}
	return n;
}
