#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 360
# ringgated runs processes for other nodes: two daemons of this machine, a third that
# does not, and ringgate spawn, ps and kill as two nodes without a daemon.

# shellcheck disable=SC2317,SC2016 # functions that wait_for calls; $ for another shell
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

ringgated=$build/tools/ringgated
me=$(id -un)
declare -A pid
trap 'kill -9 "${pid[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT

mkdir -m 755 "$tmp/run"

# address NODE: as tests/fabric/lib has them
address()
{
	local list

	if [ "${RGATE_FABRIC_PROVIDER:-local}" = local ]; then
		echo "$tmp/run/n$1"
	else
		IFS=, read -ra list <<<"$RGATE_FABRIC_ADDRS"
		echo "${list[$1 % ${#list[@]}]}:$((7471 + $1))"
	fi
}

cat >"$tmp/cluster" <<-END
	provider ${RGATE_FABRIC_PROVIDER:-local}
	timeout $((slow > 15 ? 60000 : 4000 * slow))
	node 0 gateway $(address 0) gw
	node 1 compute $(address 1) one
	node 2 compute $(address 2) two
	node 5 compute $(address 5) alice
	node 6 compute $(address 6) chief
END
cluster_keys "$tmp/cluster"
cat >"$tmp/policy" <<-END
	node alice user $me max-running 8
	node chief user $me admin
	allow alice /bin/sh args -c ...
	allow alice /bin/cat args
	allow alice /bin/sleep
	allow alice /usr/bin/sha256sum
	allow chief /bin/true args
	limit alice files 100
END
chmod 600 "$tmp/policy"
export RGATE_CLUSTER=$tmp/cluster RGATE_NODE=alice

# start NODE ARGUMENT...
start()
{
	local node=$1
	shift
	"$ringgated" -C "$tmp/cluster" -n "$node" -s "$tmp/run/s$node" --pool 16M "$@" \
		>>"$tmp/log$node" 2>&1 &
	pid[$node]=$!
}
stop() { kill "${pid[$1]}"; wait "${pid[$1]}"; rc=$?; unset "pid[$1]"; }
ready() { grep -q "is ready" "$tmp/log$1"; }
# spawn ARGUMENT...: sets rc, out, err
spawn() { run "$ringgate" spawn "$@"; }
status() { "$ringgate" cluster status -s "$tmp/run/s$1" --json | json "$2"; }
# the spawner of daemon $1
spawner() { pgrep -P "${pid[$1]}" -x ringgate-spawn; }
gone() { ! kill -0 "$1" 2>/dev/null; }
# field NAME: of the JSON that was printed
field() { json "j[\"$1\"]" <<<"$out"; }

# configuration
check() { run "$ringgated" --check -C "$tmp/cluster" -n gw "$@"; }
check --spawn "policy $tmp/policy"
is "--check of what is right" "$rc" 0
printf 'node alice user %s\nallow nosuch any\n' "$me" >"$tmp/bad"
chmod 600 "$tmp/bad"
check --spawn "policy $tmp/bad"
like "--check: a wrong policy, with its line" "$rc $err" "^1 .*bad:2: "
check --spawn "policy $tmp/none"
like "--check: no policy" "$rc $err" "^1 .*none: there is no such policy"
chmod 666 "$tmp/bad"
check --spawn "policy $tmp/bad"
like "--check: a policy that others may write" "$rc $err" "^1 .*others may write"
RGATE_SPAWNER=$tmp/none check --spawn "policy $tmp/policy"
like "--check: no spawner" "$rc $err" "^1 .*$tmp/none: No such file or directory: it comes with"
check --spawn "cannon x"
like "--check: a wrong key" "$rc $err" "^1 .*spawn is: policy FILE"
printf 'node gw\nspawn policy %s\nspawn cgroup none\n' "$tmp/policy" >"$tmp/conf"
run "$ringgated" --check -C "$tmp/cluster" -c "$tmp/conf"
is "--check: of a file" "$rc" 0

drop=()
if [ "$(id -u)" = 0 ]; then
	# It has to reach the sockets, and the policy when that is read again.
	chmod 755 "$tmp"
	chmod 644 "$tmp/policy"
	drop=(--user nobody)
fi
start 0 --spawn "policy $tmp/policy" "${drop[@]}"
start 1 --spawn "policy $tmp/policy" --spawn "cgroup none"
start 2
for n in 0 1 2; do
	ok "daemon $n" wait_for 20 ready $n
