# SPDX-License-Identifier: MIT OR GPL-2.0
"""What run.sh has run: programs that know nothing of an agent, inside and outside of one."""
import ctypes
import errno
import fcntl
import hashlib
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from program_says import check, fails
from run_peer import ask, backlogged, broken, called_back, hold, listener, peer, pour
from run_serve import HOST, both, echo, echoed, everything, threads, urllib_get, web

# ---- What has to be as it is without an agent; PORT is the peer's ----

def test_port0(port):
    s = socket.socket()
    s.bind(("0.0.0.0", 0))
    bound = s.getsockname()
    s.listen()
    check("port", s.getsockname(), bound)
    p = called_back(port, s)
    a, who = s.accept()
    check("accepted's port", a.getsockname()[1], bound[1])
    check("who", who[1], struct.unpack("!H", p.recv(2))[0])
    check("peer", a.getpeername(), who)


def nonblock(fd):
    return bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK)


def cloexec(fd):
    return bool(fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC)


def test_accept_flags(port):
    libc = ctypes.CDLL(None, use_errno=True)
    server = listener()
    for flags in 0, socket.SOCK_NONBLOCK, socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC:
        p = called_back(port, server)
        fd = libc.accept4(server.fileno(), None, None, flags)
        check("nonblock", nonblock(fd), bool(flags & socket.SOCK_NONBLOCK))
        check("cloexec", cloexec(fd), bool(flags & socket.SOCK_CLOEXEC))
        os.close(fd)
        p.close()
    server.setblocking(False)
    fails(errno.EAGAIN, server.accept)
    p = called_back(port, server)
    select.select([server], [], [], 10)
    fd = libc.accept(server.fileno(), None, None)
    check("not inherited", nonblock(fd), False)
    check("accept", cloexec(fd), False)
    for flags in 0, socket.SOCK_NONBLOCK, socket.SOCK_CLOEXEC:
        fd = libc.socket(socket.AF_INET, socket.SOCK_STREAM | flags, 0)
        check("socket", (nonblock(fd), cloexec(fd)),
              (bool(flags & socket.SOCK_NONBLOCK), bool(flags & socket.SOCK_CLOEXEC)))


def test_connect_flags(port):
    s = socket.socket()
    s.setblocking(False)
    got = s.connect_ex((HOST, port))
    check("connect", got in (0, errno.EINPROGRESS), True)
    check("nonblock", nonblock(s.fileno()), True)
    check("writable", bool(select.select([], [s], [], 10)[1]), True)
    check("SO_ERROR", s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0)
    check("nonblock", nonblock(s.fileno()), True)
    fails(errno.EAGAIN, s.recv, 1)
    check("connected", s.connect_ex((HOST, port)) in (0, errno.EISCONN), True)
    check("again", s.connect_ex((HOST, port)), errno.EISCONN)
    s.send(b"echo".ljust(16) + b"hello")
    select.select([s], [], [], 10)
    check("echo", s.recv(99), b"hello")


