# SPDX-License-Identifier: MIT OR GPL-2.0
"""What run_shared.sh has run: programs of one loopback, and hostile ones beside its agent."""
import array
import errno
import os
import select
import signal
import socket
import struct
import sys
import threading
import time

from program_says import check, fails, say

HOST = "127.0.0.1"


# ---- Programs that know nothing of it ----

def echo_one(s):
    with s:
        try:
            while data := s.recv(65536):
                s.sendall(data)
        except OSError:
            pass


def serve(port=0):
    """Until it is killed"""
    server = socket.create_server((HOST, int(port)))
    say("at", server.getsockname()[1])
    while True:
        s, _ = server.accept()
        threading.Thread(target=echo_one, args=(s,), daemon=True).start()


def ask(port, length=300000):
    data = os.urandom(int(length))
    s = socket.create_connection((HOST, int(port)), 20)
    threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR))).start()
    got = b""
    while part := s.recv(65536):
        got += part
    say("same" if got == data else "different")


def nobody(port):
    fails(errno.ECONNREFUSED, socket.create_connection, (HOST, int(port)))
    say("nobody")


def taken(port):
    fails(errno.EADDRINUSE, socket.create_server, (HOST, int(port)))
    say("taken")


def serve_udp():
    s = socket.socket(type=socket.SOCK_DGRAM)
    s.bind((HOST, 0))
    say("at", s.getsockname()[1])
    while True:
        data, who = s.recvfrom(65536)
        s.sendto(data, who)


def ask_udp(port):
    s = socket.socket(type=socket.SOCK_DGRAM)
    s.settimeout(20)
    s.sendto(b"datagram", (HOST, int(port)))
    data, who = s.recvfrom(100)
    check("datagram", (data, who), (b"datagram", (HOST, int(port))))
    say("same")


def outside(port):
    """What goes by who has the sockets"""
    s = socket.create_connection(("127.0.0.2", int(port)), 20)
    say(s.recv(100).decode())


def broken():
    """Waits in accept(2) and recv(2) when its agent ends, and asks it then"""
    server = socket.create_server((HOST, 0))
    say("at", server.getsockname()[1])
    fails(errno.ENETDOWN, server.accept)
    for _ in range(40):
        fails(errno.ENETDOWN, server.accept)
    fails(errno.ENETDOWN, socket.socket)
    say("all told")


def left():
    """... in a process that goes on without the command that ran it"""
    server = socket.create_server((HOST, 0))
    mine = os.getppid()
    if os.fork():
        say("at", server.getsockname()[1])
        time.sleep(1000)
    while os.getppid() == mine:
        time.sleep(0.01)
    for _ in range(40):
        fails(errno.ENETDOWN, server.accept)
    fails(errno.ENETDOWN, socket.socket)
    say("all told")


def poured(port):
    """A reset is seen as one, when all that was sent is there, or not"""
    s = socket.create_connection((os.environ["AT"], int(port)), 60)
    say("connected")
    try:
        while s.recv(65536):
            pass
        say("end")
    except ConnectionResetError:
        say("reset")


# ---- Hostile ones: PATH is where the daemon's agent is asked for ----

JOIN, INFO = 1, 2
ASK = struct.Struct("=II32s")
RESULT = struct.Struct("=IIi")
VERSION = 7


