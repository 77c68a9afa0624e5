#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# The programs that stand in the documents, compiled and run as they stand there, and the
# quick start of spawn.rst, command by command. Every program of a document is in a test.
set -u
if [ "${1:-}" != inside ]; then
	if [ "$(id -u)" != 0 ]; then
		echo "1..0 # SKIP needs root: /etc/ringgate, /run and a user of its own, in a mount namespace"
		exit 0
	fi
	exec unshare -m --propagation private "$0" inside
fi
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=${RGATE_BUILD:-$top/build}
. "$here/lib/tap.sh"
. "$here/lib/blocks.sh"
. "$top/tests/cli/lib/keys.sh"
. "$top/tests/cli/lib/wait.sh"
export PATH=$build/tools:$PATH RGATE_SPAWNER=$build/tools/ringgate-spawner RGATE_KEEPER=$build/tools/ringgate-agent
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait; cd /; umount -l /etc /run /var/lib; umount -l "$tmp"; rm -rf "$tmp"' EXIT

# As a fresh machine has them, and gone with this process
mount -t tmpfs tmpfs "$tmp"
mkdir "$tmp/upper" "$tmp/work"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$tmp/upper,workdir=$tmp/work" /etc || exit 1
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
rm -rf /etc/ringgate
mkdir -p /etc/ringgate /run/ringgate
chmod 755 "$tmp"
cd "$tmp" || exit 1

# same FILE: what was printed is what is wanted (standard input)
same() { diff - "$1" >>"$tmp/log"; }

# --- each document's programs are here, or in tests/vm/docs.sh
sed -n 's/^[^#]*\(build\|cut\)_blocks [a-z]* \([^ ]*\) \(.*\)/\2 \3/p' "$here"/test_*.sh "$top/tests/vm/docs.sh" |
	sed 's/ *|| .*//; s/ *>.*//' >"$tmp/built"
