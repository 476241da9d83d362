#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Run files that earlier versions wrote are read as they were when they were stored.

Usage: stored_test.py ISOSCALE. Beside this file stand run files (NAME.h5.xz) and what `isoscale report`
said of them: NAME.json and NAME.csv, or NAME,NAME.json where several files are reported together.
Nothing writes them again: see README.md.
"""
import csv
import json
import lzma
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
ROUNDING = 1e-12  # of sums that are added up in another order than when they were stored
# Each version derives fingerprints anew; tests/unit/join_and_index_test.cpp says which are equal.
FINGERPRINT = re.compile(r".*/(?:fingerprint|curve) [0-9a-f]{16}")
ISOSCALE = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None


def differences(stored, now, path=""):
    """Where `now` lacks what was stored or says something else; what it says beside that is new."""
    if isinstance(stored, dict) and isinstance(now, dict):
        for key, value in stored.items():
            if key == "schema_version" and key in now:  # a new minor only adds keys
                yield from differences(value.split(".")[0], now[key].split(".")[0], f"{path}/{key}")
            elif key not in now:
                yield f"{path}/{key} is missing"
            else:
                yield from differences(value, now[key], f"{path}/{key}")
    elif isinstance(stored, list) and isinstance(now, list) and len(stored) == len(now):
        for index, pair in enumerate(zip(stored, now)):
            yield from differences(*pair, f"{path}/{index}")
    elif isinstance(stored, float) and isinstance(now, float):
        if not math.isclose(stored, now, rel_tol=ROUNDING):
            yield f"{path}: {stored} became {now}"
    elif stored != now and not all(FINGERPRINT.fullmatch(f"{path} {value}")
                                   for value in (stored, now)):
        yield f"{path}: {json.dumps(stored)[:80]} became {json.dumps(now)[:80]}"


class Stored(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="isoscale-stored-")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        for packed in HERE.glob("*.h5.xz"):
            (cls.folder / packed.stem).write_bytes(lzma.decompress(packed.read_bytes()))

    def report(self, names, form):
        files = [f"{name}.h5" for name in names.split(",")]
        done = subprocess.run([ISOSCALE, "report", *files, "--format", form], cwd=self.folder,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_json_says_what_it_said(self):
        stored = sorted(HERE.glob("*.json"))
        self.assertGreater(len(stored), 15)
        for path in stored:
            with self.subTest(path.stem):
                now = json.loads(self.report(path.stem, "json"))
                found = list(differences(json.loads(path.read_text(encoding="utf-8")), now))
                self.assertEqual(found[:10], [])

    def test_csv_has_the_columns_and_values_that_it_had(self):
        for path in sorted(HERE.glob("*.csv")):
            with self.subTest(path.stem):
                now = list(csv.DictReader(self.report(path.stem, "csv").splitlines()))
                with open(path, encoding="utf-8", newline="") as text:
                    found = list(differences(list(csv.DictReader(text)), now))
                self.assertEqual(found[:10], [])


if __name__ == "__main__":
    unittest.main()
