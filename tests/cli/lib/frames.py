#!/usr/bin/python3 -IS
# SPDX-License-Identifier: MIT OR GPL-2.0
"""Send known frames, and compare a pcapng file with what was sent.

frames.py send DEVICE [COUNT]   send the frames of the test (COUNT times)
frames.py check FILE [OPTION=VALUE...]
    cut=N       frames were cut to N bytes (before a VLAN tag is put back)
    interface=NAME  all are from this one
    count=N     the test's frames came so many times (default 1)
frames.py dump FILE             all blocks as JSON
frames.py write FILE [OPTION=VALUE...]  a capture file of the test's frames
    format=pcap  instead of pcapng
    count=N     so many times
    gap=NS      nanoseconds from one frame to the next (default 1000)
    link=N      link type of the file (default 1, Ethernet)
    cut=N       the file has the first N bytes of longer frames
    extra=N     a frame of N bytes more, at the end
frames.py udp ADDRESS PORT COUNT SIZE [NUMBER]  send numbered datagrams
frames.py checkudp FILE PORT COUNT SIZE  compare with those

The reader here is strict: lengths at both ends of a block, padding, order of
interface descriptions and options are all checked.
"""

import struct
import sys

# json and socket where they are needed: emulated, loading them takes a second.

ETHERTYPE = 0x88B5  # for local experiments: nobody else sends it


def payload(seed, size):
    """Bytes that differ from frame to frame and from place to place."""
    out = bytearray()
    x = seed * 2654435761 % 2**32 or 1
    while len(out) < size:
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        x ^= x << 5 & 0xFFFFFFFF
        out += struct.pack("<I", x)
    return bytes(out[:size])


def frames():
    """The frames of the test, as they are on the wire."""
    src = bytes.fromhex("020000000001")
    out = []
    for i, (dst, tags, size) in enumerate([
            ("ffffffffffff", [], 46),
            ("01005e000001", [], 100),
            ("020000000002", [(0x8100, 5)], 200),
            ("020000000002", [(0x8100, 0x2FFF)], 46),
            ("020000000002", [(0x88A8, 7), (0x8100, 9)], 300),
            ("020000000002", [], 1486),
            ("020000000002", [], 5000),
            ("020000000002", [(0x8100, 11)], 8000),
    ]):
        frame = bytes.fromhex(dst) + src
        for proto, tci in tags:
            frame += struct.pack(">HH", proto, tci)
        frame += struct.pack(">H", ETHERTYPE)
        out.append(frame + payload(i + 1, size))
    return out


def send(device, count):
    import socket

    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sock.bind((device, 0))
    for _ in range(count):
        for frame in frames():
            sock.send(frame)


def blocks(data):
    off = 0
    while off < len(data):
        kind, length = struct.unpack_from("<II", data, off)
        assert length % 4 == 0 and length >= 12, f"length {length} at {off}"
        assert off + length <= len(data), f"block at {off} is cut"
        (again,) = struct.unpack_from("<I", data, off + length - 4)
        assert again == length, f"lengths {length} and {again} at {off}"
        yield kind, data[off + 8:off + length - 4]
        off += length


def options(data):
    out = {}
    while data:
        code, length = struct.unpack_from("<HH", data)
        if code == 0:
            assert length == 0 and len(data) == 4, "something after the end"
            return out
        padded = (length + 3) & ~3
        assert not any(data[4 + length:4 + padded]), "padding is not zero"
        out[code] = data[4:4 + length]
        data = data[4 + padded:]
    assert not out, "options without an end"
    return out


def u64(data):
    return struct.unpack("<Q", data)[0]


def read(path):
    with open(path, "rb") as f:
        data = f.read()
    section, interfaces, packets, stats = None, [], [], []
    for kind, body in blocks(data):
        if kind == 0x0A0D0D0A:
            assert section is None, "two sections"
            assert struct.unpack_from("<I", body)[0] == 0x1A2B3C4D
            assert struct.unpack_from("<HH", body, 4) == (1, 0)
            section = options(body[16:])
        elif kind == 1:
            link, zero, snaplen = struct.unpack_from("<HHI", body)
            assert zero == 0
            opts = options(body[8:])
            assert opts[9] == b"\x09", "not nanoseconds"
            interfaces.append({"link": link, "snaplen": snaplen,
                               "name": opts[2].decode(),
                               "filter": opts.get(11, b"\0")[1:].decode()})
        elif kind == 6:
            number, high, low, cap, orig = struct.unpack_from("<IIIII", body)
            assert number < len(interfaces), "packet before its interface"
            snaplen = interfaces[number]["snaplen"]
            assert cap <= orig and (not snaplen or cap <= snaplen)
            end = 20 + ((cap + 3) & ~3)
            assert not any(body[20 + cap:end]), "padding is not zero"
            opts = options(body[end:])
            packets.append({"interface": number, "time": high << 32 | low,
                            "data": body[20:20 + cap], "orig": orig,
                            "flags": struct.unpack("<I", opts[2])[0] if 2 in opts else 0,
                            "dropped": u64(opts[4]) if 4 in opts else 0})
        elif kind == 5:
            number = struct.unpack_from("<I", body)[0]
            assert number < len(interfaces)
            opts = options(body[12:])
            stats.append({"interface": number, "received": u64(opts[4]),
                          "dropped": u64(opts[5]), "accepted": u64(opts[6]),
                          "delivered": u64(opts[8])})
        else:
            raise AssertionError(f"unknown block {kind:#x}")
    assert section is not None, "no section header"
    return section, interfaces, packets, stats


