#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""soak.py SECONDS SEED WORKERS: programs of all kinds that come, go and are killed by chance

What they are to be run with is in the environment: RINGGATE, STREAMS and STATIC (streams of tests/net/streams,
linked either way), HTTP_GET (of the library), REQUESTS and REQUESTS1 (sockets of requests of a daemon that has
sockets, and of a node whose sockets are that one's), WWW (a folder with files). Each worker draws from a
chance of its own, so that a seed says which programs there are, though not when.

What a program gets is compared with what was there to get: all of it, or if something was killed, as
much as it got. Each has a time in which it has to end, whatever happened to it. Prints a line for each
thing that is not as it must be, and at the end one of how much there was.
"""
import hashlib
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

HOST = "127.0.0.1"
SLOW = int(os.environ.get("RGATE_SLOW", "1"))
WAIT = 60 * SLOW	# in which all that is to end ends
E = os.environ
NC = shutil.which("nc.openbsd") or shutil.which("nc")
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_program.py")

lock = threading.Lock()
counts = {}
wrong = []
files = {}


def count(what, n=1):
    with lock:
        counts[what] = counts.get(what, 0) + n


def complain(*words):
    with lock:
        wrong.append(" ".join(map(str, words)))
        print("wrong:", wrong[-1], flush=True)


class Gone(Exception):
    """It is not there any more, by chance"""


# ---- Processes ----

class Program:
    """What `ringgate run` runs, or what is run without it; all of its output is in a file"""

    def __init__(self, draw, where, command, stdin=subprocess.DEVNULL):
        self.where, self.command = where, command
        self.out = tempfile.TemporaryFile()
        self.err = tempfile.TemporaryFile()
        self.killed = None
        self.p = subprocess.Popen(run_at(draw, where) + command, stdin=stdin, stdout=self.out,
                                  stderr=self.err)
        count(where)

    def program(self):
        """The process itself, which the command has begun; or None"""
        if self.where == "outside":
            return self.p.pid
        try:
            with open(f"/proc/{self.p.pid}/task/{self.p.pid}/children") as f:
                pid = int(f.read().split()[0])
            # What looks for leaks at the end is a child of that kind, too, and is waited for as it is.
            same = os.readlink(f"/proc/{pid}/exe") == os.readlink(f"/proc/{self.p.pid}/exe")
            return None if same and "SANITIZED" in E else pid
        except (OSError, IndexError):
            return None

    def happen(self, draw):
        """Something happens to it, or nothing"""
        what = draw.choices(["nothing", "program", "command", "ended", "stopped"], [60, 12, 10, 8, 10])[0]
        if what == "nothing":
            return
        time.sleep(draw.random() ** 3)
        pid = self.p.pid if what in ("command", "ended") else self.program()
        if not pid or self.p.poll() is not None:
            return
        count("happened " + what)
        try:
            if what == "stopped":
                os.kill(pid, signal.SIGSTOP)
                time.sleep(draw.random())
                os.kill(pid, signal.SIGCONT)
            else:
                self.killed = what
                os.kill(pid, signal.SIGTERM if what == "ended" else signal.SIGKILL)
        except ProcessLookupError:
            pass

    def end(self):
        """Waits for it. Its exit status"""
        try:
            return self.p.wait(WAIT)
        except subprocess.TimeoutExpired:
            complain("it hangs:", self.where, self.killed, *self.command, self.said()[-200:], self.complaint())
            for pid in marked():
                with open(f"/proc/{pid}/cmdline") as f, open(f"/proc/{pid}/wchan") as at:
                    print("#", pid, at.read(), f.read().replace("\0", " ")[:150], flush=True)
            self.p.kill()
            return self.p.wait()

    def said(self):
        self.out.seek(0)
        return self.out.read()

    def complaint(self):
        self.err.seek(0)
        return self.err.read()[-1500:].decode(errors="replace")

    def port(self):
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            for line in self.said().split(b"\n")[:-1]:
                if line.startswith(b"at "):
                    return int(line[3:])
            if self.p.poll() is not None:
                raise Gone
            time.sleep(0.02)
        complain("it says no port:", self.where, *self.command)
        raise Gone

    def close(self):
        self.out.close()
        self.err.close()


def run_at(draw, where):
    if where == "outside":
        return []
    return [E["RINGGATE"], "run", "--loopback", "served",
            *{"own": ["--own"], "daemon": ["-S", E["REQUESTS"]], "node": ["-S", E["REQUESTS1"]]}[where]]


def marked():
    """Processes that this one has begun, or that those have, but for itself"""
    mark, found = f"RGATE_SOAK={E['RGATE_SOAK']}".encode(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f, open(f"/proc/{pid}/stat") as stat:
                if mark in f.read().split(b"\0") and stat.read().rsplit(")", 1)[1].split()[0] != "Z":
                    found.append(int(pid))
        except OSError:
            pass
    return [pid for pid in found if pid != os.getpid()]


# ---- Clients ----

def http_body(text):
    head, _, body = text.partition(b"\r\n\r\n")
    return body


def is_there(program, got, want, status):
    """All of it; or if it was killed, or its agent, as much as there is"""
    what = (program.where, program.killed, *program.command)
    if program.killed or status in (137, -9):
        if got != want[:len(got)]:
            complain("other bytes:", *what)
        count("parts")
        return
    if hashlib.sha256(got).digest() != hashlib.sha256(want).digest() or status:
        complain("status", status, "bytes", len(got), "of", len(want), *what, program.complaint())
    count("whole")
    count("bytes", len(got))


def fetch(draw, web):
    """A file, by one program or another"""
    name = draw.choice(sorted(files))
    url = f"http://{HOST}:{web}/{name}"
    kind = draw.choice(["curl", "nc", "python", "library"] if NC else ["curl", "python", "library"])
    where = draw.choice(["own", "daemon", "node"])
    after, stdin = bytes, subprocess.DEVNULL
    if kind == "curl":
        command = ["curl", "-sS", url]
    elif kind == "python":
        command = [sys.executable, "-c", "import sys,urllib.request as u,shutil;"
                   "shutil.copyfileobj(u.urlopen(sys.argv[1]), sys.stdout.buffer)", url]
    elif kind == "library":
        command = [E["HTTP_GET"], f"{HOST}:{web}", "/" + name]
        if where != "own":
            command.append(E["REQUESTS" if where == "daemon" else "REQUESTS1"])
        where, after = "outside", http_body
    else:
        command, after = [NC, "-N", HOST, str(web)], http_body
        stdin = tempfile.TemporaryFile()
        stdin.write(f"GET /{name} HTTP/1.0\r\n\r\n".encode())
        stdin.seek(0)
    p = Program(draw, where, command, stdin)
    p.happen(draw)
    status = p.end()
    is_there(p, after(p.said()), files[name], status)
    count(kind)
    p.close()


def streams(draw, peer):
    """Some streams of one program, each byte of which it looks at itself"""
    n, length = draw.randint(1, 20), int(10 ** draw.uniform(1, 6.2))
    kind = draw.choice(["STREAMS", "STATIC"])
    where = draw.choice(["own", "daemon", "node"])
    p = Program(draw, where, [E[kind], "ask", str(peer), str(n), str(length), str(draw.randrange(1 << 30))])
    p.happen(draw)
    status = p.end()
    said = p.said().decode()
    if "wrong" in said:
        complain(said, *p.command)
    if "cut" in said and " cut 0 " not in said:
        complain("a clean end in the midst of it:", said, where, p.killed, *p.command)
    if not p.killed and (status or f"whole {n} " not in said):
        complain("status", status, said, where, *p.command, p.complaint())
    count(kind.lower())
    p.close()


def both(draw):
    """Both ends of one program, on a loopback of its own"""
    p = Program(draw, "outside", [E["RINGGATE"], "run", "--own", sys.executable, "-B", PROGRAM, "both"])
    status = p.end()
    # A busy agent may say so of a port that has just been closed.
    if "Address already in use" in p.complaint():
        count("taken yet")
    elif status or p.said() != b"same\n":
        complain("status", status, p.said(), p.complaint())
    count("both")
    p.close()


# ---- Servers, asked from outside ----

def ask_one(draw, port, may_break):
    """Bytes that come back, or some of them: it may close, or reset, before that"""
    data = draw.randbytes(int(10 ** draw.uniform(0, 5.7)))
    how = draw.choices(["whole", "closes", "resets"], [6, 2, 2])[0]
    got = hashlib.sha256()
    length = 0
    most = len(data) if how == "whole" else draw.randint(0, len(data))
    try:
        with socket.create_connection((HOST, port), WAIT) as s:
            sender = threading.Thread(target=send_all, args=(s, data))
            sender.start()
            while length < most and (part := s.recv(65536)):
                got.update(part)
                length += len(part)
            if how == "resets":
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if how != "whole":
                # What is unread there is none of the sender's business any more.
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            sender.join()
    except OSError as e:
        count("broken")
        if not may_break:
            complain("asked from outside:", how, type(e).__name__, e)
        if isinstance(e, TimeoutError):
            complain("an echo hangs", port)
        return
    if got.digest() != hashlib.sha256(data[:length]).digest() or (how == "whole" and length != len(data) and
                                                                  not may_break):
        complain("an echo has other bytes, or fewer:", length, "of", len(data), how)
    count("echoes " + how)


def send_all(s, data):
    try:
        s.sendall(b"e" + data)
        s.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(draw):
    """A server of some life, and its clients; in the end something kills it, or asks it to end"""
    kind = draw.choice(["STREAMS", "STATIC"])
    p = Program(draw, draw.choice(["own", "daemon", "node"]), [E[kind], "serve"])
    try:
        port = p.port()
        clients = [threading.Thread(target=ask_one, args=(random.Random(draw.random()), port, True))
                   for _ in range(draw.randint(1, 8))]
        for c in clients:
            c.start()
        p.happen(draw)
        for c in clients:
            c.join()
    except Gone:
        if not p.killed:
            complain("a server does not begin:", p.where, *p.command, p.complaint())
    p.killed = p.killed or "ended"
    p.p.terminate()
    p.end()
    count("servers")
    p.close()


# ---- All of it ----

def steady(where, kind):
    """A server that is there from the begin to the end, with its agent"""
    p = Program(random, where, [E[kind], "serve"])
    return p, p.port()


def work(seed, n, until, web, peer, steadies):
    draw = random.Random(f"{seed}.{n}")
    while time.monotonic() < until and len(wrong) < 20:
        try:
            what = draw.choices(["fetch", "streams", "serve", "both", "steady"], [30, 25, 20, 3, 22])[0]
            if what == "fetch":
                fetch(draw, web)
            elif what == "streams":
                streams(draw, peer)
            elif what == "serve":
                serve(draw)
            elif what == "both":
                both(draw)
            else:
                ask_one(draw, draw.choice(steadies)[1], False)
        except Exception as e:
            complain("worker", n, type(e).__name__, e)
            raise


def work_all(seed, workers, seconds, *ports):
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=work, args=(seed, n, until, *ports)) for n in range(workers)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def hold(pids):
    """What they have open, how many threads, how much memory in KiB"""
    out = {}
    for name, pid in pids.items():
        with open(f"/proc/{pid}/status") as f:
            status = dict(line.split(":\t", 1) for line in f if ":\t" in line)
        out[name] = {"fds": len(os.listdir(f"/proc/{pid}/fd")), "threads": int(status["Threads"]),
                     "rss": int(status["VmRSS"].split()[0])}
    return out


# A command keeps up to four threads (IDLE_MAX of super.c) for calls of a static program: three more than one
SPARE = 3


def is_more(name, kind, now, before):
    spare = SPARE if kind == "threads" and name.startswith("agent") else 0
    return now[name][kind] > before[name][kind] + spare


def settle(pids, kept, before=None):
    """Until all else has ended, and they hold no more than before; what they hold"""
    end = time.monotonic() + WAIT
    while True:
        left = [pid for pid in marked() if pid not in kept]
        now = hold(pids)
        same = before is None or not any(is_more(n, k, now, before) for n in now for k in ("fds", "threads"))
        if (not left and same) or time.monotonic() > end:
            break
        time.sleep(0.2)
    if left:
        complain("processes that are left:", *left)
    for n in now:
        if before and not same:
            complain(n, "holds", now[n], "before", before[n])
    return now


def main():
    seconds, seed, workers = float(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    E["RGATE_SOAK"] = str(os.getpid())
    for name in os.listdir(E["WWW"]):
        with open(os.path.join(E["WWW"], name), "rb") as f:
            files[name] = f.read()
    web = Program(random, "outside", ["env", "-C", E["WWW"], sys.executable, "-B", "-u", PROGRAM, "web"])
    peer = Program(random, "outside", [E["STREAMS"], "serve"])
    long_lived = [steady("daemon", "STREAMS"), steady("node", "STREAMS"), steady("node", "STATIC")]
    ports = web.port(), peer.port(), long_lived
    pids = {"gateway": int(E["GATEWAY_PID"]), "node": int(E["NODE_PID"])}
    for i, (p, _) in enumerate(long_lived):
        pids[f"agent {i}"] = p.p.pid
    kept = set(marked())
    # What they need once they have after some of it.
    work_all(seed + ".first", workers, min(10 * SLOW, seconds / 4), *ports)
    before = settle(pids, kept)
    work_all(seed, workers, seconds, *ports)
    after = settle(pids, kept, before)
    for n in after:
        print(f"# {n}: before {before[n]}, after {after[n]}", flush=True)
        if "SANITIZED" not in E and after[n]["rss"] > before[n]["rss"] * 1.25 + 4096:
            complain(n, "has more memory than before:", after[n]["rss"], "KiB, not", before[n]["rss"])
    for p, _ in long_lived:
        p.p.terminate()
        if p.end():
            complain("a server that was there all the time ends with", p.p.returncode, p.complaint())
    for p in web, peer:
        p.p.kill()
        p.end()
    if left := marked():
        complain("processes that are left at the end:", *left)
    # Who is killed at once cannot remove what it has made.
    if len(os.listdir(E["XDG_RUNTIME_DIR"])) > counts.get("happened command", 0):
        complain("directories are left:", *os.listdir(E["XDG_RUNTIME_DIR"]))
    print("#", ", ".join(f"{k} {v}" for k, v in sorted(counts.items())), flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
