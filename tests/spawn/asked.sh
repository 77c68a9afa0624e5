#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 360
# ringgate spawn, ps and kill through the daemon of the machine: as a user who has no key and
# is no node. A daemon that is asked, one that runs, one that is not there.

# shellcheck disable=SC2317,SC2016 # functions that wait_for calls; $ for another shell
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

ringgated=$build/tools/ringgated
me=$(id -un)
declare -A pid
trap 'kill -9 "${pid[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT

chmod 755 "$tmp"
mkdir -m 755 "$tmp/run"
cat >"$tmp/cluster" <<-END
	provider local
	timeout $((slow > 15 ? 60000 : 4000 * slow))
	node 0 gateway $tmp/run/n0 gw
	node 1 compute $tmp/run/n1 one
	node 2 compute $tmp/run/n2 two
END
cluster_keys "$tmp/cluster"
cat >"$tmp/policy" <<-END
	node one user $me
	allow one any
	max-running 100
END
chmod 600 "$tmp/policy"
user=$me
other=
as=()
if [ "$(id -u)" = 0 ]; then
	user=nobody other=backup
	as=(setpriv --reuid nobody --clear-groups)
	id -u backup >/dev/null 2>&1 || other=
fi
echo "allow user:$user spawn" >"$tmp/allow"
[ -z "$other" ] || echo "allow user:$other spawn" >>"$tmp/allow"
chmod 600 "$tmp/allow"
# nothing of a node's is for who asks: neither file nor name
unset RGATE_NODE RGATE_CLUSTER
export RGATE_REQUESTS=$tmp/run/r1

# start NODE ARGUMENT...
start()
{
	local node=$1
	shift
	: >"$tmp/log$node"
	"$ringgated" -C "$tmp/cluster" -n "$node" -s "$tmp/run/s$node" --pool 32M "$@" \
		>>"$tmp/log$node" 2>&1 &
	pid[$node]=$!
}
start_asked()
{
	start 1 --requests "socket $tmp/run/r1" --requests "policy $tmp/allow"
}
ready() { grep -q "is ready" "$tmp/log$1"; }
gone() { ! kill -0 "$1" 2>/dev/null; }
up() { [ "$("$ringgate" cluster status -s "$tmp/run/s1" --json | json '[p["state"] for p in j["peers"] if p["name"] == "gw"][0]')" = up ]; }
# spawn, ps, killed ARGUMENT...: as the user; sets rc, out, err
asked() { run "${as[@]}" "$ringgate" "$@"; }
spawn() { asked spawn "$@" </dev/null; }

# nobody there
asked spawn true
like "no daemon: what to type" "$rc $err" "^255 .*no ringgated answers at $tmp/run/r1: .sudo systemctl start ringgated"
asked ps
like "... for ps" "$rc $err" "^1 .*no ringgated answers"

start 0 --spawn "policy $tmp/policy" --spawn "cgroup none"
start_asked
for n in 0 1; do
	ok "daemon $n" wait_for 20 ready $n
done
ok "they see each other" wait_for 20 up

# as ssh does
spawn -- sh -c 'echo out; echo err >&2; exit 7'
is "output and exit code" "$rc/$out/$err" "7/out/err"
spawn sh -c 'kill -9 $$'
is "a signal" "$rc" 137
spawn --env LC_ALL=C --unset HOME --cwd /usr -- sh -c 'echo $LC_ALL $HOME; pwd'
is "environment and directory" "$rc/$out" "0/C
/usr"
run bash -c "echo given | ${as[*]} '$ringgate' spawn cat"
is "standard input" "$rc/$out" "0/given"
head -c 3000000 /dev/urandom >"$tmp/data"
chmod 644 "$tmp/data"
run bash -c "${as[*]} '$ringgate' spawn --stdin '$tmp/data' cat | cmp - '$tmp/data'"
is "much input and output, byte by byte" "$rc/$out" "0/"
run bash -c "${as[*]} '$ringgate' spawn -- head -c 30000000 /dev/zero </dev/null | wc -c"
is "much output" "$rc/${out// /}" "0/30000000"
run bash -c "${as[*]} '$ringgate' spawn -- cat /dev/zero </dev/null | head -c 10 | wc -c"
is "output that nobody wants" "$rc/${out// /}" "0/10"
spawn --timeout 0.5 sleep 1000
like "its time" "$rc $err" "^124 .*time was over"
spawn --tail 6 -- seq 1 1000
is "--tail" "$rc/$out" "0/
1000"
spawn --json -- sh -c 'echo hello; exit 3'
is "--json" "$rc/$(json 'j["exit_code"], j["stdout"].strip(), j["stage"], j["node"], j["pid"] > 1' <<<"$out")" "3/(3, 'hello', 'run', 'gw', True)"
"${as[@]}" "$ringgate" spawn -- sh -c 'trap "echo got; exit 4" INT; echo on; while :; do sleep 0.1; done' \
	</dev/null >"$tmp/int" 2>&1 &
pid[int]=$!
ok "it runs" wait_for 20 grep -q on "$tmp/int"
kill -INT "${pid[int]}"
wait "${pid[int]}"
is "Ctrl-C goes through" "$?/$(tail -n 1 "$tmp/int")" "4/got"
unset "pid[int]"
spawn --all -- sh -c 'echo a; echo b >&2; exit 1'
is "--all: the exit code" "$rc" 1
like "--all: lines are tagged" "$out" "^gw: a$"
like "--all: of both streams" "$err" "gw: b"
like "--all: who is not there" "$err" "two: cannot be reached"

