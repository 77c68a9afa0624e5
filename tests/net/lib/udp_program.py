# SPDX-License-Identifier: MIT OR GPL-2.0
"""What run_udp.sh has run: programs of datagrams that know nothing of an agent, inside and outside of one."""
import array
import asyncio
import ctypes
import errno
import fcntl
import hashlib
import os
import platform
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time

from program_says import check, fails, say

HOST = "127.0.0.1"
LIBC = ctypes.CDLL(None, use_errno=True)


def udp(family=socket.AF_INET, timeout=20):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(timeout)
    return s


# ---- Servers and clients ----

def echo():
    s = udp(timeout=None)
    s.bind(("0.0.0.0", 0))
    say("at", s.getsockname()[1])
    while True:
        data, who = s.recvfrom(65536)
        s.sendto(data, who)


def echo_async():
    class Echo(asyncio.DatagramProtocol):
        def connection_made(self, transport):
            self.transport = transport

        def datagram_received(self, data, addr):
            self.transport.sendto(data, addr)

    async def serve():
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(Echo, ("0.0.0.0", 0))
        say("at", transport.get_extra_info("sockname")[1])
        await asyncio.sleep(1000)

    asyncio.run(serve())


def echoed(port, count, length):
    """As many, one after the other, each of which may be lost some times: by checksum"""
    s = udp(timeout=0.5)
    s.connect((HOST, int(port)))
    out, back = hashlib.sha256(), hashlib.sha256()
    for i in range(int(count)):
        data = struct.pack("!I", i) + os.urandom(int(length))
        out.update(data)
        for _ in range(40):
            s.send(data)
            try:
                while (got := s.recv(65536))[:4] != data[:4]:
                    pass
                break
            except TimeoutError:
                pass
        back.update(got)
    print("same" if out.digest() == back.digest() else "different")


def asked_async(port):
    """An endpoint of asyncio that is connected, and is told of an error"""
    class Ask(asyncio.DatagramProtocol):
        def __init__(self):
            self.got = asyncio.get_running_loop().create_future()

        def datagram_received(self, data, addr):
            self.got.set_result((data, addr))

        def error_received(self, exc):
            self.got.set_result(exc.errno)

    async def ask(at):
        loop = asyncio.get_running_loop()
        transport, p = await loop.create_datagram_endpoint(Ask, remote_addr=(HOST, at))
        transport.sendto(b"question")
        got = await asyncio.wait_for(p.got, 20)
        transport.close()
        return got

    check("answer", asyncio.run(ask(int(port))), (b"question", (HOST, int(port))))
    check("nobody", asyncio.run(ask(1)), errno.ECONNREFUSED)
    print("asyncio")


# ---- Names: a server, and who asks it ----

def dns():
    """Each name has one address, 10.1.2.3, and a text of 200 bytes"""
    s = udp(timeout=None)
    s.bind((HOST, 0))
    say("at", s.getsockname()[1])
    while True:
        q, who = s.recvfrom(512)
        end = q.index(b"\0", 12) + 5
        kind = struct.unpack("!H", q[end - 4:end - 2])[0]
        data = socket.inet_aton("10.1.2.3") if kind == 1 else b"\xc7" + b"t" * 199
        answer = b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 60, len(data)) + data
        s.sendto(q[:2] + b"\x81\x80" + struct.pack("!HHHH", 1, 1, 0, 0) + q[12:end] + answer, who)


def resolve(port):
    s = udp()
    s.connect((HOST, int(port)))
    name = b"\7example\3org\0"
    s.send(struct.pack("!HHHHHH", 7, 0x100, 1, 0, 0, 0) + name + struct.pack("!HH", 1, 1))
    got = s.recv(512)
    check("id", got[:2], b"\0\7")
    print(socket.inet_ntoa(got[-4:]))


# ---- What has to be as it is without an agent; PORT is that of an echo server ----

