#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Reads a run file with h5py and compares it with results/SCHEMA.md.

Usage: results_h5py_test.py MAKE_SAMPLE_RUN SCHEMA.md

Every dataset and attribute in the file must be in the page with its type, number of dimensions and
unit, and every one in the page must be in the file; the page's example must run. Exit 77 without
h5py, which ctest shows as skipped.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import h5py
    import numpy as np
except ImportError as error:
    print(f"skipped: {error} (Debian: apt-get install python3-h5py)")
    sys.exit(77)

MAKE_SAMPLE_RUN, SCHEMA = sys.argv[1:3]
TABLES = ("ops", "traces", "gemm_choices", "communicators", "rows", "op_sums", "solo_times",
          "device_series")
PARTS = ("curves", "growth", "gemms", "ceilings")
ATTRIBUTES = {"text": str, "bool": np.bool_, "f64": np.float64, "i64": np.int64, "u64": np.uint64}
TYPES = {"f64": "<f8", "i64": "<i8", "i32": "<i4", "u64": "<u8", "u32": "<u4", "u8": "|u1"}


def read_schema(text):
    """Sections of the page: heading -> (attributes {name: type}, datasets {name: (type, dims, unit)})."""
    sections, attributes, datasets = {}, {}, {}
    for line in text.splitlines():
        if line.startswith("#"):
            attributes, datasets = {}, {}
            sections[line.lstrip("# ").split(":")[0]] = (attributes, datasets)
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("| `"):
            continue
        name = cells[0].strip("`")
        if len(cells) == 3:
            attributes[name] = cells[1]
        else:
            dims = 0 if cells[2] == "scalar" else cells[2].count(",") + 1
            datasets[name] = (cells[1].split(",")[0], dims, cells[3])
    return sections


