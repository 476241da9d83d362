#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""How well `isoscale predict` foresees the largest point of a curve from the smaller ones.

    tests/bench/bench_truth.py build/isoscale [--keep DIR] [--curves A,B] [--max-time 2s]
    tests/bench/bench_truth.py build/isoscale --evaluate DIR

Measures the curves below on eight ranks, each in a network namespace of its own or two
in one, joined by a switch whose ports are shaped. GEMMs are delays (--inject delay=...): ranks
sleep where they would multiply, so that they do not take each other's cores, and share those that
communication needs equally. Of each curve one launch measures the calibration and the points on up
to 4 ranks, which is all that a prediction is given; another launch the point on 8.

Prints for each curve the prediction, its 90% interval and what was measured; then how many are
within the interval and how many within 10% of its middle, and under which load all this was
measured: the load average of one minute before and after each curve, and the cores. The ranks of the
curve before are still part of this average; only that before the first curve is of other programs
alone. With --keep the run files stay in DIR:
--evaluate predicts them again without measuring, and without root.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))
import cluster  # noqa: E402

NEAR = 0.10
# The calibration has groups of up to 4 ranks. It measures as `calibrate` does, but only the
# collectives that the curve communicates with.
CALIBRATION = ("sizes=4KiB..256KiB*8", "rotate=1MiB")
SMALL, LARGE = (1, 2, 4), 8  # ranks that a prediction sees, and those that it is about


@dataclasses.dataclass(frozen=True)
class Curve:
    name: str
    workload: str
    scaling: str
    port: str  # rate of each host's port of the switch
    settings: tuple  # KEY=VALUE of the workload
    model: str = "flat"
    mesh: str = ""
    small: tuple = SMALL
    ranks_per_host: int = 1
    delay: str = "1.5GFLOP/s"

    @property
    def operations(self):
        """Returns the work of all its ranks together."""
        names = {"all_reduce"}
        if self.workload == "pp":
            names = {"sendrecv"}
        elif self.workload == "cp":
            names.add("sendrecv")
        elif "pp" in self.mesh or self.name == "balanced":
            names.add("sendrecv")
        if any(text in setting for setting in self.settings
               for text in ("zero=", "sequence_parallel")):
            names = {"reduce_scatter", "all_gather"}
        return ",".join(sorted(names))


# The models have 0.2 to 0.4 million parameters each, on ports so slow that they take the time, and
# not the cores that eight ranks share: steps take a fraction of a second.
MODELS = {
    "flat": {"hidden": 64, "ffn": 256, "heads": 8, "kv_heads": 8, "head_size": 8, "layers": 4},
    "deep": {"hidden": 64, "ffn": 192, "heads": 8, "kv_heads": 8, "head_size": 8, "layers": 8},
    "wide": {"hidden": 128, "ffn": 384, "heads": 8, "kv_heads": 8, "head_size": 16, "layers": 2},
}


def model_text(name):
    lines = {**MODELS[name], "gated_mlp": "false", "sequence": 64, "vocabulary": 256,
             "tied_embedding": "true", "learned_positions": "true", "published_parameters": 0}
    return (f'name = "{name}"\nsource = "bench_truth.py"\n' +
            "".join(f"{key} = {value}\n" for key, value in lines.items()))


DATA = ("microbatch=1", "microbatches=2")  # of one replica
DEALT = ("microbatch=1", "microbatches=16")  # under strong scaling: over all replicas
PIPED = ("microbatch=1", "microbatches=8")
FEW = ("microbatch=1", "microbatches=2")
PAIRS = (2, 4)  # what a mesh of two ranks in some axis can be played on

