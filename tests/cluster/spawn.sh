#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 900
# Processes on another node over Soft-RoCE, each node a VM: streams by hash, processes that
# are left alone, a policy, another key; a wire, a daemon and machines that are lost while
# processes wait, run and write. Who waits is told, in time. SPAWN_LINES: of each stream.

# shellcheck disable=SC2016,SC2317 # $ for another shell; functions that wait_for calls
# shellcheck source=tests/cluster/lib/vms.sh
. "$(dirname "$0")/lib/vms.sh"

lines=${SPAWN_LINES:-1000000}
# longer than a busy machine needs to cut and mend a wire
vms_cluster 2 10000
# Who asks: each is one process at a time.
cat >>"$tmp/cluster" <<-END
	node 2 compute 10.90.0.2:7472 first
	node 3 compute 10.90.0.2:7473 second
	node 4 compute 10.90.0.2:7474 third
	node 5 compute 10.90.0.2:7475 chief
END
cat >"$tmp/spawn" <<-END
	node first user nobody
	node second user nobody
	node third user nobody
	node chief user root admin
	allow * /bin/sh args -c ...
	allow * /bin/sleep
	allow * /usr/bin/seq
	allow * /usr/bin/sha256sum args
	max-running 2
END
vms_start 0 1
ok "the gateway has node 1" wait_for 60 peers_up 0 1

# spawn ARGUMENT...: from VM 1, as node first; sets rc and out, both streams
spawn()
{
	out=$(on 1 spawn "$@")
	rc=$?
}
# ended NAME: what `begin NAME` began in VM 1
ended() { on 1 "[ -s \$dir/$1.rc ]"; }
# told NAME FILE REGEX
told() { on 1 "grep -Eq '$3' \$dir/$1.$2"; }
# lost WHAT NAME...: each of these was told that its process is lost
lost()
{
	local what=$1 name
	shift
	for name; do
		ok "$what: $name does not wait for ever" wait_for 60 ended "$name"
		like "... and is told" "$(on 1 "cat \$dir/$name.rc \$dir/$name.err")" "^255.*lost: "
	done
}
# runs NODE WHAT: is there such a process of theirs?
runs() { on "$1" "pgrep -u nobody -f '$2'"; }
nobody_runs() { ! runs 0 .; }
# states: of what the gateway runs, waiting ones too
states() { on 1 'as=chief listed --json' | json 'sorted(p["state"] for p in j)'; }
are() { [ "$(states)" = "$1" ]; }
works() { [ "$(on 1 "spawn -- sh -c 'echo works'")" = works ]; }

# as ssh does
spawn -- "sh -c 'echo out; exit 7'"
is "output and exit code" "$rc/$out" "7/out"
spawn -- "sh -c 'kill -9 \$\$'"
is "a signal" "$rc" 137
spawn -- "sh -c 'cat /proc/sys/kernel/random/boot_id; id -un'"
is "it runs in the other machine, as the policy says" "$out" \
	"$(on 0 cat /proc/sys/kernel/random/boot_id)
nobody"
wanted=$(seq 1 "$lines" | sha256sum)
is "output, by hash" "$(vm_limit=300 on 1 "spawn -- seq 1 $lines | sha256sum")" "$wanted"
is "input, by hash" "$(vm_limit=300 on 1 "seq 1 $lines | spawn -- sha256sum")" "$wanted"
spawn -- "sh -c 'echo \$# \${100000}' sh \$(seq 100000)"
is "a request of many pieces" "$rc/$out" "0/100000 100000"
on 1 "begin first -- sh -c 'trap \"echo got; exit 4\" INT; echo on; while :; do sleep 0.1; done'"
ok "one that runs" wait_for 30 told first out on
on 1 'kill -INT $(cat $dir/first.pid)'
ok "it ends" wait_for 30 ended first
is "Ctrl-C goes through" "$(on 1 'cat $dir/first.rc; tail -n 1 $dir/first.out')" "4
got"

# every node, one of which is not there
on 1 'sed "/third/d; /chief/d; /^public-key [45] /d" $dir/cluster >$dir/fewer'
out=$(on 1 'cluster=$dir/fewer spawn --all -- sh -c "echo a; exit 3"')
rc=$?
is "--all: the exit code" "$rc" 3
like "--all: of the gateway" "$out" "gw: a"
like "--all: of the other one" "$out" "n1: a"
like "--all: who is not there" "$out" "second: cannot be reached"

# who may what
spawn -- ls
like "against the policy" "$rc $out" "^255 .*refused: "
spawn "--node n1 -- sh -c 'id -un'"
is "another node" "$rc/$out" "0/nobody"
requests=$(node_status 0 'j["spawn"]["requests"]')
on 1 'other_key $dir/stranger 2'
out=$(on 1 'cluster=$dir/stranger spawn -- sh -c "echo in"')
like "another key" "$? $out" "^255 .*first|^255 .*gw"
ok "... is counted" refused 0
is "... and nothing was even asked for" "$(node_status 0 'j["spawn"]["requests"]')" "$requests"

