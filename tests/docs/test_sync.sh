#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# The example of sync.rst runs; what that shows is in it; its commands and constants are there.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${RGATE_BUILD:-$top/build}
. "$(dirname "$0")/lib/tap.sh"
cd "$top" || exit 1

timeout 60 "$build/examples/lock" >"$tmp/log" 2>&1
rc=$?
ok $rc "the example runs"
[ "$(cat "$tmp/log")" = "counted: 400" ]
ok $? "and prints what it should"

grep -P '^\t' Documentation/sync.rst | sed 's/^\t*//' >"$tmp/shown"
sed 's/^\t*//' Documentation/examples/lock.c >"$tmp/example"
while IFS= read -r line; do
	grep -qxF -- "$line" "$tmp/example" || echo "not there: $line"
done <"$tmp/shown" >"$tmp/log"
[ "$(grep -c . "$tmp/shown")" -ge 10 ] && [ ! -s "$tmp/log" ]
ok $? "what sync.rst shows is the example's"

# Each command as it stands there, of a daemon that is not there: its arguments are right
export RGATE_REQUESTS=$tmp/none
grep -P '^  \$ ringgate' Documentation/sync.rst | sed 's/^  \$ ringgate //' >"$tmp/commands"
while read -r line; do
	# shellcheck disable=SC2086 # words
	"$build/tools/ringgate" $line >"$tmp/said" 2>&1
	case $? in
	1|255) grep -q "no ringgated runs here" "$tmp/said" || echo "$line: $(cat "$tmp/said")" ;;
	*) echo "$line: $(cat "$tmp/said")" ;;
	esac
done <"$tmp/commands" >"$tmp/log"
[ "$(wc -l <"$tmp/commands")" -ge 5 ] && [ ! -s "$tmp/log" ]
ok $? "commands that it shows are right"

grep -ohE '``RGATE_(REQ_)?(LOCK|BARRIER|SYNC)_[A-Z0-9_]+(\(\))?``' Documentation/sync.rst |
	tr -d '`()' | sort -u >"$tmp/names"
while read -r name; do
	grep -qw "$name" uapi/ringgate/*.h || echo "$name is not there"
done <"$tmp/names" >"$tmp/log"
sed -n 's/^#define \(RGATE_\(REQ_\)\?\(LOCK\|BARRIER\)_[A-Z0-9_]*\).*/\1/p' uapi/ringgate/sync.h \
	uapi/ringgate/request.h | grep -vE '_(FLAGS|MEMBERS|NOBODY|HOME)$' |
	while read -r name; do
		grep -qxF "$name" "$tmp/names" || echo "$name is not told of"
	done >>"$tmp/log"
[ "$(wc -l <"$tmp/names")" -gt 15 ] && [ ! -s "$tmp/log" ]
ok $? "constants that it names are there, and all are named"

echo "1..$n"
[ "$failed" -eq 0 ]
