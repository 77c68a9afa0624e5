#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""Seeds for the fuzzers, from what seeds.sh recorded in a VM and from the documents.

Usage: seeds.py RECORDED CORPUS

RECORDED has *.strace (netlink answers) and traffic.pcapng. Files go to CORPUS/TARGET;
`scripts/fuzz --merge CORPUS` takes what is new of them into the kept corpus.
"""

import re
import struct
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
FAMILY_TYPE = 0x10
# What rgate_ctl_* is asked for, as fuzz_netlink.c numbers it
RING, ATT, RINGS, ATTS, ATTACH, DETACH, SET, EVENT = range(8)
ASKED = {
    "status": (RINGS, ATTS, RING, ATT, SET),
    "stats": (RINGS, ATTS),
    "attach": (ATTACH,),
    "refused": (ATTACH,),
    "set": (DETACH, SET),
    "missing": (DETACH,),
    "detach": (DETACH,),
    "events": (EVENT,),
}
PARSERS = 128


class Corpus:
    """Numbered files in a directory for each target"""

    def __init__(self, root):
        self.root = Path(root)
        self.count = {}

    def add(self, target, name, data):
        number = self.count[target] = self.count.get(target, 0) + 1
        path = self.root / target
        path.mkdir(parents=True, exist_ok=True)
        (path / f"{name}-{number:03}").write_bytes(data)


def datagrams(text):
    """The buffers that recvmsg() filled, from strace's dump of them"""
    data, got = b"", []
    for line in text.splitlines():
        if match := re.match(r" \* (\d+) bytes in buffer 0", line):
            data = b""
            got.append([int(match[1]), data])
        elif match := re.match(r" \| [0-9a-f]{5}  ((?:[0-9a-f]{2} {1,2})+)", line):
            data += bytes.fromhex(match[1])
            got[-1][1] = data
    return [data[:size] for size, data in got]


def messages(datagram):
    """The netlink messages of a datagram"""
    while len(datagram) >= 16:
        (size,) = struct.unpack_from("=I", datagram)
        yield datagram[:size]
        datagram = datagram[(size + 3) & ~3 :]


def netlink(recorded, corpus):
    for name, kinds in ASKED.items():
        got = datagrams((recorded / f"{name}.strace").read_text())
        # The first answers are of the controller, which fuzz_netlink.c plays itself.
        asked = [d for d in got if struct.unpack_from("=H", d, 4)[0] != FAMILY_TYPE][1:]
        answer = b"".join(struct.pack("=H", len(d)) + d for d in asked)
        for kind in kinds:
            corpus.add("netlink", name, bytes([kind]) + answer)
        seen = set()
        for datagram in got:
            for message in messages(datagram):
                # one of each type and command
                if message[4:6] + message[16:17] not in seen:
                    seen.add(message[4:6] + message[16:17])
                    corpus.add("netlink", f"{name}-one", bytes([PARSERS]) + message)


def frames(path):
    """The packets of a pcapng file in this machine's byte order"""
    data = path.read_bytes()
    while data:
        kind, size = struct.unpack_from("=II", data)
        if kind == 6:
            (length,) = struct.unpack_from("=I", data, 20)
            yield data[28 : 28 + length]
        data = data[size:]


PROTOCOLS = [0x0800, 0x86DD, 0x8100, 0x88A8]


def traffic(recorded, corpus):
    seen = {}
    for frame in frames(recorded / "traffic.pcapng"):
        (protocol,) = struct.unpack_from(">H", frame, 12)
        # a few of each shape: ethertype, IP protocol, fragments
        shape = (protocol, frame[20:24], len(frame) > 200)
        seen[shape] = seen.get(shape, 0) + 1
        if seen[shape] > 2:
            continue
        if protocol in PROTOCOLS:
            how = PROTOCOLS.index(protocol) << 2
            corpus.add("parse", "frame", bytes([how]) + struct.pack("=H", 40) + frame[:200])
            # the same from behind the Ethernet header, as from a tunnel
            corpus.add(
                "parse", "raw", bytes([how | 2]) + struct.pack("=H", 20) + frame[14:200]
            )
        capture(corpus, frame, protocol)
        # cut in the ports, behind IPv4 and behind IPv6
        for length in (36, 56):
            if seen[shape] == 1 and len(frame) > length:
                capture(corpus, frame[:length], protocol)


