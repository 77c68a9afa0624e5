#!/bin/bash
# SPDX-License-Identifier: MIT OR GPL-2.0
# The examples, most of them with datagrams over loopback: what they print is right.

# shellcheck disable=SC2317 # functions that wait_for calls
# shellcheck source=tests/cli/lib/tap.sh
. "$(dirname "$0")/../cli/lib/tap.sh"

examples=$build/examples/gpu
pid=0
others=()
log=
trap 'end_example; [ ${#others[@]} = 0 ] || kill -9 "${others[@]}"; [ -z "$log" ] || rm -f "$log"; rm -rf "$tmp"' EXIT

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

# The GPU's own server: it says at which port
example http_kv 0
wait_for 20 prints "^at http://127.0.0.1:[0-9]+/" || ended
port=$(sed -n 's,^at http://127.0.0.1:\([0-9]*\)/.*,\1,p' "$tmp/said")
url=http://127.0.0.1:$port
is "http_kv: 16 clients put values, and find each its own" "$(timeout 60 python3 - "$port" <<'END'
import http.client, os, sys, threading
good = []
def client(number):
    c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=20)
    def ask(method, key, body=None):
        c.request(method, f"/{number}/{key}", body)
        r = c.getresponse()
        return r.status, r.read()
    for i in range(50):
        value = os.urandom(i * 21 % 1025)
        good.append(ask("GET", i) == (404, b"") and ask("PUT", i, value) == (201, b"") and
                    ask("GET", i) == (200, value) and ask("HEAD", i) == (200, b"") and
                    ask("PUT", i, value[:3]) == (204, b"") and ask("GET", i) == (200, value[:3]) and
                    ask("DELETE", i) == (204, b"") and ask("DELETE", i) == (404, b""))
threads = [threading.Thread(target=client, args=(i,)) for i in range(16)]
[t.start() for t in threads]
[t.join() for t in threads]
print(sum(good), "of", len(good))
END
)" "800 of 800"
# hostile SEND [PAUSE]: what comes back, on one line
hostile()
{
	timeout 20 python3 -c 'import socket, sys, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
for part in sys.argv[2].encode().decode("unicode_escape").encode("latin-1").split(b"|"):
    s.sendall(part)
    time.sleep(0.02)
if len(sys.argv) > 3:
    s.shutdown(socket.SHUT_WR)
got = b""
while True:
    some = s.recv(4096)
    if not some:
        break
    got += some
print(got.decode("latin-1").replace("\r\n", "~"))' "$port" "$@"
}
is "http_kv: byte by byte, and two at once" \
	"$(hostile 'P|U|T| |/a HTTP/1.|1\r|\nHost:\r\nContent-Length: 2\r\n\r\nxyGET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')" \
	"HTTP/1.1 201 Created~Content-Length: 0~~HTTP/1.1 200 OK~Content-Length: 2~Content-Type: application/octet-stream~Connection: close~~xy"
like "http_kv: ... what is none is refused, and the connection ends" "$(hostile '\026\003\001\r\n\r\n')" \
	"^HTTP/1.1 400 Bad Request~.*Connection: close~~$"
like "http_kv: ... and no more is taken than there is room for" "$(hostile "GET /$(printf 'a%.0s' {1..3000})")" \
	"^HTTP/1.1 431 "
is "http_kv: ... half a request, and its end: no answer" "$(hostile 'GET /a HT' end)" ""
if command -v curl >/dev/null; then
	head -c 1024 /dev/urandom >"$tmp/value"
	is "http_kv: curl puts a file, which waits to be asked for it, and gets it again" \
		"$(curl -sS -H "Expect: 100-continue" -T "$tmp/value" "$url/file" &&
			curl -sS "$url/file" | cmp - "$tmp/value" && echo same)" "same"
	is "http_kv: ... one that is too large is refused" \
		"$(head -c 5000 /dev/zero | curl -sS -o /dev/null -w '%{http_code}' -T - -H "Transfer-Encoding:" -H "Content-Length: 5000" "$url/big")" 413
else
	skip "http_kv: curl" "no curl"
fi
if command -v wrk >/dev/null; then
	curl -sS -T "$tmp/value" "$url/file"
	wrk -t 4 -c 64 -d 3 "$url/file" >"$tmp/wrk"
	grep -E "Requests/sec|Latency" "$tmp/wrk" | sed 's/^ */# /'
	is "http_kv: wrk finds no error in what 64 connections get" \
		"$(grep -cE "Non-2xx|Socket errors" "$tmp/wrk"; awk '/requests in/ { print ($1 > 1000) }' "$tmp/wrk")" \
		"0
1"
else
	skip "http_kv: wrk" "no wrk"
fi
kill -INT "$pid"
wait_for 20 ended
wait "$pid"
is "http_kv: ends by ^C, without an error" $? 0
pid=0
like "http_kv: counts them" "$(tail -n 1 "$tmp/said")" \
	"^[0-9]+ connections, [0-9]+ values sent, [0-9]+ other answers, [0-9]+ refused$"

# A daemon that is asked, one that runs, and who reads what comes to the log, where nobody does
cluster_of_two "$tmp/cluster"
printf '%s\n' "node one user $(id -un)" "allow one any" "max-running 100" >"$tmp/policy"
echo "allow user:$(id -un) spawn" >"$tmp/allow"
chmod 600 "$tmp/policy" "$tmp/allow"
daemon()
{
	: >"$tmp/log$1"
	"$build/tools/ringgated" -C "$tmp/cluster" -n "$1" -s "$tmp/s$1" --pool 32M "${@:2}" \
		>>"$tmp/log$1" 2>&1 &
	others+=("$!")
}
ready() { grep -q "is ready" "$tmp/log$1"; }
up() { "$ringgate" cluster status -s "$tmp/s1" --json | json '[p["state"] for p in j["peers"]]' | grep -q up; }
read_log() { [ "$(sort -u "$tmp/lines" | wc -l)" -ge 40 ]; }
daemon 0 --spawn "policy $tmp/policy" --spawn "cgroup none"
daemon 1 --requests "socket $tmp/r1" --requests "policy $tmp/allow"
wait_for 20 ready 0 && wait_for 20 ready 1 && wait_for 20 up
is "logger: daemons" $? 0
: >"$tmp/lines"
if [ ! -e /dev/log ] && [ -w /dev ]; then
	python3 -c 'import os, re, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("/dev/log")
os.chmod("/dev/log", 0o666)
while True:
    line = re.search(r"ringgate-gpu: (.*)", s.recv(4096).decode())
    if line:
        print(line[1], flush=True)' >"$tmp/lines" &
	others+=("$!")
	log=/dev/log
	wait_for 20 [ -S "$log" ]
fi
port=$(free_port)
example logger "$tmp/r1" 0 "$port"
wait_for 20 listens_or_ended "$port"
udp "$port" <<-'END'
	for i in range(40):
	    s.send(b"datagram %d" % i)
	    time.sleep(0.02)
END
said "logger: a process at another node for each of 40 datagrams" \
	"^40 asked for, [0-9]+ started, 0 refused, 0 dropped$"
if [ -n "$log" ]; then
	wait_for 20 read_log
	is "logger: ... each of which is in the log, once" "$(sort "$tmp/lines" | uniq -c | awk '$1 == 1' | wc -l)" 40
else
	skip "logger: ... each of which is in the log" "this machine has a log of its own"
fi
end_example

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
