#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# timeout: 180
# ringgated's socket: clients that do not read, do not write, or want too much do not stop
# the others, nor the daemon's end; what is wrong with its configuration is refused, by
# --check as by the start.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

ringgated=$build/tools/ringgated
declare -A pid
trap 'kill -9 "${pid[@]}" 2>/dev/null; rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
cat >"$tmp/cluster" <<-END
	provider local
	node 0 gateway $tmp/n0 gw
	node 1 compute $tmp/n1 one
	node 2 compute $tmp/n2 t$(printf '\033')[31mwo
END
cluster_keys "$tmp/cluster"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid nobody --clear-groups)
# one that another user may run, too
for python in /usr/bin/python3 python3; do
	! "${as[@]}" $python -c "" 2>/dev/null || break
done

start()
{
	"$ringgated" -C "$tmp/cluster" -n "$1" -s "$tmp/s$1" --pool 16M "${@:2}" 2>>"$tmp/log$1" &
	pid[$1]=$!
	wait_for 20 "$ringgate" cluster status -s "$tmp/s$1"
	chmod 666 "$tmp/s$1"
}
# hostile NAME CODE: a client of another user, in the background, once it has said so
hostile()
{
	cat - >"$tmp/$1.py" <<-END
		import socket, sys, time
		def connect():
		    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		    s.connect(sys.argv[1])
		    return s
		# At the speed of the daemon, until it drops us, or is stuck
		def ask(s, n, request):
		    s.settimeout(3)
		    try:
		        for i in range(n):
		            s.send(request)
		    except OSError:
		        pass
		# How many answers there are, and whether we were dropped behind them
		def drain(s):
		    n = 0
		    while True:
		        try:
		            if not s.recv(200000):
		                return n, "dropped"
		            n += 1
		        except ConnectionResetError:
		            pass  # what was not read there is told first
		        except OSError:
		            return n, "kept"
	END
	cat >>"$tmp/$1.py" <&3
	"${as[@]}" $python "$tmp/$1.py" "$tmp/s1" >"$tmp/$1" 2>&1 </dev/null &
	pid[$1]=$!
	ok "a client: $1" wait_for 30 grep -qE "^done|ok" "$tmp/$1"
}
quick() { timeout $((4 * slow)) "$ringgate" cluster status -s "$tmp/s1" >/dev/null; }

start 1 --ring-memory 40M
# Answers fill the buffer.
hostile deaf 3<<-'END'
	socks = [connect() for i in range(3)]
	for s in socks:
	    ask(s, 5000, b"status json")
	print("done", flush=True)
	time.sleep(60)
END
ok "clients that do not read stop nobody" quick
# How many answers have room is counted; then a ring is asked for where the "ok" has just
# room and the descriptors have none, and around it.
hostile deaf2 3<<-'END'
	s = connect()
	ask(s, 5000, b"x")
	room, how = drain(s)
	socks = [connect() for i in range(4)]
	for n, s in enumerate(socks, room - 2):
	    ask(s, n, b"x")
	    ask(s, 1, b"ring-open 64 256 0 0 d%d" % n)
	print("done", room, how, *drain(socks[1]), flush=True)
	time.sleep(60)
END
like "... who missed an answer, or the ring, is dropped" "$(<"$tmp/deaf2")" \
	"^done ([1-9][0-9]+) dropped ([1-9][0-9]+) dropped"
is "... behind what had room" "${BASH_REMATCH[1]:-}" "${BASH_REMATCH[2]:-}"
ok "... wherever the room ends" quick
kill "${pid[deaf]}" "${pid[deaf2]}"
unset "pid[deaf]" "pid[deaf2]"

hostile silent 3<<-'END'
	socks = []
	for i in range(300):
	    socks.append(connect())
	print("done", flush=True)
	time.sleep(60)
