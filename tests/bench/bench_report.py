# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""How long reports of a big run, and an index of many runs, take, and in how much memory.

Usage: bench_report.py ISOSCALE MAKE_RUNS DIRECTORY [COUNT [ROUNDS]]

Makes, where they are missing, big.h5 (4,096 ranks) and COUNT (1,000) runs of the quick suite in
DIRECTORY, which takes minutes and some gigabytes (a file system in memory saves most of the time).
Prints the medians of ROUNDS (5) of wall and CPU seconds, and the largest memory. The first round
only warms the cache.
"""
import os
import statistics
import subprocess
import sys
import time


def measure(command, rounds):
    walls, cpus, memories = [], [], []
    for number in range(rounds + 1):
        began = time.monotonic()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"{' '.join(command[:4])} ... ended with {child.returncode}")
        if number > 0:
            walls.append(time.monotonic() - began)
            cpus.append(usage.ru_utime + usage.ru_stime)
            memories.append(usage.ru_maxrss / 1024)
    return statistics.median(walls), statistics.median(cpus), max(memories)


def main(arguments):
    isoscale, make_runs, directory = arguments[:3]
    count = int(arguments[3]) if len(arguments) > 3 else 1000
    rounds = int(arguments[4]) if len(arguments) > 4 else 5
    big = os.path.join(directory, "big.h5")
    many = os.path.join(directory, "many")
    os.makedirs(many, exist_ok=True)
    if not os.path.exists(big):
        subprocess.run([make_runs, "big", big], check=True)
    if len(os.listdir(many)) < count:
        subprocess.run([make_runs, "many", many, str(count)], check=True)
    files = [os.path.join(many, name) for name in sorted(os.listdir(many))[:count]]
    for name, goal, command in (
            ("big run, summary", "1 s, 1024 MiB", ["report", big]),
            ("big run, text", "3 s, 1024 MiB", ["report", big, "--detail"]),
            ("big run, JSON", "3 s, 1024 MiB", ["report", big, "--format", "json"]),
            (f"index of {len(files)}, text", "3 s for 1,000", ["report", "--index", *files]),
            (f"index of {len(files)}, JSON", "3 s for 1,000",
             ["report", "--index", *files, "--format", "json"])):
        wall, cpu, memory = measure([isoscale, *command], rounds)
        print(f"{name:22} {wall:7.2f} s  {cpu:7.2f} s of CPU  {memory:6.0f} MiB   goal {goal}")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(sys.argv[1:])
