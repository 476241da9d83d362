# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Runs the blocks of docs/reading-results.md on a made run, and loads what report prints.

Usage: reading_test.py ISOSCALE MAKE_SAMPLE_RUN DOCUMENT; exit 77 where h5py or pandas is missing.
"""
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import h5py  # noqa: F401
    import pandas
except ImportError as missing:
    print(f"skipped: {missing} (python3-h5py, python3-pandas)")
    sys.exit(77)

PROGRAM, SAMPLE, DOCUMENT = sys.argv[1:4]


class Reading(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="isoscale-reading-")
        cls.addClassCleanup(cls.scratch.cleanup)
        os.chdir(cls.scratch.name)
        cls.addClassCleanup(os.chdir, "/")
        subprocess.run([SAMPLE, "run.h5"], check=True)
        for name, arguments in (("report.csv", ["--format", "csv"]),
                                ("report.json", ["--format", "json"]),
                                ("index.csv", ["--index", "--format", "csv"])):
            with open(name, "wb") as file:
                subprocess.run([PROGRAM, "report", "run.h5", *arguments], stdout=file, check=True)

    def test_every_block_of_the_page_runs_and_prints(self):
        with open(DOCUMENT, encoding="utf-8") as file:
            blocks = re.findall(r"^```python\n(.*?)^```$", file.read(), re.M | re.S)
        self.assertGreaterEqual(len(blocks), 6)
        for number, block in enumerate(blocks):
            with self.subTest(block=number):
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile(block, f"block {number}", "exec"), {})  # noqa: S102
                self.assertTrue(printed.getvalue().strip(), block)

    def test_the_report_is_one_rectangle_with_numbers_where_numbers_are(self):
        frame = pandas.read_csv("report.csv")
        self.assertFalse(any(name.startswith("Unnamed") for name in frame.columns))
        self.assertEqual(len(set(frame.columns)), len(frame.columns))
        for column in ("run_ranks", "index", "ranks", "nodes", "dp", "tp", "pp"):
            self.assertEqual(frame[column].dtype.kind, "i", column)
        for column in ("step_time_median", "throughput", "efficiency", "time_median", "busbw",
                       "bytes", "m", "flops", "bandwidth", "calls", "wrong"):
            self.assertEqual(frame[column].dtype.kind, "f", column)
        self.assertTrue((frame["row_status"] == "ok").any())
        self.assertTrue(frame["row_status"].isna().any())
        self.assertEqual(set(frame["status"]), {"ok", "skipped"})

    def test_the_index_is_one_rectangle(self):
        frame = pandas.read_csv("index.csv")
        self.assertEqual(frame["run"].nunique(), 1)
        self.assertEqual(set(frame["kind"]), {"curve", "micro-benchmark"})
        for column in ("run_ranks", "run_nodes", "points_ok", "points_failed", "points_skipped"):
            self.assertEqual(frame[column].dtype.kind, "i", column)
        with h5py.File("run.h5") as run:
            self.assertEqual(frame[["points_ok", "points_failed", "points_skipped"]].sum().sum(),
                             len(run["points"]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