END
ok "more silent clients than there are places stop nobody" quick
fds() { find "/proc/${pid[1]}/fd" -lname 'socket:*' 2>/dev/null | wc -l; }
few() { [ "$(fds)" -lt 40 ]; }
ok "silent clients are dropped after a while" wait_for 15 few
kill "${pid[silent]}"

# Where all 128 places are taken: one of a ring and the ones that asked something since
# stay, the one that has been silent longest goes.
hostile full 3<<-'END'
	def here(s):
	    s.settimeout(2)
	    try:
	        s.send(b"x")
	        return s.recv(200000)[:3] == b"err"
	    except OSError:
	        return False
	def joined():
	    s = connect()
	    here(s)
	    return s
	ring = connect()
	ring.send(b"ring-open 64 256 0 0 kept")
	ring.recv(100)
	ring.recv(100)  # its descriptors, which are not taken
	socks = [joined() for i in range(127)]
	here(socks[0])
	more = [joined(), joined()]
	print("done", *(here(s) for s in [ring, socks[0], socks[1], socks[2], socks[3], *more]), flush=True)
END
is "... the one silent longest makes room, and who has a ring keeps it" "$(<"$tmp/full")" \
	"done True True False False True True True"
wait "${pid[full]}"

# ask REQUEST: its answer, by one connection a line
ask()
{
	python3 - "$tmp/s1" "$@" <<-'END'
		import socket, sys
		s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		s.connect(sys.argv[1])
		for r in sys.argv[2:]:
		    s.send(r.encode().decode("unicode_escape").encode("latin1"))
		    print(s.recv(200000).decode("latin1"), flush=True)
	END
}
like "rings have a bound, all together" "$(ask "ring-open 65536 2048 0 0")" \
	"^err 122 .*128.0 MiB is too large: .* 40.0 MiB"
like "... also those without numbers" "$(ask "ring-open 1048576 0 0 0")" "^err 122 "
again() { [[ $(ask "ring-open 8192 4096 0 0") = ok* ]]; }
ok "a ring of most of it" again
ok "... and another when that is given back" wait_for 10 again
like "a number that is none" "$(ask "ring-open 64 -256 0 0")" "^err 22 "
like "a number that is too large" "$(ask "ring-open 4294967360 256 0 0")" "^err 22 "
like "a name with a line end" "$(ask 'ring-open 64 256 0 0 a\nb')" "^err 22 .*name"
like "a name with an escape" "$(ask 'ring-open 64 256 0 0 \x1b[2J')" "^err 22 .*name"
like "... or with what terminals obey" "$(ask 'ring-open 64 256 0 0 \xc2\x9b31m')" "^err 22 "
like "a name that is too long" "$(ask "ring-open 64 256 0 0 $(printf 'x%.0s' {1..32})")" "^err 22 "
like "no ring, no state" "$(ask ring-state)" "^err 2 "
like "no such request" "$(ask fly)" "^err 95 "
like "waiting for a gateway" "$("$ringgate" capture --remote="$tmp/s1" -t 1.5 2>&1)" waiting

hostile deaf 3<<-'END'
	s = connect()
	ask(s, 100000, b"status json")
	print("done", flush=True)
	time.sleep(60)
END
kill "${pid[1]}"
ended() { ! kill -0 "${pid[1]}"; }
ok "SIGTERM is heard meanwhile" wait_for 10 ended
wait "${pid[1]}"
is "... status 0" $? 0
unset "pid[1]"
kill "${pid[deaf]}"

