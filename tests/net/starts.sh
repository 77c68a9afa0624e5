#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 180
# What keeps ringgated from starting: words that are none, a configuration that cannot be
# read, and descriptors of which there are not enough, from none at all to almost all of them.
# Each time it ends by itself, says why, and leaves nothing at its socket.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

ringgated=$build/tools/ringgated
pid=
trap '[ -z "$pid" ] || kill -9 $pid 2>/dev/null; rm -rf "$tmp"' EXIT
cluster_of_two "$tmp/cluster"
printf 'allow any socket\n' >"$tmp/policy"
chmod 600 "$tmp/policy"

# words REGEX ARGUMENT...: how it is called is wrong
words()
{
	run timeout $((10 * slow)) "$ringgated" --check -C "$tmp/cluster" -n gw -s "$tmp/s" "${@:2}"
	like "${*:2:1}" "$rc $err" "^2 .*$1"
}
words "'stray' is no option" stray
words "source: too long" --source "udp $(printf 'x%.0s' {1..5000})"
many=()
for i in {1..200}; do many+=(--requests "user $i"); done
words "too many options" "${many[@]}"

# file REGEX TEXT: a line of the configuration, which is named with its number
file()
{
	printf '# a comment\n\n%s\n' "$2" >"$tmp/conf"
	run timeout $((10 * slow)) "$ringgated" --check -c "$tmp/conf" -C "$tmp/cluster" -n gw -s "$tmp/s"
	like "the file says '$2'" "$rc $err" "^1 .*$tmp/conf:3: .*$1"
}
file "no such key: 'colour'" "colour blue"
file "." 'user "no end'
run "$ringgated" --check -c "$tmp/none" -C "$tmp/cluster" -n gw -s "$tmp/s"
like "a file that is not there" "$rc $err" "^1 .*$tmp/none"
printf 'pool 16M\nsource udp 127.0.0.1:%s policy drop\n' "$(free_port)" >"$tmp/conf"
run "$ringgated" --check -c "$tmp/conf" -C "$tmp/cluster" -n gw -s "$tmp/s"
is "one that is right" "$rc/$err" 0/

# place REGEX CLUSTER ARGUMENT...: where the node would be, there is nothing
place()
{
	run timeout $((10 * slow)) "$ringgated" -C "$2" -n gw -s "$tmp/s" --pool 16M "${@:3}"
	like "${*:3} of a node that cannot be there" "$rc $err" "^1 ringgated: $1"
}
sed "s,^node 0 gateway .* gw,node 0 gateway $tmp/none/n0 gw," "$tmp/cluster" >"$tmp/far"
for how in --check --; do
	place "the socket of node 0 cannot be written to $tmp/none: No such file or directory" \
		"$tmp/far" $how
done
sed "s,^provider local,provider verbs,; s, $tmp/n\([01]\) , 192.0.2.\1 ," "$tmp/cluster" >"$tmp/rdma"
place ".*node 0 cannot be at 192.0.2.0: " "$tmp/rdma" --check
place ".*cannot become node 0: " "$tmp/rdma" --

