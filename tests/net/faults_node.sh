#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 400
# What can go wrong with the daemons that have the sockets of programs as they are, at a gateway and at a
# node, and with who is asked through them: each byte that a program gets is looked at, each call that waits
# ends, and no stream that broke reads as if it had ended.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"
# shellcheck source=tests/net/lib/programs.sh
. "$(dirname "$0")/lib/programs.sh"
# shellcheck source=tests/net/lib/streams.sh
. "$(dirname "$0")/lib/streams.sh"

ringgated=$build/tools/ringgated
command -v python3 >/dev/null || skip_all "python3 is not installed"
build_streams
chmod 755 "$tmp"
mkdir -m 1777 "$tmp/run"
export XDG_RUNTIME_DIR=$tmp/run
serves_nobody

cluster_of_two "$tmp/cluster"
# Of a user with more connections than most have
limits='limit any sessions 100 requests 100000 handles 10000 memory 1G'
policies()
{
	printf 'allow any socket\nnode 1 user:%s\n%s\n' "$(id -u)" "$limits" >"$tmp/requests"
	printf 'allow any connect any 127.0.0.0/8 any\nallow any listen any any\n%s\n' \
		'limit any sockets 4000' >"$tmp/policy"
}
policies
printf 'allow any socket\n%s\n' "$limits" >"$tmp/requests1"
chmod 600 "$tmp/requests" "$tmp/requests1" "$tmp/policy"
gateway_up()
{
	begin daemon "$ringgated" -C "$tmp/cluster" -n gw -s "$tmp/s" --pool 16M --requests "socket $tmp/r" \
		--requests "policy $tmp/requests" --requests "sockets $tmp/policy"
	gateway=$last
	wait_for 20 count received
	result $? "$1"
}
node_up()
{
	begin node "$ringgated" -C "$tmp/cluster" -n one -s "$tmp/s1" --pool 16M \
		--requests "socket $tmp/r1" --requests "policy $tmp/requests1" --requests "sockets-at gateway"
	node=$last
	wait_for 20 met_gateway
	result $? "$1"
}
gateway_up "a gateway"
node_up "a node that has its sockets at this gateway"
at_gateway=(timeout $((200 * slow)) "$ringgate" run --socket "$tmp/r" --loopback served)
at_node=(timeout $((200 * slow)) "$ringgate" run --socket "$tmp/r1" --loopback served)
# all_reset NAME N: they were, and all that they had got before was right
all_reset()
{
	wait "$asker"
	is "$1: it ends" $? 0
	like "... all of its streams are reset, behind bytes that are right" "$(result_of "$1")" \
		"^whole 0 reset $2 cut 0 failed 0 .* refused 0 0"
}
# whole NAME N COMMAND...: they are, there and back
whole()
{
	local name=$1 n=$2
	shift 2
	run "$@" ask "$at" "$n" 100000 50
	like "$name" "$rc $out" "^0 up $n"$'\n'"whole $n reset 0 cut 0 failed 0 0 refused 0 0"
}

# makes NAME PROGRAM [datagrams]: in the background, $maker
makes()
{
	local name=$1 program=$2
	shift 2
	begin "$name" "${at_node[@]}" "$program" made "$at" "$@"
	maker=$last
	ok "$name: sockets of each kind are made" wait_for 20 grep -q '^made' "$tmp/$name"
}
# used NAME PID: all of them are of use
used()
{
	local name=$1
	# After the listeners have been bound again, which nobody tells
	kill -USR1 "$(program_of "$2")"
	wait_for 60 grep -q '^ports' "$tmp/$name"
	# shellcheck disable=SC2046 # ports
	run "$py" "$top/tests/net/lib/made.py" ask $(sed -n 's/^ports //p' "$tmp/$name")
	is "$name: they are bound, listen, and are connected" "$rc $out$err" "0 asked"
	wait "$2"
	is "... with their options" "$? $(tail -1 "$tmp/$name")" "0 over"
}

# limited NAME REGEX: of 40 streams of the program that was run some were refused, so, and all others are whole
limited()
{
	like "$1: some are refused" "$rc $out" \
		"^0 .*whole ([1-9]|[1-3][0-9]) reset 0 cut 0 failed 0 0 refused ([1-9]|[1-3][0-9]) $2"
	is "... and all others are whole" $((BASH_REMATCH[1] + BASH_REMATCH[2])) 40
}

# ---- The gateway is killed, and started again ----

