#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""tun.py DEVICE FILE: a datagram arrives on the tun device at each SIGUSR1; FILE is made
once that is possible."""
import fcntl
import os
import signal
import socket
import struct
import sys

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
fd = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", sys.argv[1].encode(), IFF_TUN | IFF_NO_PI))
udp = struct.pack("!HHHH", 4241, 4242, 8 + 3, 0) + b"tun"
ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0,
                 socket.inet_aton("192.0.2.2"), socket.inet_aton("192.0.2.1"))
total = sum(struct.unpack("!10H", ip))
total = (total & 0xFFFF) + (total >> 16)
ip = ip[:10] + struct.pack("!H", ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF) + ip[12:]
signal.signal(signal.SIGUSR1, lambda *_: os.write(fd, ip + udp))
open(sys.argv[2], "w").close()
while True:
    signal.pause()
