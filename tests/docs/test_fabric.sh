#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# The example of the fabric runs; the cluster files in cluster.rst are cluster files, and
# the messages it explains are those of the library.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${RGATE_BUILD:-$top/build}
. "$(dirname "$0")/lib/tap.sh"
. "$top/tests/cli/lib/keys.sh"
cd "$top" || exit 1

timeout 60 "$build/examples/fabric" >"$tmp/log" 2>&1
rc=$?
ok $rc "the example runs, both nodes in one go"
sort "$tmp/log" | diff - <(sort <<-END
	node 0: notice 42, and in memory: written by the other one
	node 0: message: done; counted to 3
	node 1: the counter was 2
END
) >"$tmp/log2"
rc=$?
mv "$tmp/log2" "$tmp/log"
ok $rc "and prints what it should"

# block N: the N-th literal block of cluster.rst
block()
{
	awk -v want="$1" '/::$/ { on = 1; n++; next } on && /^[^ ]/ { on = 0 }
		on && n == want { sub(/^   /, ""); print }' Documentation/cluster.rst
}

# The second one, as two processes, which have keys of their own
block 2 | sed "s,/run/ringgate,$tmp,g; /^public-key/d" >"$tmp/local.conf"
cluster_keys "$tmp/local.conf" 2>"$tmp/log"
timeout 60 "$build/examples/fabric" "$tmp/local.conf" 1 >"$tmp/one" 2>&1 &
other=$!
timeout 60 "$build/examples/fabric" "$tmp/local.conf" 0 >"$tmp/log" 2>&1
rc=$?
wait $other || rc=1
cat "$tmp/one" >>"$tmp/log"
ok $rc "the local file of cluster.rst makes a cluster"

# The first one is for RDMA: right or wrong is told before that is needed.
block 1 >"$tmp/verbs.conf"
timeout 60 "$build/examples/fabric" "$tmp/verbs.conf" 6 >"$tmp/log" 2>&1
grep -q 'the cluster has no node 6' "$tmp/log"
ok $? "the other file of cluster.rst is read"
sed 's/^node 2.*/node 2 gateway 192.0.2.3/' "$tmp/verbs.conf" >"$tmp/cluster.conf"
timeout 60 "$build/examples/fabric" "$tmp/cluster.conf" 0 >"$tmp/log" 2>&1
grep -q 'cluster.conf:[0-9]*: nodes 0 and 2 are both gateways: there is one' "$tmp/log"
ok $? "a mistake is told as it says there"

sed -n 's/^``\(.*\)``   .*/\1/p; s/.*more can be wrong: //p' Documentation/cluster.rst |
	grep -v '^``' >"$tmp/messages"
while read -r message; do
	grep -qF "$message" lib/fabric/*.c lib/base/lex.c || echo "no such message: $message"
done <"$tmp/messages" >"$tmp/log"
[ "$(wc -l <"$tmp/messages")" -gt 10 ] && [ ! -s "$tmp/log" ]
ok $? "the messages that cluster.rst explains are in the library"

# What fabric.rst names exists
grep -ohE '``(rgate_[a-z_]+\(\)|RGATE_[A-Z_]+)``' Documentation/fabric.rst Documentation/cluster.rst |
	tr -d '`()' | sort -u >"$tmp/names"
while read -r name; do
	grep -qw "$name" lib/include/ringgate/*.h uapi/ringgate/*.h lib/fabric/provider.h ||
		echo "$name is not there"
done <"$tmp/names" >"$tmp/log"
[ "$(wc -l <"$tmp/names")" -gt 10 ] && [ ! -s "$tmp/log" ]
ok $? "functions and constants that fabric.rst names are there"

# And the other way round
sed -n 's/^RGATE_API .*\b\(rgate_[a-z_]*\)(.*/\1/p' \
	lib/include/ringgate/rgate_{key,cluster,node,peer,hub}.h | sort -u >"$tmp/names"
while read -r name; do
	grep -qF "\`\`$name()" Documentation/fabric.rst Documentation/cluster.rst ||
		echo "$name is not told of"
done <"$tmp/names" >"$tmp/log"
[ "$(wc -l <"$tmp/names")" -gt 40 ] && [ ! -s "$tmp/log" ]
ok $? "every function of the fabric is named in its guide"

# What the log says when a connection is lost is put together like the guide's example.
tr '\n' ' ' <Documentation/fabric.rst | tr -s ' ' |
	grep -qF 'lost: Connection timed out; fetch-add was under way, and may have been done; 3 operations lost' &&
	grep -qF 'lost: %s; %s was %s; %llu operation%s lost' lib/fabric/peer.c &&
	grep -qF '"under way, and may have been done"' lib/fabric/peer.c
ok $? "so is what the log says of a lost connection"

echo "1..$n"
[ "$failed" -eq 0 ]
