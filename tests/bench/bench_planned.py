# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Planned against measured times of the points of a run, by default of the quick suite.

Usage: bench_planned.py ISOSCALE RANKS [OPTION...]

Prints of each point what --dry-run plans, how long it took by its lines of progress (whole seconds),
and of both the sums. On a machine that others load, steps scatter by more than the plan assumes.
"""
import os
import re
import subprocess
import sys
import tempfile

UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}
POINT = re.compile(r"^ +(\d+)  (\S+) +\S+ +(\d+) +\S+ \S+ +[\d.]+ \w+ +([\d.]+) (\w+) ")
ENDED = re.compile(r"^point (\d+) of .*(?:stopped by|rows).*\[(\d+):(\d+) elapsed")


def isoscale(program, ranks, *options):
    command = ["mpirun", "-np", ranks, program, "run", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed: {done.stderr}")
    return done


def main(program, ranks, *options):
    with tempfile.TemporaryDirectory() as folder:
        plan = isoscale(program, ranks, "--dry-run", *options).stdout
        run = isoscale(program, ranks, "--output", os.path.join(folder, "run.h5"), *options).stderr
    ends = {int(at.group(1)): 60 * int(at.group(2)) + int(at.group(3))
            for at in map(ENDED.match, run.splitlines()) if at}
    planned_all, before = 0, 0
    for at in filter(None, map(POINT.match, plan.splitlines())):
        number, planned = int(at.group(1)), float(at.group(4)) * UNITS[at.group(5)]
        if number not in ends:
            continue
        planned_all += planned
        print(f"{number:>3} {at.group(2):<12} {at.group(3):>4} ranks: planned {planned:8.2f} s, "
              f"measured {ends[number] - before:5d} s")
        before = ends[number]
    if before == 0:
        sys.exit("no point of the plan was measured for as long as a second")
    print(f"all: planned {planned_all:.1f} s, measured {before} s, "
          f"{100 * (planned_all / before - 1):+.0f}%")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
