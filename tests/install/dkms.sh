#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 900
# `make dkms` and `make dkms-remove` for the lab's kernel, as they are typed, in a mount namespace
# where what they write goes to memory: the machine keeps the modules that it has. What dkms has
# built is then loaded in a VM.

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
top=$(cd "$here/../.." && pwd -P)
build=${RGATE_BUILD:-$top/build}
. "$here/../lab/tap.inc"
# A make of its own, and not the one that runs the tests
unset MAKEFLAGS MFLAGS MAKELEVEL

skip_all() { echo "1..0 # SKIP $*"; exit 0; }

command -v dkms >/dev/null || skip_all "dkms is not installed: scripts/deps dkms"
[ "$(id -u)" = 0 ] || skip_all "mounting needs root"
cd "$top" || exit 1
kernel=${LAB_KERNEL:-6.1}
case $kernel in
6.1|6.12) ;;
*) skip_all "kernel $kernel is not built with this machine's compiler" ;;
esac
field() { scripts/kernel --cached --print "$1" "$kernel" 2>/dev/null; }
kver=$(field version) && headers=$(field headers) && vmlinux=$(field vmlinux) ||
	skip_all "kernel $kernel of the lab is not here: scripts/kernel $kernel"
version=$(sed -n 's/^VERSION := //p' Makefile)

tmp=$(mktemp -d -p "$build" dkms.XXXXXX) || exit 1
trap 'rm -rf "$tmp"' EXIT

# Whatever is below /usr, /var and /etc is written to memory from here on. Sourced by what runs
# in the namespace; $1: where memory can be mounted.
cat >"$tmp/scratch" <<'END'
set -e
mkdir -p "$1/memory"
mount -t tmpfs -o size=2g memory "$1/memory"
for dir in usr var etc; do
	mkdir -p "$1/memory/$dir" "$1/memory/work-$dir"
	mount -t overlay -o "lowerdir=/$dir,upperdir=$1/memory/$dir,workdir=$1/memory/work-$dir" \
		scratch "/$dir"
done
END
within()
{
	unshare --mount --propagation private bash -c ". '$tmp/scratch' '$tmp'; $1"
}
within true 2>/dev/null || skip_all "no overlays in a mount namespace here"

before=$(find /usr/src /lib/modules/ /var/lib/dkms -maxdepth 3 2>/dev/null | sort)
# What the headers' package and the one with the kernel's types would have put there, and then
# what a user types. Each step says how it ended; files to look at are copied out.
cat >"$tmp/steps" <<'END'
cd "$top"
installed=/lib/modules/$kver/updates/dkms
mkdir -p "/lib/modules/$kver" /usr/lib/debug/boot
[ -e "/lib/modules/$kver/build" ] || ln -s "$headers" "/lib/modules/$kver/build"
ln -s "$vmlinux" "/usr/lib/debug/boot/vmlinux-$kver"
cat /dev/null >"$tmp/said"
step()
{
	local name=$1 status=0
	shift
	"$@" >"$tmp/$name.log" 2>&1 || status=$?
	echo "$name $status" >>"$tmp/said"
}
step build make dkms KVER="$kver"
step status dkms status -m ringgate -v "$version"
step found modinfo -k "$kver" ringgate
find "$installed" -name 'ringgate.ko*' >"$tmp/installed" || true
for ko in $(cat "$tmp/installed"); do
	case $ko in
	*.xz) xz -dc "$ko" ;;
	*.zst) zstd -qdc "$ko" ;;
	*) cat "$ko" ;;
	esac >"$tmp/ringgate.ko"
done
step again make dkms KVER="$kver"
# What is there of a kernel whose module is made when the kernel is installed
step gone dkms uninstall -m ringgate -v "$version" -k "$kver"
step auto dkms autoinstall -k "$kver"
step auto-status dkms status -m ringgate -v "$version"
step remove make dkms-remove
find /usr/src /lib/modules /var/lib/dkms -iname '*ringgate*' >"$tmp/left"
END
export top kver headers vmlinux version tmp
# shellcheck disable=SC2016 # for the shell in there
within '. "$tmp/steps"; echo end >"$tmp/ended"'

# went NAME: that step did well
went()
{
	grep -qx "$1 0" "$tmp/said" && return
	tail -n 20 "$tmp/$1.log" | sed 's/^/#   /'
	return 1
}

# says NAME REGEX: in that step's output
says()
{
	grep -qE -e "$2" "$tmp/$1.log" && return
	sed 's/^/#   /' "$tmp/$1.log"
	return 1
}

# same GOT WANTED
same()
{
	[ "$1" = "$2" ] || { echo "# got: $1"; echo "# wanted: $2"; return 1; }
}

of() { modinfo -F "$1" "$tmp/ringgate.ko" 2>/dev/null; }
has_section() { readelf -SW "$tmp/ringgate.ko" 2>/dev/null | grep -q "[[:space:]]$1[[:space:]]"; }

expect "make dkms" went build
expect "dkms has it installed for that kernel" says status "^ringgate/$version, $kver, [a-z0-9_]+: installed"
expect "one module, where dkms puts those of its own" same "$(wc -l <"$tmp/installed")" 1
expect "depmod knows it" went found
expect "its version is that of this tree" same "$(of version)" "$version"
expect "it is for that kernel, and no other" same "$(of vermagic | cut -d' ' -f1)" "$kver"
expect "its licence" same "$(of license)" GPL
expect "it has the types that XDP programs need" has_section .BTF
ours=$build/kmod-$kver/ringgate.ko
if [ -e "$ours" ]; then
	expect "it is made of the same source as make kmod's" same \
		"$(of srcversion)" "$(modinfo -F srcversion "$ours")"
fi
expect "make dkms once more" went again
expect "taken out for one kernel" went gone
expect "dkms makes it for a kernel that is new" went auto
expect "... and has it installed" says auto-status "^ringgate/$version, $kver, [a-z0-9_]+: installed"
expect "make dkms-remove" went remove
expect "nothing is left" same "$(cat "$tmp/left" "$tmp/ended" 2>&1)" end
expect "the machine has what it had" same \
	"$(find /usr/src /lib/modules/ /var/lib/dkms -maxdepth 3 2>/dev/null | sort)" "$before"
# shellcheck disable=SC2016 # for the shell in the VM
run scripts/lab -k "$kernel" -t $((100 * ${RGATE_SLOW:-1})) -- sh -c \
	'insmod "$1" && cat /sys/module/ringgate/version && ls /sys/kernel/btf/ringgate /dev/ringgate &&
	 rmmod ringgate' sh "$tmp/ringgate.ko"
expect "the kernel takes it, and lets it go" ended_with 0
expect "... with its version, its types and its device" said "^$version$"
tap_end