CURVES = (
    Curve("dp-weak", "dp", "weak", "100mbit", (*DATA, "bucket=256KiB")),
    Curve("dp-weak-slow", "dp", "weak", "50mbit", (*DATA, "bucket=128KiB")),
    Curve("dp-weak-one-bucket", "dp", "weak", "100mbit", (*DATA, "bucket=64MiB")),
    Curve("dp-weak-apart", "dp", "weak", "100mbit", (*DATA, "bucket=256KiB", "overlap=off")),
    Curve("dp-weak-adam-wide", "dp", "weak", "100mbit", (*DATA, "bucket=256KiB", "optimizer=adam"),
          model="wide"),
    Curve("dp-strong", "dp", "strong", "100mbit", (*DEALT, "bucket=256KiB")),
    Curve("dp-strong-apart", "dp", "strong", "100mbit", (*DEALT, "bucket=512KiB", "overlap=off"),
          model="deep"),
    Curve("dp-strong-slow", "dp", "strong", "50mbit", (*DEALT, "bucket=256KiB"),
          delay="3GFLOP/s"),
    Curve("dp-weak-pairs", "dp", "weak", "100mbit", (*DATA, "bucket=256KiB"), ranks_per_host=2),
    Curve("dp-strong-pairs", "dp", "strong", "100mbit", (*DEALT, "bucket=256KiB"),
          ranks_per_host=2),
    Curve("zero-1", "dp", "weak", "100mbit", (*DATA, "bucket=256KiB", "zero=1")),
    Curve("zero-2", "dp", "weak", "100mbit", (*DATA, "bucket=256KiB", "zero=2")),
    Curve("zero-3", "dp", "weak", "100mbit", (*DATA, "gather_bucket=128KiB", "zero=3")),
    Curve("tp-strong", "tp", "strong", "50mbit", FEW),
    Curve("tp-strong-wide", "tp", "strong", "50mbit", FEW, model="wide"),
    Curve("tp-weak", "tp", "weak", "50mbit", DATA),
    Curve("tp-sequence", "tp", "strong", "50mbit", (*FEW, "sequence_parallel=on")),
    Curve("tp-pairs", "tp", "strong", "50mbit", FEW, ranks_per_host=2),
    Curve("pp-gpipe", "pp", "strong", "100mbit", (*PIPED, "schedule=gpipe"), model="deep"),
    Curve("pp-1f1b", "pp", "strong", "50mbit", (*PIPED, "schedule=1f1b"), model="deep"),
    Curve("pp-weak", "pp", "weak", "50mbit", (*PIPED, "schedule=1f1b")),
    Curve("tp2-dp-weak", "hybrid", "weak", "50mbit", (*DATA, "bucket=256KiB"), mesh="tp=2",
          small=PAIRS),
    Curve("tp2-dp-strong", "hybrid", "strong", "50mbit", (*DEALT, "bucket=256KiB"), mesh="tp=2",
          small=PAIRS, ranks_per_host=2),
    Curve("pp2-dp-weak", "hybrid", "weak", "100mbit", (*PIPED, "bucket=256KiB"), mesh="pp=2",
          small=PAIRS),
    Curve("balanced", "hybrid", "strong", "100mbit", (*PIPED, "bucket=256KiB"), model="deep"),
    Curve("cp-strong", "cp", "strong", "50mbit", FEW),
)


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
    def table(settings, **values):
        values |= {f"set.{name}": text for name, text in (one.split("=", 1) for one in settings)}
        return "[[experiment]]\n" + "".join(
            f"{key} = {json.dumps(value)}\n" for key, value in values.items() if value)

    of_curve = table(curve.settings, workload=curve.workload, model=model, scaling=curve.scaling,
                     mesh=curve.mesh)
    if not is_small:
        return of_curve
    # Steps reduce in this way; Open MPI 4.1 reduces by another algorithm in place.
    in_place = {"all_reduce": "yes"}.get(
        curve.operations, "both" if "all_reduce" in curve.operations else "no")
    return table((*CALIBRATION, f"op={curve.operations}", f"in_place={in_place}"),
                 workload="collectives") + of_curve


