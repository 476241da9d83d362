#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Fits numbers of sheets and software profiles to published rows, each source left out in turn.

Usage: fit_published.py [--quick] ISOSCALE

Each fitted number has a value from elsewhere, which it keeps where no row of the other sources can
tell. A fit takes the values that make the mean of |log(predicted / measured)| least, one number
after the other. Prints for each source the errors and the coverage of its own rows with numbers
fitted to all other sources, and the relative standard deviation that an interval would need to hold
nine tenths of them; then the values fitted to all. This takes 13 minutes on two cores; --quick,
which fits to fewer rows on coarser grids, about half of that.
"""
import argparse
import math
import pathlib
import random
import re
import sys
import tempfile

import bench_published as bench

ANALYSIS = pathlib.Path(__file__).resolve().parents[2] / "analysis"
RATE = r'(types = \["{}".*?\nreached = )[0-9.]+'
KERNEL = r'(kernel = "flash-2"\nforward = )[0-9.]+([^\n]*\nbackward = )[0-9.]+'
# Name, file, pattern, replacement of a value, value from elsewhere, values that are tried.
NUMBERS = [
    ("GEMM bf16", "systems/h100-ndr", RATE.format("bf16"), r"\g<1>{:.3f}", 0.80, (0.5, 0.8)),
    ("GEMM fp8", "systems/h100-ndr", RATE.format("fp8"), r"\g<1>{:.3f}", 0.71, (0.4, 0.71)),
    ("flash-2", "systems/h100-ndr", KERNEL, (1, 0.82), 0.35, (0.12, 0.4)),
    ("GEMM bf16", "systems/a100-hdr", RATE.format("bf16"), r"\g<1>{:.3f}", 0.82, (0.6, 0.87)),
    ("flash-2", "systems/a100-hdr", KERNEL, (1, 0.82), 0.60, (0.25, 0.7)),
    ("norms", "software/fsdp-eager", r"(\nnorm(?:_gradient)? = )[0-9.]+", r"\g<1>{:.2f}", 2.0,
     (1, 8)),
    ("host", "software/fsdp-eager", r"(\nop = )[0-9.]+", r"\g<1>{:.1f}", 20.0, (5, 150)),
    ("host", "software/megatron-deepspeed", r"(\nop = )[0-9.]+", r"\g<1>{:.1f}", 20.0, (5, 150)),
    ("loss", "software/megatron-deepspeed", r"(\nlogit_bytes = )[0-9.]+", r"\g<1>{:.0f}", 52.0,
     (20, 200)),
]


def uses(row, file):
    name = file.split("/")[1]
    return name in (bench.SHEETS[row["gpu"]], bench.software_of(row))


def tells(i, row):
    """True if the row depends on the number."""
    name, file = NUMBERS[i][0], NUMBERS[i][1]
    if name == "flash-2":
        return bench.software_of(row) == "fsdp-eager"
    if name == "GEMM fp8":
        return row["precision"] == "fp8"
    return name != "GEMM bf16" or row["precision"] != "fp8"


def key_of(row, values):
    """The row and the values of the files that it is predicted with."""
    return tuple(row.values()), *(value for number, value in zip(NUMBERS, values)
                                  if uses(row, number[1]))


class Fit:
    known = {}  # predictions, by key_of()

    def __init__(self, program, rows):
        self.program, self.rows = program, rows
        self.values = [number[4] for number in NUMBERS]

    def predicted(self, rows):
        keys = [key_of(row, self.values) for row in rows]
        new = [row for key, row in zip(keys, rows) if key not in self.known]
        for row, found in zip(new, self.trainings(new)):
            self.known[key_of(row, self.values)] = found
        return [self.known[key] for key in keys]

    def trainings(self, rows):
        with tempfile.TemporaryDirectory() as folder:
            texts = {}
            for (_, file, pattern, replacement, *_), value in zip(NUMBERS, self.values):
                text = texts.get(file) or (ANALYSIS / f"{file}.toml").read_text(encoding="utf-8")
                if isinstance(replacement, tuple):
                    forward, backward = (value * factor for factor in replacement)
                    replaced = rf"\g<1>{forward:.3f}\g<2>{backward:.3f}"
                else:
                    replaced = replacement.format(value)
                text, count = re.subn(pattern, replaced, text, flags=re.DOTALL)
                assert count > 0, (file, pattern)
                texts[file] = text
            files = {}
            for file, text in texts.items():
                path = pathlib.Path(folder) / f"{file.split('/')[1]}.toml"
                path.write_text(text, encoding="utf-8")
                files[path.stem] = str(path)
            return bench.trainings(self.program, rows, files)

    def error(self, rows):
        logs = [abs(math.log(found["time"]["value"] / found["measured"]))
                for found in self.predicted(rows) if found["time"]]
        return sum(logs) / max(1, len(logs))

    def run(self, rounds, steps):
        for _ in range(rounds):
            for i, (_, file, _, _, _, (least, most)) in enumerate(NUMBERS):
                rows = [row for row in self.rows if uses(row, file)]
                if not any(tells(i, row) for row in rows):
                    continue
                for _ in range(2):  # a coarse grid, then a fine one about its best
                    tried = [least * (most / least) ** (k / (steps - 1)) for k in range(steps)]
                    errors = []
                    for value in tried:
                        self.values[i] = value
                        errors.append(self.error(rows))
                    best = errors.index(min(errors))
                    self.values[i] = tried[best]
                    least, most = tried[max(best - 1, 0)], tried[min(best + 1, steps - 1)]
        return self


def needed_spread(found):
    """The relative standard deviation whose 90% interval would hold nine tenths of the rows."""
    logs = sorted(abs(math.log(row["time"]["value"] / row["measured"]))
                  for row in found if row["time"])
    return logs[math.ceil(0.9 * len(logs)) - 1] / 1.645


def sample(rows, most, seed=1):
    return rows if len(rows) <= most else random.Random(seed).sample(rows, most)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("program")
    given = parser.parse_args()
    effort = {"rounds": 1, "steps": 4} if given.quick else {"rounds": 2, "steps": 5}
    few, many = (10, 16) if given.quick else (24, 48)  # rows of a source
    sources = {}
    for row in bench.published_rows():
        sources.setdefault(f"{row['source'].split(':')[0]} {row['gpu']}", []).append(row)
    for source, rows in sources.items():
        others = [row for other, of_other in sources.items() if other != source
                  for row in sample(of_other, few)]
        fit = Fit(given.program, others).run(**effort)
        found = fit.predicted(rows)
        print(f"{source:48} {bench.summary(found)}, would need a spread of "
              f"{needed_spread(found):.0%}", flush=True)
    fit = Fit(given.program, [row for rows in sources.values() for row in sample(rows, many)])
    fit.run(**effort)
    for (name, file, *_), value in zip(NUMBERS, fit.values):
        print(f"{file}: {name} {value:.3g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
