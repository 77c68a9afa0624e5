# SPDX-License-Identifier: MIT OR GPL-2.0
"""Is what clients saw what one queue, one lock, one barrier would have done?

Reads the histories that client.c writes. Each operation took effect at one moment between its
invocation and its return; one that did not return, or whose end is not known, did at any time
after, or never. For each task and each lock an order is looked for in which a model allows all of
them, by the search of Wing and Gong with the states that were seen kept (Lowe), as porcupine does.

  history.py --selftest    histories with one mistake each, which have to be found"""

import collections
import errno
import os
import sys

NEVER = 1 << 63
FORGOTTEN = 15 * 10 ** 9 * int(os.environ.get("RGATE_SLOW", "1"))
STATES = 300000          # of a search, which would take hours
# What ends with one of these may have been done, or not. All else that fails was not.
UNKNOWN = {-errno.ECONNRESET, -errno.EPIPE, -errno.EOWNERDEAD}
REFUSED = {
    "submit": {-errno.EAGAIN, -errno.ETIMEDOUT, -errno.EINTR, -errno.EDQUOT, -errno.ENOTCONN,
               -errno.ESTALE},
    "claim": {-errno.ETIMEDOUT, -errno.EINTR, -errno.ENOTCONN, -errno.ESTALE, -errno.ENOBUFS},
    "complete": {-errno.ESTALE, -errno.ENOENT, -errno.EAGAIN, -errno.EDQUOT, -errno.ETIMEDOUT,
                 -errno.EINTR, -errno.ENOTCONN},
    "release": {-errno.ESTALE, -errno.ENOENT, -errno.ETIMEDOUT, -errno.EINTR, -errno.ENOTCONN},
    "wait": {-errno.ENOENT, -errno.ETIMEDOUT, -errno.EINTR, -errno.ENOTCONN, -errno.ESTALE},
    "acquire": {-errno.ETIMEDOUT, -errno.EINTR, -errno.EAGAIN, -errno.ENOTCONN, -errno.ESTALE},
    "unlock": {-errno.ESTALE, -errno.ENOLCK, -errno.ETIMEDOUT, -errno.ENOTCONN},
    "arrive": {-errno.EALREADY, -errno.ESTALE, -errno.ETIMEDOUT, -errno.EINTR, -errno.ENOTCONN},
    "meet": {-errno.ESTALE, -errno.ETIMEDOUT, -errno.EINTR, -errno.ENOLCK, -errno.ENOTCONN},
}

# What a client did: @args and @got as in its history; got None: it did not return
Call = collections.namedtuple("Call", "client what args inv ret got")
# A step of a model, which is at a time from @inv to @ret on, or, if @may, never
Op = collections.namedtuple("Op", "what arg inv ret may")


class Wrong(Exception):
    pass


def read(path, client):
    """Calls of one client, times at which its lock was seen to be valid, and what it complained of"""
    calls, valid, wrong = [], [], []
    began = None
    with open(path, encoding="ascii") as f:
        text = f.read()
    # what was being written when it was killed is not there
    for line in text[:text.rfind("\n") + 1].splitlines():
        at, kind, *words = line.split(" ")
        if kind == "I":
            began = (words[0], [int(w) for w in words[1:]], int(at))
        elif kind == "R":
            calls.append(Call(client, *began, int(at), [int(w) for w in words]))
            began = None
        elif kind == "V":
            valid.append(int(words[0]))
        elif kind == "X":
            wrong.append(line)
    if began:
        calls.append(Call(client, *began, NEVER, None))
    return calls, valid, wrong


def check_errors(calls):
    for c in calls:
        err = c.got[0] if c.got else 0
        if err < 0 and err not in UNKNOWN and err not in REFUSED[c.what]:
            raise Wrong(f"{c.what} of client {c.client} ended with {errno.errorcode.get(-err, err)}")


def known(call):
    """Has the call ended in a way that says what it did?"""
    return call.got is not None and call.got[0] not in UNKNOWN


