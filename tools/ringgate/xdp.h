/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* XDP programs that call the kernel module. */
#ifndef XDP_H
#define XDP_H

#include <stddef.h>
#include <stdint.h>
#include <linux/bpf.h>

#define XDP_FUNC	"bpf_ringgate_push"

/*
 * xdp_func - the module's function for XDP programs
 * @btf_fd: out, the module's types; close it
 * @id: out, the function's number in them
 * 0; -ENOENT: the kernel does not know the module's types; or -errno.
 */
int xdp_func(int *btf_fd, uint32_t *id);

/*
 * xdp_call - the instructions that call the function whose number xdp_func() told
 * Arguments are in r1 to r4; what is called is found through xdp_load().
 */
struct bpf_insn xdp_call(uint32_t id);

/*
 * xdp_load - load a program
 * @btf_fd: from xdp_func()
 * @log: out, what the kernel's verifier has to say; may be NULL
 * Its descriptor, or -errno.
 */
int xdp_load(int btf_fd, const struct bpf_insn *insns, size_t n, char *log, size_t len);

#endif
