#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# Documentation/abi.rst and wire.rst: are they well-formed, are their numbers those of
# the headers, and does a consumer written from it alone read what the library writes?
# shellcheck disable=SC2016	# the backquotes are the documents'
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=${RGATE_BUILD:-$top/build}
. "$(dirname "$0")/lib/tap.sh"

# run CASE [argument...]: what the consumer printed is in $tmp/got
run() {
	local name=$1
	shift
	: >"$tmp/got"
	timeout 100 "$tmp/fill" "$name" "$tmp/expect" \
		python3 "$here/abi_consumer.py" "$@" >>"$tmp/got" 2>"$tmp/log"
}

# same: all frames, once, in order
same() { diff "$tmp/expect" "$tmp/got" >>"$tmp/log"; }

# rebuild the numbers of a document with one of them wrong: the check has to see it
detects() {
	mkdir -p "$tmp/wrong"
	sed "$2" "$top/Documentation/$1" >"$tmp/wrong/$1"
	! cmp -s "$tmp/wrong/$1" "$top/Documentation/$1" &&
		! python3 "$here/check_abi.py" "$tmp/wrong/$1" "$top/uapi/ringgate" >"$tmp/log" 2>&1
}

for doc in "$top"/README.md "$top"/Documentation/*.rst; do
	case $doc in
	*.rst)
		rst2html --strict "$doc" >/dev/null 2>"$tmp/log"
		ok $? "$(basename "$doc") is well-formed"
		;;
	esac
done

python3 "$here/check_abi.py" >"$tmp/log" 2>&1
ok $? "abi.rst has the numbers of the headers"
detects abi.rst 's/^   16, 4, ``len``/   20, 4, ``len``/'
ok $? "a wrong offset is found"
detects abi.rst 's/``RGATE_BATCH``, 32,/``RGATE_BATCH``, 64,/'
ok $? "a wrong constant is found"
detects abi.rst '/^   88, 8, ``full_events``/d'
ok $? "a missing field is found"
python3 "$here/check_abi.py" "$top/Documentation/wire.rst" >"$tmp/log" 2>&1
ok $? "wire.rst has the numbers of the headers"
detects wire.rst 's/^   24, 4, ``epoch``/   28, 4, ``epoch``/'
ok $? "a wrong offset is found there too"

# Its thread-local words lie in the room that the loader keeps for libraries that come late.
python3 -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1]).rgate_version' \
	"$build/lib/libringgate.so.0" >"$tmp/log" 2>&1
ok $? "the library can be loaded into a program that runs"

"${CC:-gcc}" -D_GNU_SOURCE -std=gnu11 -Wall -Wextra -Werror -O2 \
	-I"$top/uapi" -I"$top/lib/include" -o "$tmp/fill" "$here/fill.c" \
	"$build/lib/libringgate.a" -lmnl -lpcap -lpthread >"$tmp/log" 2>&1
ok $? "the filler builds"
if [ ! -x "$tmp/fill" ]; then
	echo "1..$n"
	exit 1
fi

while read -r name what; do
	run "$name" && same
	ok $? "$what"
done <<'CASES'
plain frames over many laps, sleeping in between
cut frames longer than a slot are cut
chain chains, filler, and chains that are cut
gap the gap field tells lost frames
resize a consumer follows a resize
CASES

run image && python3 "$here/abi_consumer.py" --image "$tmp/expect.image" \
	>"$tmp/got" 2>"$tmp/log" && same
ok $? "an image of a ring in a file"

# A first consumer takes 100 frames and dies: 96 were returned by batches.
run takeover && { head -n 100 "$tmp/expect" && tail -n +97 "$tmp/expect"; } \
	>"$tmp/both" && diff "$tmp/both" "$tmp/got" >>"$tmp/log"
ok $? "taking over from a dead consumer: nothing lost, nothing returned seen again"

run two --number @ && sort "$tmp/expect" >"$tmp/a" && sort "$tmp/got" >"$tmp/b" &&
	diff "$tmp/a" "$tmp/b" >>"$tmp/log"
ok $? "two consumers by number"

# Overtaken again and again: each frame taken is whole, they are in order, the last
# one is there, and some are missing.
subset() {
	python3 - "$tmp/expect" "$tmp/got" >>"$tmp/log" 2>&1 <<'PY'
import sys
expect, got = ([l for l in open(p)] for p in sys.argv[1:3])
rest = iter(expect)
assert all(line in rest for line in got), "torn, twice or out of order"
assert got and got[-1] == expect[-1], "the last frame is not there"
assert 0 < len(got) < len(expect), "%d of %d" % (len(got), len(expect))
PY
}
run overwrite --slow 0.0003 && subset
ok $? "overwriting: what is taken is whole"
run overwrite-chain --slow 0.0003 && subset
ok $? "overwriting with chains: what is taken is whole"

echo "1..$n"
[ "$failed" -eq 0 ]
