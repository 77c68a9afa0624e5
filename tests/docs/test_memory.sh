#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# The example of memory.rst runs; what that shows is in it, and what it names is there.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${RGATE_BUILD:-$top/build}
. "$(dirname "$0")/lib/tap.sh"
cd "$top" || exit 1

timeout 60 "$build/examples/memory" >"$tmp/log" 2>&1
rc=$?
ok $rc "the example runs"
printf 'opened: 64 bytes\nthere was: 0\nthere is: 5\n' | diff - "$tmp/log" >"$tmp/log2"
rc=$?
mv "$tmp/log2" "$tmp/log"
ok $rc "and prints what it should"

grep -P '^\t' Documentation/memory.rst | sed 's/^\t*//' >"$tmp/shown"
sed 's/^\t*//' Documentation/examples/memory.c >"$tmp/example"
while IFS= read -r line; do
	grep -qxF -- "$line" "$tmp/example" || echo "not there: $line"
done <"$tmp/shown" >"$tmp/log"
[ "$(grep -c . "$tmp/shown")" -ge 10 ] && [ ! -s "$tmp/log" ]
ok $? "what memory.rst shows is the example's"

grep -ohE '``RGATE_(REQ_)?MEMORY_[A-Z0-9_]+(\(\))?``' Documentation/memory.rst | tr -d '`()' |
	sort -u >"$tmp/names"
while read -r name; do
	grep -qw "$name" uapi/ringgate/*.h || echo "$name is not there"
done <"$tmp/names" >"$tmp/log"
sed -n 's/^#define \(RGATE_\(REQ_\)\?MEMORY_[A-Z0-9_]*\).*/\1/p' uapi/ringgate/memory.h \
	uapi/ringgate/request.h | grep -vE '_(SHIFT|RIGHTS|MODES)$' |
	while read -r name; do
		grep -qxF "$name" "$tmp/names" || echo "$name is not told of"
	done >>"$tmp/log"
[ "$(wc -l <"$tmp/names")" -gt 15 ] && [ ! -s "$tmp/log" ]
ok $? "constants that it names are there, and all are named"

echo "1..$n"
[ "$failed" -eq 0 ]