def measure(hosts, program, curve, path, ranks, max_time):
    """Runs the curve on these rank counts; with calibration unless it is the largest."""
    made = hosts.of(LARGE // curve.ranks_per_host, curve.port)
    model = made.path(f"{curve.model}.toml")
    with open(model, "w", encoding="utf-8") as file:
        file.write(model_text(curve.model))
    wanted = made.path("experiment.toml")
    with open(wanted, "w", encoding="utf-8") as file:
        file.write(experiments(curve, model, max(ranks) < LARGE))
    used = max(ranks) // curve.ranks_per_host
    command = [program, "run", wanted, "--force", "--output", path, "--device", "host",
               "--ranks", ",".join(map(str, ranks)), "--max-time", max_time, "--precision", "2%",
               "--trace-steps", "2", "--inject", f"delay={curve.delay}"]
    ranks_of = {host: curve.ranks_per_host for host in made.hosts[:max(used, 1)]}
    done = made.mpirun(ranks_of, *command)
    with open(path + ".log", "w", encoding="utf-8") as file:
        file.write(done.stdout + done.stderr)
    return done.returncode, done.stdout + done.stderr


def load():
    """Returns the load average of one minute and the cores that this program may use."""
    return {"load": os.getloadavg()[0], "cores": len(os.sched_getaffinity(0))}


def loads_in(folder):
    """{curve: [load before, load after its measurement]}; empty for folders without them."""
    path = os.path.join(folder, "loads.json")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def loads_text(loads):
    """Returns "0.4 > 7.9 on 2 cores", the load before and after a measurement."""
    if loads is None:
        return "not recorded"
    before, after = loads
    return f"{before['load']:.1f} > {after['load']:.1f} on {after['cores']} cores"


def files_of(folder, curve):
    return (os.path.join(folder, f"{curve.name}-small.h5"),
            os.path.join(folder, f"{curve.name}-large.h5"))


def measure_all(program, curves, folder, max_time):
    with tempfile.TemporaryDirectory(prefix="isoscale-truth-") as scratch:
        hosts = Hosts(scratch)
        try:
            for curve in curves:
                begin, before = time.monotonic(), load()
                small, large = files_of(folder, curve)
                for path, ranks in ((small, curve.small), (large, (LARGE,))):
                    code, said = measure(hosts, program, curve, path, ranks, max_time)
                    if code != 0:
                        print(f"{curve.name}: run ended with {code}: {said[-600:]}",
                              file=sys.stderr)
                        break
                loads = {**loads_in(folder), curve.name: [before, load()]}
                with open(os.path.join(folder, "loads.json"), "w", encoding="utf-8") as file:
                    json.dump(loads, file)
                print(f"{curve.name}: measured in {time.monotonic() - begin:.0f} s; load "
                      f"{loads_text(loads[curve.name])}", file=sys.stderr, flush=True)
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
    counts, loads = [0, 0, 0], loads_in(folder)
    print(f"{'curve':20} {'measured 4':>10} {'8':>9}  {'predicted':>9} {'from':>9} {'to':>9}  "
          f"{'error':>7}  within  load before > after")
    for curve in curves:
        small, large = files_of(folder, curve)
        if not (os.path.exists(small) and os.path.exists(large)):
            print(f"{curve.name:20} not measured")
            continue
        counts[0] += 1
        measured = point_of(program, large, curve.workload, LARGE)
        truth = measured["step_time"]["median"]
        before = point_of(program, small, curve.workload, max(curve.small))["step_time"]["median"]
        # A launch on 8 ranks alone may choose another mesh than one on 1, 2 and 4.
        mesh = ",".join(f"{axis}={extent}" for axis, extent in measured["mesh"].items())
        said, why = json_of(program, "predict", small, "--workload", curve.workload, "--ranks",
                            str(LARGE), "--mesh", mesh, "--format", "json")
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
              f"  {error:+7.1%}  {'yes' if within else 'no':6}  "
              f"{loads_text(loads.get(curve.name))}")
    return counts


def summary_of_loads(folder, curves):
    every_curve = loads_in(folder)
    known = [every_curve[curve.name] for curve in curves if curve.name in every_curve]
    if not known:
        return "The load of the machine was not recorded."
    every = [at["load"] for loads in known for at in loads]
    cores = sorted({at["cores"] for loads in known for at in loads})
    return (f"Load average of one minute around {len(known)} curves: {min(every):.1f} to "
            f"{max(every):.1f}, {known[0][0]['load']:.1f} before the first, on "
            f"{' or '.join(map(str, cores))} cores.")


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
    curves = [curve for curve in CURVES if names is None or curve.name in names]
    if names is not None and len(curves) != len(names):
        parser.error(f"--curves: there are {', '.join(c.name for c in CURVES)}")
    if not arguments.evaluate:
        cluster.enter()
    with tempfile.TemporaryDirectory(prefix="isoscale-truth-") as temporary:
        folder = os.path.abspath(arguments.evaluate or arguments.keep or temporary)
        os.makedirs(folder, exist_ok=True)
        if not arguments.evaluate:
            measure_all(program, curves, folder, arguments.max_time)
        count, within, near = evaluate(program, curves, folder)
        under = summary_of_loads(folder, curves)
    print(f"\n{count} curves; within the 90% interval {within} ({within / max(count, 1):.0%}, goal "
          f"80%); within {NEAR:.0%} of the middle {near} ({near / max(count, 1):.0%}, goal 80%)")
    print(under)


if __name__ == "__main__":
    main()
