#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""The first run on a machine with a GPU: what works, and what it reaches, part by part.

It goes on where something fails. Exit 0: nothing failed, 1: something did, 2: the command is wrong.
The archive gets all results so far after each part, and where SIGTERM ends the script.

Parts, all of them by default, at most 13 minutes together:
  0  what the machine is; a plan; one point of dp       5  how sure rates are: A against B
  1  tests of ops, plays and twins on one rank          6  kernels against copies of as many bytes
  2  the same under compute-sanitizer                   7  costs of events and marks
  3  twins on two ranks that share the GPU              8  collects the run files
  4  GEMMs beside torch where it is, and a step

An archive of a build that carries Open MPI with it, unpacked in DIR, is played by
  --build DIR/build --launch "DIR/run -np" --alone DIR/exec
It needs Python 3, the CUDA libraries and NCCL; what else is missing is skipped and named.
"""
import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import time
from importlib.util import find_spec
from pathlib import Path

LIMITS = (60, 150, 90, 120, 180, 110, 40, 15, 15)  # seconds, by part: 13 minutes
RUN_LIMIT = 60  # seconds of one run: where it hangs, the rest of the part is played
TOKENS, HIDDEN, FFN = 2048, 5120, 20480  # gpt-13b, one sample of 2048 tokens
LAYERS = [(HIDDEN, 3 * HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, FFN), (FFN, HIDDEN)]  # inputs, outputs


def reason(said):
    """The line of a log that tells what went wrong; mpirun's last words only say that it did."""
    said = re.sub(r"(?ms)^-{60,}\n(Primary job|mpirun detected).*?^-{60,}\n", "", said)
    lines = [line for line in said.splitlines() if line.strip(" -") and "NCCL INFO" not in line]
    telling = r"(?i)^(isoscale|bench_\w+): |^skipped|^ *stop |\b(failed|error|invalid|nccl warn)\b"
    return next((line for line in lines if re.search(telling, line)), "".join(lines[-1:]))


def torch_rate(torch, m, n, k, calls=20):
    """FLOP/s of torch.matmul in bf16, of random matrices that are both contiguous along k."""
    a, b = (torch.rand(rows, k, device="cuda", dtype=torch.bfloat16) * 2 - 1 for rows in (m, n))
    out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for event in (begin, end):  # before the first event: warm-up
        for _ in range(calls):
            torch.matmul(a, b.t(), out=out)
        event.record()
    end.synchronize()
    return 2 * m * n * k * calls / (begin.elapsed_time(end) * 1e-3)


