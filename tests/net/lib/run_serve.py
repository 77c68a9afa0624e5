# SPDX-License-Identifier: MIT OR GPL-2.0
"""Servers of usual kinds and their clients, none of which knows of an agent (run_program.py)."""
import asyncio
import errno
import hashlib
import http.server
import os
import socket
import socketserver
import threading
import urllib.request

from program_says import check, fails, say

HOST = "127.0.0.1"


def everything(s):
    parts = []
    while part := s.recv(65536):
        parts.append(part)
    return b"".join(parts)


class Web(http.server.SimpleHTTPRequestHandler):
    def do_PUT(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        body = hashlib.sha256(data).hexdigest().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def web():
    server = http.server.ThreadingHTTPServer(("0.0.0.0", 0), Web)
    say("at", server.server_address[1])
    server.serve_forever()


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)


async def echo_async():
    async def one(reader, writer):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(one, "0.0.0.0", 0)
    say("at", server.sockets[0].getsockname()[1])
    await server.serve_forever()


def echo(kind):
    if kind == "asyncio":
        asyncio.run(echo_async())
    base = socketserver.ThreadingTCPServer if kind == "threaded" else socketserver.ForkingTCPServer
    with base(("0.0.0.0", 0), Echo) as server:
        say("at", server.server_address[1])
        server.serve_forever()


def echo_one(port, data, wrong):
    s = socket.create_connection((HOST, port), 20)
    sender = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)))
    sender.start()
    if everything(s) != data:
        wrong.append(port)
    sender.join()


def echoed(port, count, length):
    wrong = []
    data = [os.urandom(int(length)) for _ in range(int(count))]
    threads = [threading.Thread(target=echo_one, args=(int(port), d, wrong)) for d in data]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print("different" if wrong else "same")


def urllib_get(url):
    print(hashlib.sha256(urllib.request.urlopen(url, timeout=30).read()).hexdigest())


def threads(url, count):
    sums = []
    get = lambda: sums.append(hashlib.sha256(urllib.request.urlopen(url, timeout=30).read()).digest())
    all_of_them = [threading.Thread(target=get) for _ in range(int(count))]
    for t in all_of_them:
        t.start()
    for t in all_of_them:
        t.join()
    check("sums", len(set(sums)), 1)
    print(len(sums))


def both():
    server = socketserver.ThreadingTCPServer((HOST, 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    s = socket.create_connection((HOST, port), 10)
    check("peer", s.getpeername(), (HOST, port))
    check("name", s.getsockname()[0], HOST)
    t = socket.socket()
    fails(errno.EADDRINUSE, t.bind, (HOST, port))
    fails(errno.ECONNREFUSED, t.connect, (HOST, port + 1 if port < 65535 else 1))
    s.close()
    listener = socket.create_server((HOST, 0))
    c = socket.create_connection(listener.getsockname())
    a, who = listener.accept()
    check("who", who, c.getsockname())
    check("accepted's peer", a.getpeername(), c.getsockname())
    check("accepted's name", a.getsockname(), listener.getsockname())
    six = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    c6 = socket.create_connection((HOST, six.getsockname()[1]))
    a6, who = six.accept()
    check("who, of the listener's family", who[:2], ("::ffff:127.0.0.1", c6.getsockname()[1]))
    check("peer of that", a6.getpeername(), who)
    check("name of that", a6.getsockname()[:2], ("::ffff:127.0.0.1", six.getsockname()[1]))
    check("domain of that", a6.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN), socket.AF_INET6)
    # A port is free once its socket is closed.
    at = listener.getsockname()
    listener.close()
    a.close()
    again = socket.create_server(at)
    again.close()
    echoed(port, 4, 500000)
    os._exit(0)