# 14 connections have a session, and a node 64 guests.
serves peer
names=(far far_static near near_static)
asks far "${at_node[@]}" "$streams" ask "$at" 740 0 1
askers=("$asker")
asks far_static "${at_node[@]}" "$static" ask "$at" 40 0 2001
askers+=("$asker")
asks near "${at_gateway[@]}" "$streams" ask "$at" 180 0 3001
askers+=("$asker")
asks near_static "${at_gateway[@]}" "$static" ask "$at" 40 0 4001
askers+=("$asker")
is "a thousand connections" "$(count open)" 1000
begin echo "$py" "$top/tests/net/lib/made.py" echo "$at"
echo=$last
port echo >/dev/null
makes made "$streams" datagrams
made=$maker
makes made_static "$static" datagrams
for program in "$streams" "$static"; do
	begin "${program##*/}.waits" "${at_node[@]}" "$program" waits "$at" "$full" accept
	askers+=("$last")
	ok "${program##*/}: calls of each kind wait" wait_for 20 grep -q '^waits' "$tmp/${program##*/}.waits"
done
end "$gateway" -KILL
gateway_up "the gateway is killed, and started again"
wait_for 20 met_gateway
ns=(740 40 180 40)
for i in 0 1 2 3; do
	asker=${askers[i]}
	all_reset "${names[i]}" "${ns[i]}"
done
used made "$made"
used made_static "$maker"
i=4
for program in "$streams" "$static"; do
	how=${program##*/}
	ends() { sed '0,/^waits/d;/^accepts/d' "$tmp/$how.waits" | tr '\n' ' '; }
	ended() { [ "$(ends | wc -w)" = 12 ]; }
	ok "$how: each call that waits has ended, but accept" wait_for 30 ended
	ok "... which gets who comes to the new gateway" "$py" -c 'import socket, sys
socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60).close()' "$(sed -n 's/^accepts at //p' "$tmp/$how.waits")"
	wait "${askers[i]}"
	is "... and then ends, too" "$? $(tail -1 "$tmp/$how.waits")" "0 over"
	like "... and of the others none was a success, or an end" \
		"$(ends)" "^((recv|poll|half|send) E(CONNRESET|PIPE) |connect(ed)? ENETDOWN ){6}accept 0 over $"
	i=$((i + 1))
	whole "a new one has sockets of the new gateway" 4 "${at_node[@]}" "$program"
done
end "$server"
end "$echo"

# ---- The wire between the two, for less and for more than the time in which it may come back ----