def test_names(port):
    s = udp()
    check("unbound", s.getsockname(), ("0.0.0.0", 0))
    fails(errno.ENOTCONN, s.getpeername)
    s.sendto(b"x", (HOST, port))
    check("bound by a send", s.getsockname()[0] == "0.0.0.0" and s.getsockname()[1] > 0, True)
    check("from", s.recvfrom(10), (b"x", (HOST, port)))
    fails(errno.EINVAL, s.bind, ("0.0.0.0", 0))
    t = udp()
    t.bind(("127.0.0.1", 0))
    at = t.getsockname()
    check("bound", (at[0], at[1] > 0), (HOST, True))
    fails(errno.EADDRINUSE, udp().bind, at)
    s.sendto(b"between", at)
    check("between", t.recvfrom(10), (b"between", (HOST, s.getsockname()[1])))
    t.close()
    t = udp()
    t.bind(at)
    fails(errno.EADDRNOTAVAIL, udp().bind, ("192.0.2.1", 0))
    six = udp(socket.AF_INET6)
    six.bind(("::", 0))
    check("six", six.getsockname()[0], "::")
    s.sendto(b"mapped", (HOST, six.getsockname()[1]))
    data, who = six.recvfrom(10)
    check("mapped", (data, who[:2]), (b"mapped", ("::ffff:127.0.0.1", s.getsockname()[1])))
    six.sendto(b"back", who)
    check("back", s.recvfrom(10), (b"back", (HOST, six.getsockname()[1])))


def test_connected(port):
    s = udp(timeout=None)
    s.connect((HOST, port))
    check("peer", s.getpeername(), (HOST, port))
    mine = s.getsockname()
    check("name", mine[0], HOST)
    udp().sendto(b"another's", mine)
    os.write(s.fileno(), b"written")
    check("read", os.read(s.fileno(), 100), b"written")
    os.writev(s.fileno(), [b"in ", b"", b"parts"])
    a, b = bytearray(4), bytearray(100)
    check("parts", (os.readv(s.fileno(), [a, b]), bytes(a), bytes(b[:4])), (8, b"in p", b"arts"))
    s.send(b"")
    check("empty", s.recv(10), b"")
    # To nobody any more: AF_UNSPEC
    check("disconnect", LIBC.connect(s.fileno(), b"\0" * 16, 16), 0)
    fails(errno.ENOTCONN, s.getpeername)
    fails(errno.EDESTADDRREQ, s.send, b"x")
    fails(errno.EDESTADDRREQ, os.write, s.fileno(), b"x")
    s.connect((HOST, port))
    s.send(b"again")
    check("again", s.recv(10), b"again")


def test_refused(port):
    s = udp()
    s.connect((HOST, 1))
    s.send(b"x")
    fails(errno.ECONNREFUSED, s.recv, 10)
    s.send(b"x")
    check("readable", bool(select.select([s], [], [], 10)[0]), True)
    fails(errno.ECONNREFUSED, s.send, b"x")
    s.send(b"x")
    select.select([s], [], [], 10)
    check("SO_ERROR", s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), errno.ECONNREFUSED)
    check("told once", s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0)
    s.setblocking(False)
    fails(errno.EAGAIN, s.recv, 10)


def test_cut(port):
    s = udp(timeout=None)
    s.connect((HOST, port))
    s.send(b"0123456789")
    check("peeked", s.recv(4, socket.MSG_PEEK), b"0123")
    check("peeked whole", s.recv_into(bytearray(4), 4, socket.MSG_PEEK | socket.MSG_TRUNC), 10)
    left = array.array("i", [0])
    fcntl.ioctl(s.fileno(), termios.FIONREAD, left)
    check("there", left[0], 10)
    data, anc, flags, who = s.recvmsg(4, 100)
    check("cut", (data, anc, flags, who), (b"0123", [], socket.MSG_TRUNC, (HOST, port)))
    s.send(b"next")
    check("the rest is gone", s.recv(10), b"next")
    fails(errno.EAGAIN, s.recv, 10, socket.MSG_DONTWAIT)


def test_sizes(port):
    s = udp()
    # One at a time, as room for those of such a size is little.
    for n in 0, 1, 1472, 1473, 9000, 32768, 65507:
        data = os.urandom(n)
        s.sendto(data, (HOST, port))
        check(f"{n} bytes", s.recvfrom(65536), (data, (HOST, port)))
    fails(errno.EMSGSIZE, s.sendto, b"x" * 65508, (HOST, port))
    fails(errno.EINVAL, s.sendto, b"x", (HOST, 0))
    short = struct.pack("=H", socket.AF_INET) + b"\0" * 6
    check("short address", LIBC.sendto(s.fileno(), b"x", 1, 0, short, 8), -1)
    check("short address", ctypes.get_errno(), errno.EINVAL)
    six = struct.pack("=HHI16sI", socket.AF_INET6, 0x1234, 0, b"\0" * 15 + b"\1", 0)
    check("another family's", LIBC.sendto(s.fileno(), b"x", 1, 0, six, len(six)), -1)
    check("another family's", ctypes.get_errno(), errno.EAFNOSUPPORT)


