#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 300
# Sockets that the daemon has for programs: who may have which, and who sees and ends them.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

ringgated=$build/tools/ringgated
plain_cli tsan
pid=
server=
node=
# shellcheck disable=SC2086 # those that there are
trap '[ -z "$pid$node" ] || kill -9 $pid $node $server 2>/dev/null; rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
cluster_of_two "$tmp/cluster"
# A build with sanitizers lies below the one that has the examples: its daemon serves them.
examples=$build/examples
[ -x "$examples/echo_server" ] || examples=$(dirname "$build")/examples
for example in echo_server http_get; do
	cp "$examples/$example" "$tmp/$example"
done
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid nobody --clear-groups)

# what is wrong with a policy: REGEX LINE...
bad_policy()
{
	local want=$1
	shift
	printf '%s\n' "$@" >"$tmp/bad"
	chmod 600 "$tmp/bad"
	run "$ringgated" --check -C "$tmp/cluster" -n gw -s "$tmp/s" \
		--requests "socket $tmp/r" --requests "sockets $tmp/bad"
	like "refused: ${*: -1}" "$rc $err" "^1 .*bad:$#: .*$want"
}
run "$ringgated" --check -C "$tmp/cluster" -n gw -s "$tmp/s" --requests "sockets $tmp/none"
like "a policy of sockets that nobody can ask for" "$rc $err" "^1 .*without requests socket"
run "$ringgated" --check -C "$tmp/cluster" -n gw -s "$tmp/s" --requests "socket $tmp/r" \
	--requests "sockets $tmp/none"
like "a policy that is not there" "$rc $err" "^1 .*cannot read $tmp/none: No such file"
bad_policy "what is 'fly'" "allow any connect tcp any 443" "fly any"
bad_policy "'80-2000': ports below 1024" "allow any connect tcp any 80-2000"
bad_policy "'10.0.0.1/8' is no address" "allow any connect tcp 10.0.0.1/8 443"

printf 'allow any socket\n' >"$tmp/requests"
: >"$tmp/policy"
chmod 600 "$tmp/requests" "$tmp/policy"
"$ringgated" -C "$tmp/cluster" -n gw -s "$tmp/s" --pool 16M --requests "socket $tmp/r" \
	--requests "policy $tmp/requests" --requests "sockets $tmp/policy" 2>"$tmp/log" &
pid=$!
net() { "$ringgate" net "$@" -s "$tmp/s"; }
status() { "$ringgate" cluster status -s "$tmp/s"; }
ok "a daemon that serves sockets" wait_for 20 status
is "it has none" "$(net --json list)" "[]"

# The daemon's own user may everything: a server of its.
"$tmp/echo_server" 127.0.0.1:0 "$tmp/r" >"$tmp/server" 2>&1 &
server=$!
listens() { grep -q '^listens at ' "$tmp/server"; }
ok "a server listens through it" wait_for 20 listens
at=$(sed -n 's/^listens at //p' "$tmp/server")
of() { net --json | json "[x[\"$1\"] for x in j if x[\"state\"] == \"$2\"]"; }
is "its socket is listed" "$(of local LISTEN)" "['$at']"
like "... for people, too" "$(net)" "tcp +LISTEN +0 +0 +$at"
exec 5<>"/dev/tcp/127.0.0.1/${at##*:}"
echo hello >&5
read -r -t 20 line <&5 2>/dev/null
is "it answers through the daemon's sockets" "$line" hello
is "what went is counted" "$(of received ESTAB)$(of sent ESTAB)" "[6][6]"
id=$(of id ESTAB | tr -d '[]')
run "$ringgate" net kill 9999 -s "$tmp/s"
like "no such socket" "$rc $err" "^1 .*there is no socket 9999"
run "$ringgate" net kill "$id" -s "$tmp/s"
is "a connection is ended" "$rc$out" 0
gone() { [ "$(of id ESTAB)" = "[]" ]; }
ok "... and gone" wait_for 20 gone
! read -r -t 20 line <&5 2>/dev/null
is "... at the peer as well" "$?" 0
exec 5>&-
count() { "$ringgate" cluster status --json -s "$tmp/s" | json "j[\"requests\"][\"sockets\"][\"$1\"]"; }
is "and counted" "$(count accepted) $(count killed) $(count received)" "1 1 6"