# what is wrong
spawn --node nine true
like "no such node" "$rc $err" "^2 .*no node 'nine'"
spawn --node one true
like "its own node" "$rc $err" "^2 .*node one is this machine's own"
spawn --node two true
like "a node that is down" "$rc $err" "^255 .*node two: no answer: .systemctl status ringgated. on that node"
spawn /no/such/thing
like "not started" "$rc $err" "^255 .*not started: No such file"
spawn bin/relative
like "refused there" "$rc $err" "^255 .*refused: "

# many at once, each with an output of its own
many()
{
	local i n=0 jobs=()

	for i in $(seq 50); do
		"${as[@]}" "$ringgate" spawn -- sh -c "echo $i; exit 0" </dev/null >"$tmp/many$i" 2>&1 &
		jobs+=($!)
	done
	for i in "${jobs[@]}"; do
		wait "$i" && n=$((n + 1))
	done
	for i in $(seq 50); do
		[ "$(<"$tmp/many$i")" = "$i" ] && continue
		n=$((n - 1))
		sed "s/^/# $i: /" "$tmp/many$i" >&2
	done
	echo $n
}
is "50 at once" "$(many)" 50

# left alone, listed, come back to, killed
said=$tmp/said
mkdir -m 777 "$said"
spawn --detach -- sh -c "sleep 0.3; echo later; : >$said/later; sleep 1000"
id=$out
like "--detach" "$rc $id" "^0 [0-9a-f]+-[0-9]+$"
asked ps
like "ps" "$out" "$id +running +one +$(id -u "$user") .*sleep"
asked ps --json
is "ps --json" "$(json '[(p["id"], p["owner"], p["from"]) for p in j]' <<<"$out")" "[('$id', $(id -u "$user"), 'one')]"
if [ -n "$other" ]; then
	mine=("${as[@]}")
	as=(setpriv --reuid "$other" --clear-groups)
	asked ps --json
	is "another user does not see it" "$rc/$out" "0/[]"
	asked kill "$id"
	like "... nor can he end it" "$rc $err" "^1 .*no such process of this user"
	spawn --attach "$id"
	like "... or take it over" "$rc $err" "^255 .*no such process"
	as=("${mine[@]}")
	run "$ringgate" ps
	like "root sees it" "$out" "$id +running"
else
	skip "another user" "needs root and a user backup"
fi
ok "it has said something" wait_for 20 test -e "$said/later"
asked kill "$id"
is "kill" "$rc" 0
spawn --attach "$id"
is "--attach: what came meanwhile, and its end" "$rc/$out" "143/later"
asked kill "$id"
like "it is forgotten then" "$rc $err" "^1 .*no such process of this user"

# who asked is killed
# begin NAME ARGUMENT...: in the background, when it has written its number to NAME
has_line() { [ -s "$tmp/$1" ]; }
begin()
{
	local name=$1
	shift
	: >"$tmp/$name"
	"${as[@]}" "$ringgate" spawn "$@" -- sh -c 'echo $$; exec sleep 1000' </dev/null \
		>"$tmp/$name" 2>"$tmp/$name.err" &
	pid[$name]=$!
	ok "$name: it runs" wait_for 20 has_line "$name"
}
begin victim
kill -9 "${pid[victim]}"
wait "${pid[victim]}" 2>/dev/null
unset "pid[victim]"
ok "... and ends with who asked" wait_for 20 gone "$(<"$tmp/victim")"
begin kept --keep
kill -9 "${pid[kept]}"
wait "${pid[kept]}" 2>/dev/null
unset "pid[kept]"
free() { "${as[@]}" "$ringgate" ps --json | json '[p["attached"] for p in j] == [False]' | grep -q True; }
ok "--keep: who asked is gone" wait_for 20 free
ok "... and it goes on" kill -0 "$(<"$tmp/kept")"

# the daemon that was asked is killed
begin orphan
kill -9 "${pid[1]}"
wait "${pid[1]}" 2>/dev/null
unset "pid[1]"
wait "${pid[orphan]}"
like "who asked is told at once" "$? $(<"$tmp/orphan.err")" "^255 .*lost: ringgated of this machine has ended"
unset "pid[orphan]"
start_asked
ok "the daemon comes back" wait_for 20 ready 1
ok "... and sees the other one" wait_for 20 up
ok "what it had asked for is gone" wait_for 20 gone "$(<"$tmp/orphan")"
asked ps --json
is "but not what was to be kept" "$(json '[p["state"] for p in j]' <<<"$out")" "['running']"
id=$(json 'j[0]["id"]' <<<"$out")
asked kill -s KILL "$id"
is "which is the same user's" "$rc" 0
ok "... and ends" wait_for 20 gone "$(<"$tmp/kept")"

# who may ask
if [ -n "$other" ]; then
	echo "allow any log" >"$tmp/allow"
	kill -HUP "${pid[1]}"
	reread() { grep -q "policy of requests was read again" "$tmp/log1"; }
	ok "another policy" wait_for 20 reread
	spawn true
	like "not allowed: which line to add" "$rc $err" "^255 .*allow user:$user spawn"
	asked ps
	like "... for ps" "$rc $err" "^1 .*allow user:$user spawn"
	spawn_root() { "$ringgate" spawn true </dev/null; }
	ok "root may" spawn_root
else
	skip "who may ask" "needs root and a user backup"
fi

for n in 1 0; do
	kill "${pid[$n]}"
	wait "${pid[$n]}"
	is "daemon $n ends well" "$?" 0
	unset "pid[$n]"
done
is "no daemon's sanitizer or pool complained" "$(complaints "$tmp"/log*)" ""
finish
