#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""How well `isoscale predict` foresees the largest point of a curve from the smaller ones.

    tests/bench/bench_truth.py build/isoscale [--keep DIR] [--curves A,B] [--max-time 2s]
    tests/bench/bench_truth.py build/isoscale --evaluate DIR

Measures the curves of truth_curves.py on eight ranks, each in a network namespace of its own or two
in one, joined by a switch whose ports are shaped. GEMMs are delays (--inject delay=...): ranks
sleep where they would multiply, so that they do not take each other's cores, and share those that
communication needs equally. Of each curve one launch measures the calibration and the points on up
to 4 ranks, which is all that a prediction is given; another launch the point on 8.

Prints for each curve the prediction, its 90% interval and what was measured; then how many are
within the interval and how many within 10% of its middle. With --keep the run files stay in DIR:
--evaluate predicts them again without measuring, and without root.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))
import cluster  # noqa: E402
import truth_curves  # noqa: E402

NEAR = 0.10
# The calibration has groups of up to 4 ranks. It measures as `calibrate` does, but only the
# collectives that the curve communicates with.
CALIBRATION = ("sizes=4KiB..256KiB*8", "rotate=1MiB")


class Hosts:
    """As many hosts as a curve wants, made anew when another number is wanted."""

    def __init__(self, scratch):
        self.scratch = scratch
        self.made = None

    def of(self, count, port):
        names = "abcdefgh"[:count]
        if self.made is None or self.made.hosts != names:
            self.stop()
            self.made = cluster.Cluster(self.scratch, names, port_rate=port)
            # Any core for each rank, so that a stream of its own runs beside the delays, and before
            # whatever else runs on the machine. No real-time class: it starves what starts ranks.
            self.made.script("pin", 'exec nice -n -20 "$@"\n')
        # A burst of a few packets: what is sent after a pause takes as long as any. Queues that
        # drop nothing, as networks of clusters do: else it is TCP's timeouts that are measured.
        self.made.set_port_rate(port, burst="4kb", longest="10s")
        return self.made

    def stop(self):
        if self.made is not None:
            self.made.stop()
        self.made = None


