#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 180
# The socket of requests: configuration that is wrong, and peers that speak otherwise than
# clients do, which are counted, closed, and stop nobody.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

ringgated=$build/tools/ringgated
pid=
trap '[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null; rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
cluster_of_two "$tmp/cluster"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid nobody --clear-groups)
# one that another user may run, too
for python in /usr/bin/python3 python3; do
	! "${as[@]}" $python -c "" 2>/dev/null || break
done

# what is wrong with the configuration: REGEX ARGUMENT...
bad()
{
	local want=$1
	shift
	run "$ringgated" --check -C "$tmp/cluster" -n gw -s "$tmp/s" "$@"
	like "refused: $*" "$rc $err" "^1 .*$want"
}
# ... or with a policy: REGEX LINE...
bad_policy()
{
	local want=$1
	shift
	printf '%s\n' "$@" >"$tmp/bad"
	chmod 600 "$tmp/bad"
	run "$ringgated" --check -C "$tmp/cluster" -n gw -s "$tmp/s" \
		--requests "socket $tmp/r" --requests "policy $tmp/bad"
	like "refused: ${*: -1}" "$rc $err" "^1 .*bad:$#: .*$want"
}
bad "requests is: socket PATH" --requests "socket"
bad "requests is: socket PATH" --requests "fly x"
bad "this is too much" --requests "socket $tmp/r more"
bad "without requests socket" --requests "policy $tmp/policy"
bad "without requests socket" --requests "socket none" --requests "group root"
bad "without requests socket" --requests "socket none" --requests "sockets-at gateway"
bad "no group 'none-such'" --requests "socket $tmp/r" --requests "group none-such"
bad "cannot be written" --requests "socket $tmp/nodir/r"
bad "is that of the daemon" --requests "socket $tmp/s"
bad "cannot read $tmp/none: No such file" --requests "socket $tmp/r" --requests "policy $tmp/none"
bad_policy "what is 'fly'" "allow any all" "fly any"
bad_policy "allow WHO SERVICE" "allow any"
bad_policy "what is 'allo'" "allo"
bad_policy "is neither user:NAME" "allow nobody log"
bad_policy "no user 'none-such'" "# one" "allow user:none-such log"
bad_policy "no group 'none-such'" "allow group:none-such log"
bad_policy "'mail' is no service" "allow any log mail"
bad_policy "'32' is no service" "allow any 32"
bad_policy "limit WHO WHAT VALUE" "limit any sessions"
bad_policy "no limit 'fun'" "limit any fun 1"
bad_policy "sessions is '0'" "limit any sessions 0"
bad_policy "requests is '1K'" "limit any requests 1K"
bad_policy "urgent WHO" "urgent any all"
bad_policy "node NUMBER|any WHO" "node 1"
bad_policy "'8' is no node" "node 8 any"
bad_policy "node: a user or any, no group" "node any group:0"
bad_policy "a quote that does not end" 'allow any "log'
chmod 622 "$tmp/bad"
bad "others may write it" --requests "socket $tmp/r" --requests "policy $tmp/bad"
printf 'allow any log 31 # all of these\nurgent any\n' >"$tmp/policy"
printf 'limit user:0 sessions 1000000 requests 5 handles 0x10 memory 1G\n' >>"$tmp/policy"
chmod 600 "$tmp/policy"
run "$ringgated" --check -C "$tmp/cluster" -n gw -s "$tmp/s" --requests "socket $tmp/r" \
	--requests "policy $tmp/policy"
is "a policy that is right" "$rc/$err" "0/"

cat >"$tmp/conf" <<-END
	socket   $tmp/s
	pool     16M
	requests socket "$tmp/r r"
	requests policy $tmp/policy
END
"$ringgated" -c "$tmp/conf" -C "$tmp/cluster" -n gw 2>"$tmp/log" &
pid=$!
status() { "$ringgate" cluster status -s "$tmp/s" "$@"; }
count() { status --json | json "j[\"requests\"][\"$1\"]"; }
ok "a daemon that serves requests" wait_for 20 status
is "its socket, at a path with a blank, is for all" "$(stat -c %a "$tmp/r r")" 666
is "... and is told" "$(count socket)" "$tmp/r r"