# left alone, listed, killed
id=$(on 1 'spawn --detach -- sh -c "sleep 2; echo later; exit 5"')
like "ps" "$(on 1 listed)" "$id +running +first +nobody"
spawn --attach "$id"
is "attached again: its output and exit code" "$rc/$out" "5/later"
id=$(on 1 'spawn --detach -- sleep 1000')
like "ps of somebody else: nothing" "$(on 1 'as=second listed')" "^NODE[^0-9]*$"
like "ps of an admin" "$(on 1 'as=chief listed')" "$id +running +first +nobody"
ok "kill" on 1 "killed $id"
spawn --attach "$id"
is "attached again: it was killed" "$rc" 143
ok "nothing is left" wait_for 10 are "[]"

# A wire: what runs does not notice
count='i=0; while [ $i -lt 300 ]; do i=$((i + 1)); echo $i; sleep 0.02; done; exit 7'
counted()
{
	on 1 'cat $dir/first.rc; cmp $dir/first.out <(seq 1 300) && echo same'
}
link() { node_status 0 '[p["connections"] for p in j["peers"] if p["node"] == 2]'; }
on 1 "begin first -- sh -c '$count'"
ok "one that counts" wait_for 30 told first out '^10$'
before=$(link)
cut=$(on 1 wire_cut_for 2)
result $? "a wire is cut for 2 s"
echo "# $cut"
ok "it ends" wait_for 90 ended first
is "all that it said came, once, and its exit code" "$(counted)" "7
same"
is "over one connection" "$(link)" "$before"

# longer than the timeout, but not than it takes to give it up
first_is() { [ "$(node_status 0 '[p["state"] for p in j["peers"] if p["node"] == 2]')" = "['$1']" ]; }
on 1 "begin first -- sh -c '$count'"
ok "one that counts" wait_for 30 told first out '^10$'
on 1 wire_cut
ok "the connection is lost" wait_for 60 first_is away
on 1 wire_mend
ok "it ends" wait_for 90 ended first
is "all that it said came, once, and its exit code" "$(counted)" "7
same"

# for good
on 1 "begin first -- sh -c 'while :; do echo x; sleep 0.05; done'"
on 1 "begin second -- sleep 1001"
ok "two that run" wait_for 30 are "['running', 'running']"
on 1 wire_cut
lost "a cut wire" first second
ok "their processes are killed" wait_for 60 nobody_runs
on 1 wire_mend
ok "the next one runs" wait_for 60 works

# A daemon
on 1 "begin first -- sh -c 'while :; do echo x; sleep 0.05; done'"
on 1 "begin second -- sleep 1001"
on 1 "begin third -- sleep 1002"
ok "two that run, one that waits" wait_for 30 are "['running', 'running', 'waiting']"
on 0 stop daemon -9
ok "the daemon was killed: so are its processes" wait_for 30 nobody_runs
on 0 daemon
lost "a killed daemon" first second third
ok "the next one runs" wait_for 60 works
ok "nothing is left" wait_for 10 are "[]"

# The machine that serves: while one writes, one runs, one waits
on 1 "begin first -- sh -c 'until [ -e /tmp/go ]; do sleep 0.1; done; while :; do seq 1 10000; done'"
on 1 "begin second -- sleep 1001"
on 1 "begin third -- sleep 1002"
ok "two that run, one that waits" wait_for 30 are "['running', 'running', 'waiting']"
on 0 touch /tmp/go
ok "one of them writes, much" wait_for 30 told first out '^10000$'
vm_kill 0
lost "a lost machine" first second third
vm_boot 0
ok "it boots" wait_for 200 vm_ready 0
on 0 daemon
ok "the next one runs" wait_for 60 works

# The machine that asks
on 1 "begin first -- sh -c 'while :; do echo x; sleep 0.05; done'"
on 1 "begin second --keep -- sh -c 'echo one; until [ -e /tmp/go ]; do sleep 0.2; done; echo two; exit 6'"
ok "two that run" wait_for 30 are "['running', 'running']"
ok "one has said something" wait_for 30 told second out one
vm_kill 1
ok "its process is killed" wait_for 90 eval '! runs 0 "echo x"'
ok "the one that is to be kept is not" runs 0 "echo one"
vm_boot 1
ok "it boots" wait_for 200 vm_ready 1
on 1 daemon
id=$(on 1 'as=second listed --json' | json 'j[0]["id"]')
on 1 "begin second --attach $id"
on 0 touch /tmp/go
ok "somebody attaches, and it ends" wait_for 60 ended second
is "what it said since, and its exit code" "$(on 1 'cat $dir/second.rc $dir/second.out')" "6
two"
ok "nothing is left" wait_for 10 are "[]"

vms_finish 0 1