class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]


class Msghdr(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint32), ("iov", ctypes.POINTER(Iovec)),
                ("iovlen", ctypes.c_size_t), ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t),
                ("flags", ctypes.c_int)]


class Mmsghdr(ctypes.Structure):
    _fields_ = [("hdr", Msghdr), ("len", ctypes.c_uint)]


def messages(n, room):
    """As many messages, and what they lie in"""
    bufs = [ctypes.create_string_buffer(room) for _ in range(n)]
    names = [ctypes.create_string_buffer(28) for _ in range(n)]
    v = (Mmsghdr * n)()
    for i in range(n):
        iov = Iovec(ctypes.addressof(bufs[i]), room)
        v[i].hdr = Msghdr(ctypes.addressof(names[i]), 28, ctypes.pointer(iov), 1)
        bufs.append(iov)
    return v, bufs, names


def test_many_calls(port):
    s = udp()
    s.connect((HOST, port))
    v, bufs, _ = messages(5, 8)
    for i in range(5):
        v[i].hdr.name = None
        v[i].hdr.iov[0].len = i + 1
        bufs[i].value = b"%d" % i * (i + 1)
    check("sendmmsg", LIBC.sendmmsg(s.fileno(), v, 5, 0), 5)
    check("sent", [m.len for m in v], [1, 2, 3, 4, 5])
    got = []
    while len(got) < 5:
        select.select([s], [], [], 10)
        v, bufs, names = messages(8, 8)
        n = LIBC.recvmmsg(s.fileno(), v, 8, 0x10000, None)
        check("recvmmsg", n > 0, True)
        for i in range(n):
            check("from", struct.unpack("!H", names[i].raw[2:4])[0], port)
            got.append(bufs[i].raw[:v[i].len])
    check("received", sorted(got), [b"0", b"11", b"222", b"3333", b"44444"])
    s.setblocking(False)
    v, _, _ = messages(2, 8)
    check("nothing", LIBC.recvmmsg(s.fileno(), v, 2, 0, None), -1)
    check("nothing", ctypes.get_errno(), errno.EAGAIN)
    parts = [b"%04d" % i for i in range(40)]
    s.setblocking(True)
    s.sendmsg(parts)
    check("many parts", s.recv(1000), b"".join(parts))
    # As many as the kernel takes of any socket
    parts = [b"%d" % (i % 10) * (i % 7) for i in range(1024)]
    s.sendmsg(parts)
    rooms = [bytearray(len(p)) for p in parts]
    check("all that there may be", s.recvmsg_into(rooms)[0], sum(map(len, parts)))
    check("as they were", rooms, parts)
    fails(errno.EMSGSIZE, s.sendmsg, parts + [b""])


def test_by_number(port):
    """Calls by syscall(2), as libuv makes them"""
    numbers = dict(zip(("socket", "connect", "sendmmsg", "recvmmsg", "sendto", "recvfrom", "getsockname"),
                       (41, 42, 307, 299, 44, 45, 51) if platform.machine() == "x86_64" else
                       (198, 203, 269, 243, 206, 207, 204)))
    call = lambda name, *args: LIBC.syscall(ctypes.c_long(numbers[name]), *args)
    fd = call("socket", socket.AF_INET, socket.SOCK_DGRAM, 0)
    to = struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", port, socket.inet_aton(HOST))
    check("connect", call("connect", fd, to, len(to)), 0)
    v, bufs, _ = messages(3, 8)
    for i in range(3):
        v[i].hdr.name = None
        v[i].hdr.iov[0].len = i + 1
        bufs[i].value = b"%d" % i * (i + 1)
    check("sendmmsg", call("sendmmsg", fd, v, 3, 0), 3)
    got = []
    while len(got) < 3:
        select.select([fd], [], [], 10)
        v, bufs, names = messages(8, 8)
        n = call("recvmmsg", fd, v, 8, 0x10000, None)
        check("recvmmsg", n > 0, True)
        check("from", {struct.unpack("!H", names[i].raw[2:4])[0] for i in range(n)}, {port})
        got += [bufs[i].raw[:v[i].len] for i in range(n)]
    check("received", sorted(got), [b"0", b"11", b"222"])
    check("sendto", call("sendto", fd, b"four", 4, 0, None, 0), 4)
    room, name, size = ctypes.create_string_buffer(16), ctypes.create_string_buffer(16), ctypes.c_uint(16)
    check("recvfrom", call("recvfrom", fd, room, 16, 0, name, ctypes.byref(size)), 4)
    check("what", (room.value, name.raw, size.value), (b"four", to, 16))
    check("getsockname", call("getsockname", fd, name, ctypes.byref(size)), 0)
    check("itself", socket.inet_ntoa(name.raw[4:8]), HOST)
    check("bad", call("recvfrom", -1, room, 16, 0, None, None), -1)
    check("errno", ctypes.get_errno(), errno.EBADF)
    os.close(fd)