# what is wrong, by --check and by the start: REGEX NODE ARGUMENT...
bad()
{
	local want=$1 node=$2 how hows=(--check --)
	shift 2
	# What looks at it is the same; before there is a thread ThreadSanitizer has nothing to see.
	case $sanitizer in
	asan) hows=(--) ;;
	tsan) return ;;
	esac
	for how in "${hows[@]}"; do
		[ $how != -- ] || how=--pool=16M
		# shellcheck disable=SC2086 # none or one
		run timeout $((10 * slow)) "$ringgated" $how -C "$tmp/cluster" -n "$node" -s "$tmp/s" "$@"
		like "$how $*" "$rc $err" "^1 .*$want"
	done
}
port=$(free_port)
udp="udp 127.0.0.1:$port"
bad "1 to 65535" gw --source "udp 127.0.0.1:$((port + 65536))"
bad "1 to 65535" gw --source "udp 127.0.0.1:"
bad "1 to 65535" gw --source "udp 127.0.0.1"
bad "value is missing behind: 'steer'" gw --steer ""
bad "value is missing behind: 'node'" gw --node " "
bad "Cannot assign" gw --source "udp 192.0.2.77:9"
bad "takes no filter" gw --source "$udp filter port 53"
bad "slots: 1000 is no power" gw --source "$udp slots 1000"
bad "slots: 32 is no power" gw --source "$udp slots 32"
bad "slot_size: 131072 is no power" gw --source "$udp slot_size 131072"
bad "missing behind: 'slots'" gw --source "$udp slots"
bad "missing behind: 'filter'" gw --source "$udp filter"
bad "no such network device" gw --source "packet nodev0"
bad "too long for a device" gw --source "packet a-very-long-device"
bad "filter: .*syntax" gw --source "packet lo filter portt 5 5"
bad "needs 'all' or a filter: 'lo'" gw --source "module lo action steal"
bad "exclude each other: 'lo'" gw --source "module lo action steal all filter udp"
bad "'all' is for a source that steals: 'lo'" gw --source "module lo all"
bad "'all' is for a source that steals: 'lo'" gw --source "module lo all action mirror filter udp"
bad "kind module steals, not that of: 'lo'" gw --source "packet lo action steal filter udp"
bad "kind module steals, not that of: '127" gw --source "$udp action steal all"
bad "mirror or steal: 'take'" gw --source "module lo action take"
bad "missing behind: 'action'" gw --source "module lo action"
many=()
for i in {1..9}; do many+=(--source "udp 127.0.0.1:$((1024 + i))"); done
bad "too many sources" gw "${many[@]}"
bad "rules cannot be written" gw --steer "$tmp/nodir/steer"
bad "source is for the gateway" one --source "$udp"
bad "steer is for the gateway" one --steer "$tmp/steer"
bad "spin is for the gateway" one --spin 5
bad "pack is for the gateway" one --pack always
bad "auto, never or always, not: 'often'" gw --pack often
bad "ring-memory is for compute" gw --ring-memory 1G
bad "too large" one --ring-memory 1025G
bad "too large" one --pool 1025G
bad "2M or more" one --pool 2047K
bad "some memory" one --ring-memory 0
bad "no number" one --pool 2X
bad "no number" one --pool -2M
bad "too large" gw --spin 1000001
bad "too large" gw --source "$udp slots 1048577"
bad "no number" gw --source "$udp slots x"
bad "drop or pass: 'keep'" gw --source "$udp policy keep"
bad "slots, slot_size, policy, action, all and filter, not: 'fast'" gw --source "$udp fast 1"
bad "KIND DEVICE or udp" gw --source "packet"
bad "module, packet or udp: 'pigeon'" gw --source "pigeon x"
bad "spawn is: policy FILE" one --spawn "policy"
bad "spawn is: policy FILE" one --spawn "cgroup"
bad "spawn is: policy FILE" one --spawn "fly x"
bad "no user 'nobody-such'" one --user nobody-such
# who has not the rights to become another one
bare=()
[ "$(id -u)" != 0 ] || bare=(setpriv --bounding-set=-setuid)
run timeout $((10 * slow)) "${bare[@]}" "$ringgated" --check -C "$tmp/cluster" -n one -s "$tmp/s" --user nobody
like "nobody who may not become a user" "$rc $err" "^1 .*cannot become user 'nobody': start ringgated as root"
bad "no group 'none-such'" one --group none-such
bad "without spawn policy" one --spawn "cgroup none"
bad "no node 'x'" x
bad "socket cannot be written" one -s "$tmp/nodir/s"
touch "$tmp/file"
bad "no socket" one -s "$tmp/file"
bad "too long" one -s "$tmp/$(printf 'x%.0s' {1..120})"
chmod 644 "$tmp/node1.key"
bad "chmod 600 $tmp/node1.key" one
chmod 600 "$tmp/node1.key"
run "$ringgated" --check -C "$tmp/cluster" -n gw -s "$tmp/s" "${many[@]:0:16}"
is "eight sources are allowed" "$rc/$err" "0/"
run "$ringgated" --check -C "$tmp/cluster" -n one -s "$tmp/s" --pool 1024G --ring-memory 1024G
is "the largest memory" "$rc/$err" "0/"
run "$ringgated" --check -C "$tmp/cluster" -n one -s "$tmp/s" --pool 2M --ring-memory 1
is "the smallest" "$rc/$err" "0/"
run "$ringgated" --check -C "$tmp/cluster" -n gw -s "$tmp/s" --spin 1000000 \
	--source "$udp slots 1048576 slot_size 65536 policy pass"
