# SPDX-License-Identifier: MIT OR GPL-2.0
"""Queue, lock and barrier of three nodes while everything fails, at random by a seed.

In rounds: clients at all nodes submit, work, lock, meet; they and the daemons are killed, stopped,
started again, connections of daemons are cut, a client of another user writes into all that it
shares with its daemon, and a fourth node lies to the home. Then all is whole again, the queue has
to run empty, everybody has to end, and history.py says whether what they saw can be.

  faults.py BUILD DIR SEED SECONDS    in DIR: cluster, and policies, of tests/net/queue_faults.sh"""

import collections
import ctypes
import glob
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time

import history

NODES = 3
SLOW = int(os.environ.get("RGATE_SLOW", "1"))
FAULTS_S = 9            # of a round
HELD = 40               # sockets of a daemon
WAIT_S = 40 * SLOW      # for whatever has to come to its end
SYS_PIDFD_OPEN, SYS_PIDFD_GETFD = 434, 438
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)


def end_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Daemon:
    def __init__(self, run, n):
        self.run, self.n = run, n
        self.proc, self.starts, self.stopped = None, 0, False
        self.killed = []        # when
        self.held = []

    def at(self, what):
        return f"{self.run.dir}/{what}{self.n}"

    def start(self):
        self.starts += 1
        self.log = self.at(f"log.{self.starts}.")
        with open(self.log, "wb") as log:
            self.proc = subprocess.Popen(
                [f"{self.run.tools}/ringgated", "-c", "/dev/null", "-C", f"{self.run.dir}/cluster",
                 "-n", str(self.n), "-s", self.at("s"), "--pool", "16M",
                 "--requests", f"socket {self.at('r')}", "--requests", f"policy {self.at('policy')}"],
                stderr=log, stdin=subprocess.DEVNULL, preexec_fn=end_with_parent)

    def ready(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return "is ready" in f.read()

    def runs(self):
        return self.proc is not None

    def kill(self):
        # None: it has ended by itself, which the run looks for
        if self.proc.poll() is None:
            self.killed.append(now_ns())
            self.proc.kill()
            self.proc.wait()
            self.proc, self.stopped = None, False

    def stop(self):
        self.proc.send_signal(signal.SIGSTOP)
        self.stopped = True

    def go_on(self):
        if self.proc:
            self.proc.send_signal(signal.SIGCONT)
        self.stopped = False

    def cut(self, rnd):
        """Ends one of its connections to other nodes, from outside; False: there is none"""
        links = []
        pidfd = libc.syscall(SYS_PIDFD_OPEN, self.proc.pid, 0)
        for name in os.listdir(f"/proc/{self.proc.pid}/fd"):
            try:
                if not os.readlink(f"/proc/{self.proc.pid}/fd/{name}").startswith("socket:"):
                    continue
            except OSError:
                continue
            fd = libc.syscall(SYS_PIDFD_GETFD, pidfd, int(name), 0)
            if fd < 0:
                continue
            s = socket.socket(fileno=fd)
            if self.is_link(s):
                links.append(s)
            else:
                s.close()
        os.close(pidfd)
        if links:
            rnd.choice(links).shutdown(socket.SHUT_RDWR)
        # Their files stay open for a while, as if somebody else had them, too: the daemon may not
        # hear of those that it has closed.
        self.held = self.held[-HELD:] + links
        return bool(links)

    def is_link(self, s):
        try:
            if s.family != socket.AF_UNIX or s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                return False
            names = [s.getsockname(), s.getpeername()]
        except OSError:
            return False
        return any(re.fullmatch(re.escape(self.run.dir) + r"/n\d", n if isinstance(n, str) else "")
                   for n in names)


class Client:
    def __init__(self, run, role, node, home, name):
        self.run, self.role, self.node, self.home, self.name = run, role, node, home, name
        self.proc, self.files = None, []

    def start(self):
        self.run.number += 1
        file = f"{self.run.dir}/history/{self.run.number}.{self.role}"
        if self.role in ("scribble", "lie"):
            file = "/dev/null"
        else:
            self.files.append((file, self.run.number))
        with open(file, "wb") as out, open(f"{self.run.dir}/clients", "ab") as err:
            self.proc = subprocess.Popen(
                [f"{self.run.build}/tests/net/queue_faults/client", self.role,
                 f"{self.run.dir}/r{self.node}", str(self.home), self.name, str(self.run.number),
                 str(self.run.rnd.randrange(1 << 32))], stdout=out, stderr=err,
                stdin=subprocess.DEVNULL)

    def kill(self):
        self.proc.kill()
        self.proc.wait()

    def read(self):
        calls, valid, wrong = [], collections.defaultdict(list), []
        for file, number in self.files:
            c, v, w = history.read(file, number)
            calls += c
            valid[number] = v
            wrong += w
        return calls, valid, wrong


class Round:
    """What is killed stays so for a while. @spared: nodes whose daemons are not"""
    def __init__(self, run, k):
        self.run, self.rnd = run, run.rnd
        self.home = self.rnd.randrange(2)
        self.lock_home, self.barrier_home = self.rnd.randrange(NODES), self.rnd.randrange(NODES)
        others = [n for n in range(NODES) if n != self.home]
        submits = [2] if k % 3 == 0 else others
        self.spared = [{2}, {self.home}, set()][k % 3]
        # Names come again, as another queue is made when the last one is gone.
        name = f"faults/{k % 2}"
        of = [("submit", n, self.home, name) for n in submits for _ in range(2)]
        of += [("work", n, self.home, name) for n in range(NODES)] + [("work", 2, self.home, name)]
        of += [("lock", n, self.lock_home, name) for n in (0, 1, 2, 2)]
        of += [("barrier", n, self.barrier_home, name) for n in range(NODES)]
        of += [("scribble", self.home, self.home, name), ("lie", 3, self.home, run.dir + "/cluster")]
        self.name = name
        self.clients = [Client(run, *c) for c in of]
        self.undo = []          # (when, what)
        self.silences = []      # when nodes were stopped or cut, or killed
        self.counts = collections.Counter()
        self.events = []

    def happened(self, what, n):
        self.counts[what] += 1
        self.events.append(f"{now_ns()} {what} {n}")

    def later(self, seconds, what):
        self.undo.append((time.monotonic() + seconds, what))

    def daemon_fault(self):
        daemons = [d for d in self.run.daemons if d.runs() and not d.stopped]
        if len(daemons) < 2:
            return
        d = self.rnd.choice(daemons)
        what = self.rnd.choice(["kill", "stop", "cut", "cut"])
        if what == "kill" and d.n in self.spared:
            return
        # of all that time
        self.silences.append(now_ns())
        if what == "kill":
            self.kill(d)
        elif what == "stop":
            d.stop()
            self.later(self.rnd.choice([0.3, 1, 5]) * self.rnd.random(), d.go_on)
        elif not d.cut(self.rnd):
            return
        if what != "kill":
            self.happened(f"{what} daemon", d.n)

    def kill(self, d):
        if d.runs():
            d.kill()
            self.happened("kill daemon", d.n)
            self.later(self.rnd.uniform(0, 4), lambda: d.runs() or self.start(d))

    def start(self, d):
        d.start()
        self.events.append(f"{now_ns()} start daemon {d.n}")

    def client_fault(self):
        c = self.rnd.choice(self.clients)
        self.counts["client"] += 1
        if c.proc.poll() is not None:
            c.start()
        elif self.rnd.random() < 0.6:
            c.kill()
            self.later(self.rnd.uniform(0, 2), lambda: c.proc.poll() is None or c.start())
        else:
            c.proc.send_signal(signal.SIGSTOP)
            self.later(self.rnd.choice([0.3, 5]) * self.rnd.random(),
                       lambda: c.proc.poll() is None and c.proc.send_signal(signal.SIGCONT))

    def undo_until(self, when):
        due = [u for u in self.undo if u[0] <= when]
        self.undo = [u for u in self.undo if u[0] > when]
        for _, what in sorted(due, key=lambda u: u[0]):
            what()

    def go_wrong(self):
        end = time.monotonic() + FAULTS_S
        # Whatever else happens: what is kept for it is what this is about.
        if self.home not in self.spared:
            self.later(self.rnd.uniform(2, 6), lambda: self.kill(self.run.daemons[self.home]))
        while time.monotonic() < end:
            time.sleep(self.rnd.uniform(0.02, 0.4))
            self.undo_until(time.monotonic())
            self.run.nobody_fell()
            if self.rnd.random() < 0.4:
                self.daemon_fault()
            else:
                self.client_fault()
        self.undo_until(float("inf"))
        self.run.wait("all daemons are ready", lambda: all(d.ready() for d in self.run.daemons))

    def of(self, *roles):
        return [c for c in self.clients if c.role in roles]

    def end(self, *roles):
        """They are told to end, and do so"""
        its = self.of(*roles)
        for c in its:
            c.proc.terminate()
        self.run.wait(f"{' and '.join(roles)} end", lambda: all(c.proc.poll() is not None for c in its))

    def settle(self):
        for c in self.of("scribble", "lie"):
            c.kill()
        self.end("submit")
        # who was killed, and not started again: the last task may be anybody's
        for c in self.of("work"):
            if c.proc.poll() is not None:
                c.start()
        self.run.wait("the queue runs empty", self.empty)
        self.end("work", "lock", "barrier")

    def empty(self):
        for d in self.run.daemons:
            if d.n != self.home and self.run.kept(d):
                return False
        done = subprocess.run([f"{self.run.tools}/ringgate", "queue", "--node", str(self.home),
                               "stats", "--json", self.name], text=True, capture_output=True,
                              env={**os.environ, "RGATE_REQUESTS": self.run.daemons[self.home].at("r")},
                              check=False, timeout=WAIT_S)
        if done.returncode:
            return False
        now = json.loads(done.stdout)
        return not any(now[s] for s in ("ready", "delayed", "claimed", "running"))

    def all_of(self, *roles):
        calls, valid = [], collections.defaultdict(list)
        for c in self.of(*roles):
            its, v, wrong = c.read()
            if wrong:
                raise history.Wrong("; ".join(wrong))
            calls += its
            valid.update(v)
        return calls, valid

    def check(self):
        node_of = {number: c.node for c in self.of("submit") for _, number in c.files}
        self.events += [f"client {number} submits at node {n}" for number, n in node_of.items()]
        died = self.run.daemons[self.home].killed

        # Home and submitting daemon died both, both after it was asked for
        def may_be_lost(submit):
            return any(t > submit.inv for t in died) and any(
                t > submit.inv for t in self.run.daemons[node_of[submit.client]].killed)
        calls, _ = self.all_of("submit", "work")
        tasks, completed = history.check_queue(calls, died, self.silences, may_be_lost)
        held = history.check_lock(*self.all_of("lock"))
        met = history.check_barrier(self.all_of("barrier")[0], NODES)
        return {"tasks": tasks, "completed": completed, "held": held, "met": met}


class Run:
    def __init__(self, build, where, seed):
        self.build, self.dir, self.tools = build, where, f"{build}/tools"
        self.rnd = random.Random(seed)
        self.number = 0
        self.total = collections.Counter()
        os.mkdir(f"{where}/history")
        self.daemons = [Daemon(self, n) for n in range(NODES)]

    def wait(self, what, true):
        end = time.monotonic() + WAIT_S
        while not true():
            self.nobody_fell()
            if time.monotonic() > end:
                raise history.Wrong(f"not in {WAIT_S} s: {what}")
            time.sleep(0.1)

    def nobody_fell(self):
        for d in self.daemons:
            if d.runs() and d.proc.poll() is not None:
                with open(d.log, encoding="utf-8", errors="replace") as f:
                    raise history.Wrong(f"daemon {d.n} ended by itself: {d.proc.poll()}\n"
                                        + f.read()[-4000:])

    def queues(self, d):
        """What its daemon says of queues; None: it is not there yet"""
        done = subprocess.run([f"{self.tools}/ringgate", "cluster", "status", "-s", d.at("s"),
                               "--json"], text=True, capture_output=True, check=False, timeout=WAIT_S)
        return json.loads(done.stdout)["requests"]["queues"] if not done.returncode else None

    def kept(self, d):
        """How many tasks, or, as long as nobody can say that, some"""
        queues = self.queues(d)
        return queues["kept"] if queues else -1

    def complaints(self):
        for log in glob.glob(f"{self.dir}/log.*"):
            with open(log, encoding="utf-8", errors="replace") as f:
                for line in f:
                    if re.search(r"Sanitizer|runtime error:|(is|still) in use", line):
                        raise history.Wrong(f"{log}: {line}")

    def round(self, k):
        r = Round(self, k)
        for d in self.daemons:
            d.killed.clear()
        for c in r.clients:
            c.start()
        try:
            r.go_wrong()
            r.settle()
            counts = {**r.check(), **r.counts}
        except history.Wrong:
            # what may say why
            print(f"round {k}: home {r.home}, spared {sorted(r.spared)}", *r.events, sep="\n")
            for d in self.daemons:
                print(f"node {d.n}: {self.queues(d)}")
            raise
        finally:
            for c in r.clients:
                if c.proc.poll() is None:
                    c.kill()
        self.total.update(counts)
        print(f"round {k}: home {r.home}, spared {sorted(r.spared)}: " +
              ", ".join(f"{n} {what}" for what, n in counts.items()), flush=True)
        for file in glob.glob(f"{self.dir}/history/*"):
            os.unlink(file)

    def all(self, seconds):
        end = time.monotonic() + seconds
        k = 0
        for d in self.daemons:
            d.start()
        try:
            self.wait("all daemons are ready", lambda: all(d.ready() for d in self.daemons))
            # each kind once
            while k < 3 or time.monotonic() < end:
                self.round(k)
                k += 1
            for d in self.daemons:
                d.proc.terminate()
            for d in self.daemons:
                if d.proc.wait(WAIT_S):
                    raise history.Wrong(f"daemon {d.n} ends with {d.proc.poll()}")
                d.proc = None
        finally:
            for d in self.daemons:
                if d.proc:
                    d.kill()
        self.complaints()
        print(f"{k} rounds: {', '.join(f'{n} {what}' for what, n in self.total.items())}")
        # else nothing was tried
        return all(self.total[what] >= least * k for what, least in
                   (("tasks", 20), ("met", 20), ("held", 2)))


def main():
    build, where, seed, seconds = sys.argv[1:]
    try:
        done = Run(build, where, int(seed)).all(float(seconds))
    except (history.Wrong, subprocess.TimeoutExpired) as e:
        print(e)
        return 1
    return not done


if __name__ == "__main__":
    sys.exit(main())