def in_order(ops, state, step):
    """Is there an order of @ops that step(state, op) allows, which returns None or the next state?"""
    ops = sorted(ops, key=lambda o: o.inv)
    must = sum(1 << i for i, o in enumerate(ops) if not o.may)
    stack = [(0, state)]
    seen = {(0, state)}
    while stack:
        done, state = stack.pop()
        if done & must == must:
            return True
        # One that returned before another was invoked comes before it.
        until = NEVER
        i, left = 0, ~done
        while i < len(ops) and ops[i].inv <= until:
            if left >> i & 1:
                until = min(until, ops[i].ret)
            i += 1
        for i, op in enumerate(ops[:i]):
            if not left >> i & 1 or op.inv > until:
                continue
            after = step(state, op)
            at = (done | 1 << i, after)
            if after is not None and at not in seen:
                if len(seen) > STATES:
                    raise Wrong(f"more than {STATES} states")
                seen.add(at)
                stack.append(at)
    return False


# ---- A task ----

def task_step(state, op):
    """@state: how often it is ready, the claims there are, results of those who completed it"""
    ready, claims, results = state
    if op.what in ("submit", "twice"):
        return ready + 1, claims, results
    if op.what == "claim":
        return (ready - 1, claims | {op.arg}, results) if ready else None
    if op.what in ("lost", "release"):
        return (ready + 1, claims - {op.arg}, results) if op.arg in claims else None
    if op.what == "complete":
        claim, result = op.arg
        return (ready, claims - {claim}, results | {result}) if claim in claims else None
    if op.what == "wait":
        return state if op.arg in results else None
    # The home is another one: who keeps the task has submitted it again.
    assert op.what == "died"
    return 1, frozenset(), results


def task_ops(calls, deaths, silences):
    """Steps of one task. @deaths: when its home was killed; @silences: when it was not heard of"""
    ops, last = [], {}
    for n, c in enumerate(sorted(calls, key=lambda c: c.inv)):
        if c.what == "claim":
            last[c.client] = n
            ops += [Op("claim", n, c.inv, c.ret, False), Op("lost", n, c.inv, NEVER, True)]
        elif c.what == "wait" and c.got and c.got[0] >= 0:
            ops.append(Op("wait", c.got[1], c.inv, c.ret, False))
        elif c.what in ("submit", "complete", "release") and not (known(c) and c.got[0] < 0):
            arg = last.get(c.client)
            if c.what == "complete":
                arg = (arg, c.args[1])
            sure = known(c)
            ops.append(Op(c.what, arg, c.inv, c.ret if sure else NEVER, not sure))
    for at in deaths:
        ops.append(Op("died", None, at, NEVER, True))
        # What was being submitted again when it fell silent may be there twice.
        if any(s > at for s in silences):
            ops.append(Op("twice", None, at, NEVER, True))
    return ops


def by_task(calls):
    """The calls on each task; one on several is one on each of them"""
    tasks = collections.defaultdict(list)
    for c in calls:
        if c.what == "submit":
            taken = c.args[1] if not known(c) else max(c.got[0], 0)
            for i in range(taken):
                tasks[c.args[0] + i].append(c)
        elif c.what == "claim":
            for key in c.got[1:] if c.got else []:
                tasks[key].append(c)
        elif c.what in ("complete", "release", "wait"):
            tasks[c.args[0]].append(c)
    return tasks


def told(calls):
    return "\n".join(f"  {c.inv} {'never' if c.ret == NEVER else c.ret} client {c.client} {c.what} "
                     f"{c.args} {c.got}" for c in sorted(calls, key=lambda c: c.inv))