def test_options(port):
    s = udp(timeout=None)
    get = lambda level, name: s.getsockopt(level, name)
    check("type", get(socket.SOL_SOCKET, socket.SO_TYPE), socket.SOCK_DGRAM)
    check("domain", get(socket.SOL_SOCKET, socket.SO_DOMAIN), socket.AF_INET)
    check("protocol", get(socket.SOL_SOCKET, socket.SO_PROTOCOL), socket.IPPROTO_UDP)
    check("listens", get(socket.SOL_SOCKET, socket.SO_ACCEPTCONN), 0)
    check("python's", (socket.socket(fileno=os.dup(s.fileno())).type), socket.SOCK_DGRAM)
    for level, name in ((socket.SOL_SOCKET, socket.SO_BROADCAST), (socket.SOL_SOCKET, socket.SO_REUSEADDR),
                        (socket.IPPROTO_IP, socket.IP_TTL), (socket.IPPROTO_IP, socket.IP_TOS)):
        s.setsockopt(level, name, 8)
        check(f"option {level} {name}", get(level, name) in (1, 8), True)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 100000)
    check("room", get(socket.SOL_SOCKET, socket.SO_RCVBUF), 200000)
    # Of what there is not each has its error.
    for level, name, value in ((socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, b"\xef\1\1\1" + b"\0" * 4),
                               (socket.IPPROTO_IP, 8, 1), (socket.IPPROTO_IP, 11, 1),
                               (socket.IPPROTO_IPV6, 49, 1), (17, 103, 1400)):
        fails(errno.ENOPROTOOPT, s.setsockopt, level, name, value)
    fails(errno.EOPNOTSUPP, s.sendmsg, [b"x"], [(socket.IPPROTO_IP, 8, b"\0" * 12)], 0, (HOST, port))
    fails(errno.EOPNOTSUPP, s.sendto, b"x", socket.MSG_OOB, (HOST, port))
    fails(errno.EAGAIN, s.recv, 1, 0x2000)
    fails(errno.EOPNOTSUPP, s.listen)
    fails(errno.EOPNOTSUPP, s.accept)


def test_poll(port):
    s = udp()
    e, p = select.epoll(), select.poll()
    e.register(s.fileno(), select.EPOLLIN)
    p.register(s, select.POLLIN | select.POLLOUT)
    check("writable", p.poll(0), [(s.fileno(), select.POLLOUT)])
    check("nothing", e.poll(0.1), [])
    d = os.dup(s.fileno())
    s.sendto(b"x", (HOST, port))
    check("readable", e.poll(10), [(s.fileno(), select.EPOLLIN)])
    check("both", p.poll(0), [(s.fileno(), select.POLLIN | select.POLLOUT)])
    t = socket.socket(fileno=d)
    s.close()
    check("dup", t.recvfrom(10), (b"x", (HOST, port)))
    t.settimeout(0.1)
    try:
        t.recv(1)
    except TimeoutError:
        pass
    else:
        raise SystemExit("no timeout")