# peer CODE: of another user, with connect(), hello() and said(socket), what came
peer()
{
	cat - >"$tmp/peer.py" <<-END
		import array, os, socket, struct, sys
		def connect():
		    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		    s.settimeout(30 * $slow)
		    s.connect(sys.argv[1])
		    return s
		def hello(magic=0x48524752, least=1, most=1, places=64, memory=0):
		    return struct.pack("<IHHQIIQ4Q", magic, least, most, 0, places, places, memory, 0, 0, 0, 0)
		# with descriptors, which a kernel may not let through: then with garbage
		def send_fds(s, data, fds):
		    try:
		        socket.send_fds(s, [data], fds)
		    except PermissionError:
		        s.send(b"x")
		# the error of a welcome, with the descriptors that came; or how it ended
		def said(s):
		    try:
		        msg, fds, flags, addr = socket.recv_fds(s, 1000, 10)
		    except ConnectionResetError:
		        return "reset"
		    if not msg:
		        return "closed"
		    return struct.unpack_from("<IHHi", msg)[3], len(fds)
		def ask(*args, **keys):
		    s = connect()
		    s.send(hello(*args, **keys))
		    return said(s)
	END
	cat >>"$tmp/peer.py"  <<<"$1"
	"${as[@]}" $python "$tmp/peer.py" "$tmp/r r" 2>&1 </dev/null
}
is "a hello, and its answer" "$(peer 'print(ask(), ask(memory=4096))')" "(0, 3) (0, 4)"
is "a version that is not there yet" "$(peer 'print(ask(least=2, most=9))')" "(-93, 0)"
is "a later client that knows this one" "$(peer 'print(ask(most=9))')" "(0, 3)"
is "places that are none" "$(peer 'print(ask(places=65), ask(places=0), ask(places=1 << 20))')" \
	"(-22, 0) (-22, 0) (-22, 0)"
is "memory that is none, or too much" "$(peer 'print(ask(memory=5), ask(memory=1 << 40))')" \
	"(-22, 0) (-122, 0)"
before=$(count malformed)
is "garbage is closed" "$(peer '
def odd(data):
    s = connect()
    s.send(data)
    print(said(s))
odd(b"x")
odd(hello()[:31])
odd(hello(magic=1))
odd(os.urandom(100))
odd(b"")
')" $'closed\nclosed\nclosed\nclosed\nclosed'
is "... and descriptors that nobody asked for" "$(peer '
s = connect()
send_fds(s, hello(), [0, 1])
print(said(s))
s = connect()
send_fds(s, hello(), [0] * 50)
print(said(s))
')" $'closed\nclosed'
is "... and who says more than a hello" "$(peer '
s = connect()
s.send(hello())
print(said(s)[0])
send_fds(s, b"more", [0, 1])
print(said(s))
')" $'0\nclosed'
is "... and is counted" "$(($(count malformed) - before))" 7
longer() { peer 's = connect()
s.send(hello() + bytes(64))
print(said(s))'; }
is "a longer hello, of a later version" "$(longer)" "(0, 3)"
none() { [ "$(count sessions)" = 0 ]; }
ok "the end of the socket is the end of the session" wait_for 20 none

# Silence: of more than there may be, which keeps nobody out, and too long
is "the oldest of many silent ones goes" "$(peer '
socks = [connect() for i in range(17)]
socks[16].send(hello())
print(said(socks[0]), said(socks[16]))
# ... and no other, as would be if it was for their silence
socks[1].send(hello())
print(said(socks[1]))
')" $'closed (0, 3)\n(0, 3)'
silent=$(count silent)
is "silence is closed, in time" "$(peer 's = connect()
print(said(s))')" closed
more() { [ "$(count silent)" -gt "$silent" ]; }
ok "... and counted" more
fds() { find "/proc/$pid/fd" | wc -l; }
few() { [ "$(fds)" -lt 40 ]; }
ok "no descriptors stay" wait_for 20 few

hold()
{
	peer '
s = connect()
s.send(hello(memory=8192))
print(said(s), flush=True)
s.recv(1)' >"$tmp/hold" &
	holder=$!
	wait_for 30 grep -q 0 "$tmp/hold"
}
hold
is "a user has sessions" "$(status --json | json '[(u["uid"], u["sessions"], u["memory"] > 8192) for u in j["requests"]["users"]]')" \
	"[($(id -u "${as:+nobody}"), 1, True)]"
# Every number that there is, by its name: one that is left out is missed.
keys() { status --json | json "' '.join(sorted($1))"; }
is "what is told of requests" "$(keys 'j["requests"]')" "cancelled completions denied failed handles log_dropped \
log_lines malformed memory opened queues refused removed requests sessions silent sleeps socket sockets timed_out \
under_way users wakeups"
is "... of a user" "$(keys 'j["requests"]["users"][0]')" \
	"completions handles memory refused requests sessions uid under_way"
guests="docks_again guests guests_came guests_turned_away"
is "... of sockets" "$(keys 'j["requests"]["sockets"]')" \
	"accepted $guests killed open opened received refused sent"
is "... of queues" "$(keys 'j["requests"]["queues"]')" \
	"copies $guests kept kept_again kept_bytes kept_late kept_lost kept_refused unmirrored"
like "which are told in words" "$(status)" \
	"sessions: open 1, .*USER +SESSIONS.*[[:space:]]$(id -u "${as:+nobody}") +1 "
printf 'nonsense\n' >"$tmp/policy"
kill -HUP $pid
ok "a policy that cannot be read is told" wait_for 20 grep -q "policy:1: what is 'nonsense'" "$tmp/log"
is "... and the one that was there holds" "$(peer 'print(ask())')" "(0, 3)"
kill $pid
wait $pid
is "SIGTERM: status 0" $? 0
pid=
[ ! -e "$tmp/r r" ]
result $? "the socket is gone"
wait "$holder"
result $? "... and its session ended"
is "nothing else was said" "$(complaints "$tmp/log")" ""
finish
