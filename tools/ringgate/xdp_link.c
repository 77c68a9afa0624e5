// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A program stays on its device by a link that is pinned in the BPF file system, in a
 * folder of root's. The name says whose it is: number and cookie of the attachment.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_link.h>
#include <linux/magic.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cmd.h"
#include "util.h"
#include "xdp.h"
#include "xdp_link.h"
#include "xdp_prog.h"

#define BPF_FS		"/sys/fs/bpf"
#define PIN_DIR		BPF_FS "/ringgate"
#define PIN_NAME	"%" PRIu32 "-%016" PRIx64
#define PIN_PATH	(sizeof(PIN_DIR) + 64)

static void pin_path(char path[PIN_PATH], const struct rgate_ident *att)
{
	snprintf(path, PIN_PATH, PIN_DIR "/" PIN_NAME, att->id, att->cookie);
}

/* Who else may write there could put a link of theirs in the place of ours. */
static bool only_roots(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && !st->st_uid && !(st->st_mode & 022);
}

static int make_pin_dir(void)
{
	struct statfs fs;
	struct stat st;

	if (statfs(BPF_FS, &fs) || (unsigned long)fs.f_type != BPF_FS_MAGIC) {
		say("programs are kept in the BPF file system, which is not there: `sudo mount "
		    "-t bpf -o mode=700 bpf " BPF_FS "`");
		return EXIT_FAIL;
	}
	if (mkdir(PIN_DIR, 0700) && errno != EEXIST)
		return fail(-errno, "cannot make " PIN_DIR);
	if (lstat(PIN_DIR, &st))
		return fail(-errno, "cannot look at " PIN_DIR);
	if (only_roots(&st))
		return EXIT_OK;
	say(PIN_DIR " is not root's alone, so nothing is kept there: look who made it, and take "
	    "it away");
	return EXIT_FAIL;
}

int xdp_prepare(struct xdp_ready *r)
{
	int err;

	if (geteuid()) {
		say("XDP programs are root's: run it with sudo");
		return EXIT_FAIL;
	}
	err = xdp_func(&r->btf_fd, &r->func);
	if (err == -ENOENT) {
		say("the kernel does not know the module's types (BTF), so no XDP program can "
		    "call it: `ringgate doctor` says what to do");
		return EXIT_FAIL;
	}
	if (err)
		return fail(err, "cannot look up the module's function for XDP");
	err = make_pin_dir();
	if (err)
		close(r->btf_fd);
	return err;
}

void xdp_unprepare(struct xdp_ready *r)
{
	close(r->btf_fd);
}

/* Name of a program, "?" if there is none of that number any more */
static void prog_name(uint32_t id, char name[BPF_OBJ_NAME_LEN])
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(id);

	snprintf(name, BPF_OBJ_NAME_LEN, "?");
	if (fd < 0)
		return;
	if (!bpf_obj_get_info_by_fd(fd, &info, &len))
		snprintf(name, BPF_OBJ_NAME_LEN, "%s", info.name);
	close(fd);
}

static int explain_busy(const char *ifname, int ifindex)
{
	char name[BPF_OBJ_NAME_LEN];
	uint32_t id = 0;

	if (bpf_xdp_query_id(ifindex, 0, &id) || !id) {
		say("%s has an XDP program already", ifname);
		return EXIT_FAIL;
	}
	prog_name(id, name);
	say("%s has an XDP program already (number %" PRIu32 ", %s), and there can be one: end "
	    "that first, or attach without --xdp", ifname, id, name);
	return EXIT_FAIL;
}

static int explain_link(int err, const char *ifname, int ifindex, bool generic)
{
	switch (-err) {
	case EBUSY:
	case EEXIST:
		return explain_busy(ifname, ifindex);
	case EOPNOTSUPP:
		if (!generic) {
			say("the driver of %s has no XDP: --xdp-generic does it behind the "
			    "driver, at the cost of an skb", ifname);
			return EXIT_FAIL;
		}
		break;
	}
	return fail(err, "cannot put an XDP program on %s", ifname);
}