def capture(corpus, frame, protocol):
    """A frame as fuzz_capture.c reads it: options, parts, header, bytes by slot"""
    order = [0x0800, 0x86DD, 0x0806, 0x8100, 0x88A8]
    index = order.index(protocol) if protocol in order else 2
    # how: device type how % 9, protocol how % 5
    how = next(h for h in range(32) if h % 5 == index and h % 9 in (0, 1))
    header = struct.pack(
        "=BHHQBHBB", how, 1 << 8, len(frame), 1700000000123456789, 1, 5, 0, 3
    )
    room, slots = 192, []
    while frame:
        slots.append(frame[:room])
        frame = frame[room:]
    body = b"".join(slots[:-1]) + bytes([len(slots[-1])]) + slots[-1]
    parts = 128 + len(slots) - 1 if len(slots) > 1 else 0
    for options in (0, 1, 3):
        corpus.add("capture", "frame", bytes([options, parts]) + header + body)


def documents(corpus):
    """Filters and command lines from the manual pages, tests and README"""
    texts = [p.read_text() for p in sorted((TOP / "Documentation").rglob("*")) if p.suffix in
             (".1", ".rst", ".md")] + [(TOP / "README.md").read_text()]
    lines = set()
    for text in texts:
        lines.update(re.findall(r"^[ \t$#]*(?:sudo )?ringgate ([a-z][^\n|>&]*)$", text, re.M))
    for script in sorted((TOP / "tests/cli").glob("*.sh")):
        lines.update(re.findall(r'"\$ringgate" ([a-z].*)$', script.read_text(), re.M))
    for line in sorted({line.split(" #")[0].rstrip(" \\") for line in lines}):
        words = [w.replace("\\-", "-").strip("'\"") for w in line.split()]
        corpus.add("cli", "line", "\n".join(words).encode())
    for text in ("=0x1000", "=16K", "=1.5", "= +7", "=010", "=4G", "=-1", "=1e3"):
        corpus.add("cli", "number", text.encode())
    source = (TOP / "tests/unit/test_filter.c").read_text()
    for text in re.findall(r'"((?:[^"\\\n]|\\.)+)"', source):
        if re.search(r"\b(ip6?|udp|tcp|ether|host|vlan|port|greater)\b", text):
            corpus.add("filter", "text", bytes([1, len(text)]) + text.encode() + bytes(16))


def web(corpus):
    """Requests of HTTP, those of the unit test"""
    source = (TOP / "tests/unit/test_gpu_http.c").read_text()
    for text in re.findall(r'"((?:GET|HEAD|PUT|DELETE) (?:[^"\\\n]|\\.|" HOST "|" HOST HOST "|"\n\s*")*)"', source):
        text = re.sub(r'"\s*"', "", text.replace('" HOST HOST "', r"Host: a\r\nHost: a\r\n").replace('" HOST "', r"Host: a\r\n"))
        corpus.add("http", "request", text.encode().decode("unicode_escape").encode("latin-1"))