# Others may what a line says.
ask()
{
	timeout 2 "${as[@]}" "$tmp/http_get" "$at" / "$tmp/r" >"$tmp/out" 2>"$tmp/err"
	head -c 5 "$tmp/out"
	cat "$tmp/err"
}
if [ ${#as[@]} = 0 ]; then
	skip "another user" "this test is not root's"
else
	like "a user without a line may reach nothing" "$(ask)" "let this user"
	like "the log says which line would let him" "$(cat "$tmp/log")" \
		"may not connect tcp 127.0.0.1 .*'allow user:[0-9]+ connect tcp 127.0.0.1 ${at##*:}'"
	echo "allow user:nobody connect tcp 127.0.0.0/8 any" >"$tmp/policy"
	kill -HUP "$pid"
	reached() { [ "$(ask)" = "GET /" ]; }
	ok "with one, read on SIGHUP, he may" wait_for 20 reached
	run "${as[@]}" "$tmp/echo_server" 127.0.0.1:0 "$tmp/r"
	like "but not listen" "$rc $err" "^1 .*let this user"
	like "nor anybody end sockets" "$("${as[@]}" "$ringgate" net kill 1 -s "$tmp/s" 2>&1)" \
		"permission|only root"
fi

# Names, where the sockets are
named()
{
	timeout 2 "${as[@]}" "$tmp/http_get" "$1:${at##*:}" / "$tmp/r" >"$tmp/out" 2>"$tmp/err"
	head -c 5 "$tmp/out"
	cat "$tmp/err"
}
if [ ${#as[@]} = 0 ]; then
	is "a name is looked up by the daemon" "$(named localhost)" "GET /"
else
	like "a user without a line may ask for no name" "$(named localhost)" "let this user"
	like "... as the log says" "$(cat "$tmp/log")" \
		"may not resolve localhost: 'allow user:[0-9]+ resolve localhost'"
	echo "allow user:nobody resolve localhost" >>"$tmp/policy"
	kill -HUP "$pid"
	found() { [ "$(named localhost)" = "GET /" ]; }
	ok "with one he may" wait_for 20 found
	like "but not for others" "$(named localhost.example)" "let this user"
fi
like "no name" "$("$tmp/http_get" "local/host:80" / "$tmp/r" 2>&1)" "^local.host:80: no name has such"

kill "$server"
wait "$server"
is "the server ends" "$?" 0
empty() { [ "$(net --json)" = "[]" ]; }
ok "and leaves no socket" wait_for 20 empty
kill "$pid"
wait "$pid"
is "the daemon ends" "$?" 0
pid=

# Programs of another node: the gateway's daemon has their sockets.
me=$(id -u)
printf 'allow any socket\n' >"$tmp/requests1"
printf 'allow any socket\nnode 1 user:%s\n' "$me" >"$tmp/requests"
: >"$tmp/policy"
chmod 600 "$tmp/requests1"
: >"$tmp/log0"
# Names that only the gateway has
in_own=()
if unshare -m true 2>/dev/null; then
	printf '127.0.0.1 localhost\n127.0.0.1 ringgate-gateway.example\n' >"$tmp/hosts"
	in_own=(unshare -m sh -c "mount --bind '$tmp/hosts' /etc/hosts && exec \"\$@\"" sh)
fi
start_gateway()
{
	"${in_own[@]}" "$ringgated" -C "$tmp/cluster" -n gw -s "$tmp/s" --pool 16M --requests "socket $tmp/r" \
		--requests "policy $tmp/requests" --requests "sockets $tmp/policy" 2>>"$tmp/log0" &
	pid=$!
}
start_node()
{
	"$ringgated" -C "$tmp/cluster" -n one -s "$tmp/s1" --pool 16M --requests "socket $tmp/r1" \
		--requests "policy $tmp/requests1" --requests "sockets-at gateway" 2>"$tmp/log1" &
	node=$!
}
run "$ringgated" --check -C "$tmp/cluster" -n one -s "$tmp/s1" --requests "sockets-at home"
like "sockets are at two places only" "$rc $err" "^1 .*sockets-at here or gateway"
start_gateway
start_node
met() { "$ringgate" cluster status -s "$tmp/s1" --json 2>/dev/null | json '[p["state"] for p in j["peers"]]' | grep -q up; }
ok "a gateway, and a node that asks it" wait_for 20 met
# start_server WHAT: and it listens
start_server()
{
	: >"$tmp/server"
	"$tmp/echo_server" 127.0.0.1:0 "$tmp/r1" >>"$tmp/server" 2>&1 &
	server=$!
	ok "$1" wait_for 20 listens
	at=$(sed -n 's/^listens at //p' "$tmp/server")
}
# ends_badly WHAT: the server
ends_badly()
{
	local rc=0
	wait "$server" || rc=$?
	like "$1" "$rc" '^1$'
}
start_server "a program of the node listens at the gateway"
is "where its socket is listed" "$(of local LISTEN)" "['$at']"
run "$ringgate" net list -s "$tmp/s1"
like "... and not at the node" "$rc $err" "^1 .*gateway's: ask its daemon"
timeout 20 "$tmp/http_get" "$at" / "$tmp/r1" >"$tmp/out" 2>"$tmp/err"
is "another one connects to it" "$(head -c 5 "$tmp/out")" "GET /"
if [ ${#in_own[@]} = 0 ]; then
	skip "a name that only the gateway knows" "no mount namespace for it"
else
	like "a name that the node does not know" \
		"$("$tmp/http_get" "ringgate-gateway.example:${at##*:}" / 2>&1)" \
		"no such name|no address|no name server|name server failed"
	timeout 5 "$tmp/http_get" "ringgate-gateway.example:${at##*:}" / "$tmp/r1" \
		>"$tmp/out" 2>"$tmp/err"
	is "... is the gateway's" "$(head -c 5 "$tmp/out")$(cat "$tmp/err")" "GET /"
fi
head -c 200000 /dev/urandom >"$tmp/sent"
exec 5<>"/dev/tcp/127.0.0.1/${at##*:}"
timeout 60 cat "$tmp/sent" >&5 &
timeout 60 head -c 200000 <&5 >"$tmp/back"
ok "bytes come back as they went" cmp "$tmp/sent" "$tmp/back"
is "all of them by the gateway's socket" "$(of received ESTAB)$(of sent ESTAB)" "[200000][200000]"
kill -9 "$node"
wait "$node" 2>/dev/null
node=
ok "its daemon is killed: the gateway has none of its sockets" wait_for 60 empty
! read -r -t 20 line <&5 2>/dev/null
is "... as the peer sees" "$?" 0
exec 5>&-
ends_badly "... and the program"
start_node
ok "the node is there again" wait_for 20 met
start_server "and a program listens"
kill -9 "$pid"
wait "$pid" 2>/dev/null
start_gateway
ended() { ! grep -qs '^State:.[^Z]' "/proc/$server/status"; }
ok "the gateway is another one: the program is told" wait_for 60 ended
ends_badly "... that it has no sockets any more"
start_server "a new one has some"
kill "$server"
wait "$server"
is "it ends" "$?" 0
ok "and leaves nothing" wait_for 20 empty
if [ ${#as[@]} = 0 ]; then
	skip "a user for whom the node does not speak" "this test is not root's"
else
	timeout 20 "${as[@]}" "$tmp/echo_server" 127.0.0.1:0 "$tmp/r1" >"$tmp/out" 2>&1
	like "a user for whom the node does not speak" "$(cat "$tmp/out")" "let this user"
fi
kill "$node" "$pid"
wait "$node"
is "the node's daemon ends" "$?" 0
wait "$pid"
is "so does the gateway's" "$?" 0
pid=
node=
finish
