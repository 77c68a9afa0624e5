# SPDX-License-Identifier: MIT OR GPL-2.0
"""The other end of tests/net/streams/made.c: echoes at a port, of UDP, or asks at those of its sockets.

made.py echo PORT
made.py ask STREAM-PORT... [DATAGRAM-PORT]
"""
import socket
import sys


def echo(port):
    """until it is ended"""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", port))
    print("at", port, flush=True)
    while True:
        data, who = s.recvfrom(100)
        s.sendto(data, who)


def ask(ports):
    """a byte there and back, at each; 0 is no port"""
    for port in ports[:3]:
        with socket.create_connection(("127.0.0.1", port), 60) as s:
            s.sendall(b"z")
            assert s.recv(1) == b"z"
    if ports[3]:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(60)
        s.sendto(b"u", ("127.0.0.1", ports[3]))
        data, who = s.recvfrom(100)
        assert (data, who) == (b"u", ("127.0.0.1", ports[3]))
    print("asked")


if sys.argv[1] == "echo":
    echo(int(sys.argv[2]))
ask([int(port) for port in sys.argv[2:]])