# A daemon that stands still is a wire that is cut, to the other one.
cut() { ! "$ringgate" cluster status -s "$tmp/s" --json | json '[p["state"] for p in j["peers"]]' | grep -q up; }
for program in "$streams" "$static"; do
	how=${program##*/}
	serves peer
	begin "$how.less" "${at_node[@]}" "$program" ask "$at" 8 20000000 1
	less=$last
	ok "$how: its streams go" wait_for 60 grep -q '^up ' "$tmp/$how.less"
	kill -STOP "$node"
	is "... and are in the midst of it" "$(result_of "$how.less")" ""
	ok "the node is cut off" wait_for 30 cut
	kill -CONT "$node"
	ok "... for less than it may be" wait_for 30 met_gateway
	wait "$less"
	like "each stream goes on at its byte" "$? $(result_of "$how.less")" "^0 whole 8 reset 0 cut 0 failed 0 0 refused 0 0"
	end "$server"
done
serves made_peer
made_peer=$server
begin echo "$py" "$top/tests/net/lib/made.py" echo "$at"
echo=$last
port echo >/dev/null
makes cut_off "$streams" datagrams
made=$maker
makes cut_off_static "$static" datagrams
serves peer
asks more "${at_node[@]}" "$streams" ask "$at" 8 0 1
more=$asker
asks more_static "${at_node[@]}" "$static" ask "$at" 8 0 1
kill -STOP "$node"
none() { [ "$(count open)" = 0 ]; }
ok "the gateway gives up a node that is cut off for longer" wait_for 60 none
ended_as "... and resets what it had" "^ended 0 reset 16$"
kill -CONT "$node"
ok "it is back" wait_for 30 met_gateway
all_reset more_static 8
asker=$more
all_reset more 8
used cut_off "$made"
used cut_off_static "$maker"
end "$made_peer"
end "$echo"

# ---- The node's daemon is killed ----

serves peer
asks killed "${at_node[@]}" "$streams" ask "$at" 8 0 1
killed=$asker
asks killed_static "${at_node[@]}" "$static" ask "$at" 8 0 1
end "$node" -KILL
all_reset killed_static 8
asker=$killed
all_reset killed 8
ended_as "... and so they are to their peer" "^ended 0 reset 16$"
node_up "it is started again"

# ---- What it may reach is changed under it ----

serves peer
asks spoken_for "${at_node[@]}" "$streams" ask "$at" 8 0 1
spoken_for=$asker
asks spoken_static "${at_node[@]}" "$static" ask "$at" 8 0 1
begin others "${at_gateway[@]}" "$streams" ask "$at" 4 10000000 1
others=$last
printf 'allow any socket\n%s\n' "$limits" >"$tmp/requests"
kill -HUP "$gateway"
all_reset spoken_static 8
asker=$spoken_for
all_reset spoken_for 8
like "... and it has no sockets any more" "$(result_of spoken_for)" "then E[A-Z]+$"
wait "$others"
like "others go on" "$(result_of others)" "^whole 4 reset 0 cut 0 failed 0 0 refused 0 0"
policies
kill -HUP "$gateway"
back() { "${at_node[@]}" "$streams" ask "$at" 1 1 1 | grep -q '^whole 1'; }
ok "it is allowed again" wait_for 20 back
if [ "$(id -u)" = 0 ]; then
	cp "$ringgate" "$build/tools/libringgate-preload.so" "$tmp/"
	as=(setpriv --reuid nobody --clear-groups timeout $((60 * slow)) "$tmp/ringgate" run --socket "$tmp/r"
		--loopback served)
	asks live "${as[@]}" "$streams" ask "$at" 4 0 1
	echo '# as it was' >>"$tmp/policy"
	kill -HUP "$gateway"
	sleep 1
	is "a policy that lets another user go on does" "$(result_of live)" ""
	: >"$tmp/policy"
	kill -HUP "$gateway"
	all_reset live 4
	like "... and one that does not lets him connect no more" "$(result_of live)" "then EACCES$"
	policies
	# Memory of his, too little for so many connections at once
	sed -i 's/^limit.*/limit any sessions 100 requests 100000 handles 10000 memory 1M/' "$tmp/requests"
	kill -HUP "$gateway"
	sleep 1
	run "${as[@]}" "$streams" ask "$at" 40 100000 50
	limited "what he may have of memory is used up" E[A-Z]+
	policies
	kill -HUP "$gateway"
else
	skip "one of another user" "this test is not root's"
fi

# ---- Limits ----

fds() { find "/proc/$1/fd" -mindepth 1 | wc -l; }
asks beside "${at_node[@]}" "$streams" ask "$at" 110 0 1
prlimit --pid "$gateway" --nofile=$(($(fds "$gateway") + 20)):
for program in "$streams" "$static"; do
	run "${at_node[@]}" "$program" ask "$at" 40 100000 50
	limited "${program##*/}: the gateway has no descriptor left" "E(MFILE|NFILE)"
done
prlimit --pid "$gateway" --nofile=1024:
whole "... and then it has" 40 "${at_node[@]}" "$streams"
if grep -q __asan_init "$ringgated" || grep -q __tsan_init "$ringgated"; then
	skip "the gateway gets no memory any more" "what looks for mistakes needs some"
else
	data=$(awk '$1 == "VmData:" { print $2 }' "/proc/$gateway/status")
	prlimit --pid "$gateway" --data=$((data * 1024)):
	run "${at_node[@]}" "$streams" ask "$at" 200 100000 50
	sed 's/^/# /' <<<"$out"
	like "the gateway gets no memory any more: each stream has an end" "$rc $out" \
		"^0 .*whole ([0-9]+) reset ([0-9]+) cut 0 failed 0 [A-Z0]+ refused ([0-9]+) "
	is "... each" $((BASH_REMATCH[1] + BASH_REMATCH[2] + BASH_REMATCH[3])) 200
	prlimit --pid "$gateway" --data=unlimited:
	whole "... and then it does" 40 "${at_node[@]}" "$streams"
fi
is "who was there before is so yet" "$(result_of beside)" ""
end "$server"
wait "$asker"
like "... and has got what is right" "$(result_of beside)" "^whole 0 .* failed 0 .* refused 0 0 bytes [0-9]{6,}"
finish
