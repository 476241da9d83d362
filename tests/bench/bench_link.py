#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Two ranks over a link shaped to 1 Gbit/s: how much of data parallel communication hides under the
backward pass, and how many bytes the strategies put on the link, by the counters of its interface.

    tests/bench/bench_link.py build/isoscale [--rounds N]

Needs root (network namespaces) and a core for each rank, on which it is pinned: its streams have a
thread each there (--host-streams threads), and no rank computes on another's core. Prints one line
a figure.

Hidden: step times with overlap=off and overlap=on in turn, medians over rounds. What can be hidden
is all communication but that of the last bucket, which has nothing to run under:
    hidden = (T_off - T_on) / (C (1 - last bucket / all gradients)),
with C what the report of overlap=off calls transfer and wait. The model's backward pass is longer
than that, as the printed compute shows.

Bytes: those of a run with many steps less those of one with few, a step each, so that what is done
once (start, verification) cancels.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import h5py

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))
import cluster  # noqa: E402

MODEL = """name = "link"
source = "bench_link.py"
hidden = 512
ffn = 2048
heads = 8
kv_heads = 8
head_size = 64
gated_mlp = false
layers = 4
sequence = 128
vocabulary = 1024
tied_embedding = true
learned_positions = true
published_parameters = 0
"""
LAYERS, PARAMETERS = 4, 4 * 12 * 512 * 512
BUCKET = 4 * 4 * 512 * 512  # bytes: one matrix of the MLP
LAST_BUCKET = 4 * 4 * 512 * 512  # projection and QKV of the first layer


class Bench:
    def __init__(self, program, scratch):
        self.program = program
        self.made = cluster.Cluster(scratch, "ab", {("a", "b"): "1gbit"})
        with open(self.made.path("link.toml"), "w", encoding="utf-8") as file:
            file.write(MODEL)

    def counter(self):
        """Bytes that the first host has put on the link."""
        text = subprocess.run(
            ["ip", "netns", "exec", "hosta", "cat", "/sys/class/net/tob/statistics/tx_bytes"],
            capture_output=True, text=True, check=True).stdout
        return int(text)

    def run(self, seconds, *settings, steps=2):
        path = self.made.path("run.h5")
        options = [part for setting in settings for part in ("--set", setting)]
        before = self.counter()
        done = self.made.mpirun(
            {"a": 1, "b": 1}, self.program, "run", "--quiet", "--force", "--output", path,
            "--device", "host", "--host-streams", "threads", "--workload", "dp", "--model", self.made.path("link.toml"),
            "--ranks", "2", "--max-time", f"{seconds}s", "--precision", "0.01%", "--set",
            "microbatches=2", "--set", "microbatch=6", "--set", f"bucket={BUCKET}",
            "--trace-steps", str(steps), *options)
        sent = self.counter() - before
        if done.returncode != 0:
            raise SystemExit(done.stdout + done.stderr)
        report = subprocess.run([self.program, "report", path, "--format", "json"],
                                capture_output=True, text=True, check=True).stdout
        point = json.loads(report)["runs"][0]["points"][0]
        assert point["verified"], point["reason"]
        with h5py.File(path, "r") as file:
            played = next(iter(file["points"].values()))["step_times"].shape
        return point, sent, max(played)


def hidden_share(bench, rounds):
    off, on, communication, computing, slowed, left = [], [], [], [], [], []
    for _ in range(rounds):
        point, _, _ = bench.run(6, "overlap=off")
        off.append(point["step_time"]["median"])
        parts = point["breakdown"]
        communication.append(parts["transfer"] + parts["wait"])
        computing.append(parts["compute"])
        point, _, _ = bench.run(6, "overlap=on")
        on.append(point["step_time"]["median"])
        parts = point["breakdown"]
        left.append(parts["transfer"] + parts["wait"])
        slowed.append(parts["compute"])
    c = statistics.median(communication)
    can = c * (1 - LAST_BUCKET / (4 * PARAMETERS))
    saved = statistics.median(off) - statistics.median(on)
    print(f"step: overlap off {statistics.median(off) * 1e3:.1f} ms, on "
          f"{statistics.median(on) * 1e3:.1f} ms; communication {c * 1e3:.1f} ms, compute "
          f"{statistics.median(computing) * 1e3:.1f} ms")
    # Both are of traced steps. The core that computes also sends, receives and adds up.
    print(f"with overlap on: exposed {statistics.median(left) * 1e3:.1f} ms, compute "
          f"{statistics.median(slowed) * 1e3:.1f} ms")
    print(f"hidden of what can be: {saved / can:.1%} (goal: at least 70%)")


def bytes_of_step(bench, *settings):
    _, few, few_steps = bench.run(2, *settings)
    _, many, many_steps = bench.run(14, *settings)
    return (many - few) / (many_steps - few_steps)


def volumes(bench):
    of_step = {}
    for name, settings in {"ddp": (), "zero=1": ("zero=1",), "zero=2": ("zero=2",),
                           "zero=3": ("zero=3",)}.items():
        of_step[name] = bytes_of_step(bench, *settings)
        print(f"{name}: {of_step[name] / 1e6:.2f} MB a step on the link, "
              f"{of_step[name] / of_step['ddp']:.3f} of ddp's")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    cluster.enter()
    with tempfile.TemporaryDirectory(prefix="isoscale-link-") as scratch:
        bench = Bench(os.path.abspath(arguments.program), scratch)
        try:
            hidden_share(bench, arguments.rounds)
            volumes(bench)
        finally:
            bench.made.stop()


if __name__ == "__main__":
    main()
