#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0
"""Measures what a GPU does with rings: rates, latencies, a UDP echo, the copy
engine, requests. Runs the programs of this directory, prints tables and writes JSON.
scripts/bench gpu calls it, or takes its JSON where the GPU is in another
machine than the checkout."""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PROGRAMS = {"rate": 240, "latency": 60, "echo": 120, "copy": 120, "ask": 60, "tasks": 120}   # seconds at most
# Frames a second that a ring is to give by threads that consume
THREAD_AIMS = {1: 0.1, 64: 6, 1024: 50, 4096: 100}


class Failed(Exception):
    pass


def output(command):
    try:
        return subprocess.run(command, cwd=TOP, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine():
    gpu = output(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    name, _, driver = gpu.splitlines()[0].partition(", ") if gpu else ("", "", "")
    with open("/proc/cpuinfo") as f:
        cpu = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    return {"date": datetime.date.today().isoformat(), "gpu": name, "driver": driver,
            "cpu": cpu[0] if cpu else platform.machine(), "cpus": os.cpu_count(),
            "kernel": platform.release()}


def run(directory, program, seconds):
    path = os.path.join(directory, f"bench_{program}")
    try:
        done = subprocess.run([path], text=True, stdin=subprocess.DEVNULL, timeout=seconds,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except FileNotFoundError:
        raise Failed(f"{path} is not there: it is built where nvcc is") from None
    except subprocess.TimeoutExpired:
        raise Failed(f"{path}: not finished in {seconds} s") from None
    if done.returncode:
        raise Failed(f"{path}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def measure(directory, commit=None):
    """All programs' results; the commit is that of the checkout, if it is one."""
    result = {"machine": machine(),
              "commit": commit or output(["git", "rev-parse", "--short=12", "HEAD"]) or None}
    for program, seconds in PROGRAMS.items():
        print(f"gpubench: {program}", file=sys.stderr, flush=True)
        result[program] = run(directory, program, seconds)
    return result


def named(rows, name):
    return [r for r in rows if r["name"] == name]


def median(rows, key):
    values = sorted(r[key] for r in rows)
    return values[len(values) // 2]


def rate_table(rates):
    produced = {(r["size"], r["rings"]): r for r in named(rates, "rate_produced")}
    rows = []
    for r in named(rates, "rate"):
        p = produced[r["size"], r["rings"]]
        rows.append([r["size"], r["rings"], f"{r['pps'] / 1e6:.1f}",
                     f"{r['frame_bytes_per_s'] / 1e9:.1f}", f"{r['read_bytes_per_s'] / 1e9:.1f}",
                     f"{r['roof_pps'] / 1e6:.1f}", f"{r['pps'] / r['roof_pps']:.3f}",
                     f"{p['pps'] / 1e6:.1f}"])
    return ["bytes", "rings", "M/s", "frames, GB/s", "link, GB/s", "read-only, M/s", "ratio",
            "written anew, M/s"], rows


def thread_table(rates):
    runtime = {1024: "threads_persistent_1024", 4096: "threads_persistent_4096"}
    rows = []
    for r in named(rates, "threads"):
        n = int(r["threads"])
        handed = named(rates, runtime[n])[0]["pps"] if n in runtime else None
        rows.append([n, f"{r['pps'] / 1e6:.2f}", f"{handed / 1e6:.1f}" if handed else "",
                     THREAD_AIMS[n]])
    return ["threads", "each warp looks, M/s", "runtime, M/s", "aim, M/s"], rows


WAYS = {
    "bare_words": "a word there, a word back",
    "ring_to_word": "a frame in a ring there, a word back",
    "ring_to_ring": "a frame there, a frame back, not read",
    "bare_words_64": "words, and 64 bytes beside each read and written",
    "ring_to_ring_64": "a frame there, its 64 bytes back in a frame",
    "runtime_64": "the same, by the runtime and a user's function",
    "runtime_64_handed": "... handed on to another warp",
}


def latency_table(lines):
    rows = []
    for name, text in WAYS.items():
        r = named(lines, name)
        if not r:       # what a result of before it was measured does not have
            continue
        rows.append([text, *(f"{median(r, k):.0f}" for k in
                             ("p50_ns", "p90_ns", "p99_ns", "min_ns")),
                     f"{median(r, 'ratio'):.2f}"])
    return ["way", "p50, ns", "p90", "p99", "least", "ratio"], rows


PARTS = {
    "read_host_ns": "a load of a word of the host",
    "store_host_and_fence_ns": "a store to the host, and a fence of system scope",
    "device_atomic_ns": "an atomic operation on the device's memory",
    "device_load_ns": "an acquire load of it",
    "clock_ns": "reading the clock",
}


def parts_table(lines):
    r = named(lines, "parts")[0]
    return ["what", "ns"], [[text, f"{r[key]:.0f}"] for key, text in PARTS.items()]


ECHOES = {"plain": "thread, recvmmsg and sendmmsg", "ring_cpu": "ring, CPU thread",
          "ring_gpu": "ring, GPU", "ask_gpu": "requests, GPU", "receive_only": "thread, recvmmsg alone"}


def echo_table(lines):
    rows = []
    for key, text in ECHOES.items():
        for r in named(lines, f"echo_latency_{key}"):
            rows.append([text, *(f"{r[k] / 1e3:.1f}" for k in
                                 ("p50_ns", "p90_ns", "p99_ns", "min_ns"))])
    return ["answered by", "p50, us", "p90", "p99", "least"], rows


SPLIT = {
    "kernel_in_ns": "kernel: client's send to the source's reading",
    "rings_and_gpu_ns": "on to the answer's being in the output ring",
    "hand_over_ns": "copy and poll: into the ring, seen and fetched by the GPU",
    "process_ns": "process: the function",
    "reply_ns": "reply: into the output ring, seen by the CPU",
    "kernel_out_ns": "kernel: sending it, on to the client",
}


def split_table(lines):
    r = named(lines, "echo_split")[0]
    return ["part", "us"], [[text, f"{r[key] / 1e3:.1f}"] for key, text in SPLIT.items()
                            if key in r]


def load_table(lines):
    rows = []
    for rate in sorted({r["rate"] for r in lines if r["name"].startswith("echo_load_")}):
        for key, text in ECHOES.items():
            for r in named(lines, f"echo_load_{key}"):
                if r["rate"] != rate:
                    continue
                ringed = key.startswith("ring")
                rows.append([f"{rate / 1e3:.0f}", text, f"{r['receive_ns_a_packet']:.0f}",
                             f"{r['receive_core_share'] * 1e5 / rate * 100:.1f}",
                             f"{r['send_ns_a_packet']:.0f}" if ringed else "",
                             f"{r['third_core_share'] * 100:.1f}" if key.endswith("pu") else ""])
    return ["k packets/s", "answered by", "receive, ns a packet",
            "receive, % of a core for 100k/s", "send, ns a packet", "GPU's or ring's thread, %"], rows


def copy_table(lines):
    reads = {(r["size"], r["batch"]): r for r in named(lines, "kernel_reads")}
    rows = []
    for c in named(lines, "copy_engine"):
        k = reads[c["size"], c["batch"]]
        rows.append([c["size"], c["batch"], f"{c['latency_p50_ns'] / 1e3:.1f}",
                     f"{k['latency_p50_ns'] / 1e3:.1f}", f"{c['pps'] / 1e6:.1f}",
                     f"{k['pps'] / 1e6:.1f}", f"{c['pps'] / k['pps']:.2f}"])
    return ["bytes", "batch", "copied, us", "read, us", "copied, M/s", "read, M/s", "ratio"], rows


def ask_table(lines):
    rows = []
    for warps in sorted({r["warps"] for r in named(lines, "ask_rate")}):
        bare, turns, one = (median([r for r in named(lines, name) if r["warps"] == warps], "per_s")
                            for name in ("bare_rate", "ask_rate", "served_rate"))
        rows.append([warps, f"{bare / 1e6:.1f}", f"{turns / 1e6:.1f}", f"{turns / bare:.2f}",
                     f"{one / 1e6:.1f}", f"{one / bare:.2f}"])
    return ["warps", "bare loop, M/s", "taken by turns, M/s", "ratio",
            "taken by one warp, M/s", "ratio"], rows


TRIPS = {"bare_trip": "bare loop: 64 bytes there, 32 back",
         "ask_trip": "a request, checked and answered by the engine"}


def trip_table(lines):
    rows = [[text, *(f"{median(named(lines, name), k):.0f}" for k in
                     ("p50_ns", "p90_ns", "p99_ns", "min_ns"))] for name, text in TRIPS.items()]
    return ["from the GPU and back", "p50, ns", "p90", "p99", "least"], rows


TASKS = {"nops": "requests that do nothing", "claims": "tasks claimed",
         "tasks": "claimed and completed", "work": "the same, 20 us each"}


def tasks_table(lines):
    rows = []
    for name, text in TASKS.items():
        for warps in sorted({r["warps"] for r in named(lines, name)}):
            same = [r for r in named(lines, name) if r["warps"] == warps]
            rows.append([text, warps, f"{median(same, 'per_s') / 1e6:.2f}",
                         f"{median(same, 'busy'):.2f}" if name == "work" else ""])
    return ["what", "warps", "M/s", "busy"], rows


def order_table(rates):
    return ["rings", "M/s"], [[r["rings"], f"{r['pps'] / 1e6:.1f}"]
                              for r in named(rates, "rate_ordered")]


def tables(result):
    """By name: a head and rows."""
    rate, latency, echo = result["rate"], result["latency"], result["echo"]
    roof = named(rate, "roof_copy")[0]["bytes_per_s"]
    # a result of before they were measured has none of these
    asked, tasks = result.get("ask"), result.get("tasks")
    return {
        "gpu-roof": (["roof", "GB/s"], [["host to device, copy engine", f"{roof / 1e9:.1f}"]]),
        "gpu-rate": rate_table(rate),
        "gpu-order": order_table(rate),
        "gpu-threads": thread_table(rate),
        "gpu-latency": latency_table(latency),
        "gpu-parts": parts_table(latency),
        "gpu-echo": echo_table(echo),
        "gpu-split": split_table(echo),
        "gpu-load": load_table(echo),
        "gpu-copy": copy_table(result["copy"]),
        **({"gpu-ask": ask_table(asked), "gpu-trip": trip_table(asked)} if asked else {}),
        **({"gpu-tasks": tasks_table(tasks)} if tasks else {}),
    }


def show(result, out=sys.stdout):
    m = result["machine"]
    print(f"{m['gpu']}, driver {m['driver']}; {m['cpus']} CPUs, {m['cpu']}; kernel "
          f"{m['kernel']}; {m['date']}, commit {result['commit']}", file=out)
    for name, (head, rows) in tables(result).items():
        cells = [[str(c) for c in row] for row in [head, *rows]]
        width = [max(len(row[i]) for row in cells) for i in range(len(head))]
        print(f"\n{name}", file=out)
        for row in cells:
            print("  " + "  ".join(f"{c:>{w}}" for c, w in zip(row, width)), file=out)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", help="where the programs are",
                        default=os.path.join(TOP, os.environ.get("O", "build"), "tests/bench/gpu"))
    parser.add_argument("-o", "--output", help="JSON file to write")
    parser.add_argument("--commit", help="what was built, where that is no checkout")
    parser.add_argument("--from", dest="file", help="print the tables of a JSON file instead")
    args = parser.parse_args()
    try:
        if args.file:
            with open(args.file) as f:
                result = json.load(f)
        else:
            result = measure(args.directory, args.commit)
    except Failed as e:
        print(f"gpubench: {e}", file=sys.stderr)
        return 1
    if args.output:
        with open(args.output, "w") as f:
            json.dump(result, f, indent=1)
            f.write("\n")
    show(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