class RunFile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="isoscale-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.path = os.path.join(cls.folder, "run.h5")
        subprocess.run([MAKE_SAMPLE_RUN, cls.path], check=True)
        cls.file = h5py.File(cls.path, "r")
        cls.addClassCleanup(cls.file.close)
        with open(SCHEMA, encoding="utf-8") as page:
            cls.page = page.read()
        cls.sections = read_schema(cls.page)
        cls.fact_units = dict(re.findall(r"^\| ((?:rows/)?(?:text|number)/\w+) \| (\w+) \|", cls.page, re.M))

    def check_group(self, group, section, inner=()):
        """The group's attributes and datasets are those of the section, `inner` groups apart."""
        attributes, datasets = self.sections[section]
        absent = {"measured_seconds", "verified"} - set(group.attrs)
        self.assertEqual(set(group.attrs), set(attributes) - absent, group.name)
        for name, value in group.attrs.items():
            self.assertIsInstance(value, ATTRIBUTES[attributes[name]], f"{group.name}@{name}")
        found = {}
        group.visititems(lambda name, item: found.update({name: item})
                         if isinstance(item, h5py.Dataset) and name.split("/")[0] not in inner
                         else None)
        listed = {name for name in datasets if not name.endswith("/*")}
        families = {name[:-1] for name in datasets if name.endswith("/*")}
        for name, dataset in found.items():
            if name in listed:
                kind, dims, unit = datasets[name]
                listed.discard(name)
            else:
                family = name.rsplit("/", 1)[0] + "/"
                self.assertIn(family, families, f"{dataset.name} is not in SCHEMA.md")
                kind, dims, unit = datasets[family + "*"]
            self.check_dataset(dataset, kind, dims, unit)
        self.assertEqual(listed, set(), f"{group.name} lacks what SCHEMA.md lists")

    def check_dataset(self, dataset, kind, dims, unit):
        self.assertEqual(dataset.ndim, dims, dataset.name)
        self.assertGreater(len(dataset.attrs["description"]), 4, dataset.name)
        if unit == "by name":
            unit = self.fact_units[re.sub("^/(ranks|points/[0-9]+)/", "", dataset.name)]
        self.assertEqual(dataset.attrs["unit"], unit, dataset.name)
        if kind == "text":
            info = h5py.check_string_dtype(dataset.dtype)
            self.assertEqual(info.encoding, "utf-8", dataset.name)
            dataset.asstr()[()]
        else:
            self.assertEqual(dataset.dtype.str, TYPES[kind], dataset.name)

    def test_every_field_is_as_documented(self):
        self.check_group(self.file, "Root group", inner=("environment", "ranks", "points", "calibration", "preflight"))
        self.check_group(self.file["environment"], "/environment")
        self.check_group(self.file["preflight"], "/preflight")
        self.check_group(self.file["calibration"], "/calibration", inner=PARTS)
        for part in PARTS:
            self.check_group(self.file["calibration"][part], part)
        self.check_group(self.file["ranks"], "/ranks")
        for kind in ("text", "number"):
            for name in self.file["ranks"][kind]:
                self.assertIn(f"{kind}/{name}", self.fact_units)
        for name in ("0000", "0002", "0003", "0005"):
            point = self.file["points"][name]
            self.check_group(point, "/points/NNNN", inner=TABLES)
            for table in TABLES:
                self.check_group(point[table], table)
            for kind in ("text", "number"):
                for name in point["rows"][kind]:
                    self.assertIn(f"rows/{kind}/{name}", self.fact_units)

    def test_values(self):
        f = self.file
        self.assertEqual((f.attrs["format"], f.attrs["status"]), ("isoscale-run", "complete"))
        self.assertIn(f"**{f.attrs['schema_version']}**", self.page)
        self.assertTrue(np.isnan(f["ranks/number/bound_cores"][5]))
        self.assertEqual(f["config"].asstr()[()].splitlines()[1], "# größer")
        checks = f["preflight"]
        self.assertEqual(list(checks["verdict"].attrs["values"][checks["verdict"][:]]),
                         ["ok", "warning", "stop", "not checked"])
        point = f["points/0000"]
        self.assertEqual(dict(point["options"].attrs), {"bucket": "25MiB", "overlap": "on"})
        self.assertEqual(point.attrs["seed"], 2**64 - 2)
        self.assertIs(bool(point.attrs["verified"]), True)
        ops = point["ops"]
        second = slice(*ops["op_begin"][1:3])
        kinds = ops["kind"].attrs["values"][ops["kind"][second]]
        self.assertEqual(list(kinds), ["gemm", "all_reduce", "exchange"])
        self.assertEqual(list(ops["axes"][second]), [0, 8, 16])
        self.assertEqual(point["gemm_choices/workspace"][0], 3 << 32)
        np.testing.assert_equal(point["communicators/first_call"][:3], [0.25, 2, np.nan])
        rows = point["rows"]
        self.assertEqual(list(rows["text/op"].asstr()[:]), ["all_reduce", "p2p", "p2p", ""])
        np.testing.assert_equal(rows["number/bytes"][:3], [1024, 8, np.nan])
        self.assertEqual(list(rows["wrong"][:]), [0, 5, -1, -1])
        first = rows["time"][slice(*rows["time_begin"][:2])].reshape(rows["plays"][0], 4)
        self.assertEqual(list(first.max(axis=1) / rows["calls"][0]), [4e-5, 8e-5])
        self.assertEqual(list(rows["ranks"][slice(*rows["ranks_begin"][1:3])]), [3, 1])
        self.assertEqual(list(f["points/0002/rows/ranks_begin"]), [0])
        traces = point["traces"]
        self.assertEqual(traces["span_end"][0] - traces["span_start"][0], 39)
        self.assertNotIn("verified", f["points/0002"].attrs)

    def test_part_files_hold_the_same_groups(self):
        reference = self.file["points/0001"]
        self.assertEqual(set(reference.attrs), {"index", "part_file"})
        with h5py.File(os.path.join(self.folder, reference.attrs["part_file"])) as part:
            self.assertEqual(set(part.attrs), {"format", "schema_version", "id", "part_of"})
            self.assertEqual(part.attrs["id"], self.file.attrs["id"])
            self.assertEqual(part.attrs["part_of"], "run.h5")
            point = part["points/0001"]
            self.check_group(point, "/points/NNNN", inner=TABLES)
            times = point["step_times"]
            self.assertEqual(times.shape, (120000, 4))
            self.assertEqual(times.compression, "gzip")
            self.assertTrue(times.fletcher32)
            expected = 1e-3 + np.arange(120000)[:, None] * 1e-6 + np.arange(4) * 1e-9
            np.testing.assert_allclose(times[:], expected, rtol=1e-12)

    def test_the_example_of_the_page_runs(self):
        example = re.search(r"```python\n(.*?)```", self.page, re.S).group(1)
        done = subprocess.run([sys.executable, "-c", example], cwd=self.folder, text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.stderr, "")
        # One of five steps is warm-up, one dropped, one traced; rank 3 is the slowest by 3 ns.
        lines = done.stdout.splitlines()
        self.assertTrue(lines[0].startswith("0123456789abcdef host complete ['node0'"), lines)
        self.assertRegex(lines[1], r"^hybrid 4 0\.001003503\d* s$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
