# SPDX-License-Identifier: MIT OR GPL-2.0
"""ringgate run, its signals and its end, from outside: run_ends.py CASE RINGGATE PORT; PORT is the peer's"""
import fcntl
import os
import re
import select
import signal
import subprocess
import sys
import termios
import time

from program_says import check, say
from run_peer import ask

HANDED_ON = "HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "WINCH"
WAIT = 20 * int(os.environ.get("RGATE_SLOW", "1"))


def number(name):
    return getattr(signal, f"SIG{name}")


# ---- The programs, inside ----

def catch(names, after=lambda name: None):
    def caught(signum, frame):
        name = signal.Signals(signum).name[3:]
        say("got", name)
        after(name)
    for name in names:
        signal.signal(number(name), caught)


def program_handles(port):
    """Until nobody writes to it any more"""
    catch(HANDED_ON)
    say("ready")
    while os.read(0, 1):
        pass
    sys.exit(5)


def program_leaves(port):
    """It ends at SIGHUP as it would by itself, and its child has something to do yet"""
    parent = os.getpid()
    if not os.fork():
        while os.getppid() == parent:
            time.sleep(0.01)
        time.sleep(1)
        s = ask(int(port), "echo")
        s.sendall(b"child")
        say(s.recv(99).decode())
        return
    catch(["HUP"], lambda name: os._exit(0))
    say("ready")
    time.sleep(WAIT)


def program_lingers(port):
    """It dies by SIGTERM, and its child does not"""
    if not os.fork():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say("pid", os.getpid())
    time.sleep(WAIT)


def program_fills(port):
    """More than its peer reads: what does not fit into the connection waits in between"""
    s = ask(int(port), "deaf")
    s.setblocking(False)
    last = time.monotonic()
    while time.monotonic() - last < 1:
        try:
            s.send(b"f" * 65536)
            last = time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
    say("pid", os.getpid())


# ---- Outside ----

class Run:
    """ringgate run of a program, or of one of the programs above; what was ignored here is not there"""

    def __init__(self, ringgate, port, *command, ignored=(), **kw):
        def prepare():
            for name in "CHLD", "PIPE", "XFSZ", *HANDED_ON:
                signal.signal(number(name), signal.SIG_IGN if name in ignored else signal.SIG_DFL)
        if len(command) == 1 and f"program_{command[0]}" in globals():
            command = (sys.executable, "-B", "-u", __file__, "program", command[0], port)
        self.p = subprocess.Popen([*ringgate, *command], preexec_fn=prepare, bufsize=0,
                                  restore_signals=False, **{"stdin": subprocess.PIPE,
                                  "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kw})

    def line(self):
        if not select.select([self.p.stdout], [], [], WAIT)[0]:
            self.p.kill()
            raise SystemExit("nothing is said")
        return self.p.stdout.readline().decode().rstrip("\n")

    def signal(self, name):
        self.p.send_signal(number(name))

    def end(self):
        """Its exit status, and what it says from now on"""
        try:
            out, err = self.p.communicate(timeout=WAIT)
        except subprocess.TimeoutExpired:
            self.p.kill()
            raise SystemExit("it does not end")
        return self.p.returncode, out.decode(), err.decode()


def case_handed_on(run, port):
    """Each one, and each again when the first one is long ago"""
    r = Run(run, port, "handles")
    check("program", r.line(), "ready")
    for name in *HANDED_ON, *HANDED_ON:
        time.sleep(0.3)
        r.signal(name)
        check("signal", r.line(), f"got {name}")
    check("end", r.end(), (5, "", ""))


def masks(run, port, ignored):
    """What a program's signals are like, but for 32 and 33: the C library of who calls it has those for
    its threads, and where they were ignored they are not any more"""
    r = Run(run, port, "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status", ignored=ignored).end()
    return r[0], *((name, int(mask, 16) & ~(3 << 31)) for name, mask in re.findall(r"(\w+):\t(\w+)", r[1])), r[2]


def case_ignored(run, port):
    """What is ignored is so in the program, too, and ends nobody"""
    ignored = "HUP", "INT"
    for names in ignored, ():
        check("masks", masks(run, port, names), masks((), port, names))
    r = Run(run, port, "sh", "-c", "echo ready; read x; exit 6", ignored=ignored)
    check("program", r.line(), "ready")
    for name in ignored:
        r.signal(name)
        time.sleep(0.3)
    check("end", r.end(), (6, "", ""))


def children_time():
    return os.times().children_user + os.times().children_system


def case_child_ignored(run, port):
    """Who began it waits for no children, and this one has to"""
    before = children_time()
    check("end", Run(run, port, "sh", "-c", "sleep 1; exit 7", ignored=["CHLD"]).end(), (7, "", ""))
    check("it does not look all the time", children_time() - before < 1, True)


def case_terminal(run, port):
    """^C is one signal to the program, which has it from the terminal"""
    master, slave = os.openpty()

    def own():
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    command = (sys.executable, "-B", "-u", __file__, "program", "handles", port)
    p = subprocess.Popen([*run, *command], preexec_fn=own, stdin=slave, stdout=subprocess.PIPE, bufsize=0)
    check("program", p.stdout.readline(), b"ready\n")
    for _ in range(2):
        os.write(master, b"\x03")
        check("^C", p.stdout.readline(), b"got INT\n")
        # Another one would be there by now.
        time.sleep(1.2)
    os.write(master, b"\x04")
    out, _ = p.communicate(timeout=WAIT)
    check("end", (p.returncode, out), (5, b""))


def case_children(run, port):
    """A signal that the program took is nothing that its children would be left for"""
    r = Run(run, port, "leaves")
    check("program", r.line(), "ready")
    r.signal("HUP")
    check("end", r.end(), (0, "got HUP\nchild\n", ""))


def case_ended(run, port):
    """... but one by which it died is; and one more when it has ended"""
    r = Run(run, port, "lingers")
    child = int(r.line().removeprefix("pid "))
    r.signal("TERM")
    check("status", r.p.wait(WAIT), 128 + signal.SIGTERM)
    os.kill(child, signal.SIGKILL)
    r.end()


def case_lost(run, port):
    """What the peer did not take is lost: no success"""
    r = Run(run, port, "fills")
    program = r.line().removeprefix("pid ")
    while os.path.exists(f"/proc/{program}"):
        time.sleep(0.01)
    r.signal("TERM")
    status, _, err = r.end()
    check("status", status, 1)
    check("said", "1 connections did not take all that was sent: the rest is lost" in err, True)


if __name__ == "__main__":
    if sys.argv[1] == "program":
        globals()[f"program_{sys.argv[2]}"](*sys.argv[3:])
    else:
        globals()[f"case_{sys.argv[1]}"](
            (sys.argv[2], "run", "--own", "--loopback", "served"), sys.argv[3])
        print(sys.argv[1])