done
ok "a spawner, before anything else" spawner 0
if [ ${#drop[@]} -gt 0 ]; then
	is "the daemon became another user" "$(stat -c %U "/proc/${pid[0]}")" nobody
fi

# as ssh does
spawn -- sh -c 'echo out; echo err >&2; exit 7'
is "output and exit code" "$rc/$out/$err" "7/out/err"
spawn sh -c 'kill -9 $$'
is "a signal" "$rc" 137
# states NODE: of its peers
states() { status "$1" '{p["name"]: p["state"] for p in j["peers"]}'; }
alice_is() { [ "$(states 0)" = "{'one': 'up', 'two': 'up', 'alice': '$1', 'chief': 'unseen'}" ]; }
ok "a client that went is away, not down" wait_for 20 alice_is away
like "... in the table, too" "$("$ringgate" cluster status -s "$tmp/run/s0")" "alice +compute +away"
spawn --node one -- sh -c 'echo $USER; id -un; pwd -P'
is "as whom the policy says" "$rc/$out" "0/$me
$me
$(cd ~ && pwd -P)"
spawn sh -c 'ulimit -n; ulimit -l; umask; cat /proc/self/status | grep SigBlk | cut -f2; ls /proc/self/fd'
is "limits, mask, descriptors" "$rc/$out" "0/100
$(ulimit -l)
0022
0000000000000000
0
1
2
3"
run bash -c "echo given | '$ringgate' spawn cat"
is "standard input" "$rc/$out" "0/given"
head -c 3000000 /dev/urandom >"$tmp/data"
spawn --stdin "$tmp/data" sha256sum
is "a file as input" "${out%% *}" "$(sha256sum <"$tmp/data" | cut -d' ' -f1)"
run bash -c "'$ringgate' spawn --stdin '$tmp/data' cat | cmp - '$tmp/data'"
is "much output, byte by byte" "$rc/$out" "0/"
spawn --timeout 0.5 sleep 1000
like "its time" "$rc $err" "^124 .*time was over"
spawn --json -- sh -c 'echo hello; exit 3'
is "--json" "$rc/$(field exit_code)/$(field stdout)" "3/3/hello"
spawn --all -- sh -c 'echo a; echo b >&2; exit 1'
is "--all: the exit code" "$rc" 1
like "--all: lines are tagged" "$out" "gw: a"
like "--all: of every node" "$out" "one: a"
like "--all: of both streams" "$err" "one: b"
like "--all: who has no policy" "$err" "two: sh: it runs nothing for others: .*ringgated --spawn"
"$ringgate" spawn -- sh -c 'trap "echo got; exit 4" INT; echo on; while :; do sleep 0.1; done' \
	>"$tmp/int" 2>&1 &
pid[int]=$!
ok "it runs" wait_for 20 grep -q on "$tmp/int"
kill -INT "${pid[int]}"
wait "${pid[int]}"
is "Ctrl-C goes through" "$?/$(tail -n 1 "$tmp/int")" "4/got"
unset "pid[int]"

# what the policy does not allow, and what is not there
spawn /bin/true
like "refused" "$rc $err" "^255 .*refused: "
spawn cat /etc/shadow
like "refused for its arguments" "$rc $err" "^255 .*refused: "
spawn --env LD_PRELOAD=/tmp/x.so -- sh -c true
like "refused for its environment" "$rc $err" "^255 .*refused: .*LD_PRELOAD"
RGATE_NODE=chief spawn true
is "another node, another policy" "$rc" 0
RGATE_NODE=two run "$ringgate" spawn true
is "a node that runs already" "$rc" 255

# left alone, listed, killed
spawn --detach sleep 1000
id=$out
run "$ringgate" ps
like "ps" "$out" "$id .*running"
run "$ringgate" ps --json
is "ps --json" "$(json '[p["command"] for p in j]' <<<"$out")" "['/bin/sleep 1000']"
RGATE_NODE=two run "$ringgate" ps
is "whoever runs already cannot ask" "$rc" 1
RGATE_NODE=chief run "$ringgate" ps
like "an admin sees it" "$out" "$id .*alice"
RGATE_NODE=chief run "$ringgate" kill -s INT "$id"
is "and may kill it" "$rc" 0
spawn --attach "$id"
is "its end is there for its node" "$rc" 130
spawn --detach sleep 1000
id=$out
run "$ringgate" kill "$id"
is "kill" "$rc" 0

# what was logged: id, node, user, arguments, result
like "log: a start" "$(<"$tmp/log0")" "spawn $id: node alice as $me: /bin/sleep 1000: process [0-9]+"
ended() { grep -q "spawn $id: node alice as $me: /bin/sleep 1000: signal 15" "$tmp/log0"; }
ok "log: an end" wait_for 10 ended
like "log: a refusal" "$(<"$tmp/log0")" "node alice as $me: /bin/true: refused: "
is "status counts" "$(status 0 'j["spawn"]["refused"] > 2 and j["spawn"]["started"] > 5')" True
like "status tells" "$("$ringgate" cluster status -s "$tmp/run/s0")" "processes: running 0, "

# the policy is read again
sed -i '/allow alice .bin.cat/d' "$tmp/policy"
kill -HUP "${pid[0]}"
reread() { [ "$(grep -c 'policy was read again' "$tmp/log0")" = "$1" ]; }
ok "SIGHUP" wait_for 10 reread 1
spawn cat
like "what is not in it any more is refused" "$rc $err" "^255 .*refused: "
echo "nonsense" >>"$tmp/policy"
kill -HUP "${pid[0]}"
wrong() { grep -q "policy:[0-9]*: " "$tmp/log0"; }
ok "a malformed one" wait_for 10 wrong
spawn sh -c 'exit 5'
is "leaves the one that holds" "$rc" 5
sed -i '/nonsense/d' "$tmp/policy"

# the daemon is killed: so is what it runs; the client hears of it
"$ringgate" spawn -- sh -c 'echo $$; trap "" TERM HUP; while :; do sleep 1; done' \
	>"$tmp/victim" 2>"$tmp/err" &
pid[client]=$!
has_line() { [ -s "$tmp/victim" ]; }
ok "a process" wait_for 20 has_line
victim=$(<"$tmp/victim")
old=$(spawner 0)
kill -9 "${pid[0]}"
wait "${pid[0]}" 2>/dev/null
ok "it is killed with its daemon" wait_for 20 gone "$victim"
ok "and the spawner ends" wait_for 20 gone "$old"
wait "${pid[client]}"
rc=$?
unset "pid[client]"
like "its client is told" "$rc $(<"$tmp/err")" "^255 .*lost: "
: >"$tmp/log0"
start 0 --spawn "policy $tmp/policy" "${drop[@]}"
ok "the daemon comes back" wait_for 20 ready 0
spawn sh -c 'exit 6'
is "and runs processes" "$rc" 6

# the spawner is killed
kill -9 "$(spawner 1)"
told() { grep -q "start ringgated anew" "$tmp/log1"; }
ok "the daemon says that its spawner is gone" wait_for 10 told
spawn --node one -- sh -c true
like "and so does it to who asks" "$rc $err" "^255 .*spawner"

# the client is killed
"$ringgate" spawn -- sh -c 'echo $$; trap "" TERM HUP; while :; do sleep 1; done' \
	>"$tmp/victim2" 2>/dev/null &
pid[client]=$!
has_line2() { [ -s "$tmp/victim2" ]; }
ok "another process" wait_for 20 has_line2
kill -9 "${pid[client]}"
wait "${pid[client]}" 2>/dev/null
unset "pid[client]"
ok "it is killed some time after its client" wait_for 30 gone "$(<"$tmp/victim2")"

# somebody with another key
other_key "$tmp/cluster" 5 "$tmp/cluster2"
requests=$(status 0 'j["spawn"]["requests"]')
RGATE_CLUSTER=$tmp/cluster2 spawn sh -c true
is "another key: not run" "$rc/$out" "255/"
is "nor even asked for" "$(status 0 'j["spawn"]["requests"]')" "$requests"

# a program that is not there, is not the spawner, or is run by hand
other() { RGATE_SPAWNER=$1 run timeout $((60 * slow)) "$ringgated" -C "$tmp/cluster" -n chief -s "$tmp/run/s6" --pool 16M \
	--spawn "policy $tmp/policy"; }
other "$tmp/none"
like "no spawner: the daemon says what is missing" "$rc $err" "^1 .*$tmp/none: No such file.*make install"
other /bin/true
like "another program in its place: the daemon does not begin" "$rc $err" "^1 .*spawner"
run bash -c 'exec "$0" 3<&- 4<&-' "$RGATE_SPAWNER"
like "the spawner is not for people" "$rc/$err" "^2/.*ringgated"

old=$(spawner 0)
for n in 2 1 0; do
	stop $n
	is "daemon $n ends well" "$rc" 0
done
ok "nothing is left of the spawner" gone "$old"
is "no daemon's sanitizer or pool complained" "$(complaints "$tmp"/log*)" ""
finish
