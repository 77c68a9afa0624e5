#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
#
# What tests/lab/lab_selftest.sh asks of VMs, of User Mode Linux, where it has been built.

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
top=$(cd "$here/../.." && pwd -P)
. "$here/tap.inc"

[ -e "${RGATE_CACHE:-$top/.cache}/kernels/uml/complete" ] ||
	{ echo "1..0 # SKIP not built: scripts/uml-kernel"; exit 0; }

echo "# timeout: 300"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$top" || exit 1

slow=${RGATE_SLOW:-1}
lab()
{
	run timeout $((90 * slow)) scripts/lab -k uml -t $((60 * slow)) "$@"
}

# shellcheck disable=SC2016 # for the shell in it
lab -c 2 -m 1024 -o "$dir" -e GREETING="two  words" -- sh -c '
	echo "out $GREETING $PWD $LAB $(id -u) $(nproc)"
	echo err >&2
	seq 1 20000
	head -c 300000 /dev/urandom >"$LAB_OUT/data"
	sha256sum <"$LAB_OUT/data" >"$LAB_OUT/sum"
	modprobe rdma_rxe && ip link add lab0 type veth peer name lab1 &&
		rdma link add labrxe type rxe netdev lab0 && echo rxe
	touch "$LAB_CHECKOUT/written" && echo written
	cat "$LAB_CHECKOUT/scripts/lab" | sha256sum
	exit 77' -
expect "the exit status comes through" ended_with 77
expect "standard output, environment, directory, user, CPUs" said "^out two  words $top vm 0 2$"
expect "all of it" said "^20000$"
expect "standard error" said "^err$"
expect "it has an RDMA device" said "^rxe$"
expect "the checkout can be written" said "^written$"
expect "but not the real one" test ! -e "$top/written"
expect "the checkout's files are the real ones" said "^$(sha256sum <"$top/scripts/lab")"
expect "results come back" test "$(sha256sum <"$dir/data")" = "$(cat "$dir/sum")"
expect "a clean kernel log is not remarked upon" silent_about complained

lab -- sh -c 'echo "WARNING: made up" >/dev/kmsg'
expect "a bad kernel log fails the run" ended_with 126

run timeout 90 scripts/lab -k uml -t 5 -- sleep 1000
expect "a command that does not end" ended_with 124
expect "the timeout is told" said "timed out after 5 s"

lab -- sh -c 'reboot -f'
expect "one that ends without a result" ended_with 125

run scripts/lab -k uml --icount -- true
expect "options that are not for it" ended_with 125

tap_end
