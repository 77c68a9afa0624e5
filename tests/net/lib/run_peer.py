# SPDX-License-Identifier: MIT OR GPL-2.0
"""The peer of the tests, outside of an agent, and who asks it: a word says what it does."""
import errno
import hashlib
import os
import socket
import struct
import threading
import time

from program_says import check, fails, say
from run_serve import HOST, everything


def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def peer_one(s):
    word = s.recv(16, socket.MSG_WAITALL).decode().strip()
    if word == "reset":
        reset(s)
    elif word == "last":
        s.sendall(b"last words")
        s.recv(1)
        reset(s)
    elif word == "sum":
        s.sendall(hashlib.sha256(everything(s)).digest())
        s.close()
    elif word == "echo":
        s.sendall(s.recv(4096))
        s.close()
    elif word == "pour":
        for _ in range(512):
            s.sendall(b"\x5a" * 65536)
        s.close()
    elif word == "deaf":
        time.sleep(120)
        s.close()
    elif word == "callback":
        port = struct.unpack("!H", s.recv(2, socket.MSG_WAITALL))[0]
        how = s.recv(1)
        t = socket.create_connection((HOST, port))
        if how == b"r":
            reset(t)
        s.sendall(struct.pack("!H", t.getsockname()[1] if how != b"r" else 0))
        if how == b"e":
            t.sendall(everything(t))
            t.close()
        elif how != b"r":
            s.recv(1)
        s.close()
    elif word == "full":
        # One who never accepts, and as many as wait for that already
        server = socket.create_server((HOST, 0), backlog=0)
        waiting = [socket.socket() for _ in range(3)]
        for w in waiting:
            w.setblocking(False)
            w.connect_ex(server.getsockname())
        s.sendall(struct.pack("!H", server.getsockname()[1]))
        s.recv(1)
    elif word == "silent":
        try:
            data = everything(s)
            say("gone", len(data))
        except ConnectionResetError:
            say("reset")
        s.close()


def peer():
    server = socket.create_server((HOST, 0))
    say("at", server.getsockname()[1])
    while True:
        s, _ = server.accept()
        threading.Thread(target=peer_one, args=(s,), daemon=True).start()


def ask(port, word):
    s = socket.create_connection((HOST, port), 20)
    s.sendall(word.encode().ljust(16))
    return s


def pour(port):
    s = ask(port, "pour")
    say("pid", os.getpid())
    time.sleep(1)
    data = everything(s)
    check("bytes", len(data), 512 * 65536)
    check("bytes", data.count(b"\x5a"), len(data))


def hold(port):
    s = ask(port, "silent")
    say("held", os.getpid())
    time.sleep(30)
    s.close()


def broken():
    server = socket.create_server(("0.0.0.0", 0))
    s = socket.create_connection(("127.0.0.1", server.getsockname()[1]))
    a, _ = server.accept()
    say("at", server.getsockname()[1])
    for _ in range(40):
        fails(errno.ENETDOWN, server.accept)
    fails(errno.ECONNRESET, a.recv, 1)
    fails(errno.ECONNRESET, s.recv, 1)
    fails(errno.ENETDOWN, socket.socket)


def backlogged():
    """The agent is killed while somebody waits to be accepted, and this lives on"""
    server = socket.create_server(("0.0.0.0", 0))
    say("at", server.getsockname()[1])
    first = os.getpid()
    if os.fork():
        return
    while (agent := os.getppid()) == first:
        time.sleep(0.01)
    say("alone")
    while os.getppid() == agent:
        time.sleep(0.01)
    fails(errno.ECONNABORTED, server.accept)
    say("aborted")


def listener(port=0, **kw):
    return socket.create_server(("0.0.0.0", port), **kw)


def called_back(port, server, how=b"n"):
    """Who connects to @server at once; the peer's own port is told after that"""
    s = ask(port, "callback")
    s.sendall(struct.pack("!H", server.getsockname()[1]) + how)
    return s
