# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Reports of a run file with micro-benchmarks, made by make_sample_run (ISOSCALE_SAMPLE)."""

import csv
import io
import json
import os
import subprocess

import harness


class Formats(harness.Case):
    def setUp(self):
        super().setUp()
        subprocess.run([os.environ["ISOSCALE_SAMPLE"], self.path("run.h5")], check=True)

    def report(self, form):
        how = ["--detail"] if form == "text" else ["--format", form]
        return self.run_ok("report", "run.h5", *how).stdout

    def points(self):
        return {p["workload"]: p for p in json.loads(self.report("json"))["runs"][0]["points"]}

    def test_json_rows_have_the_keys_of_the_contract(self):
        points = self.points()
        keys = {"collectives": "op dtype in_place bytes count time algbw busbw wrong",
                "gemm": "m n k batch time flops", "memory": "kind bytes bandwidth"}
        for workload, wanted in keys.items():
            self.assertGreater(len(points[workload]["rows"]), 3)
            for row in points[workload]["rows"]:
                self.assertLessEqual(set(wanted.split()), set(row))
        pairs = [row for row in points["p2p"]["rows"] if "src" in row]
        self.assertEqual(len(pairs), 12)
        for row in pairs:
            self.assertLessEqual({"src", "dst", "class", "latency", "bandwidth", "bidirectional"},
                                 set(row))
        for row in points["collectives"]["rows"]:
            self.assertLessEqual({"median", "lower", "upper", "min", "p99"}, set(row["time"]))
            if row["op"] == "all_reduce":
                self.assertAlmostEqual(row["algbw"] * row["time"]["median"], row["bytes"], places=6)
                self.assertAlmostEqual(row["busbw"] / row["algbw"], 2 * 3 / 4)
        for workload in ("collectives", "gemm", "p2p", "memory", "overlap"):
            self.assertIsNone(points[workload]["efficiency"])
            self.assertIsNone(points[workload]["step_time"]["median"])

    def test_json_has_the_stored_calibration(self):
        calibration = json.loads(self.report("json"))["runs"][0]["calibration"]
        self.assertEqual(calibration["curves"][0]["latency"]["upper"], 1.1e-6)
        self.assertEqual(calibration["growth"][0]["law"], "log2 n")
        # The ceiling is the best row of its type, whatever an older rule has stored.
        rows = self.points()["gemm"]["rows"]
        for ceiling in calibration["ceilings"]:
            best = max(row["flops"] for row in rows if row["dtype"] == ceiling["dtype"])
            self.assertEqual(ceiling["flops"], best)
        self.assertEqual([ceiling["flops"] for ceiling in calibration["ceilings"]], [60e9, 20e9])

    def test_nccl_tests_columns(self):
        rows = {row["bytes"]: row for row in self.points()["collectives"]["rows"]
                if row["op"] == "all_reduce" and not row["in_place"]}
        lines = [line.split() for line in self.report("nccl-tests").splitlines()
                 if line and not line.startswith("#")]
        found = 0
        for line in lines:
            self.assertEqual(len(line), 13)
            if line[3] != "sum" or int(line[0]) not in rows:
                continue
            row = rows[int(line[0])]
            self.assertEqual(line[1:5], [str(row["count"]), "float", "sum", "-1"])
            self.assertAlmostEqual(float(line[5]), row["time"]["median"] * 1e6, delta=0.05)
            self.assertAlmostEqual(float(line[6]), row["algbw"] / 1e9, delta=0.006)
            self.assertAlmostEqual(float(line[7]), row["busbw"] / 1e9, delta=0.006)
            found += 1
        self.assertEqual(found, 8)

    def test_text_names_slow_pairs_and_wrong_elements(self):
        text = self.report("text")
        for verdict in (r"SLOW +rank 1 on node0 to rank 2 on node0", r"WRONG +1 row"):
            self.assertRegex(text, verdict)

    def test_csv_has_a_line_a_row(self):
        rows = [row for row in csv.DictReader(io.StringIO(self.report("csv")))
                if row["workload"] == "overlap"]
        self.assertEqual(len(rows), 10)
        self.assertEqual({row["part"] for row in rows},
                         {"gemm", "gemm traced", "gemm together", "collective",
                          "collective traced", "collective together", "together"})