def records(corpus):
    """A descriptor and the constant part of a ring's producer area, as they are written"""
    corpus.add("wire", "shard", b"\xd0" + struct.pack("<QIHBBIIIIQ", 1 << 40, 0x44534752, 1, 2, 1, 1024,
                                                    48, 48, 0, 64 + 2 * 128 + 1024 * (8 + 3 * 64)) +
               bytes(33))
    corpus.add("wire", "desc", b"\0" + struct.pack("<HBBIQQII", 0x4752, 1, 7, 9, 1 << 40,
                                                   4096, 3, 0))
    for slots, size in ((64, 256), (4096, 2048), (1 << 20, 1 << 16)):
        credits = 4096 + 4096
        begin = (credits + slots // 32 * 8 + 4095) & ~4095
        end = begin + slots * size
        corpus.add("wire", "geometry", b"\1\0" + struct.pack(
            "=IIIIQQQQ", slots, size, 1, 0, end, 4096, credits, begin))
        corpus.add("wire", "prod", b"\2" + struct.pack(
            "=IHHQIIIIIIIIQQQQII32sQ", 0x54414752, 1, 64, 1, slots, size, 32, 2, 0, 2, 1, 32,
            end, 4096, credits, begin, 7, 0, b"ring7", 0))


def strings(words):
    return b"".join(w + b"\0" for w in words)


def requests(corpus):
    """Requests as rgate_spawn_encode() writes them; policies"""
    plain = ([b"/bin/true"], [], [b"/bin/true"], [], [], b"")
    full = ([b"/bin/sh"], [b"/tmp"], [b"sh", b"-c", b"", b"\xff\x01"], [b"A=1", b"B="],
            [b"HOME"], b"")
    fed = ([b"cat"], [], [b"cat"], [b"LANG=C"], [], b"input\0\n")
    for name, request, modes in (("plain", plain, (0, 0, 0, 0)), ("full", full, (0, 1, 1, 3)),
                                 ("fed", fed, (1, 2, 2, 2))):
        at, areas, body = 152, b"", b""
        for strs in request[:5]:
            area = strings(strs)
            areas += struct.pack("<III", at, len(area), len(strs)) if strs else bytes(12)
            at, body = at + len(area), body + area
        areas += struct.pack("<III", at, len(request[5]), 0)
        body += request[5]
        head = struct.pack("<IHHII", 0x4E505352, 1, 152, 152 + len(body), 1)
        words = struct.pack("<BBBBIQQIIIiIIQQ", *modes, 10, 1000, 1 << 30, 5, 9, 77, 7,
                            0o22, 500, 0, 0)
        corpus.add("spawn", name, b"\0" + head + areas + words + body)
    text = (TOP / "Documentation/spawn.rst").read_text()
    lines = re.search(r"write::\n\n((?:  .*\n|\n)+)", text)[1].replace("compute1", "alice")
    lines = re.sub(r"\.\.\.b855", "c4" * 28 + "b855", lines).replace("user alice", "user root")
    lines = lines.replace("e3b0c442" + "c4" * 28 + "b855", "e3" * 32).replace("batch", "root")
    lines = lines.replace("node gateway", "node gw").replace("allow gateway", "allow gw")
    for exe, arg in ((b"/usr/bin/python3", b"/opt/jobs/a.py"), (b"true", b""),
                     (b"/usr/bin/../bin/true", b"x")):
        corpus.add("spawn", "policy", b"\1" + bytes([len(exe)]) + exe + bytes([len(arg)]) + arg +
                   lines.encode())
    for line in lines.splitlines():
        if line.strip():
            corpus.add("spawn", "line", b"\1\x09/bin/true\0" + b"node alice user root\n" +
                       line.strip().encode())


SOCKET, BIND, LISTEN, CONNECT, NAME, PEER, SETOPT, GETOPT, REFUSED = range(1, 10)
OUT, LOOP, ANY, LOOP6, ANY6, MAPPED, NOBODY = range(7)
END, LIE, AGAIN, ERROR = range(3, 7)
RIGHT = 128  # a part of the hello as it has to be


def ask(what, whom=0, a=0, at=OUT, port=0, how=0, value=b""):
    """A question; @whom: 1 is the first socket that was made, 64 and more is none of them"""
    return bytes([0, how, what, a]) + value + bytes([at, port, whom])


def stream(what, whom, n=0):
    return bytes([5 + ("write", "read", "end", "accept", "greet").index(what), whom]) + struct.pack(
        "=H", n)


def ends(which, how=0, n=0):
    """What is under way ends; @n: bytes of it, or which error"""
    return bytes([10, which, how]) + struct.pack("=H", n)


def well(everything=1):
    return bytes([11, everything])


def past(whom, what, how=0, *more):
    return bytes([14, whom, what, how, *more])


def later(exponent):
    return bytes([13, exponent])


def agents(corpus):
    """Programs of an agent, step by step as fuzz_agent.c reads them"""
    make = ask(SOCKET, a=2)
    connected = make + ask(CONNECT, 1, 1) + ends(0)
    listens = make + ask(BIND, 1) + ask(LISTEN, 1, a=4)
    greeted = listens + ends(0) + stream("accept", 1, 16)
    steps = {
        "sent": connected + stream("write", 1, 5000) + ends(0, 1, 700) + well() + well(),
        "received": connected + well() + ends(0, 0) + stream("read", 1, 0xFFFF) + well(),
        "full": connected + ends(0) * 12 + stream("read", 1, 0xFFFF) * 8 + well() * 3,
        "placeless": connected + bytes([12, 16, 0, 0]) + stream("write", 1, 0xFFFF) + well()
        + bytes([12, 0, 0, 0]) + stream("end", 1, 1) + well() * 3,
        "many": make * 10 + listens + ends(0) * 3,
        "half": connected + stream("write", 1, 9) + stream("end", 1, 1) + well() * 3
        + ends(0, END) + stream("read", 1, 9) * 2 + stream("end", 1, 4),
        "closed": connected + stream("write", 1, 0xFFFF) + stream("end", 1, 4) + well() * 9,
        "broke": connected + stream("write", 1, 99) + ends(0, ERROR, 0) + ends(1, ERROR, 0)
        + stream("write", 1, 9999) + well() + ends(0, ERROR) + stream("read", 1, 9) * 2,
        "more": connected + stream("write", 1, 99) + ends(1, LIE) + ends(0) + ends(0, LIE, 9)
        + stream("read", 1, 0xFFFF) + well(),
        "again": connected + stream("write", 1, 99) + ends(0, AGAIN) + ends(1, AGAIN) + well() * 4,
        "refused": make + ask(CONNECT, 1, 1) + ends(0, ERROR, 1) + ask(CONNECT, 1, 1)
        + ask(GETOPT, 1, 1) + stream("read", 1, 9),
        "waits": make + ask(CONNECT, 1) * 3 + ask(NAME, 1) + ends(0) + ask(PEER, 1)
        + ask(CONNECT, 1),
        "fails": make + ask(CONNECT, 1) * 2 + ends(0, ERROR, 2),
        "leaves": make + ask(CONNECT, 1) + bytes([4, 2, 1, 4, 1, 2]) + stream("end", 1, 4) + well(),
        "accepts": greeted + ask(NAME, 2) + ask(PEER, 2) + stream("write", 2, 300) + well() * 2
        + ends(1, 0) + stream("read", 2, 0xFFFF) + stream("end", 2, 4) + well(),
        "mute": listens + ends(0) + stream("accept", 1) + well() + ends(1, ERROR) + ends(0, ERROR)
        + stream("greet", 2, RIGHT | 9) + stream("end", 2, 4),
        "lies": listens + ends(0) + stream("accept", 1, 5) + stream("greet", 2, 3)
        + stream("greet", 2, RIGHT | 8) + stream("write", 2, 7) + well() + stream("read", 2, 7),
        "slow": listens + ends(0) + stream("accept", 1, 5) + stream("greet", 2, RIGHT | 11)
        + well(),
        "parked": make + ask(LISTEN, 1) + well() * 5 + stream("accept", 1, 16) * 3 + later(5)
        + stream("end", 1, 4) + later(11) * 2,
        "unheard": listens + ends(0, ERROR, 4) + later(5) + ends(0, ERROR, 7)
        + stream("accept", 1) + later(5) + stream("accept", 1) + stream("end", 1, 4) + later(11),
        "options": connected + ask(SETOPT, 1, 9, how=66, value=struct.pack("=ii", 1, 0))
        + ask(GETOPT, 1, 9, how=2)
        + b"".join(ask(GETOPT, 1, a) + ask(SETOPT, 1, a) for a in (1, 3, 7, 20))
        + b"".join(ask(SETOPT, 1, 20, how=how) for how in (10, 12, 14)) + stream("end", 1, 4),
        "nobody": b"".join(ask(what, 64 + n, 1) for n in range(10) for what in (BIND, LISTEN, NAME))
        + ask(REFUSED) + ask(0) + ask(11) + ask(SOCKET, a=9),
        "descriptors": make + b"".join(bytes([3, 128 | 64 | n, 200]) + bytes(range(n)) + bytes(2)
                                       + ask(BIND, 0)[1:-1] for n in range(16)),
        "cut": b"".join(bytes([3, 64 | fds, 200]) + bytes(fds) + struct.pack("=H", n)
                        + ask(SOCKET)[1:-1]
                        for n in (0, 1, 4, 311, 313, 624) for fds in (0, 1, 2, 5)),
        "glued": make + (bytes([3, 128 | 64 | 1, 1, 1]) + bytes(2) + ask(NAME)[1:-1]) * 3,
        "silent": bytes([15, 128]) + later(7) * 2 + make,
        "crowd": bytes([15, 129, 15, 62]) + connected + bytes([15, 60]),
        "poor": bytes([16, 3]) + make + bytes([16, 1]) + make + bytes([16, 4]) + listens + well()
        + bytes([16, 2]) + well() + later(5) + bytes([16, 5]) + later(5) + well(),
        "unnamed": make + past(1, 0) + bytes([12, 4, 1, 0]) + ask(BIND, 1),
        "unnamed-late": listens + past(1, 0) + later(11) + well(),
        "refuses": b"".join(bytes([12, bit, n, 0]) + make + ask(BIND, 1) + ask(LISTEN, 1)
                            + ask(CONNECT, 1, 1) + ask(GETOPT, 1, 20)
                            for n, bit in enumerate((1, 2, 4, 8, 16, 34))),
        "gone": connected + stream("write", 1, 99) + bytes([12, 0, 0, 0xEE]),
        "forged": make + b"".join(past(1, 6, how) + ask(CONNECT, 2, 1) for how in range(18)),
        "forged-listens": listens + past(1, 0) + past(1, 6) + past(2, 7, 4) + well()
        + stream("accept", 2),
        "raw": make * 2 + past(1, 1, 1) + ask(CONNECT, 1, 1) + past(1, 7, 3) + past(1, 2, 2)
        + past(1, 8) + stream("accept", 1),
        "small": connected + past(1, 3, 9) + past(1, 3, 1) + stream("write", 1, 9999) + well() * 4
        + ends(0, 0) + stream("read", 1, 99) * 9 + well(),
        "early": make + ask(CONNECT, 1, 1) + past(1, 3, 0xFF) + stream("write", 1, 900) + ends(0)
        + well() * 3,
        "urgent": connected + past(1, 4) + stream("write", 1, 9) + past(1, 4) + well() * 3,
        "passed": connected + past(1, 5, 0xC3, 64, 65, 66) + well() * 3
        + stream("write", 1, 9) + well(),
        "passed-itself": connected + past(1, 5, 1, 1) + well() * 3,
        "passed-to-nobody": make + bytes([15, 5, 3, 129, 2, 1, 0, 0]),
        "served": connected + bytes([17]) + stream("write", 1, 99) + bytes([17]),
    }
    udp, udp6 = ask(SOCKET, a=2, how=128), ask(SOCKET, a=10, how=128)
    away, loop, loop6, mapped, any_at, junk, noise = (n << 13 for n in (1, 2, 3, 4, 5, 6, 7))
    packets = udp + stream("write", 1, away | 700) + well()
    steps["packets"] = packets + ends(0, 0) + ends(0, 0) + stream("read", 1) * 2 + ask(NAME, 1) + well() * 3
    steps["packets-empty"] = packets + stream("write", 1, away) + ends(0) + ends(0, END) + stream("read", 1)
    steps["packets-kept"] = (packets + stream("write", 1, away | 9) * 3 + ends(1, AGAIN) + well() * 3
                             + ask(CONNECT, 1, 1) + stream("write", 1, 5) + stream("end", 1, 4) + well() * 9)
    steps["packets-joined"] = (udp + ask(CONNECT, 1, 1) + stream("write", 1, 5) + ask(PEER, 1) + ends(1, ERROR, 1)
                               + stream("read", 1) + ask(CONNECT, 1, at=NOBODY) + stream("write", 1, 5) + well() * 3)
    steps["packets-lost"] = packets + ends(0, ERROR, 1) + ends(0, ERROR, 0) + stream("read", 1) * 3
    steps["packets-lies"] = (packets + ends(0, LIE, 9) + well() + ends(0, LIE, 9) + stream("write", 1, junk | 33)
                             + stream("write", 1, noise | 31) + stream("write", 1, junk | 0x1F00) + well() * 3)
    steps["packets-full"] = udp + ends(0) * 40 + stream("read", 1) * 30 + well() * 3
    steps["packets-near"] = (udp * 2 + ask(BIND, 1, at=LOOP) + stream("write", 2, loop | 1) + stream("read", 1)
                             + ask(CONNECT, 2, at=LOOP) + ask(NAME, 2) + stream("write", 2, 99) + stream("read", 1)
                             + stream("write", 1, loop | 2) + stream("end", 1, 4) + stream("write", 2, 99)
                             + stream("read", 2) * 3)
    steps["packets-six"] = (udp6 * 2 + udp + ask(BIND, 1, at=ANY6) + stream("write", 2, loop6 | 1)
                            + stream("write", 2, mapped | 1) + stream("write", 3, any_at | 1) + stream("read", 1) * 3
                            + ask(CONNECT, 2, at=LOOP6) + stream("write", 2, 99) + stream("read", 1))
    steps["packets-options"] = (udp + ask(SETOPT, 1, 10) + ask(SETOPT, 1, 11) + ask(GETOPT, 1, 1) + ask(LISTEN, 1)
                                + past(1, 5, 0xC3, 64, 65, 66) + past(1, 6, 1) + ask(CONNECT, 2, 1) + well() * 3)
    local = make + ask(BIND, 1, at=LOOP) + ask(LISTEN, 1, a=1) + make + ask(CONNECT, 2, at=LOOP)
    steps["local"] = (local + stream("accept", 1) + ask(NAME, 3) + ask(PEER, 3) + ask(BIND, 3)
                      + ask(GETOPT, 3, 3) + stream("end", 2, 4) + later(11) + ask(PEER, 3)
                      + later(16))
    steps["local-full"] = (local + b"".join(make + ask(CONNECT, 3 + n, at=ANY) for n in range(4))
                           + stream("end", 1, 4))
    steps["local-port"] = (make * 2 + ask(BIND, 1, at=LOOP, port=4) + ask(BIND, 2, at=LOOP, port=4)
                           + ask(SOCKET, a=10) + ask(BIND, 3, at=ANY6) + ask(LISTEN, 3)
                           + ask(SOCKET, a=10) + ask(CONNECT, 4, at=MAPPED) + stream("accept", 3)
                           + ask(PEER, 5))
    steps["local-taken"] = (make * 2 + ask(BIND, 1, at=LOOP) + past(2, 0) + ask(BIND, 2, at=LOOP))
    for name, data in steps.items():
        for how in (0, 1, 2 | 4, 8, 1 | 16):
            corpus.add("agent", name, bytes([how]) + data)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    recorded, corpus = Path(sys.argv[1]), Corpus(sys.argv[2])
    netlink(recorded, corpus)
    traffic(recorded, corpus)
    documents(corpus)
    web(corpus)
    records(corpus)
    requests(corpus)
    agents(corpus)
    for target, count in sorted(corpus.count.items()):
        print(f"{target}: {count} seeds")


if __name__ == "__main__":
    main()
