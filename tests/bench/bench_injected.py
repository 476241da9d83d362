#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""How often a report names a rank that was slowed on purpose, and how often one that was not.

Usage: bench_injected.py ISOSCALE [RUNS] [RANKS] [FACTOR] [-- OPTION...]

Runs RUNS (10) launches of RANKS (2) ranks whose last rank's GEMMs take FACTOR (1.3) times as long,
and as many clean ones in turn, and prints what each report finds. OPTIONs go to `isoscale run`.
"""
import json
import os
import subprocess
import sys
import tempfile


def findings(isoscale, ranks, options):
    """The findings of one launch's point."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "run.h5")
        launch = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), isoscale,
                  "run", "--workload", "dp", "--ranks", str(ranks), "--max-time", "10s", "--quiet",
                  "--output", file, *options]
        subprocess.run(launch, check=True, stdout=subprocess.DEVNULL)
        report = subprocess.run([isoscale, "report", file, "--format", "json"], check=True,
                                capture_output=True, text=True)
    return json.loads(report.stdout)["runs"][0]["points"][0]["findings"]


def main(arguments):
    options = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, options = arguments[:at], arguments[at + 1:]
    isoscale = arguments[0]
    runs = int(arguments[1]) if len(arguments) > 1 else 10
    ranks = int(arguments[2]) if len(arguments) > 2 else 2
    factor = arguments[3] if len(arguments) > 3 else "1.3"
    named = alarms = 0
    for run in range(runs):
        injected = findings(isoscale, ranks,
                            ["--inject", f"slow-rank={ranks - 1}:{factor}", *options])
        clean = findings(isoscale, ranks, options)
        slow = [at for at in injected if at["kind"] == "slow rank"]
        false = [at for at in clean if at["kind"] == "slow rank"]
        named += [at["ranks"] for at in slow] == [[ranks - 1]]
        alarms += bool(false)
        for label, found in (("injected", injected), ("clean", clean)):
            for at in found or [{"text": "nothing found"}]:
                print(f"run {run:2}  {label:8}  {at['text']}")
    print(f"{named} of {runs} named, alone; {alarms} of {runs} clean runs with a false alarm")


if __name__ == "__main__":
    main(sys.argv[1:])