def test_dup_epoll(port):
    s = ask(port, "echo")
    e = select.epoll()
    e.register(s.fileno(), select.EPOLLIN)
    d = os.dup(s.fileno())
    e.modify(s.fileno(), select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
    check("writable", e.poll(5), [(s.fileno(), select.EPOLLOUT)])
    e.modify(s.fileno(), select.EPOLLIN)
    check("nothing", e.poll(0.1), [])
    e.register(d, select.EPOLLIN)
    os.write(d, b"twice")
    check("both", sorted(fd for fd, _ in e.poll(5) + e.poll(0.1))[-1], max(d, s.fileno()))
    s2 = socket.socket(fileno=d)
    check("dup's peer", s2.getpeername(), s.getpeername())
    s.close()
    check("dup reads", s2.recv(99), b"twice")
    e2 = select.epoll()
    new = socket.socket()
    e2.register(new.fileno(), select.EPOLLOUT | select.EPOLLET)
    e2.poll(0)
    new.setblocking(False)
    new.connect_ex((HOST, port))
    check("registered before connect", bool(e2.poll(5)), True)


def test_fork_after(port):
    s = ask(port, "echo")
    r, w = os.pipe()
    child = os.fork()
    if not child:
        s.sendall(b"from the child")
        os.write(w, b"%d" % s.getpeername()[1])
        os._exit(0)
    os.waitpid(child, 0)
    check("the child's peer", int(os.read(r, 99)), port)
    check("answer", s.recv(99), b"from the child")
    # daemon(3), in short: who is left goes on
    server = listener()
    if os.fork():
        os._exit(0)
    os.setsid()
    p = called_back(port, server, b"e")
    a, _ = server.accept()
    a.sendall(b"daemon")
    a.shutdown(socket.SHUT_WR)
    check("daemon", a.recv(99), b"daemon")
    p.close()


def test_names(port):
    s = ask(port, "echo")
    check("peer", s.getpeername(), (HOST, port))
    check("name", s.getsockname()[0], HOST)
    n = socket.socket()
    fails(errno.ENOTCONN, n.getpeername)
    check("unbound", n.getsockname(), ("0.0.0.0", 0))
    six = socket.socket(socket.AF_INET6)
    six.bind(("::", 0))
    six.listen()
    check("family", six.family, socket.AF_INET6)
    check("six", six.getsockname()[0], "::")
    p = called_back(port, six)
    a, who = six.accept()
    check("mapped", who[0], "::ffff:127.0.0.1")
    check("mapped", a.getsockname()[0], "::ffff:127.0.0.1")
    p.close()


def test_options(port):
    s = socket.socket()
    get = lambda level, name: s.getsockopt(level, name)
    check("type", get(socket.SOL_SOCKET, socket.SO_TYPE), socket.SOCK_STREAM)
    check("domain", get(socket.SOL_SOCKET, socket.SO_DOMAIN), socket.AF_INET)
    check("protocol", get(socket.SOL_SOCKET, socket.SO_PROTOCOL), socket.IPPROTO_TCP)
    for level, name in ((socket.SOL_SOCKET, socket.SO_REUSEADDR), (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                        (socket.IPPROTO_TCP, socket.TCP_NODELAY)):
        s.setsockopt(level, name, 1)
        check(f"option {level} {name}", get(level, name), 1)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 77)
    check("idle", get(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE), 77)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    check("congestion", s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0"), b"reno")
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3))
    check("linger", s.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8), struct.pack("ii", 1, 3))
    fails(errno.ENOPROTOOPT, s.setsockopt, socket.SOL_SOCKET, 9999, 1)
    fails(errno.ENOPROTOOPT, s.setsockopt, socket.IPPROTO_TCP, 9999, 1)
    s.connect((HOST, port))
    check("established", s.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)[0], 1)
    check("still", get(socket.IPPROTO_TCP, socket.TCP_NODELAY), 1)
    # It has seconds of linger: closing it waits for nobody.
    before = time.monotonic()
    s.close()
    check("closed at once", time.monotonic() - before < 1, True)


def test_errors(port):
    s = socket.socket()
    fails(errno.EINVAL, s.accept)
    s.bind((HOST, 0))
    fails(errno.EINVAL, s.bind, (HOST, 0))
    t = socket.socket()
    fails(errno.EADDRINUSE, t.bind, (HOST, port))
    fails(errno.EADDRNOTAVAIL, t.bind, ("192.0.2.1", 0))
    libc = ctypes.CDLL(None, use_errno=True)
    check("short address", libc.connect(t.fileno(), b"\2\0\0\0", 4), -1)
    check("short address", ctypes.get_errno(), errno.EINVAL)
    check("no descriptor", libc.listen(999, 1), -1)
    check("no descriptor", ctypes.get_errno(), errno.EBADF)
    check("no socket", libc.listen(os.open("/dev/null", os.O_RDONLY), 1), -1)
    check("no socket", ctypes.get_errno(), errno.ENOTSOCK)
    u = socket.socket(socket.AF_UNIX)
    u.bind("")
    u.listen()
    v = socket.socket(socket.AF_UNIX)
    v.connect(u.getsockname())
    u.accept()[0].close()
    check("others' sockets", v.recv(1), b"")


def test_idle(port):
    """What is not connected is told so, and connects later all the same"""
    libc = ctypes.CDLL(None, use_errno=True)
    s = socket.socket()
    fails(errno.ENOTCONN, s.recv, 1)
    fails(errno.ENOTCONN, s.recvfrom, 1)
    for how in socket.SHUT_RD, socket.SHUT_WR, socket.SHUT_RDWR:
        fails(errno.ENOTCONN, socket.socket().shutdown, how)
    fails(errno.EINVAL, s.shutdown, 3)
    s = ask(port, "echo")
    s.sendall(b"0123456789")
    check("there", s.recv(1, socket.MSG_PEEK), b"0")
    check("trash", libc.recv(s.fileno(), None, 1, socket.MSG_TRUNC), 1)
    check("trash", libc.recv(s.fileno(), None, 8, socket.MSG_TRUNC | socket.MSG_WAITALL), 8)
    check("nowhere", libc.recv(s.fileno(), None, 1, 0), -1)
    check("nowhere", ctypes.get_errno(), errno.EFAULT)
    check("rest", s.recv(99), b"9")


