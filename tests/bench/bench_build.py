#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Seconds that the commands of a build took, by component, out of ninja's log.

Usage: bench_build.py [BUILD] [--target TARGET] [--slowest N]

Ninja logs when each command began and ended, not its CPU time. With no more commands at a time than
there are idle cores, as by demo.sh on a quiet machine, that is the CPU time of a compiler nearly to
the letter; on a busy machine it is more. The last run of each command counts, which was long ago for
what has not changed since; what ccache had ready shows as nothing.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys


def seconds_of_outputs(log):
    """{output: (command's hash, begin, end)} in seconds, by the last line of each output."""
    lines = log.read_text(encoding="utf-8").splitlines()
    if not lines or not lines[0].startswith("# ninja log v"):
        sys.exit(f"{log} is not a log of ninja")
    last = {}
    for line in lines[1:]:
        begin, end, _, output, command = line.split("\t")
        last[output] = (command, int(begin) / 1000, int(end) / 1000)
    return last


def component_of(output):
    """The folder of CMake's target that an object file is of; what else there is by its kind."""
    target = re.match(r"(.*/)?CMakeFiles/([^/]+)\.dir/.*\.o$", output)
    if target:
        folder = target[1] or ""
        return "tests" if folder.startswith("tests/") else target[2].removeprefix("isoscale_")
    return "linking and the rest"


def outputs_of(build, target):
    """The outputs that `target` is made of; None for all that was ever built."""
    if target is None:
        return None
    commands = subprocess.run(["ninja", "-C", build, "-t", "commands", target], text=True,
                              capture_output=True, check=True).stdout
    return {match[1] for match in re.finditer(r" -o (\S+)", commands)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build", type=pathlib.Path)
    parser.add_argument("--target", help="only what this target is made of, such as isoscale")
    parser.add_argument("--slowest", type=int, default=10, help="commands to name (default 10)")
    given = parser.parse_args()
    wanted = outputs_of(given.build, given.target)
    took, components, counts = {}, collections.Counter(), collections.Counter()
    seen = set()
    for output, (command, begin, end) in seconds_of_outputs(given.build / ".ninja_log").items():
        if wanted is not None and output not in wanted or (command, begin, end) in seen:
            continue
        seen.add((command, begin, end))  # a command with several outputs is one
        took[output] = end - begin
        components[component_of(output)] += end - begin
        counts[component_of(output)] += 1
    print(f"{sum(components.values()):8.1f} s  {sum(counts.values()):4d} commands in all")
    for name, seconds in components.most_common():
        print(f"{seconds:8.1f} s  {counts[name]:4d} {name}")
    print("\nThe slowest:")
    for output, seconds in sorted(took.items(), key=lambda one: -one[1])[:given.slowest]:
        print(f"{seconds:8.1f} s  {output}")


if __name__ == "__main__":
    main()
