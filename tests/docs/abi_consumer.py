#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""A consumer of the ring written from Documentation/abi.rst alone.

Takes frames of a memfd ring whose handle comes over a socket, or of a ring's
image in a file, and prints one line for each. No code and no header of the
project is used: where this cannot read a ring, the document is wrong.

Python has no memory barriers. Eight-byte accesses go through a memoryview of
machine words, one load or store each; taking a lock, which is an atomic
read-modify-write, stands for the fences. That is exact on x86 only, and so the
sleeping below has a timeout for the others.

usage: abi_consumer.py (--fd SOCKET | --image FILE) [--stop N] [--number I/N]
       [--slow SECONDS]
"""
import argparse
import array
import fcntl
import mmap
import os
import select
import socket
import struct
import sys
import threading
import time
import zlib

MAGIC, VERSION, BATCH, SLOT_HDR = 0x54414752, 1, 32, 64
FEATURES = 1 | 2 | 4 | 8
POLICY_OVERWRITE = 1
ACTIVE, RETIRED, CLOSED = 1, 2, 3
TRUNC, PAD, CONT = 1, 2, 4
F_GET_SEALS, F_SEAL_SHRINK, F_SEAL_GROW = 1034, 2, 4

_lock = threading.Lock()


def fence():
    with _lock:
        pass


class Words:
    """An area as bytes, and as words that are loaded and stored at once"""

    def __init__(self, memory):
        self.bytes = memoryview(memory)
        self.words = self.bytes[:len(memory) // 8 * 8].cast("Q")

    def load(self, off):
        return self.words[off // 8]

    def store(self, off, value):
        self.words[off // 8] = value


class Ring:
    """One generation: producer area, consumer area, slots"""

    def __init__(self, prod, cons, slots):
        self.prod, self.cons, self.slots = prod, cons, slots

    def parse(self):
        p = self.prod.bytes
        magic, version, hdr, features = struct.unpack_from("=IHHQ", p, 0)
        assert magic == MAGIC, "no ring"
        assert version == VERSION and not features & ~FEATURES, "too new"
        assert hdr == SLOT_HDR
        (self.nslots, self.slot_size, batch, self.flags, self.policy,
         self.clock, self.generation, self.handles) = struct.unpack_from("=8I", p, 16)
        assert batch == BATCH and self.handles == 32
        (self.map_len, self.cons_off, self.credits_off,
         self.slots_off) = struct.unpack_from("=4Q", p, 48)
        self.credits = self.credits_off - self.cons_off
        self.room = self.slot_size - SLOT_HDR
        return self

    def head(self):
        return self.prod.load(128)

    def state(self):
        return struct.unpack_from("=I", self.prod.bytes, 136)[0]

    def lap(self, pos):
        return pos // self.nslots + 1

    def slot(self, pos):
        return (pos & (self.nslots - 1)) * self.slot_size

    def seq(self, pos):
        return self.slots.load(self.slot(pos))

    def credit(self, batch):
        return self.credits + (batch & (self.nslots // BATCH - 1)) * 8

    def first(self):
        """The oldest batch that was not returned"""
        head, nb = self.head(), self.nslots // BATCH
        top = head // BATCH
        b = max(0, top - nb)
        if top >= nb and head % BATCH:
            b = top - nb + 1
        while b < top and self.cons.load(self.credit(b)) >= self.lap(b * BATCH):
            b += 1
        return b


def map_memfd(fd1, fd2):
    sizes = []
    for fd in (fd1, fd2):
        seals = fcntl.fcntl(fd, F_GET_SEALS)
        assert seals & F_SEAL_SHRINK and seals & F_SEAL_GROW, "not sealed"
        sizes.append(os.fstat(fd).st_size)
    read = dict(flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
    prod = Words(mmap.mmap(fd1, mmap.PAGESIZE, **read))
    ring = Ring(prod, None, None).parse()
    assert sizes[0] == ring.cons_off + ring.map_len - ring.slots_off
    assert sizes[1] == ring.slots_off - ring.cons_off
    ring.cons = Words(mmap.mmap(fd2, sizes[1], flags=mmap.MAP_SHARED,
                                prot=mmap.PROT_READ | mmap.PROT_WRITE))
    ring.slots = Words(mmap.mmap(fd1, sizes[0] - ring.cons_off,
                                 offset=ring.cons_off, **read))
    os.close(fd1)
    os.close(fd2)
    return ring


def map_image(path):
    with open(path, "r+b") as f:
        memory = memoryview(mmap.mmap(f.fileno(), 0))
    ring = Ring(Words(memory[:4096]), None, None).parse()
    assert len(memory) == ring.map_len
    ring.cons = Words(memory[ring.cons_off:ring.slots_off])
    ring.slots = Words(memory[ring.slots_off:])
    return ring


class Source:
    """Where handles and wakeups come from: the handle's socket, or nowhere"""

    def __init__(self, args):
        self.sock, self.gone, self.next = None, False, []
        if args.image:
            self.ring, self.handle = map_image(args.image), 0
            return
        with socket.socket(fileno=args.fd) as channel:
            kind, self.handle, fds = self.receive(channel)
        assert kind == 2 and len(fds) == 3
        self.ring = map_memfd(fds[0], fds[1])
        self.sock = socket.socket(fileno=fds[2])
        self.sock.setblocking(False)

    @staticmethod
    def receive(sock):
        data, control, _, _ = sock.recvmsg(64, socket.CMSG_SPACE(4 * 3))
        if not data:
            return 0, 0, []
        fds = array.array("i")
        for _, _, cdata in control:
            fds.frombytes(cdata[:len(cdata) // 4 * 4])
        magic, version, kind, nfds, handle, reserved = struct.unpack("=IHBBII", data)
        assert magic == 0x48474752 and version == 1 and not reserved
        assert nfds == len(fds)
        return kind, handle, list(fds)

    def drain(self):
        while not self.gone:
            try:
                kind, _, fds = self.receive(self.sock)
            except BlockingIOError:
                return
            except ConnectionError:
                kind, fds = 0, []
            if kind == 3:
                self.next.append(fds)
            elif kind == 0:
                self.gone = True

    def sleep(self, ring, pos):
        """Until pos is published, or something else is to be looked at"""
        want = 64 + self.handle * 64
        ring.cons.store(want, pos + 1)
        fence()
        if ring.seq(pos) < ring.lap(pos) and ring.state() == ACTIVE:
            select.select([self.sock], [], [], 1.0)
        ring.cons.store(want, 0)
        self.drain()

    def remap(self):
        """The next generation, once it came"""
        self.drain()
        if not self.next:
            select.select([self.sock], [], [], 5.0)
            self.drain()
        assert self.next, "retired, but no new memory came"
        return map_memfd(*self.next.pop(0))


class Consumer:
    def __init__(self, args):
        self.args = args
        self.source = Source(args)
        self.index, self.count = 0, 1
        if args.number:
            self.index, self.count = map(int, args.number.split("/"))
        self.frames = self.lost = self.slept = 0
        self.out = []
        self.begin(self.source.ring)

    def begin(self, ring):
        self.ring = ring
        ring.cons.store(64 + self.source.handle * 64, 0)
        self.enter(ring.first())

    def enter(self, batch):
        while batch % self.count != self.index:
            batch += 1
        self.pos = batch * BATCH

    def advance(self, n):
        """n positions are done with; a complete batch is returned"""
        ring = self.ring
        self.pos += n
        if self.pos % BATCH == 0:
            last = self.pos - 1
            ring.cons.store(ring.credit(last // BATCH), ring.lap(last))
            self.enter(self.pos // BATCH)

    def resync(self):
        ring, old = self.ring, self.pos
        self.enter(max((ring.head() - ring.nslots) // BATCH + 2,
                       self.pos // BATCH + 1))
        self.lost += self.pos - old

    def read(self, pos, n):
        """Copies of n slots: headers and data"""
        ring, out = self.ring, []
        for p in range(pos, pos + n):
            off = ring.slot(p)
            hdr = bytes(ring.slots.bytes[off:off + SLOT_HDR])
            ln = min(struct.unpack_from("=I", hdr, 16)[0], ring.room)
            out.append((hdr, bytes(ring.slots.bytes[off + 64:off + 64 + ln]), off, ln))
        return out

    def intact(self, pos, n):
        if self.ring.policy != POLICY_OVERWRITE:
            return True
        fence()
        return all(self.ring.seq(p) == self.ring.lap(p) for p in range(pos, pos + n))

    def step(self):
        """Takes one frame. False: there is none (any more)"""
        ring, pos = self.ring, self.pos
        seq, lap = ring.seq(pos), ring.lap(pos)
        if seq < lap:
            if ring.policy == POLICY_OVERWRITE and ring.head() > pos:
                if ring.seq(pos) != lap:
                    self.resync()
                return True
            return False
        if seq > lap:
            self.resync()
            return True
        cnt = ring.slots.bytes[ring.slot(pos) + 55]
        if not 1 <= cnt <= BATCH - pos % BATCH:
            assert not self.intact(pos, 1), "chain_cnt"
            self.resync()
            return True
        if ring.seq(pos + cnt - 1) < ring.lap(pos + cnt - 1):
            return ring.policy == POLICY_OVERWRITE and ring.head() > pos
        parts = self.read(pos, cnt)
        if self.args.slow:
            time.sleep(self.args.slow)
        if not self.intact(pos, cnt):
            self.resync()
            return True
        if not struct.unpack_from("=I", parts[0][0], 24)[0] & PAD:
            self.show(pos, parts)
        else:
            assert cnt == 1 and not parts[0][1]
        self.advance(cnt)
        return True

    def show(self, pos, parts):
        ring, cnt = self.ring, len(parts)
        first = struct.unpack_from("=QQIIIIIHHHHHHHHHBBIBBBB", parts[0][0], 0)
        (_, tstamp, _, wire_len, flags, ifindex, hsh, queue, _, vlan_tci, vlan_proto,
         protocol, dev_type, l3, l4, payload, idx, chain_cnt, gap, clock, ip_proto,
         pkt_type, _) = first
        assert idx == 0 and chain_cnt == cnt and not flags & CONT
        assert clock == ring.clock and tstamp > 0
        data = b""
        for i, (hdr, part, off, ln) in enumerate(parts):
            assert hdr[54] == i and hdr[55] == cnt
            assert struct.unpack_from("=I", hdr, 20)[0] == wire_len
            assert bool(struct.unpack_from("=I", hdr, 24)[0] & CONT) == (i > 0)
            assert i == cnt - 1 or ln == ring.room
            if ring.policy != POLICY_OVERWRITE:
                tail = ring.slots.bytes[off + 64 + ln:off + 64 + (ln + 63) // 64 * 64]
                assert not any(tail), "the tail of a slot is not zero"
            data += part
        assert bool(flags & TRUNC) == (len(data) < wire_len)
        self.frames += 1
        self.out.append("frame %d %d %d %x %d %d %d %d %d %x %x %d %d %d %d %d %d %08x\n" % (
            wire_len, len(data), cnt, flags, gap, ifindex, hsh, queue, vlan_tci,
            vlan_proto, protocol, dev_type, l3, l4, payload, ip_proto, pkt_type,
            zlib.crc32(data)))

    def run(self):
        while self.args.stop is None or self.frames < self.args.stop:
            if self.step():
                continue
            state = self.ring.state()
            fence()
            if self.step():
                continue
            if self.source.sock is None:
                break
            if state == ACTIVE and not self.source.gone:
                self.slept += 1
                self.source.sleep(self.ring, self.pos)
            elif state == RETIRED:
                # All that this consumer would get in the old memory was taken.
                self.begin(self.source.remap())
            else:
                break
        # At once, since two consumers may have one output
        with open(sys.stdout.fileno(), "wb", buffering=0, closefd=False) as f:
            f.write("".join(self.out).encode())
        print("frames", self.frames, "lost", self.lost, "slept", self.slept,
              "generation", self.ring.generation, file=sys.stderr)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--fd", type=int)
    p.add_argument("--image")
    p.add_argument("--stop", type=int)
    p.add_argument("--number")
    p.add_argument("--slow", type=float, default=0)
    Consumer(p.parse_args()).run()
    sys.stderr.flush()
    os._exit(0)  # not through the unmapping of memory that views still use


main()