def test_refused_now(port):
    s = socket.socket()
    fails(errno.ECONNREFUSED, s.connect, (HOST, 1))
    check("told once", s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0)


def test_refused_later(port):
    s = socket.socket()
    s.setblocking(False)
    check("connect", s.connect_ex((HOST, 1)), errno.EINPROGRESS)
    p = select.poll()
    p.register(s, select.POLLIN | select.POLLOUT)
    event = p.poll(10000)[0][1]
    check("error", bool(event & select.POLLERR), True)
    check("SO_ERROR", s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), errno.ECONNREFUSED)
    check("told once", s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0)


def test_half_close(port):
    s = ask(port, "sum")
    data = os.urandom(3000000)
    s.sendall(data)
    s.shutdown(socket.SHUT_WR)
    check("sum", everything(s), hashlib.sha256(data).digest())
    fails(errno.EPIPE, s.send, b"x")


def test_sendfile(port):
    """The largest pieces that the kernel makes: what the agent leaves unread of one holds up none"""
    s = ask(port, "sum")
    s.settimeout(None)
    data = os.urandom(5000000)
    with tempfile.TemporaryFile() as f:
        f.write(data)
        f.flush()
        at = 0
        while n := os.sendfile(s.fileno(), f.fileno(), at, len(data)):
            at += n
    s.shutdown(socket.SHUT_WR)
    check("sum", everything(s), hashlib.sha256(data).digest())
    server = listener()
    p = called_back(port, server, b"e")
    a, _ = server.accept()
    with tempfile.TemporaryFile() as f:
        f.write(data)
        f.flush()
        sender = threading.Thread(target=lambda: (a.sendfile(f, 0), a.shutdown(socket.SHUT_WR)))
        sender.start()
        check("accepted's", everything(a) == data, True)
        sender.join()
    p.close()


def test_unread_reset(port):
    """The program closes with something unread: a reset at the peer"""
    server = listener()
    p = called_back(port, server, b"e")
    a, _ = server.accept()
    a.sendall(b"unread" * 1000)
    a.close()
    check("peer", p.recv(2) != b"", True)
    p.close()


def test_reset_unread(port):
    s = ask(port, "reset")
    fails(errno.ECONNRESET, s.recv, 1)


def test_reset_read(port):
    """What came before the reset is there, the reset after it, and no clean end"""
    s = ask(port, "last")
    check("words", s.recv(10, socket.MSG_WAITALL), b"last words")
    s.sendall(b"x")
    fails(errno.ECONNRESET, s.recv, 1)
    check("read(2), too", s.recv(1), b"")
    s = ask(port, "reset")
    p = select.poll()
    p.register(s, select.POLLIN)
    check("poll", bool(p.poll(10000)[0][1] & select.POLLERR), True)
    check("SO_ERROR", s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), errno.ECONNRESET)


def test_reset_accepted(port):
    """Reset before it was accepted, and with nothing unread"""
    server = listener()
    p = called_back(port, server, b"r")
    p.recv(2)
    time.sleep(0.3)
    a, _ = server.accept()
    fails(errno.ECONNRESET, a.recv, 1)


def test_scm(port):
    s = ask(port, "echo")
    x, y = socket.socketpair()
    socket.send_fds(x, [b"."], [s.fileno()])
    fd = socket.recv_fds(y, 1, 1)[1][0]
    s.close()
    t = socket.socket(fileno=fd)
    check("peer", t.getpeername(), (HOST, port))
    t.settimeout(20)
    t.sendall(b"passed on")
    check("echo", t.recv(99), b"passed on")


def test_exec(port):
    s = ask(port, "echo")
    s.set_inheritable(True)
    script = ("import socket,sys; s = socket.socket(fileno=int(sys.argv[1])); "
              "s.settimeout(20); s.sendall(b'executed'); print(s.getpeername()[1], s.recv(99).decode())")
    out = subprocess.run([sys.executable, "-c", script, str(s.fileno())], close_fds=False,
                         capture_output=True, text=True, timeout=20)
    check("exec", out.stdout, f"{port} executed\n")