static int load(const struct xdp_ready *r, const struct rgate_ident *att,
		const struct sock_fprog *filter)
{
	struct bpf_insn *insns;
	size_t n;
	int fd, err = xdp_prog(filter, xdp_call(r->func), att, &insns, &n);

	if (err == -EOPNOTSUPP) {
		say("the filter asks for what is not known before the kernel has made a packet "
		    "of a frame: attach without --xdp");
		return -EXIT_FAIL;
	}
	if (err)
		return -fail(err, "cannot make an XDP program of the filter");
	fd = xdp_load(r->btf_fd, insns, n, NULL, 0);
	free(insns);
	return fd < 0 ? -fail(fd, "the kernel refuses the XDP program") : fd;
}

int xdp_bind(const struct xdp_ready *r, const char *ifname, const struct rgate_ident *att,
	     const struct sock_fprog *filter, bool generic)
{
	const struct bpf_link_create_opts opts = {
		.sz = sizeof(opts),
		.flags = generic ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE,
	};
	int ifindex = (int)if_nametoindex(ifname), prog, link, ret = EXIT_OK;
	char path[PIN_PATH];

	if (!ifindex)
		return fail(-errno, "cannot find %s", ifname);
	prog = load(r, att, filter);
	if (prog < 0)
		return -prog;
	link = bpf_link_create(prog, ifindex, BPF_XDP, &opts);
	if (link < 0) {
		ret = explain_link(-errno, ifname, ifindex, generic);
		goto close_prog;
	}
	pin_path(path, att);
	if (bpf_obj_pin(link, path))
		ret = fail(-errno, "cannot keep the XDP program in %s", path);
	close(link);
close_prog:
	close(prog);
	return ret;
}

/* The link of a pin; -1: it is none, or gone */
static int open_pin(const char *name, struct rgate_ident *att, struct bpf_link_info *info)
{
	uint32_t len = sizeof(*info);
	char path[PIN_PATH];
	int fd;

	if (sscanf(name, "%" SCNu32 "-%" SCNx64, &att->id, &att->cookie) != 2)
		return -1;
	pin_path(path, att);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return -1;
	memset(info, 0, sizeof(*info));
	if (!bpf_obj_get_info_by_fd(fd, info, &len) && info->type == BPF_LINK_TYPE_XDP)
		return fd;
	close(fd);
	return -1;
}

/*
 * Is the attachment over? Those of other network namespaces are not seen from here, and
 * numbers of devices are as good there: so only if the program is on a device of ours,
 * or on none.
 */
static bool is_over(struct rgate_ctl *ctl, const struct rgate_ident *att,
		    const struct bpf_link_info *info)
{
	struct rgate_att_info now;
	uint32_t id = 0;
	int err;

	if (!info->xdp.ifindex)
		return true;
	if (bpf_xdp_query_id((int)info->xdp.ifindex, 0, &id) || id != info->prog_id)
		return false;
	err = rgate_ctl_att(ctl, att->id, &now);
	return err == -ENOENT || (!err && now.cookie != att->cookie);
}

unsigned int xdp_sweep(struct rgate_ctl *ctl)
{
	unsigned int n = 0;
	struct bpf_link_info info;
	struct rgate_ident att;
	char path[PIN_PATH];
	struct dirent *e;
	struct stat st;
	DIR *d;
	int fd;

	if (lstat(PIN_DIR, &st) || !only_roots(&st))
		return 0;
	d = opendir(PIN_DIR);
	if (!d)
		return 0;
	while ((e = readdir(d))) {
		fd = open_pin(e->d_name, &att, &info);
		if (fd < 0)
			continue;
		pin_path(path, &att);
		if (is_over(ctl, &att, &info)) {
			if (unlink(path))
				fail(-errno, "cannot take away %s", path);
			else
				n++;
		}
		close(fd);
	}
	closedir(d);
	return n;
}
