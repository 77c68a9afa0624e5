#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# The examples, most of them with datagrams over loopback: what they print is right.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

examples=$build/examples/gpu
pid=0
trap 'end_example; rm -rf "$tmp"' EXIT

# udp PORT [ARGUMENT...] <PROGRAM: Python with a socket s connected to PORT, and args
udp()
{
	timeout 60 python3 -c 'import random, socket, struct, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("127.0.0.1", int(sys.argv[1])))
s.settimeout(10)
args = sys.argv[2:]
def paced(datagrams):
    for i, d in enumerate(datagrams):
        s.send(d)
        if i % 50 == 49:
            time.sleep(0.005)
exec(sys.stdin.read())' "$@"
}

# The socket is there before the GPU's kernel: what is sent meanwhile waits in the ring
listens() { grep -Eq "^ *[0-9]+: [0-9A-F]{8}:$(printf %04X "$1") " /proc/net/udp; }
ended() { ! kill -0 "$pid" 2>/dev/null; }
listens_or_ended() { listens "$1" || ended; }
prints() { grep -Eq "$1" "$tmp/said"; }

# example NAME ARGUMENT...: in the background, to a file
example()
{
	stdbuf -oL "$examples/$1" "${@:2}" >"$tmp/said" 2>&1 &
	pid=$!
}

end_example()
{
	[ "$pid" -eq 0 ] && return
	kill -9 "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	pid=0
}

# said NAME REGEX
said()
{
	wait_for 20 prints "$2" && result 0 "$1" && return
	result 1 "$1"
	tail -n 5 "$tmp/said" | sed 's/^/# /'
}

[ -x "$examples/float4" ] || skip_all "the examples were not built: no nvcc"
port=$(free_port)
example float4 "$port"
wait_for 20 listens_or_ended "$port"
if ended && grep -q "^GPU: " "$tmp/said"; then
	skip_all "$(cat "$tmp/said")"
fi

udp "$port" <<-'END'
	paced([struct.pack("<4f", i, 2 * i, 3, 4) + b"x" * (i % 40) for i in range(1, 1001)])
END
said "float4: the last of 1000 datagrams, by the matrix" \
	"^1000 packets, the last: 2000 4000 6 3007$"
end_example

port=$(free_port)
example udp_echo "$port"
wait_for 20 listens_or_ended "$port"
is "udp_echo: 300 datagrams come back as they were" "$(udp "$port" <<-'END'
	good = 0
	for i in range(300):
	    d = random.randbytes(1 + i % 150)
	    s.send(d)
	    good += s.recv(2048) == d
	print(good)
	END
)" 300
said "udp_echo: counts them" "^300 answered, 0 dropped$"
end_example

port=$(free_port)
example tensor "$port"
wait_for 20 listens_or_ended "$port"
udp "$port" <<-'END'
	paced([bytes([7 + i % 2]) + random.randbytes(255) for i in range(700)])
END
# taken when half the rows are there: as many of the one kind as of the other, and one
said "tensor: the mean of 512 rows and more" "^[5-9][0-9]+ rows, mean of the first column 7\.[45]"
end_example

like "tasks: warps do what is in a queue" "$(timeout 60 "$examples/tasks" 2>&1)" \
	"2000 tasks of 100000 points: pi is about 3\.14[12]"
like "fetch_add: 128 threads draw ten numbers each" "$(timeout 60 "$examples/fetch_add" 2>&1)" \
	"^128 threads, the last number is 1279$"

if ! python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)' 2>/dev/null; then
	skip "flows" "no packet sockets: not root"
	finish
fi
port=$(free_port)
example flows lo
# the socket is bound to a device: nothing shows when it is there
wait_for 20 prints "^$"
from=$(udp "$port" <<-'END'
	other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
	other.connect(s.getpeername())
	for i in range(500):
	    for o in (s,) if i % 2 else (s, other):
	        try:
	            o.send(b"x" * 100)
	        except ConnectionRefusedError:
	            o.send(b"x" * 100)
	    if i % 50 == 49:
	        time.sleep(0.005)
	print(s.getsockname()[1], other.getsockname()[1])
	END
)
said "flows: packets and bytes of one" "^7f000001:${from% *} -> 7f000001:$port  500 packets, 71000 bytes$"
said "flows: ... and of another" "^7f000001:${from#* } -> 7f000001:$port  250 packets, 35500 bytes$"
finish
