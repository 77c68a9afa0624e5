#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# The example of spawn.rst runs; the policy there is one, line by line; tests that its tables name
# are there.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${RGATE_BUILD:-$top/build}
. "$(dirname "$0")/lib/tap.sh"
. "$top/tests/cli/lib/keys.sh"
cd "$top" || exit 1
export RGATE_SPAWNER=${RGATE_SPAWNER:-$build/tools/ringgate-spawner}

timeout 60 "$build/examples/spawn" >"$tmp/log" 2>&1
rc=$?
ok $rc "the example runs, both nodes in one go"
[ "$(head -n 1 "$tmp/log")" = 20 ] && grep -q "exit code 0" "$tmp/log"
rc=$?
ok $rc "and prints what it should"

# The block behind "write::", with users and a hash that there are
awk '/able to write::$/ { on = 1; next } on && /^[^ ]/ { exit } on { sub(/^  /, ""); print }' \
	Documentation/spawn.rst |
	sed "s/user \(alice\|batch\)/user $(id -un)/; s/user root/user $(id -un)/
		s/sha256 .*/sha256 $(sha256sum </dev/null | cut -d' ' -f1)/" >"$tmp/policy"
chmod 600 "$tmp/policy"
cat >"$tmp/cluster" <<-END
	provider local
	node 0 gateway $tmp/0 gateway
	node 1 compute $tmp/1 compute1
	node 2 compute $tmp/2
END
cluster_keys "$tmp/cluster"
"$build/tools/ringgated" --check -C "$tmp/cluster" -n gateway --spawn "policy $tmp/policy" \
	>"$tmp/log" 2>&1
rc=$?
ok $rc "the policy is accepted"
[ "$(grep -cE '^(node|allow|env|limit|max-|path)' "$tmp/policy")" -ge 12 ]
rc=$?
ok $rc "all of its lines were there"

# "test_X (case, case)": of tests/spawn, or of the folder that is named
# shellcheck disable=SC2016 # backticks
sed '1,/^What is tried against it$/d' Documentation/spawn.rst | tr -s '\n ' ' ' |
	grep -oE '``(tests/[a-z]+/)?test_[a-z_]+``( \((``[a-z_]+``(, )?)+\))?' | tr -d '`(),' >"$tmp/named"
while read -r program cases; do
	[ "${program%/*}" != "$program" ] || program=tests/spawn/$program
	[ -f "$program.c" ] || echo "$program is not there"
	for case in $cases; do
		# in the list of tests, by cmocka's macro or one of the file's own
		grep -qE "^$(printf '\t')[A-Za-z_]+\(${case}[,)]" "$program.c" || echo "$program has no $case"
	done
done <"$tmp/named" >"$tmp/log" 2>&1
[ "$(wc -w <"$tmp/named")" -gt 50 ] && [ ! -s "$tmp/log" ]
ok $? "tests and cases that its tables name are there"

echo "1..$n"
[ "$failed" -eq 0 ]
