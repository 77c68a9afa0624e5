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


def records(corpus):
    """A descriptor and the constant part of a ring's producer area, as they are written"""
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


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    recorded, corpus = Path(sys.argv[1]), Corpus(sys.argv[2])
    netlink(recorded, corpus)
    traffic(recorded, corpus)
    documents(corpus)
    records(corpus)
    requests(corpus)
    for target, count in sorted(corpus.count.items()):
        print(f"{target}: {count} seeds")


if __name__ == "__main__":
    main()
