# SPDX-License-Identifier: MIT OR GPL-2.0
"""Connections where nothing goes, and a server that echoes.

idle.py serve
idle.py ask PORT N
"""
import resource
import selectors
import socket
import sys


def serve():
    """until it is ended"""
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as s:
        s.setblocking(False)
        print("at", s.getsockname()[1], flush=True)
        sel = selectors.DefaultSelector()
        sel.register(s, selectors.EVENT_READ)
        while True:
            for key, _ in sel.select():
                if key.fileobj is s:
                    sel.register(s.accept()[0], selectors.EVENT_READ)
                    continue
                data = key.fileobj.recv(100)
                if data:
                    key.fileobj.sendall(data)
                else:
                    sel.unregister(key.fileobj)
                    key.fileobj.close()


def ask(port, n):
    """makes them, waits for a line, and then has each of them answer"""
    resource.setrlimit(resource.RLIMIT_NOFILE, (n + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    first = socket.create_connection(("127.0.0.1", port))
    print("one", flush=True)
    sys.stdin.readline()
    them = [first] + [socket.create_connection(("127.0.0.1", port)) for _ in range(n - 1)]
    print("idle", len(them), flush=True)
    sys.stdin.readline()
    for i, s in enumerate(them):
        s.sendall(b"%d" % i)
    good = sum(s.recv(100) == b"%d" % i for i, s in enumerate(them))
    print("answered", good, flush=True)


if sys.argv[1] == "serve":
    serve()
ask(int(sys.argv[2]), int(sys.argv[3]))