def test_lowest(port):
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open("/dev/null", os.O_RDONLY)
    os.close(fd)
    check("number", libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0), fd)


def test_limit(port):
    """At the limit of descriptors a socket is refused, and takes none that is somebody's"""
    fd = os.open("/dev/null", os.O_RDONLY)
    os.close(fd)
    stdin, was = os.fstat(0), resource.getrlimit(resource.RLIMIT_NOFILE)
    for free in range(4):
        resource.setrlimit(resource.RLIMIT_NOFILE, (fd + free, was[1]))
        try:
            ask(port, "silent").close()
        except OSError as e:
            check("error", e.errno, errno.EMFILE)
        else:
            check("one is needed, at least", free > 0, True)
        resource.setrlimit(resource.RLIMIT_NOFILE, was)
        again = os.open("/dev/null", os.O_RDONLY)
        os.close(again)
        check("the lowest free descriptor", again, fd)
        check("standard input", os.fstat(0), stdin)
    ask(port, "silent").close()


def test_getaddrinfo(port):
    got = socket.getaddrinfo("127.0.0.1", port, 0, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)
    check("numbers", got[0][4], (HOST, port))
    got = socket.getaddrinfo("localhost", port, socket.AF_INET, socket.SOCK_STREAM)
    check("a name of /etc/hosts", got[0][4], (HOST, port))


def test_reuse(port):
    """A port is free at once when its listener was closed, or its process killed"""
    s = listener()
    at = s.getsockname()[1]
    s.close()
    s = listener(at)
    s.close()
    r, w = os.pipe()
    child = os.fork()
    if not child:
        s = listener(at)
        os.write(w, b".")
        time.sleep(30)
    os.read(r, 1)
    t = socket.socket()
    fails(errno.EADDRINUSE, t.bind, ("0.0.0.0", at))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    listener(at).close()


def test_timeout(port):
    s = ask(port, "silent")
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 100000))
    s.setblocking(True)
    fails(errno.EAGAIN, s.recv, 1)
    s.settimeout(0.1)
    try:
        s.recv(1)
    except TimeoutError:
        pass
    else:
        raise SystemExit("no timeout")


def test_inherited(port):
    """How long calls of who is accepted wait is its listener's word"""
    server = listener()
    for option in socket.SO_RCVTIMEO, socket.SO_SNDTIMEO:
        server.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", 30, 0))
    p = called_back(port, server)
    a, _ = server.accept()
    for option in socket.SO_RCVTIMEO, socket.SO_SNDTIMEO:
        check("most", struct.unpack("ll", a.getsockopt(socket.SOL_SOCKET, option, 16)), (30, 0))
    p.close()


def test_backlog(port):
    """More than the backlog has room for: all of them are accepted in the end"""
    server = listener(backlog=4)
    peers = [called_back(port, server, b"e") for _ in range(10)]
    time.sleep(0.3)
    for i in range(10):
        a, _ = server.accept()
        a.sendall(b"%d" % i)
        a.shutdown(socket.SHUT_WR)
        check("echo", everything(a), b"%d" % i)


def test_limited(port):
    """A connect that nobody answers takes no longer than sends may"""
    s = ask(port, "full")
    full = struct.unpack("!H", s.recv(2, socket.MSG_WAITALL))[0]
    t = socket.socket()
    t.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 200000))
    fails(errno.EINPROGRESS, t.connect, (HOST, full))


def test_interrupted(port):
    """A handler runs while it waits, and the wait goes on"""
    ran = []
    signal.signal(signal.SIGALRM, lambda *args: ran.append(1))
    server = listener()
    e = select.epoll()
    e.register(server, select.EPOLLIN)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    e.poll(0.5)
    check("ran", ran, [1])
    threading.Timer(0.5, called_back, (port, server)).start()
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    server.accept()
    check("ran", ran, [1, 1])


def test_dlopen(port):
    """One thread is in dlopen(3), which waits for another one that asks for an option"""
    s = ask(port, "echo")
    libc = ctypes.CDLL(None)
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "library")
        os.mkfifo(path)
        opens = threading.Thread(target=libc.dlopen, args=(path.encode(), os.RTLD_NOW))
        opens.start()
        # There is one who reads, and so it is in there; it goes on when this is closed.
        while True:
            try:
                w = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                break
            except OSError as e:
                check("fifo", e.errno, errno.ENXIO)
                time.sleep(0.01)
        check("type", s.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE), socket.SOCK_STREAM)
        check("peer", s.getpeername(), (HOST, port))
        s.sendall(b"meanwhile")
        check("echo", s.recv(99), b"meanwhile")
        check("in there", opens.is_alive(), True)
        os.close(w)
        opens.join()