def test_passed_on(port):
    """Over fork, exec and SCM_RIGHTS, to programs that have made no socket"""
    s = udp(timeout=None)
    s.connect((HOST, port))
    child = os.fork()
    if not child:
        s.send(b"from the child")
        os._exit(0)
    os.waitpid(child, 0)
    check("the child's", s.recv(99), b"from the child")
    s.set_inheritable(True)
    script = "import os,sys; fd = int(sys.argv[1]); os.write(fd, b'executed'); print(os.read(fd, 99).decode())"
    out = subprocess.run([sys.executable, "-c", script, str(s.fileno())], close_fds=False,
                         capture_output=True, text=True, timeout=20)
    check("exec", out.stdout, "executed\n")
    script = ("import os,socket; x = socket.socket(fileno=0); fd = socket.recv_fds(x, 1, 1)[1][0]; "
              "os.write(fd, b'passed'); print(os.read(fd, 99).decode())")
    x, y = socket.socketpair()
    other = subprocess.Popen([sys.executable, "-c", script], stdin=y, stdout=subprocess.PIPE, text=True)
    socket.send_fds(x, [b"."], [s.fileno()])
    check("passed", other.communicate(timeout=20)[0], "passed\n")


def test_shutdown(port):
    s = udp()
    fails(errno.ENOTCONN, s.shutdown, socket.SHUT_RD)
    s = udp()
    s.connect((HOST, port))
    threading.Timer(0.2, s.shutdown, (socket.SHUT_RD,)).start()
    s.settimeout(None)
    check("woken", s.recv(10), b"")
    s = udp()
    s.connect((HOST, port))
    s.shutdown(socket.SHUT_WR)
    fails(errno.EPIPE, s.send, b"x")
    # Both ways, as one thread wakes another: it is none of the agent's ends.
    s = udp(timeout=None)
    s.connect((HOST, port))
    name = s.getsockname()
    threading.Timer(0.2, s.shutdown, (socket.SHUT_RDWR,)).start()
    check("woken", s.recv(10), b"")
    check("name", s.getsockname(), name)
    fails(errno.EPIPE, s.send, b"x")
    check("at its end", s.recv(10), b"")


def test_interrupted(port):
    ran = []
    signal.signal(signal.SIGALRM, lambda *args: ran.append(1))
    s = udp(timeout=None)
    s.connect((HOST, port))
    threading.Timer(0.4, s.send, (b"late",)).start()
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    check("late", (s.recv(10), ran), (b"late", [1]))


def test_crowd(port):
    """More sockets than a session of the agent has, from threads"""
    wrong = []

    def one():
        s = udp(timeout=2)
        for i in range(20):
            data = os.urandom(900)
            for _ in range(10):
                s.sendto(data, (HOST, port))
                try:
                    if s.recvfrom(2000) != (data, (HOST, port)):
                        wrong.append(i)
                    break
                except TimeoutError:
                    pass

    threads = [threading.Thread(target=one) for _ in range(60)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check("wrong", wrong, [])
    check("descriptors", len(os.listdir("/proc/self/fd")) < 20, True)


def within():
    """Two programs of one agent, on a loopback of their own"""
    s = udp()
    s.bind((HOST, 0))
    at = s.getsockname()
    child = os.fork()
    if not child:
        c = udp()
        c.connect(at)
        sums = hashlib.sha256()
        for i in range(200):
            data = os.urandom(i * 17)
            c.send(data)
            sums.update(data)
            check("back", c.recv(65536), data)
        c.send(b"sum" + sums.digest())
        os._exit(0)
    sums = hashlib.sha256()
    while True:
        data, who = s.recvfrom(65536)
        if data[:3] == b"sum" and len(data) == 35 and data[3:] == sums.digest():
            break
        sums.update(data)
        s.sendto(data, who)
    check("child", os.waitpid(child, 0)[1], 0)
    c = udp()
    c.connect((HOST, 1))
    c.send(b"x")
    fails(errno.ECONNREFUSED, c.recv, 10)
    t = socket.create_server(at)
    check("of a stream it is another port", t.getsockname(), at)
    print("same")


def gone():
    """Whose agent is killed is told, and does not wait"""
    s = udp(timeout=None)
    s.bind((HOST, 0))
    s.sendto(b"x", s.getsockname())
    s.recv(10)
    first = os.getpid()
    if os.fork():
        return
    while (agent := os.getppid()) == first:
        time.sleep(0.01)
    say("alone")
    fails(errno.ENETDOWN, s.recv, 10)
    fails(errno.ENETDOWN, s.sendto, b"x", (HOST, 1))
    fails(errno.ENETDOWN, udp)
    say("told", agent)


def test(what, port):
    globals()[f"test_{what}"](int(port))
    print(what)


COMMANDS = {
    "echo": echo, "async": echo_async, "echoed": echoed, "asked": asked_async, "dns": dns, "resolve": resolve,
    "within": within, "gone": gone, "test": test,
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