class Contact:
    """Plays parts. What they tell is printed, and kept in `steps` and `figures`."""

    def __init__(self, options):
        self.build, self.output = options.build.resolve(), options.output.resolve()
        self.launch, self.alone = options.launch.split(), options.alone.split()
        self.size = options.size
        self.isoscale = str(self.build / "isoscale")
        self.archive = options.archive or self.output.with_name(self.output.name + ".tar.gz")
        self.steps, self.figures = [], []
        self.output.mkdir(parents=True, exist_ok=True)

    def play(self, part):
        self.part, self.deadline = part, time.monotonic() + LIMITS[part]
        try:
            with self.going_on(f"part {part}"):
                getattr(self, f"part_{part}")()
        finally:
            self.keep()

    @contextlib.contextmanager
    def going_on(self, name):
        """An exception inside is a step that failed, and what follows is played."""
        try:
            yield
        except Exception as error:
            self.note(name, "FAILED", why=f"{type(error).__name__}: {error}")

    def keep(self):
        """Writes the JSON, and everything that there is so far as one archive."""
        (self.output / "first_contact.json").write_text(
            json.dumps({"steps": self.steps, "figures": self.figures}, indent=1), encoding="utf-8")
        unfinished = Path(f"{self.archive}.part")
        with tarfile.open(unfinished, "w:gz") as archive:
            archive.add(self.output, self.output.name)
        unfinished.replace(self.archive)

    def note(self, name, verdict, seconds=0, why=""):
        why = " ".join(why.split())[:300]
        self.steps.append({"part": str(self.part), "name": name, "verdict": verdict,
                           "seconds": round(seconds), "why": why})
        print(f"{self.part}  {name:34} {verdict:14} {seconds:4.0f} s  {why}", flush=True)

    def figure(self, text):
        self.figures.append({"part": str(self.part), "text": text})
        print(f"{self.part}    {text}", flush=True)

    def step(self, name, *command, limit=max(LIMITS), **environment):
        """Runs it within what is left of the part, its output in a log; returns what it said."""
        start = time.monotonic()
        left = min(int(self.deadline - start), limit)
        if left < 5:
            self.note(name, "skipped", why="the part's time is used up")
            return ""
        log = self.output / f"{self.part}-{re.sub('[^A-Za-z0-9]', '-', name)}.log"
        with open(log, "wb") as file:
            # timeout makes a process group and passes SIGTERM on to it.
            child = subprocess.Popen(["timeout", "--kill-after=10", str(left), *command],
                                     stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                                     env={**os.environ, **environment})
            try:
                status = child.wait()
            except SystemExit as end:
                child.terminate()
                child.wait()
                self.note(name, "FAILED", time.monotonic() - start, str(end))
                raise
        said = log.read_text(encoding="utf-8", errors="replace")
        ends = {0: ("passed", ""), 77: ("skipped", reason(said)),
                **dict.fromkeys((124, 137, -9), ("timeout", f"after {left} s"))}
        if below := said.count("below the goal"):
            ends[1] = ("below the goal", f"{below} lines of the log")
        verdict, why = ends.get(status, ("FAILED", f"exit {status}: {reason(said)}"))
        self.note(name, verdict, time.monotonic() - start, why)
        return said

    def need(self, program):
        """Whether it is there, in the build or on the path."""
        if os.access(self.build / program, os.X_OK) if "/" in program else shutil.which(program):
            return True
        self.note(program, "skipped", why="it is not there")
        return False

    def on(self, ranks, *command):
        return [*self.launch, str(ranks), *command]

    def run(self, name, options, *more):
        """A run of isoscale on one rank into NAME.h5; figures tell its rates. Returns points."""
        self.step(name, *self.on(1, self.isoscale, "run", "--device", "cuda", "--quiet", "--force"),
                  "--timeout", "40s", "--output", str(self.output / f"{name}.h5"), *options.split(),
                  *more, limit=RUN_LIMIT)
        report = ["timeout", "20", *self.alone, self.isoscale, "report",
                  str(self.output / f"{name}.h5"), "--format", "json"]
        done = subprocess.run(report, capture_output=True, text=True, check=False)
        points = json.loads(done.stdout)["runs"][0]["points"] if done.returncode == 0 else []
        for point in points:
            self.tell_rates(name, point)
        return [point for point in points if point["status"] == "ok"]

    def tell_rates(self, name, point):
        if point["status"] != "ok":
            self.figure(f"{name}: {point['workload']} {point['status']}, {point['reason']}")
        if (point["step_time"] or {}).get("median"):
            self.figure(f"{name}: a step of {point['workload']} takes "
                        f"{point['step_time']['median'] * 1e3:.3f} ms, "
                        f"{point['flops_per_rank'] * 1e-12:.1f} TFLOP/s a rank")
        for row in point["rows"] or []:
            what = " ".join(f"{key} {row[key]}" if key == "batch" else str(row[key])
                            for key in ("kind", "m", "n", "k", "batch", "layout", "bytes", "cache",
                                        "dtype") if row.get(key) is not None)
            rate = (f"{row['status']}, {row['reason']}" if row["status"] != "ok"
                    else f"{row['flops'] * 1e-12:.1f} TFLOP/s" if row.get("flops")
                    else f"{row['bandwidth'] * 1e-9:.1f} GB/s" if row.get("bandwidth")
                    else f"{row['time']['median'] * 1e6:.1f} us")
            self.figure(f"{name}: {row['op']} {what}: {rate}")

    def test(self, name, ranks, *arguments, **environment):
        """A test program of tests/gpu; its results go to an XML file."""
        program = f"tests/gpu/test_gpu_{name}"
        if self.need(program):
            self.step(f"gpu_{name} on {ranks} rank{'s' * (ranks > 1)}",
                      *self.on(ranks, str(self.build / program)),
                      f"--gtest_output=xml:{self.output}/gpu_{name}_{ranks}.xml", *arguments,
                      **environment)

    def bench(self, name, pattern):
        """A program of tests/bench; the lines with the pattern are figures."""
        program = f"bench/{name}"
        if self.need(program):
            for line in self.step(name, *self.alone, str(self.build / program)).splitlines():
                if re.search(pattern, line):
                    self.figure(line)

    def part_0(self):
        if self.need("nvidia-smi"):
            self.step("the driver", "nvidia-smi", "-q")
        plugin = str(self.build / "libisoscale_cuda.so")
        self.step("libraries of the plugin", *self.alone, "bash", "-c",
                  'ldd "$0"; ! ldd "$0" | grep "not found"', plugin)
        self.step("what the machine lacks", *self.on(1, self.isoscale, "check", "--device", "cuda"))
        self.step("a plan", *self.on(1, self.isoscale, "run", "--device", "cuda", "--dry-run"))
        self.run("point", "--workload dp --model tiny --dtype bf16 --ranks 1 --set batch=1 "
                 "--max-time 2s")

    def part_1(self):
        for name in ("executor", "play", "twin"):
            self.test(name, 1)

    def part_2(self):
        program = "tests/gpu/test_gpu_executor"
        if not (self.need("compute-sanitizer") and self.need(program)):
            return
        # Calls that only ask, such as event queries, return errors, too.
        for tool, *more in (("memcheck", "--report-api-errors", "no"), ("racecheck",)):
            self.step(tool, "compute-sanitizer", "--tool", tool, *more, "--error-exitcode", "1",
                      "--target-processes", "all", *self.on(1, str(self.build / program)),
                      "--gtest_filter=*Narrow*:*Lists*:*Layer*")

    def part_3(self):
        self.test("twin", 2, "--gtest_filter=-*graph*", NCCL_DEBUG="INFO")

    def part_4(self):
        self.compare_gemms()
        self.run("layouts", "--workload gemm --model gpt-13b --dtype bf16 --set shapes=model "
                 "--set cache=warm --max-time 10s")
        medians = []
        for name, goal, graph in (("plain", 3, []), ("graph", 1, ["--graph"])):
            with self.going_on(f"figures of {name}"):
                for point in self.run(name, "--workload dp --model gpt-1.3b --dtype bf16 --ranks 1 "
                                      "--set batch=8 --max-time 10s", *graph):
                    medians.append(point["step_time"]["median"])
                    step, tracing = point["traced_step"], point["instrumentation_overhead"]
                    gemms, gap = point["op_time"]["gemm"] / step, point["breakdown"]["gap"] / step
                    self.figure(f"{name}: GEMMs {gemms:.2%} of the step (goal 97 %), gap {gap:.2%} "
                                f"(goal {goal} %), tracing "
                                f"{'unknown' if tracing is None else f'{tracing:.2%}'} (goal 1 %)")
        if len(medians) == 2:
            self.figure("launch gap, as what --graph saves: "
                        f"{(medians[0] - medians[1]) / medians[0]:.2%} of a step")

    def torch(self):
        """The module, or None where it is not there or sees no GPU."""
        with self.going_on("torch"):
            if find_spec("torch"):
                import torch
                if torch.cuda.is_available():
                    return torch
            self.note("torch", "skipped", why="it is not there, or it sees no GPU")
        return None

    def compare_gemms(self):
        """Products of this size and of the linear layers of gpt-13b, in turn with torch."""
        shapes = [(self.size,) * 3]
        for inputs, outputs in LAYERS:
            shapes += [(TOKENS, outputs, inputs), (TOKENS, inputs, outputs),
                       (inputs, outputs, TOKENS)]
        shapes = list(dict.fromkeys(shapes))
        listed = ",".join("x".join(map(str, shape)) for shape in shapes)
        torch = self.torch()
        ratios = {shape: [] for shape in shapes}
        for trial in range(3 if torch else 1):
            points = self.run(f"gemm-{trial}", "--workload gemm --dtype bf16 --set cache=warm "
                              f"--set shapes={listed} --max-time 10s")
            with self.going_on("torch"):
                for row in points[0]["rows"] if points and torch else []:
                    shape = tuple(row[extent] for extent in "mnk")
                    if row.get("flops"):
                        rate = torch_rate(torch, *shape)
                        self.figure(f"torch: {shape}: {rate * 1e-12:.1f} TFLOP/s")
                        ratios[shape].append(row["flops"] / rate)
        for shape, of_shape in ratios.items():
            if of_shape:
                self.figure(f"{shape}: {statistics.median(of_shape):.3f} of torch (goal 0.99)")

    def part_5(self):
        gemm = ("--workload gemm --set shapes={0}x{0}x{0} --set cache=warm --max-time 10s"
                .format(self.size))
        for trial in (1, 2, 3):
            self.run(f"chosen-{trial}", gemm, "--dtype", "bf16")
        for how in ("fast", "split"):
            self.run(f"fp8-{how}", gemm, "--dtype", "fp8", "--set", f"fp8_accumulate={how}")
        for dtype in ("f64", "f32", "tf32", "f16"):
            self.run(f"rate-{dtype}", gemm, "--dtype", dtype)
        self.run("small", "--workload gemm --set "
                 "shapes=512x512x512,1024x1024x1024,2048x2048x2048 --dtype bf16 --max-time 10s")

    def part_6(self):
        self.bench("bench_kernels", "%")
        self.run("memory", "--workload memory --max-time 20s")

    def part_7(self):
        self.bench("bench_cuda_costs", " us$|capture")

    def part_8(self):
        reference = self.output / "reference"
        reference.mkdir(exist_ok=True)
        for name in ("point", "plain", "graph", "memory"):
            if (self.output / f"{name}.h5").exists():
                shutil.copy(self.output / f"{name}.h5", reference)
        files = sorted(str(file) for file in reference.glob("*.h5"))
        if files:
            self.step("run files can be read", *self.alone, self.isoscale, "report", *files,
                      "--index")
        else:
            self.note("run files can be read", "skipped", why="parts 0, 4 and 6 wrote none")


