#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""What the public headers have to be like, so that the API can grow and speaks with one tongue.

api.py PUBLIC... [-- SOURCE...]

A line for each of these that does not hold:
- a structure begins with sz, or has a reserve, or is one that stays as it is (FIXED)
- open() goes with close(), create() with destroy(), init() with fini(), start() with stop():
  what ends in one of these has a function that makes it (MADE: by another name), and the other way
  round (NOTHING: there is nothing to be undone)
- what ends an object returns nothing, but where something is learned (SAYS)
- SOURCEs ask the environment for RGATE_... alone, or for what is everybody's (COMMON)
A row of these tables that is not needed any more is told, too.
"""

import re
import sys

FIXED = {
    "rgate_ident": "a value: number and cookie, as the kernel has them",
    "rgate_sge": "in arrays, as verbs have it",
}
PAIRS = {"close": "open", "destroy": "create", "fini": "init", "stop": "start"}
MADE = {
    "rgate_cluster_destroy": "rgate_cluster_load",
    "rgate_queue_worker_close": "rgate_queue_worker_start",
    "rgate_spawn_job_close": "rgate_spawn_start",
}
NOTHING = {
    "rgate_queue_next_start": "a request: rgate_queue_quit(), or it is taken",
    "rgate_queue_wait_start": "likewise",
    "rgate_sender_init": "keeps nothing but its place in the ring",
    "rgate_spin_init": "is a number",
    "rgate_hub_start": "of an object that rgate_hub_destroy() stops",
    "rgate_spawn_start": "a job: rgate_spawn_job_close()",
}
SAYS = {
    "rgate_socket_close": "as close(2): it is closed, whatever it says",
    "rgate_queue_worker_close": "-EBUSY: a handler still runs",
    "rgate_gpu_stop": "-ETIMEDOUT: the kernel still runs",
    "rgate_pool_free": "of a buffer: not this pool's, or free already",
}
COMMON = {"LD_PRELOAD", "NOTIFY_SOCKET", "PATH", "TERM", "TMPDIR", "XDG_RUNTIME_DIR"}


def read(paths):
    for path in paths:
        with open(path, encoding="utf-8") as file:
            yield path, file.read()


def structs(text):
    for name, body in re.findall(r"^struct (rgate_\w+) \{(.*?)^\}", text, re.S | re.M):
        first = re.search(r"\w[^;]*;", re.sub(r"/\*.*?\*/", "", body, flags=re.S))
        yield name, bool(first and first[0] == "size_t sz;") or "reserved" in body


def functions(text):
    """(what it returns, name)"""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for result, name in re.findall(r"^RGATE_API\s+([^;{(]*?)\b(rgate_\w+)\s*\(", text, re.M):
        yield result.strip(), name


def pairs(names):
    verb = re.compile(r"(rgate_\w+?)_(open|create|init|start|close|destroy|fini|stop)(_\w+)?$")
    made, ended = set(), {}
    for name in names:
        found = verb.match(name)
        if found and found[2] in PAIRS:
            if not found[3]:
                ended[found[1], PAIRS[found[2]]] = name
        elif found:
            made.add((found[1], found[2], name))
    for at, name in ended.items():
        there = any((of, how) == at for of, how, _ in made)
        if not there and MADE.get(name) not in names:
            yield f"{name}: nothing makes what it ends"
        elif there and name in MADE:
            yield f"{name}: MADE, and there is {at[0]}_{at[1]}"
    for of, how, name in made:
        if (of, how) not in ended and name not in NOTHING:
            yield f"{name}: nothing ends what it makes"
        elif (of, how) in ended and name in NOTHING:
            yield f"{name}: NOTHING, and there is {ended[of, how]}"


def main(argv):
    sources = argv[argv.index("--") + 1:] if "--" in argv else []
    headers = argv[1:argv.index("--")] if "--" in argv else argv[1:]
    returns, known = {}, {}
    for path, text in read(headers):
        for name, grows in structs(text):
            known[name] = grows
            if not grows and name not in FIXED:
                print(f"{path}: struct {name} can not grow: neither sz nor a reserve")
        returns.update((name, result) for result, name in functions(text))
    for line in sorted(pairs(set(returns))):
        print(line)
    for name, result in returns.items():
        ends = re.search(r"_(close|destroy|fini|stop|free|deregister)$", name)
        if ends and (result == "void") == (name in SAYS):
            print(f"{name}: returns {result}" + (", and is in SAYS" if name in SAYS else ""))
    for path, text in read(sources):
        for variable in re.findall(r'getenv\("(\w+)"\)', text):
            if not variable.startswith("RGATE_") and variable not in COMMON:
                print(f"{path}: environment {variable}")
    print(len(known), len(returns), file=sys.stderr)
    for name in (FIXED.keys() - known.keys()) | (SAYS.keys() - returns.keys()):
        if len(headers) > 1:
            print(f"{name}: in a table here, and not in a header")


if __name__ == "__main__":
    main(sys.argv)