# begins N NODE ARGUMENT...: with N descriptors, until it is ready; 0: it is
begins()
{
	: >"$tmp/out"
	(ulimit -n "$1" && exec "$ringgated" -C "$tmp/cluster" -s "$tmp/s" -n "${@:2}") \
		>"$tmp/out" 2>&1 </dev/null &
	pid=$!
	for ((t = 0; t < 100 * slow; t++)); do
		if grep -q "is ready" "$tmp/out"; then
			return 0
		fi
		kill -0 $pid 2>/dev/null || break
		sleep 0.05
	done
	kill -0 $pid 2>/dev/null && echo "it hangs" >>"$tmp/wrong"
	wait $pid
	echo "$1: $?" >>"$tmp/ends"
	pid=
	return 1
}
ends()
{
	[ -n "$pid" ] && kill $pid && wait $pid
	is "... and ends" $? 0
	pid=
}
# starts NODE ARGUMENT...: with more and more of them, until it does
starts()
{
	local step=1

	least=
	rm -f "$tmp/ends" "$tmp/wrong" "$tmp/said"
	# ThreadSanitizer has little to see where there are hardly any threads yet.
	[ "$sanitizer" = tsan ] && step=4
	for ((n = 4; n <= 120; n += step)); do
		if begins "$n" "$@"; then
			least=$n
			break
		fi
		[ -s "$tmp/out" ] || echo "$n: no word" >>"$tmp/wrong"
		[ ! -e "$tmp/s" ] || echo "$n: its socket stays" >>"$tmp/wrong"
		[ ! -e "$tmp/r" ] || echo "$n: the requests' socket stays" >>"$tmp/wrong"
		complaints "$tmp/out" >>"$tmp/wrong"
		head -n 1 "$tmp/out" >>"$tmp/said"
	done
	cat "$tmp/wrong" "$tmp/said" 2>/dev/null | sed 's/^/# /'
	ok "node $1 starts with enough descriptors" [ -n "$least" ]
	ok "... and that is more than a few" [ "${least:-0}" -gt 10 ]
	is "... with fewer it has ended with 1 each time" "$(cut -d' ' -f2 "$tmp/ends" | sort -u)" 1
	ok "... has said why, and left nothing" [ ! -s "$tmp/wrong" ]
	is "... and lacks nothing when it starts" "$(grep -v 'is ready' "$tmp/out")" ""
	ends
}
status() { "$ringgate" cluster status -s "$tmp/s"; }

# ask REQUEST: what the daemon answers
ask()
{
	timeout $((20 * slow)) python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
s.send(sys.argv[2].encode())
print(s.recv(65536).decode().strip())' "$tmp/s" "$1"
}

gateway=(gw -c "$tmp/conf" --requests "socket $tmp/r" --requests "policy $tmp/policy")
starts "${gateway[@]}"
# who asks takes some, too
begins $((least + 16)) "${gateway[@]}"
ok "with some more it answers" wait_for 10 status
usage="err 22 net list AFTER, or net kill ID"
is "what can be done with sockets" \
	"$(ask net && ask "net list" && ask "net list x" && ask "net fly 1")" \
	"$usage
$usage
$usage
$usage"
like "a socket that is not there" "$(ask "net kill 12345")" "^err [0-9]+ .*[a-z]"
is "none is listed" "$(ask "net list 0" | head -c 2)" ok
ends

printf 'node gw user %s\nallow gw any\n' "$(id -un)" >"$tmp/spawn"
chmod 600 "$tmp/spawn"
compute=(one --pool 16M --spawn "policy $tmp/spawn" --spawn "cgroup none")
starts "${compute[@]}"
RGATE_SPAWNER=$tmp/none begins 200 "${compute[@]}"
is "without its helper it does not start" "$(cut -d' ' -f2 "$tmp/ends" | sort -u)" 1
like "... and says which" "$(<"$tmp/out")" "$tmp/none"

# A ring that no gateway has filled yet: nothing is known of its clock
begins 200 "${compute[@]}"
is "sockets are served where requests are" "$(ask "net list 0")" \
	"err 95 this daemon serves no sockets: it has no requests socket"
cat >"$tmp/idle.py" <<-'END'
	import socket, sys, time
	s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
	s.connect(sys.argv[1])
	s.send(b"ring-open 64 2048 0 0 idle")
	print(s.recv(1000).decode(), flush=True)
	time.sleep(100)
END
python3 "$tmp/idle.py" "$tmp/s" >"$tmp/idle" &
idle=$!
opened() { grep -q ok "$tmp/idle"; }
ok "a ring is opened" wait_for 10 opened
like "... and its state" "$(status)" "RING +SLOTS +SIZE +STATE +FRAMES +BYTES +SESSIONS +OFFSET_US
idle +64 +2048 +waiting +0 +0 ?B? +0 +-"
kill $idle
wait $idle 2>/dev/null
ends
finish
