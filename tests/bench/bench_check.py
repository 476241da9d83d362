# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""What preflight costs: CPU seconds of `isoscale check` against those of MPI_Init and MPI_Finalize.

Usage: bench_check.py ISOSCALE BARE_INIT [RANKS [RUNS]]

Starts each of the two RUNS (5) times in turn, on RANKS (64) ranks that share this machine's cores,
and prints the medians of user and system seconds of everything that mpirun starts.
"""
import os
import resource
import statistics
import subprocess
import sys
import time


def cost(ranks, *program):
    """CPU seconds and wall seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks),
                           *program], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"{program[0]} failed: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            time.monotonic() - began)


def main(arguments):
    isoscale, bare = arguments[:2]
    ranks = arguments[2] if len(arguments) > 2 else "64"
    runs = int(arguments[3]) if len(arguments) > 3 else 5
    if os.geteuid() == 0:
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    checks, bares = [], []
    for _ in range(runs):
        checks.append(cost(ranks, isoscale, "check", "--device", "host"))
        bares.append(cost(ranks, bare))
    for name, costs in (("isoscale check", checks), ("MPI_Init", bares)):
        cpu, wall = (statistics.median(one[i] for one in costs) for i in (0, 1))
        print(f"{name:15} {cpu:7.2f} s of CPU  {wall:7.2f} s of time, median of {runs}")
    ratio = statistics.median(one[0] for one in checks) / statistics.median(one[0] for one in bares)
    print(f"ratio of CPU    {ratio:7.2f}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1:])