def experiments(curve, model, is_small):
    """The experiment file: the collectives on all ranks, unless of the largest, and the curve."""
    tables = []
    if is_small:
        # Steps reduce in this way; Open MPI 4.1 reduces by another algorithm in place.
        in_place = {"all_reduce": "yes"}.get(
            curve.operations, "both" if "all_reduce" in curve.operations else "no")
        tables.append({"workload": "collectives",
                       "set": (*CALIBRATION, f"op={curve.operations}", f"in_place={in_place}")})
    tables.append({"workload": curve.workload, "model": model, "scaling": curve.scaling,
                   **({"mesh": curve.mesh} if curve.mesh else {}), "set": curve.settings})
    lines = []
    for table in tables:
        lines.append("[[experiment]]")
        for key, value in table.items():
            if key == "set":
                pairs = (setting.split("=", maxsplit=1) for setting in value)
                lines += [f"set.{name} = {json.dumps(text)}" for name, text in pairs]
            else:
                lines.append(f"{key} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def measure(hosts, program, curve, path, ranks, max_time):
    """Runs the curve on these rank counts; with calibration unless it is the largest."""
    made = hosts.of(truth_curves.LARGE // curve.ranks_per_host, curve.port)
    model = made.path(f"{curve.model}.toml")
    with open(model, "w", encoding="utf-8") as file:
        file.write(truth_curves.model_text(curve.model))
    wanted = made.path("experiment.toml")
    with open(wanted, "w", encoding="utf-8") as file:
        file.write(experiments(curve, model, max(ranks) < truth_curves.LARGE))
    used = max(ranks) // curve.ranks_per_host
    command = [program, "run", wanted, "--force", "--output", path, "--device", "host",
               "--ranks", ",".join(map(str, ranks)), "--max-time", max_time, "--precision", "2%",
               "--trace-steps", "2", "--inject", f"delay={curve.delay}"]
    ranks_of = {host: curve.ranks_per_host for host in made.hosts[:max(used, 1)]}
    done = made.mpirun(ranks_of, *command)
    with open(path + ".log", "w", encoding="utf-8") as file:
        file.write(done.stdout + done.stderr)
    return done.returncode, done.stdout + done.stderr


def files_of(folder, curve):
    return (os.path.join(folder, f"{curve.name}-small.h5"),
            os.path.join(folder, f"{curve.name}-large.h5"))


def measure_all(program, curves, folder, max_time):
    with tempfile.TemporaryDirectory(prefix="isoscale-truth-") as scratch:
        hosts = Hosts(scratch)
        try:
            for curve in curves:
                begin = time.monotonic()
                small, large = files_of(folder, curve)
                for path, ranks in ((small, curve.small), (large, (truth_curves.LARGE,))):
                    code, said = measure(hosts, program, curve, path, ranks, max_time)
                    if code != 0:
                        print(f"{curve.name}: run ended with {code}: {said[-600:]}",
                              file=sys.stderr)
                        break
                print(f"{curve.name}: measured in {time.monotonic() - begin:.0f} s",
                      file=sys.stderr, flush=True)
        finally:
            hosts.stop()


def json_of(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None, " ".join((done.stderr or done.stdout).split())
    return json.loads(done.stdout), ""


def point_of(program, path, workload, ranks):
    """The point of a workload on so many ranks."""
    report, why = json_of(program, "report", path, "--format", "json")
    if report is None:
        raise SystemExit(f"{path}: {why}")
    points = [point for point in report["runs"][0]["points"]
              if point["ranks"] == ranks and point["workload"] == workload]
    if len(points) != 1 or points[0]["status"] != "ok" or points[0]["verified"] is not True:
        raise SystemExit(f"{path}: no good point on {ranks} ranks")
    return points[0]


def evaluate(program, curves, folder):
    """Prints the table; returns (curves, within the interval, near the middle)."""
    counts = [0, 0, 0]
    print(f"{'curve':20} {'measured 4':>10} {'8':>9}  {'predicted':>9} {'from':>9} {'to':>9}  "
          f"{'error':>7}  within")
    for curve in curves:
        small, large = files_of(folder, curve)
        if not (os.path.exists(small) and os.path.exists(large)):
            print(f"{curve.name:20} not measured")
            continue
        counts[0] += 1
        truth = point_of(program, large, curve.workload, truth_curves.LARGE)["step_time"]["median"]
        before = point_of(program, small, curve.workload, max(curve.small))["step_time"]["median"]
        said, why = json_of(program, "predict", small, "--workload", curve.workload, "--ranks",
                            str(truth_curves.LARGE), "--format", "json")
        [forecast] = said["curve"]["points"] if said else [{"refused": why}]
        if forecast["refused"]:
            print(f"{curve.name:20} {before * 1e3:8.1f}ms {truth * 1e3:7.1f}ms  refused: "
                  f"{forecast['refused']}")
            continue
        expected = forecast["step_time"]
        error = truth / expected["value"] - 1
        within = expected["lower"] <= truth <= expected["upper"]
        counts[1] += within
        counts[2] += abs(error) <= NEAR
        times = [expected["value"], expected["lower"], expected["upper"]]
        print(f"{curve.name:20} {before * 1e3:8.1f}ms {truth * 1e3:7.1f}ms  " +
              " ".join(f"{value * 1e3:7.1f}ms" for value in times) +
              f"  {error:+7.1%}  {'yes' if within else 'no'}")
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--keep", metavar="DIR", help="where run files stay (default: nowhere)")
    parser.add_argument("--evaluate", metavar="DIR", help="predict what is there; measure nothing")
    parser.add_argument("--curves", help="names between commas (default: all)")
    parser.add_argument("--max-time", default="1.2s", help="of each point")
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.program)
    names = arguments.curves.split(",") if arguments.curves else None
    curves = [curve for curve in truth_curves.CURVES if names is None or curve.name in names]
    if names is not None and len(curves) != len(names):
        parser.error(f"--curves: there are {', '.join(c.name for c in truth_curves.CURVES)}")
    if not arguments.evaluate:
        cluster.enter()
    with tempfile.TemporaryDirectory(prefix="isoscale-truth-") as temporary:
        folder = os.path.abspath(arguments.evaluate or arguments.keep or temporary)
        os.makedirs(folder, exist_ok=True)
        if not arguments.evaluate:
            measure_all(program, curves, folder, arguments.max_time)
        count, within, near = evaluate(program, curves, folder)
    print(f"\n{count} curves; within the 90% interval {within} ({within / max(count, 1):.0%}, goal "
          f"80%); within {NEAR:.0%} of the middle {near} ({near / max(count, 1):.0%}, goal 80%)")


if __name__ == "__main__":
    main()