def stop(number, _frame):
    """Ends the script, whose exit status is then 1. A second signal changes nothing."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(f"ended by {signal.Signals(number).name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", metavar="PART", nargs="*", type=int)
    parser.add_argument("--build", type=Path, default=Path("build"),
                        help="needs isoscale, its plugin, tests/gpu and bench (cmake --build build "
                        "--target all isoscale_long_tests)")
    parser.add_argument("--launch", default="mpirun -np",
                        help="how several ranks are started, before their number")
    parser.add_argument("--alone", default="",
                        help="what stands before a program that needs no launcher")
    parser.add_argument("--size", type=int, default=8192,
                        help="the extent of large products; less where stand-ins play them")
    parser.add_argument("--output", type=Path, default=Path("first_contact"),
                        help="where results go")
    parser.add_argument("--archive", type=Path,
                        help="gets all results so far after each part [OUTPUT.tar.gz]")
    options = parser.parse_args()
    if not set(options.parts) <= set(range(len(LIMITS))):
        parser.error("a PART is one of 0 to 8")
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    contact = Contact(options)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    for part in options.parts or range(len(LIMITS)):
        contact.play(part)
    print(f"\nAll of it: {contact.output}, {contact.archive}")
    return any(step["verdict"] in ("FAILED", "timeout", "below the goal") for step in contact.steps)


if __name__ == "__main__":
    sys.exit(main())
