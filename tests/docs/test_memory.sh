#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 120
# The example of memory.rst runs, also at a daemon with the policy that it shows; what that shows of C
# is in it, and what it names is there.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${RGATE_BUILD:-$top/build}
. "$(dirname "$0")/lib/tap.sh"
. "$(dirname "$0")/lib/blocks.sh"
. "$(dirname "$0")/lib/daemon.sh"
cd "$top" || exit 1

timeout 60 "$build/examples/memory" >"$tmp/log" 2>&1
rc=$?
ok $rc "the example runs"
printf 'opened: 64 bytes\nthere was: 0\nthere is: 5\n' | diff - "$tmp/log" >"$tmp/log2"
rc=$?
mv "$tmp/log2" "$tmp/log"
ok $rc "and prints what it should"

# The policy of the node that has the memory, for a user of this machine. At the other node everybody
# may ask.
block Documentation/memory.rst "Quick start:text:1" | sed "s/user:alice/user:$user/" >"$tmp/policy"
[ "$(grep -c "user:$user" "$tmp/policy")" = 2 ]
ok $? "memory.rst has two lines of a policy"
echo 'allow any memory' >"$tmp/all"
chmod 600 "$tmp/policy" "$tmp/all"
echo "requests policy $tmp/policy" >"$tmp/gw.lines"
echo "requests policy $tmp/all" >"$tmp/one.lines"
daemon gw && daemon one
ok $? "a daemon starts with them, and one at the other node"
example memory
timeout 60 "${as[@]}" "$tmp/memory" "$tmp/gw.r" >"$tmp/log" 2>&1
printf 'opened: 64 bytes\nthere was: 0\nthere is: 5\n' | cmp - "$tmp/log" >/dev/null
ok $? "the user exports memory there, and counts in it"
timeout 60 "${other[@]}" "$tmp/memory" "$tmp/gw.r" >"$tmp/log" 2>&1
grep -qi 'not for this user' "$tmp/log"
ok_if_root $? "another one may not"
# It is exported for as long as the example runs. Who may ask from afar is told that nothing is there.
# afar USER ERROR: what node 1 hears when it speaks for him
afar()
{
	timeout 60 setpriv --reuid "$1" --clear-groups "$tmp/memory" "$tmp/one.r" 0 "$(id -u "$user")" \
		>"$tmp/log" 2>&1
	grep -qi "$2" "$tmp/log"
}
wait_for 20 afar "$user" 'not found'
ok_if_root $? "node 1 may speak for the user"
afar daemon 'permission denied'
ok_if_root $? "... and for no other"

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
