#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""The figures that the CUDA executor is to reach, on one GPU, by one command.

Usage: bench_gpu.py [--build BUILD] [--rounds N] [--launcher WORDS] [--alone WORDS] [--keep DIR]

1. GEMMs in bf16 (8192^3 and the linear layers of gpt-13b, forward and backward) against
   torch.matmul, alternating round by round on random data; the median ratio is to be at least 0.99.
   Without torch the rates stand alone.
2. A one-rank gpt-1.3b step, with and without --graph: GEMM time as a share of the step (at least
   97 %), gap (under 1 % with --graph, 3 % without), tracing overhead (at most 1 %).

Prints one line a figure with its goal. Exit 0 when all could be measured, 2 when not.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TOKENS, HIDDEN, FFN = 2048, 5120, 20480  # gpt-13b, one sample of 2048 tokens
LAYERS = [("qkv", HIDDEN, 3 * HIDDEN), ("projection", HIDDEN, HIDDEN), ("up", HIDDEN, FFN),
          ("down", FFN, HIDDEN)]  # inputs, outputs
SHAPES = [("8192^3", "NN", 8192, 8192, 8192)] + [
    (f"gpt-13b {name} {what}", *shape)
    for name, inputs, outputs in LAYERS
    for what, shape in [("forward", ("NN", TOKENS, outputs, inputs)),
                        ("input gradient", ("NT", TOKENS, inputs, outputs)),
                        ("weight gradient", ("TN", inputs, outputs, TOKENS))]]
CALLS = 20  # multiplications a round, as in bench_cuda_gemm


class Torch:
    """torch.matmul on the same shapes; None-like when there is no torch."""

    def __init__(self):
        try:
            import torch
            self.torch = torch if torch.cuda.is_available() else None
        except ImportError:
            self.torch = None

    def prepare(self, letters, m, n, k):
        torch = self.torch
        make = lambda rows, columns: torch.rand(rows, columns, device="cuda",
                                                dtype=torch.bfloat16) * 2 - 1
        self.a = make(k, m).t() if letters[0] == "T" else make(m, k)
        self.b = make(n, k).t() if letters[1] == "T" else make(k, n)
        self.out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        self.flop = 2 * m * n * k * CALLS
        self.round()

    def round(self):
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(CALLS):
            self.torch.matmul(self.a, self.b, out=self.out)
        end.record()
        end.synchronize()
        return self.flop / (begin.elapsed_time(end) * 1e-3) * 1e-12


def compare_gemms(build, launcher, rounds):
    torch = Torch()
    for name, letters, m, n, k in SHAPES:
        bench = subprocess.Popen(
            [*launcher, str(build / "bench/bench_cuda_gemm"), "bf16", letters, str(m),
             str(n), str(k)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ours, theirs = [], []
        if torch.torch:
            torch.prepare(letters, m, n, k)
        for _ in range(rounds):
            bench.stdin.write("\n")
            bench.stdin.flush()
            answer = bench.stdout.readline()
            if not answer:
                bench.wait()
                sys.exit(2)
            ours.append(float(answer))
            if torch.torch:
                theirs.append(torch.round())
        bench.stdin.close()
        bench.wait()
        rate = statistics.median(ours)
        if theirs:
            ratio = statistics.median(a / b for a, b in zip(ours, theirs))
            print(f"{name:34} {rate:7.1f} TFLOP/s, torch {statistics.median(theirs):7.1f}: "
                  f"ratio {ratio:.3f} (goal 0.99)")
        else:
            print(f"{name:34} {rate:7.1f} TFLOP/s (no torch to compare with)")


def measure_step(build, launcher, alone, folder, graph):
    file = str(Path(folder) / ("graph.h5" if graph else "plain.h5"))
    command = [*launcher, str(build / "isoscale"), "run", "--device", "cuda", "--workload",
               "dp", "--model", "gpt-1.3b", "--dtype", "bf16", "--ranks", "1", "--max-time",
               "20s", "--output", file, "--force", "--quiet", *(["--graph"] if graph else [])]
    subprocess.run(command, check=True)
    report = subprocess.run([*alone, str(build / "isoscale"), "report", file, "--format", "json"],
                            check=True, capture_output=True, text=True)
    point = json.loads(report.stdout)["runs"][0]["points"][0]
    if point["status"] != "ok":
        print(f"gpt-1.3b: {point['reason']}", file=sys.stderr)
        sys.exit(2)
    step, parts = point["traced_step"], point["breakdown"]
    name = "with --graph" if graph else "without graph"
    print(f"gpt-1.3b {name}: step {point['step_time']['median'] * 1e3:.2f} ms, "
          f"{point['flops_per_rank'] * 1e-12:.1f} TFLOP/s")
    print(f"  GEMMs {point['op_time']['gemm'] / step:.2%} of the step (goal 97 %), "
          f"gap {parts['gap'] / step:.2%} (goal {1 if graph else 3} %), "
          f"tracing {percent(point['instrumentation_overhead'])} (goal 1 %)")
    return point["step_time"]["median"]


def percent(ratio):
    return "unknown" if ratio is None else f"{ratio:.2%}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--launcher", default="", help="words before each run, as 'mpirun -np 1'")
    parser.add_argument("--alone", default="", help="words before a program that needs no launcher")
    parser.add_argument("--keep", help="a folder where the run files stay")
    options = parser.parse_args()
    launcher = options.launcher.split()
    compare_gemms(options.build, launcher, options.rounds)
    with tempfile.TemporaryDirectory() as folder:
        plain, replayed = (measure_step(options.build, launcher, options.alone.split(),
                                        options.keep or folder, graph) for graph in (False, True))
    print(f"launch gap, as what --graph saves: {(plain - replayed) / plain:.2%} of a step")


try:
    main()
except subprocess.CalledProcessError as error:
    print(error, file=sys.stderr)
    sys.exit(2)