for doc in $(cd "$top" && echo README.md Documentation/*.rst Documentation/man/*); do
	for kind in c cuda; do
		count=$(cd "$top" && python3 "$here/blocks.py" "$doc" | awk -F'\t' -v k=$kind '$2 == k' | wc -l)
		tested=$(grep "^$doc " "$tmp/built" | grep -o ":$kind:[0-9]" | wc -l)
		[ "$doc" != README.md ] || tested=$count	# test_readme.sh
		[ "$count" -eq "$tested" ] || echo "$doc: $count programs ($kind), $tested in a test"
	done
done >"$tmp/log" 2>&1
[ ! -s "$tmp/log" ]
ok $? "every program of the documents is in a test"

# --- fabric.rst
cat >cluster.local <<-END
	provider local
	node 0 gateway $tmp/n0
	node 1 compute $tmp/n1
END
cluster_keys cluster.local
build_blocks fabric Documentation/fabric.rst "Nodes and peers:c:1" Memory:c:1 Operations:c:1 Waiting:c:1 >"$tmp/log" 2>&1
ok $? "the programs of fabric.rst compile"
RGATE_CLUSTER=$tmp/cluster.local timeout 60 ./fabric >said 2>"$tmp/log"
rc=$?
ok $rc "they run"
printf '%s\n' "Nodes and peers" Memory Operations Waiting | same said
ok $? "to their end, one after the other"

# --- cluster.rst: the first file, while public keys are missing, and the command that makes them
block Documentation/cluster.rst "The cluster file:text:1" | grep -v '^public-key' >/etc/ringgate/cluster.conf
block Documentation/cluster.rst "The keys:shell:1" >commands
sh -eu commands >said 2>"$tmp/log"
rc=$?
ok $rc "cluster.rst: $(cat commands)"
echo "public-key 2 $(ringgate cluster pubkey </etc/ringgate/node2.key)" | same said
ok $? "... makes the pair of that node"
rm /etc/ringgate/node2.key

# --- spawn.rst: nodes of this machine instead of addresses
{
	echo "provider local"
	{
		block Documentation/spawn.rst "Quick start:text:1"
		block Documentation/spawn.rst "A node of one's own:text:1"
	} | sed -E 's, [0-9.]+\.([0-9]+)(:([0-9]+))? , /run/ringgate/n\1\3 ,'
} >/etc/ringgate/cluster.conf
for node in gw one; do
	ringgate cluster keygen --node $node >>/etc/ringgate/cluster.conf
done 2>"$tmp/log"
block Documentation/spawn.rst "A node of one's own:shell:1" >commands
# shellcheck disable=SC1091
. ./commands >>/etc/ringgate/cluster.conf 2>>"$tmp/log"
ok $? "spawn.rst: $(head -n 1 commands)"
ringgate cluster show >"$tmp/log" 2>&1
ok $? "... and ringgate cluster show finds nothing wrong"
{
	block Documentation/spawn.rst "Quick start:text:2"
	printf 'node shell user alice\nallow shell /usr/bin/*\n'
} >/etc/ringgate/spawn.conf
chmod 600 /etc/ringgate/spawn.conf
block Documentation/spawn.rst "Quick start:text:4" >/etc/ringgate/requests.conf
chmod 600 /etc/ringgate/requests.conf
{
	block Documentation/spawn.rst "Quick start:text:3"
	block Documentation/spawn.rst "Quick start:text:5"
} >/etc/ringgate/ringgated.conf
id alice >/dev/null 2>&1 || useradd -m -d "$tmp/alice" alice 2>>"$tmp/log" || {
	echo "alice:x:4711:4711::$tmp/alice:/bin/sh" >>/etc/passwd
	mkdir -p "$tmp/alice" && chown 4711:4711 "$tmp/alice"
}
for node in gw one; do
	ringgated --node "$node" --socket "/run/ringgate/$node.sock" --pool 32M \
		--requests "socket /run/ringgate/$node.requests" >>"$tmp/log.$node" 2>&1 &
	pids+=($!)
done
wait_for 20 grep -q "is ready" "$tmp/log.gw" && wait_for 20 grep -q "is ready" "$tmp/log.one"
rc=$?
cat "$tmp"/log.* >"$tmp/log"
ok $rc "spawn.rst: the daemons start with what the quick start writes"

head -c 100000 /dev/urandom >data.bin
block Documentation/spawn.rst "Quick start:shell:1" >commands
export RGATE_REQUESTS=/run/ringgate/one.requests
cluster_up() { ringgate cluster status --socket /run/ringgate/one.sock | grep -q ' up '; }
wait_for 20 cluster_up
alice() { setpriv --reuid "$(id -u alice)" --clear-groups "$@"; }
# The last line has two commands more.
n_commands=0
while IFS= read -r line; do
	n_commands=$((n_commands + 1))
	alice bash -c "$line" >"$tmp/said.$n_commands" 2>"$tmp/log" </dev/null
	rc=$?
	# The node of the section after it is in the cluster's file already.
	[ "$(<"$tmp/log")" != "ringgate spawn: shell: cannot be reached" ] || rc=0
	ok $rc "spawn.rst: $line"
done <commands
same said.1 < <(uname -n)
ok $? "... the node's name"
same said.2 < <(sha256sum <data.bin)
ok $? "... the hash of what it was given"
[ "$(grep -c '^gw:.*load average' said.3)" -eq 1 ]
ok $? "... every other node"
grep -q 'sleep 1000' said.4
ok $? "... what runs"
ended() { ! alice ringgate ps | grep 'sleep 1000' | grep -q running; }
wait_for 10 ended
ok $? "... and was ended"

export RGATE_NODE=shell
build_blocks spawn Documentation/spawn.rst "A node of one's own:c:1" >"$tmp/log" 2>&1
ok $? "spawn.rst: the program compiles"
# A pause longer than its patience, and more than fits into the ring
timeout 60 ./spawn /usr/bin/sh -c 'echo begin; sleep 2; seq 100000; sleep 2; echo end; exit 7' \
	>said 2>"$tmp/log"
rc=$?
ok $rc "... runs"
{ echo begin; seq 100000; echo end; } | same said
ok $? "... and loses nothing of the output, however long a pause is"
grep -qx 'exit code 7' "$tmp/log"
ok $? "... and tells how it ended"
build_blocks asked Documentation/spawn.rst "Without a node of one's own:c:1" >"$tmp/log" 2>&1
ok $? "spawn.rst: what asks without a node compiles"
timeout 60 ./asked /run/ringgate/one.requests /usr/bin/sh -c 'exit 5' >said 2>"$tmp/log"
rc=$?
[ "$rc" = 0 ] && grep -qx 'exit code 5' said
ok $? "... and runs at the other node"
kill "${pids[@]}"
wait "${pids[@]}"
pids=()

# --- the examples that need no node
"$build/examples/pool" none >said 2>"$tmp/log"
rc=$?
[ "$rc" = 0 ] && [ "$(grep -c ' bytes at ' said)" -eq 5 ]
ok $? "examples/pool without a device"
port=$(free_port)
"$build/examples/udp_source" "$port" >said 2>"$tmp/log" &
pids+=($!)
answered() { printf hello >"/dev/udp/127.0.0.1/$port"; sleep 0.1; grep -q hello said; }
wait_for 20 answered
ok $? "examples/udp_source prints datagrams"
kill "${pids[@]}"
pids=()

# --- net.rst's program, at a node of this machine
cat >/etc/ringgate/cluster.conf <<-END
	provider local
	node 0 gateway /run/ringgate/n0 gw
	node 1 compute /run/ringgate/n1 one
END
rm -f /etc/ringgate/node*.key
cluster_keys /etc/ringgate/cluster.conf
port=$(free_port)
printf 'all node:1 ip\n' >rules
: >/etc/ringgate/ringgated.conf
ringgated --node gw --socket /run/ringgate/gw.sock --pool 32M --steer rules \
	--source "udp 127.0.0.1:$port slots 1024 slot_size 2048" >log.gw 2>&1 &
pids+=($!)
ringgated --node one --pool 64M >log.one 2>&1 &
one=$!
pids+=("$one")
up() { ringgate cluster status --socket /run/ringgate/gw.sock --json | grep -q '"state": "up"'; }
wait_for 20 up
build_blocks net Documentation/net.rst "A program:c:1" >"$tmp/log" 2>&1
ok $? "net.rst: the program compiles"
send() { printf '%s' "$1" >"/dev/udp/127.0.0.1/$port"; }
offered() { ringgate cluster status --socket /run/ringgate/gw.sock --json | grep -q '"slot_size"'; }
timeout 60 ./net 2 >said 2>"$tmp/log" &
program=$!
wait_for 20 offered
send one
sleep 1.5	# it sleeps, and wakes by itself in between
send two
wait $program
rc=$?
ok $rc "... runs"
printf '%s\n' one two | same said
ok $? "... and prints what arrived"
timeout 60 stdbuf -oL "$build/examples/remote" 2048 >said 2>"$tmp/log" &
program=$!
pids+=("$program")
wait_for 20 offered
seen() { send x; sleep 0.2; grep -q . said; }
wait_for 20 seen
ok $? "examples/remote prints what arrived, too"
kill $program
timeout 60 ./net 9 >said 2>"$tmp/log" &
program=$!
sleep 1
kill -9 $one
wait $program 2>/dev/null
rc=$?
wait $one 2>/dev/null
[ $rc = 1 ] && [ -s said ]
ok $? "... and ends when the daemon does"

echo "1..$n"
[ "$failed" -eq 0 ]