def check_queue(calls, deaths=(), silences=(), may_be_lost=lambda submit: False):
    """All tasks, when nothing is left to do. Returns how many there were, and completions of them"""
    check_errors(calls)
    tasks = by_task(calls)
    completed = 0
    for key, its in tasks.items():
        submit = [c for c in its if c.what == "submit"]
        done = [c for c in its if c.what == "complete" and not (known(c) and c.got[0] < 0)]
        completed += len(done)
        if not submit:
            asked = [c for c in calls if c.what == "submit" and c.args[0] <= key < sum(c.args)]
            raise Wrong(f"task {key} was never submitted:\n{told(its + asked)}")
        if known(submit[0]) and not done and not may_be_lost(submit[0]):
            raise Wrong(f"task {key} was lost:\n{told(its)}")
        if not in_order(task_ops(its, deaths, silences), (0, frozenset(), frozenset()), task_step):
            raise Wrong(f"task {key} is not what one queue would do:\n{told(its)}")
    return len(tasks), completed


# ---- A lock ----

def lock_step(state, op):
    """@state: who holds it, whether they share it, the highest token, and of those who do not"""
    holders, shared, last, alone = state
    if op.what == "end":
        return (holders - {op.arg}, shared, last, alone) if op.arg in holders else None
    token, share = op.arg
    if holders and not (share and shared) or token <= (alone if share else last):
        return None
    return holders | {token}, share, max(last, token), alone if share else token


def lock_ops(calls, valid):
    """Steps of a lock. @valid: of each client, when it was seen to be valid"""
    ops = []
    for client in {c.client for c in calls}:
        its = sorted((c for c in calls if c.client == client), key=lambda c: c.inv)
        for c, after in zip(its, its[1:] + [None]):
            if c.what != "acquire" or not c.got or c.got[0]:
                continue
            token, until = c.got[1], after.inv if after else NEVER
            ops.append(Op("acquire", (token, bool(c.args[0])), c.inv, c.ret, False))
            if after and after.got and after.got[0] == 0:
                ops.append(Op("end", token, after.inv, after.ret, False))
                continue
            seen = [v for v in valid[client] if c.ret <= v <= until]
            ops.append(Op("end", token, max(seen, default=c.inv), NEVER, True))
    return ops


def check_lock(calls, valid):
    """One lock. Returns how often it was held"""
    check_errors(calls)
    ops = lock_ops(calls, valid)
    if not in_order(ops, (frozenset(), False, 0, 0), lock_step):
        raise Wrong("the lock is not what one lock would do:\n" + told(calls))
    return sum(o.what == "acquire" for o in ops)


# ---- A barrier ----

def arrivals(its):
    """Of one client: when it had arrived, until when, and for which generation; None: any

    Who arrives and then is killed, or told that its daemon is gone, has arrived all the same, until
    the home knows: for the generation behind its last one. Of the first one since it has opened the
    barrier that is not known."""
    last = None
    for c, after in zip(its, its[1:] + [None]):
        # Who was not told so may have arrived.
        if c.what != "arrive" or (c.got and c.got[0] == -errno.EALREADY):
            continue
        if after and after.what == "meet" and after.got and after.got[0] == 0:
            last = after.got[1]
            yield c.client, c.inv, after.ret, last, True
        else:
            yield c.client, c.inv, c.inv + FORGOTTEN, None if last is None else last + 1, False
            last = None


def check_barrier(calls, members):
    """Nobody went on before all had arrived. Returns how often somebody did"""
    check_errors(calls)
    spans = []
    for client in {c.client for c in calls}:
        spans += arrivals(sorted((c for c in calls if c.client == client), key=lambda c: c.inv))
    went = [s for s in spans if s[4]]
    for client, arrived, left, generation, _ in went:
        # A client that has opened it anew is another member than the one that it was.
        there = [s for s in spans if s[1] <= left and s[2] >= arrived and
                 s[3] in (None, generation)]
        if len(there) < members:
            near = [c for c in calls if c.inv <= left and c.ret >= arrived - 15 * 10 ** 9]
            raise Wrong(f"client {client} went through a barrier of {members} with {len(there)}, "
                        f"from {arrived} to {left}:\n{told(near)}")
    return len(went)


# ---- Does it find mistakes? ----

