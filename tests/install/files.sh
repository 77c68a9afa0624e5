#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 600
# `make install`, `make install-kmod` and `make uninstall`: what is where, with which modes, that a
# program is built with it and the unit starts what was installed; that nothing stays behind.

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
top=$(cd "$here/../.." && pwd -P)
build=${RGATE_BUILD:-$top/build}
. "$here/../lab/tap.inc"
unset MAKEFLAGS MFLAGS MAKELEVEL

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$top" || exit 1
skip() { tap_count=$((tap_count + 1)); echo "ok $tap_count - $1 # SKIP $2"; }

root=$tmp/root prefix=/opt/ringgate
lib=$root$prefix/lib
version=$(sed -n 's/^VERSION := //p' Makefile)
# Where helper programs lie is compiled in: a build of its own, as that of this tree is for
# another place. Its objects are a beginning: make sees which of them are for the other place.
rm -rf "$build/install"
mkdir -p "$build/install/obj"
cp -a "$build/flags" "$build/install/" 2>/dev/null
cp -a "$build"/obj/{lib,tools} "$build/install/obj/" 2>/dev/null
installing=(make -s O="$build/install" DESTDIR="$root" PREFIX="$prefix" UNITDIR="$prefix/units")

same() { [ "$1" = "$2" ] || { diff <(echo "$2") <(echo "$1") | sed 's/^/# /'; return 1; }; }
# The files in a directory of what was installed, in one line
names() { (cd "$root$prefix/$1" 2>/dev/null && find . -maxdepth 1 ! -type d -printf '%f\n' | LC_ALL=C sort | paste -s -d ' '); }
# What of the tree has to be there, the same way
wanted() { printf '%s\n' "$@" | sed 's,.*/,,' | LC_ALL=C sort | paste -s -d ' '; }
modes() { (cd "$root$prefix" && find . -type f -printf '%m %p\n' | grep -vE "$1" | grep -E "$2"); }

run "${installing[@]}" -j2 install
expect "make install" ended_with 0
expect "the command" same "$(names bin)" ringgate
expect "the daemon" same "$(names sbin)" ringgated
expect "what these start or load" same "$(names libexec/ringgate)" \
	"libringgate-preload.so ringgate-agent ringgate-probe ringgate-spawner"
expect "the headers" same "$(names include/ringgate)" \
	"$(wanted lib/include/ringgate/*.h uapi/ringgate/*.h)"
expect "a link for who compiles and one for who runs" same \
	"$(readlink "$lib/libringgate.so") $(readlink "$lib/libringgate-cluster.so.0")" \
	"libringgate.so.0 libringgate-cluster.so.$version"
expect "manual pages" same "$(names share/man/man1) $(names share/man/man8)" \
	"$(wanted Documentation/man/*.1) $(wanted Documentation/man/*.8)"
expect "all that run may be run" same "$(modes '^755 ' '/(s?bin|libexec)/|\.so\.[0-9.]*$')" ""
expect "all else is data" same "$(modes '^644 ' '\.(h|a|pc|[1-8]|service)$')" ""
expect "nobody's place stands in a file" same \
	"$(grep -rlI -e '@[A-Z]*@' -e "$tmp" "$root" | sed "s,^$root,,")" ""

expect "helpers are looked for where they were installed" same \
	"$(cd "$root$prefix" && grep -rlF /usr/local/libexec bin sbin libexec lib)" ""
expect "... by the daemon" grep -qF "$prefix/libexec" "$root$prefix/sbin/ringgated"

unit=$root$prefix/units/ringgated.service
expect "the unit starts the daemon that was installed" same \
	"$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$unit")" $prefix/sbin/ringgated
if command -v systemd-analyze >/dev/null; then
	# It wants the program to be there: in its place, that of the build.
	sed "s,$prefix,$root$prefix,g" "$unit" >"$tmp/ringgated.service"
	run systemd-analyze verify --man=no "$tmp/ringgated.service"
	expect "systemd has nothing to say against it" ended_with 0
	expect "... not one line about it" silent_about 'ringgated\.service:[0-9]+'
else
	skip "systemd has nothing to say against it" "there is no systemd"
	skip "... not one line about it" "there is no systemd"
fi

run "$root$prefix/bin/ringgate" --version
expect "the command runs" said "$version"
cat >"$tmp/user.c" <<-END
	#include <stdio.h>
	#include <ringgate/ringgate.h>
	#include <ringgate/rgate_cluster.h>
	int main(void) { puts(rgate_strerror("", 0)); return !rgate_cluster_node; }
END
for name in libringgate libringgate-cluster; do
	run env PKG_CONFIG_LIBDIR="$lib/pkgconfig" pkg-config --define-variable=prefix=$prefix \
		--modversion $name
	expect "$name.pc tells the version" same "$output" "$version"
done
flags=$(PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH=$lib/pkgconfig \
	pkg-config --cflags --libs libringgate-cluster libringgate)
# shellcheck disable=SC2086 # words
run gcc -o "$tmp/user" "$tmp/user.c" $flags -Wl,-rpath-link,"$lib"
expect "a program is built with what pkg-config says" ended_with 0
run env LD_LIBRARY_PATH="$lib" "$tmp/user"
expect "... and runs with the libraries" ended_with 0

before=$(cd "$root" && find . -type f -o -type l | LC_ALL=C sort)
run "${installing[@]}" install
expect "make install once more" same "$(cd "$root" && find . -type f -o -type l | LC_ALL=C sort)" "$before"
run "${installing[@]}" uninstall
expect "make uninstall" ended_with 0
expect "no file is left" same "$(find "$root" -type f -o -type l)" ""
expect "no directory of ringgate's own is left" same "$(find "$root$prefix"/*/ -mindepth 1 -name 'ringgate*')" ""

# The module for one kernel, without dkms
kernel=${LAB_KERNEL:-6.1}
kver=$(scripts/kernel --cached --print version "$kernel" 2>/dev/null) || kver=
if [ -z "$kver" ] || [ "$kernel" != 6.1 ]; then
	skip "make install-kmod" "kernel 6.1 of the lab is not here"
else
	run make -s O="$build" DESTDIR="$root" KVER="$kver" install-kmod
	expect "make install-kmod" ended_with 0
	mapfile -t modules < <(find "$root/lib/modules/$kver" -name 'ringgate.ko*')
	expect "one module, below that kernel's" same "${#modules[@]}" 1
	expect "it is that of this tree" same "$(modinfo -F version "${modules[0]:-}")" "$version"
	expect "... and for that kernel" same "$(modinfo -F vermagic "${modules[0]:-}" | cut -d' ' -f1)" "$kver"
fi
tap_end