is "the longest spin, and the largest ring" "$rc/$err" "0/"
for how in "" " action mirror" " action steal all" " action steal filter udp" " all action steal"; do
	run "$ringgated" --check -C "$tmp/cluster" -n gw -s "$tmp/s" --source "module lo$how"
	# all that may be missing is the module
	like "a source may be: module lo$how" "$rc/$err" "^(0/|1/ringgated: source lo: the module is not)"
done

# a socket that somebody listens at
start 0 -S "$tmp/rules"
run timeout $((10 * slow)) "$ringgated" -C "$tmp/cluster" -n one -s "$tmp/s0"
like "a socket that is another's" "$rc $err" "^1 .*cannot listen at $tmp/s0: Address already in use"
ok "... which goes on" "$ringgate" cluster status -s "$tmp/s0"
run "$ringgated" --check -C "$tmp/cluster" -n gw -s "$tmp/s0"
is "--check beside the daemon that runs" "$rc/$err" "0/"
run "$ringgate" steer -s "$tmp/s0" add dns node:1 port 53
before=$("$ringgate" steer -s "$tmp/s0" list)
is "the rules' file has each of them, and nothing else" "$(<"$tmp/rules")" \
	"# Rules of the gateway, see ringgate-steer(1). Written by ringgated.
$(sed 1d <<<"$before" | sed 's/^ *[0-9]* *//')"
run "$ringgate" steer -s "$tmp/s0" remove nosuch
like "removing a rule that is not there" "$rc $err" "^1 .*no rule 'nosuch'"
is "... leaves the others" "$("$ringgate" steer -s "$tmp/s0" list)" "$before"
# a node's name with what terminals obey
start 2
up2() { [ "$("$ringgate" cluster status -s "$tmp/s0" --json | json '[p["state"] for p in j["peers"] if p["node"] == 2]')" = "['up']" ]; }
ok "a node whose name has an escape" wait_for 20 up2
clean='t\\x1b\[31mwo'
kill "${pid[2]}"
wait "${pid[2]}"
unset "pid[2]"
gone() { grep -q "^ringgated: node 2 .*: gone" "$tmp/log0"; }
ok "... is said to go" wait_for 20 gone
like "... in letters that show it" "$(<"$tmp/log0")" "ringgated: node 2 \\($clean, $tmp/n2\\): connected"
like "... in the status, too" "$("$ringgate" cluster status -s "$tmp/s0")" " $clean +compute"
is "... nothing of it reaches a terminal" "$({ cat "$tmp/log0"; "$ringgate" cluster status -s "$tmp/s0"; } |
	grep -c $'\033')" 0

kill "${pid[0]}"
wait "${pid[0]}"
unset "pid[0]"
finish