def is_ours(data):
    off = 12
    while data[off:off + 2] in (b"\x81\x00", b"\x88\xa8"):
        off += 4
    return data[off:off + 2] == struct.pack(">H", ETHERTYPE)


def check(path, args):
    opts = dict(arg.split("=") for arg in args)
    _, interfaces, packets, stats = read(path)
    count = int(opts.get("count", 1))
    got = [p for p in packets if is_ours(p["data"])]
    sent = frames() * count
    assert len(got) == len(sent), f"{len(got)} frames, not {len(sent)}"
    last = 0
    for i, (p, want) in enumerate(zip(got, sent)):
        cut = len(want)
        if "cut" in opts:
            # a tag was taken off before the frame was cut
            tagged = want[12:14] in (b"\x81\x00", b"\x88\xa8")
            cut = min(cut, int(opts["cut"]) + (4 if tagged else 0))
        assert p["orig"] == len(want), f"frame {i}: {p['orig']} bytes of {len(want)}"
        assert p["data"] == want[:cut], f"frame {i} differs ({len(p['data'])} bytes)"
        assert p["time"] >= last, f"frame {i}: time runs backwards"
        kind = {0xFF: 3, 0x01: 2}.get(want[0])
        if kind:
            assert p["flags"] & 3 == 1 and p["flags"] >> 2 & 7 == kind, \
                f"frame {i}: flags {p['flags']:#x}"
        if "interface" in opts:
            assert interfaces[p["interface"]]["name"] == opts["interface"]
        last = p["time"]
    check_stats(interfaces, packets, stats)


def check_stats(interfaces, packets, stats):
    assert len(stats) == len(interfaces), "an interface without statistics"
    for s in stats:
        n = sum(p["interface"] == s["interface"] for p in packets)
        assert s["delivered"] == n, f"delivered {s['delivered']}, not {n}"


def block(kind, body):
    body += bytes(-len(body) % 4)
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def write(path, args):
    opts = dict(arg.split("=") for arg in args)
    link, gap = int(opts.get("link", 1)), int(opts.get("gap", 1000))
    sent = frames() * int(opts.get("count", 1))
    if "extra" in opts:
        sent.append((frames()[0] + payload(99, int(opts["extra"])))[:int(opts["extra"])])
    classic = opts.get("format") == "pcap"
    if classic:
        out = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, link)
    else:
        out = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
        out += block(1, struct.pack("<HHIHH", link, 0, 262144, 9, 1) + b"\x09\0\0\0" + bytes(4))
    for i, frame in enumerate(sent):
        data = frame[:int(opts.get("cut", len(frame)))]
        time = 1700000000 * 10**9 + i * gap
        if classic:
            out += struct.pack("<IIII", time // 10**9, time % 10**9, len(data), len(frame)) + data
        else:
            out += block(6, struct.pack("<IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(data),
                                        len(frame)) + data)
    with open(path, "wb") as f:
        f.write(out)


def send_udp(address, port, count, size, number=0):
    import socket

    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for i in range(number, number + count):
        sock.sendto(payload(i + 1, size), (address, port))


def check_udp(path, port, count, size):
    _, interfaces, packets, stats = read(path)
    got = []
    for p in packets:
        assert interfaces[p["interface"]]["link"] in (1, 101)
        ip = p["data"][14 if interfaces[p["interface"]]["link"] == 1 else 0:]
        if ip[0] >> 4 != 4 or ip[9] != 17:
            continue
        udp = ip[(ip[0] & 15) * 4:]
        if struct.unpack_from(">H", udp, 2)[0] == port:
            got.append(udp[8:struct.unpack_from(">H", udp, 4)[0]])
    assert len(got) == count, f"{len(got)} datagrams, not {count}"
    for i, data in enumerate(got):
        assert data == payload(i + 1, size), f"datagram {i} differs"
    check_stats(interfaces, packets, stats)


def main(argv):
    verb, args = argv[1], argv[2:]
    if verb == "send":
        send(args[0], int(args[1]) if len(args) > 1 else 1)
    elif verb == "check":
        check(args[0], args[1:])
    elif verb == "write":
        write(args[0], args[1:])
    elif verb == "dump":
        import json

        section, interfaces, packets, stats = read(args[0])
        for p in packets:
            p["data"] = p["data"].hex()
        print(json.dumps({"section": {k: v.decode() for k, v in section.items()},
                          "interfaces": interfaces, "packets": packets,
                          "stats": stats}))
    elif verb == "udp":
        send_udp(args[0], *map(int, args[1:]))
    elif verb == "checkudp":
        check_udp(args[0], *map(int, args[1:]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv)