def selftest():
    def call(client, what, args, inv, ret, got):
        return Call(client, what, args, inv, ret, got)

    submit = call(1, "submit", [7, 1], 0, 1, [1])
    claims = [call(c, "claim", [], 10 * c, 10 * c + 1, [1, 7]) for c in (2, 3)]
    done = [call(c, "complete", [7, c], 50 + c, 60 + c, [0]) for c in (2, 3)]
    wait = call(1, "wait", [7], 70, 80, [8, 3])
    stale = call(2, "complete", [7, 2], 52, 62, [-errno.ESTALE])
    reset = call(2, "complete", [7, 2], 52, 62, [-errno.ECONNRESET])
    queues = [
        (True, [submit, *claims, stale, done[1], wait]),
        (True, [submit, claims[0], reset, claims[1], done[1], wait]),
        # the first one, whose completion nobody knows of, is done later than the second has it
        (False, [submit, *claims, done[0], done[1], wait]),
        (False, [submit, *claims, done[0]]),
        (False, [submit, *claims]),
        (False, [submit, claims[0], stale]),
        (False, [submit, *claims, stale, done[1], wait._replace(got=[8, 2])]),
        (False, [submit, claims[0]._replace(inv=-9, ret=-8), done[0]]),
        (False, [claims[0], done[0]]),
        (False, [submit, claims[0], done[0]._replace(got=[-errno.EINVAL])]),
    ]

    def held(client, at, got, token, until, shared=0, released=0):
        return [call(client, "acquire", [shared], at, got, [0, token]),
                call(client, "unlock", [token], until, until + 2, [released])]
    lost = held(1, 0, 2, 5, 30, 0, -errno.ESTALE)
    locks = [
        (True, held(1, 0, 2, 5, 10) + held(2, 1, 11, 6, 20), {}),
        (True, held(1, 0, 2, 5, 10, 1) + held(2, 1, 3, 6, 20, 1), {}),
        (True, lost + held(2, 1, 5, 6, 20), {1: [3]}),
        # seen to be valid when another one had it
        (False, lost + held(2, 1, 5, 6, 20), {1: [3, 6]}),
        (False, held(1, 0, 2, 5, 10) + held(2, 3, 4, 6, 20), {}),
        (False, held(1, 0, 2, 6, 10) + held(2, 14, 15, 5, 20), {}),
        (False, held(1, 0, 2, 5, 10, 1) + held(2, 1, 3, 6, 20), {}),
    ]

    def met(client, at, until, generation):
        return [call(client, "arrive", [], at, at + 1, [0]),
                call(client, "meet", [], at + 2, until, [0, generation])]
    barriers = [
        (True, met(1, 0, 10, 1) + met(2, 5, 11, 1)),
        (True, met(1, 0, 10, 1) + met(2, 5, 11, 1) + met(2, 12, 30, 2) + met(1, 15, 31, 2)),
        # one whose daemon went when it had arrived
        (True, met(1, 0, 10, 1) + met(2, 5, 11, 1) + met(2, 12, 30, 2) +
         [call(1, "arrive", [], 11, 12, [0]), call(1, "meet", [], 13, 14, [-errno.EPIPE])]),
        (False, met(1, 0, 10, 1) + met(2, 5, 11, 1) + met(2, 12, 30, 2) + met(2, 31, 40, 3) +
         [call(1, "arrive", [], 11, 12, [0]), call(1, "meet", [], 13, 14, [-errno.EPIPE])]),
        (False, met(1, 0, 10, 1) + met(2, 11, 20, 1)),
        (False, met(1, 0, 10, 1) + met(2, 5, 11, 2)),
    ]
    bad = 0
    for good, check, *args in ([(g, check_queue, c) for g, c in queues] +
                               [(g, check_lock, c, collections.defaultdict(list, v))
                                for g, c, v in locks] +
                               [(g, check_barrier, c, 2) for g, c in barriers]):
        try:
            check(*args)
            found = None
        except Wrong as e:
            found = e
        if good != (found is None):
            bad += 1
            print(f"{'complains of' if found else 'sees nothing in'}: {args[0]} {found or ''}")
    return bad


if __name__ == "__main__":
    sys.exit(bool(selftest()))
