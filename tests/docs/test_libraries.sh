#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# The three libraries: each has a manual page that names what it exports, and who uses rings
# alone needs neither RDMA nor OpenSSL.
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=${RGATE_BUILD:-$top/build}
. "$here/lib/tap.sh"
. "$here/lib/blocks.sh"

# What the inline functions of the headers call, which nobody calls by name
inner='rgate_(consumer_(advance_slow|miss|reset_claim)|producer_(refill|sleepers|wake)|sender_refill)'

# exported MAP: what is public in it
exported() { sed '/RINGGATE_PRIVATE/,$d' "$1" | grep -oE 'rgate_[a-z_0-9]+' | sort -u; }

for map in "$top"/lib/*.map "$top"/lib/gpu/*.map; do
	name=$(basename "$map" .map)
	exported "$map" | grep -vxE "$inner" | while read -r function; do
		grep -qE "^\.It .*Fn $function( |$)" "$top/Documentation/man/$name.3" ||
			echo "$function"
	done >"$tmp/log"
	[ ! -s "$tmp/log" ]
	ok $? "$name(3) names all that $name exports"
	grep -oE 'Fn rgate_[a-z_0-9]+' "$top/Documentation/man/$name.3" | cut -d' ' -f2 | sort -u |
		comm -23 - <(exported "$map") | while read -r function; do
		grep -qE "^(static inline .*[ *])?$function\\(" "$top"/lib/include/ringgate/*.h ||
			echo "$function"
	done >"$tmp/log"
	[ ! -s "$tmp/log" ]
	ok $? "... and nothing else but what is inline"
done

# compiled LIBRARY PROGRAM: $tmp/program
compiled()
{
	local words

	read -ra words <<<"$(pkg-config --cflags --libs "$1")"
	"${CC:-gcc}" -D_GNU_SOURCE -std=gnu11 -Wall -Wextra -Werror -O1 -o "$tmp/program" \
		"$top/Documentation/examples/$2.c" "${words[@]}" -Wl,--as-needed >"$tmp/log" 2>&1
}

installed
compiled libringgate minimal
ok $? "a program of rings needs libringgate alone"
ldd "$tmp/program" >"$tmp/log"
! grep -E 'libibverbs|librdmacm|libcrypto|libringgate-cluster' "$tmp/log"
ok $? "... and with it neither RDMA nor OpenSSL"
! compiled libringgate fabric
ok $? "one of a cluster is not complete with it"
compiled libringgate-cluster fabric
ok $? "... but with libringgate-cluster"
ldd "$tmp/program" | grep -q libringgate-cluster.so.0
ok $? "... which it is linked with"

# Functions between the libraries have a version of their own.
readelf -W --dyn-syms "$build/lib/libringgate-cluster.so.0" >"$tmp/log"
grep -q 'rgate_logf@RINGGATE_PRIVATE' "$tmp/log"
ok $? "what one library calls of the other is told from the API"

echo "1..$n"
[ "$failed" = 0 ]
