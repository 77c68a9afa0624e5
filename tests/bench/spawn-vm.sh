#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# Runs in a VM (scripts/bench spawn): spawn.sh over a pair of RDMA devices in software.
# Arguments: as spawn.sh.

set -eu

bench=$1
shift
root=/run/bench/root

# shellcheck source=tests/bench/lib/rxe.sh
. tests/bench/lib/rxe.sh

# file...: in the root, as they are here
take()
{
	local file

	for file; do
		[ -f "$file" ] || continue
		mkdir -p "$root${file%/*}"
		cp -L "$file" "$root$file"
	done
}

# What is measured and what that executes has a root of its own, in memory. The VM's files come from
# a file server: /bin/true alone asks it twenty times, which took more than all the rest.
make_root()
{
	local name providers=(/usr/lib/x86_64-linux-gnu/libibverbs/*)
	local own run=(/bin/true /bin/head /bin/cat /bin/sh)

	mkdir -p "$root"
	mount -t tmpfs none "$root"
	for name in proc sys dev; do
		mkdir "$root/$name"
		mount --rbind "/$name" "$root/$name"
	done
	mkdir -p "$root/tmp" "$root/root"
	own=("$bench" "${bench%/*}/bench_fabric" "${bench%/tests/*}/tools/ringgate-spawner")
	cp "${own[@]}" "$root"
	# shellcheck disable=SC2046 # words
	take "${run[@]}" "${providers[@]}" /etc/libibverbs.d/* /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.cache \
		$(ldd "${own[@]}" "${run[@]}" "${providers[@]}" | grep -o '/[^ :)]*' | sort -u)
	# as spawn.sh calls them
	for name in bench_spawn bench_fabric; do
		printf '#!/bin/sh\nexec chroot %s /%s "$@"\n' $root $name >/run/bench/$name
		chmod 755 /run/bench/$name
	done
}

export RGATE_SPAWNER=/ringgate-spawner
trap rxe_pair_down EXIT
bench_rxe_up
make_root
tests/bench/spawn.sh /run/bench/bench_spawn "$@"