def call(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(30)
    while True:
        try:
            s.connect(path)
            return s
        except BlockingIOError:
            # Many wait there.
            time.sleep(0.01)


def called(path):
    """... by whom it is told that it may ask"""
    while True:
        s = call(path)
        err = result(s)
        if err == 0:
            return s
        check("hello", err, -errno.EAGAIN)
        time.sleep(0.1)


def result(s):
    got = s.recv(4096)
    return RESULT.unpack_from(got)[2] if len(got) >= RESULT.size else None


def join(path, group=b"", version=VERSION, what=JOIN):
    s = called(path)
    s.send(ASK.pack(version, what, group))
    return s, result(s)


def words(path):
    """What is no question"""
    check("version", join(path, version=VERSION + 1)[1], -errno.EPROTONOSUPPORT)
    check("what", join(path, what=INFO)[1], -errno.EINVAL)
    check("name without end", join(path, group=b"x" * 32)[1], -errno.EPROTONOSUPPORT)
    for n in (1, ASK.size - 1, ASK.size + 1, 3000):
        s = called(path)
        s.send(os.urandom(n))
        check(f"{n} bytes", result(s), -errno.EPROTONOSUPPORT)
        check("... and the end", s.recv(10), b"")
    s, err = join(path)
    check("joined", err, 0)
    s.send(ASK.pack(VERSION, JOIN, b""))
    check("... twice", s.recv(10), b"")
    say("refused")


def is_open(s):
    return not select.select([s], [], [], 0)[0]


def crowd(path):
    """More than there may be: members, groups, and those who say nothing"""
    silent = [called(path) for _ in range(40)]
    check("one behind many that are silent", join(path)[1], 0)
    ended = sum(1 for s in silent if select.select([s], [], [], 0)[0])
    check("silent ones that went", ended >= 40 - 16, True)
    groups = [join(path, b"g%d" % i) for i in range(20)]
    check("groups", [err for _, err in groups].count(0), 16)
    check("others", {err for _, err in groups} - {0}, {-errno.EDQUOT})
    members = []
    while True:
        s = call(path)
        err = result(s)
        if err == -errno.EDQUOT or len(members) > 256:
            break
        if err == -errno.EAGAIN:
            continue
        s.send(ASK.pack(VERSION, JOIN, b"g0"))
        check("one more", result(s), 0)
        members.append(s)
    check("members", 200 < len(members) <= 256, True)
    check("... of which none went", all(is_open(s) for s in members), True)
    say("limited")


def passes(path):
    """Descriptors that take their time to be closed, as a connection that lingers"""
    slow = []
    for _ in range(20):
        server = socket.create_server((HOST, 0))
        c = socket.create_connection(server.getsockname())
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 600))
        c.setblocking(False)
        try:
            while True:
                c.send(bytes(65536))
        except BlockingIOError:
            pass
        slow.append((server, c))
    for _, c in slow:
        c.setblocking(True)
        s = call(path)
        try:
            s.sendmsg([ASK.pack(VERSION, JOIN, b"slow")],
                      [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [c.fileno()]))])
        except OSError as e:
            # Since Linux 6.16 the kernel takes none
            check("error", e.errno, errno.EPERM)
            c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.close()
        s.close()
    say("passed")


def flood(path, seconds):
    until = time.monotonic() + float(seconds)
    n = 0
    while time.monotonic() < until:
        try:
            s = call(path)
            s.send(os.urandom(n % 60 + 1))
            s.close()
            n += 1
        except OSError:
            pass
    say("flooded")


def host_of(uid):
    """The process that has this user's agents"""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                name = f.read().split("(", 1)[1].rsplit(")", 1)[0]
            if name == "ringgate-agent" and os.stat(f"/proc/{pid}").st_uid in (0, uid):
                with open(f"/proc/{pid}/status") as f:
                    if f"Uid:\t{uid}\t" in f.read():
                        yield int(pid)
        except OSError:
            pass


def kills(path, seconds):
    """Its user's own process, over and over"""
    until = time.monotonic() + float(seconds)
    killed = set()
    while time.monotonic() < until:
        try:
            s = call(path)
            result(s)
        except OSError:
            pass
        for pid in host_of(os.getuid()):
            killed.add(pid)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    check("some, and not very many", 1 < len(killed) <= float(seconds) + 2, True)
    say("killed")


def stops(path):
    """Its user's own process, which takes nobody any more"""
    s, err = join(path)
    check("joined", err, 0)
    pids = list(host_of(os.getuid()))
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    held = [call(path) for _ in range(300)]
    check("refused", any(select.select([h], [], [], 0)[0] for h in held), True)
    say("stopped", *pids)
    time.sleep(1000)


def foreign(where):
    """Directories of other users' agents: nothing can be seen or reached there"""
    found = []
    for top, dirs, files in os.walk(where):
        found += [os.path.join(top, name) for name in dirs + files
                  if os.stat(os.path.join(top, name)).st_uid != os.getuid()]
    check("found", found, [])
    say("nothing")


def member(path, control):
    """Asks at a place of another user's agent that somebody told of"""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    fails(errno.EACCES, s.connect, control)
    say("denied")


def control(path):
    """Where programs of this user ask; it stays"""
    s = called(path)
    s.send(ASK.pack(VERSION, JOIN, b""))
    got = s.recv(4096)
    check("result", RESULT.unpack_from(got)[2], 0)
    say("control", got[16:16 + 256].split(b"\0")[0].decode())
    time.sleep(1000)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