def test_recvfrom(port):
    s = ask(port, "echo")
    s.sendto(b"named", (HOST, port))
    data, who = s.recvfrom(99)
    check("stream", (data, who), (b"named", None))


def test_shut_listener(port):
    server = listener()
    threading.Timer(0.2, server.shutdown, (socket.SHUT_RD,)).start()
    fails(errno.EINVAL, server.accept)


def test_many(port):
    for _ in range(300):
        s = ask(port, "echo")
        s.sendall(b"one of many")
        check("echo", s.recv(99), b"one of many")
        s.close()
    check("descriptors", len(os.listdir("/proc/self/fd")) < 20, True)
    held = [ask(port, "silent") for _ in range(200)]
    s = ask(port, "echo")
    s.sendall(b"beside many")
    check("echo", s.recv(99), b"beside many")
    for h in held:
        h.close()


def test_crowded(port):
    """Sockets that connect take no place from those that are accepted"""
    server = listener()
    held = [ask(port, "silent") for _ in range(40)]
    server.settimeout(20)
    pairs = []
    for _ in range(4):
        p = called_back(port, server, b"e")
        a, _ = server.accept()
        a.sendall(b"in")
        pairs.append((p, a))
    for p, a in pairs:
        a.shutdown(socket.SHUT_WR)
        check("echo", everything(a), b"in")
    check("held", len(held), 40)


def test_raw(port):
    fails(errno.EPROTONOSUPPORT, socket.socket, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    fails(errno.EPROTONOSUPPORT, socket.socket, socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)


def raw_connect(port):
    """By system calls of its own: a program into which the library was not loaded"""
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    code = "import socket, sys; sys.exit(socket.socket().connect_ex(('127.0.0.1', int(sys.argv[1]))))"
    return subprocess.run([sys.executable, "-c", code, str(port)], env=env).returncode


def test_escape(port):
    check("connect", raw_connect(port), errno.ENETUNREACH)


def test_escapes(port):
    check("connect", raw_connect(port), 0)


def test(what, port):
    globals()[f"test_{what}"](int(port))
    print(what)


def no_name(name, family=0, service=80):
    try:
        got = socket.getaddrinfo(name, service, family)
    except socket.gaierror:
        return
    raise SystemExit(f"{name}, {service}: {got!r}")


def looked_up(name, alias, address):
    """Each way to ask for a name, of which only who has the sockets knows the address"""
    check("gethostbyname", socket.gethostbyname(name), address)
    check("gethostbyname_ex", socket.gethostbyname_ex(name), (name, [], [address]))
    types = [(a[0], a[1], a[4]) for a in socket.getaddrinfo(name, 80)]
    check("getaddrinfo", types, [(socket.AF_INET, t, (address, 80)) for t in (1, 2, 3)])
    check("service", socket.getaddrinfo(name, "http", type=1)[0][4], (address, 80))
    got = socket.getaddrinfo(alias, 80, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME)
    check("canonical", got, [(socket.AF_INET, 1, 6, name, (address, 80))])
    got = socket.getaddrinfo(name, 80, socket.AF_INET6, 1, flags=socket.AI_V4MAPPED)
    check("mapped", [a[4][0] for a in got], ["::ffff:" + address])
    check("number", socket.getaddrinfo("10.1.2.3", 80, type=1)[0][4], ("10.1.2.3", 80))
    check("localhost", socket.gethostbyname("localhost"), HOST)
    no_name(name, socket.AF_INET6)
    no_name("nobody.example")
    no_name(".".join(["a" * 50] * 6))
    no_name(name, 0, "no-such-service")
    found = []
    threads = [threading.Thread(target=lambda: found.append(socket.gethostbyname(name)))
               for _ in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check("threads", found, [address] * 20)
    print("names")


COMMANDS = {
    "web": web, "echo": echo, "echoed": echoed, "urllib": urllib_get, "threads": threads,
    "both": both, "peer": peer, "pour": lambda port: pour(int(port)),
    "hold": lambda port: hold(int(port)), "broken": broken, "backlogged": backlogged, "test": test,
    "names": looked_up,
}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
