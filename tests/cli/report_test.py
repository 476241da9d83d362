# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""What `isoscale report FILE` prints: a summary of one screen, or the sections that --detail names."""
import os
import re
import subprocess

import harness

SECTIONS = ("curves", "breakdown", "efficiency", "waterfall", "pop", "strategies", "phases",
            "layers", "soak", "nodes", "devices", "findings", "warnings", "preflight", "rows",
            "calibration", "legend")
QUICK = ["--workload", "dp,tp", "--max-time", "0.3s", "--output", "run.h5"]


def numbers(text):
    return set(re.findall(r"\d[\d.]*", text))


class Summary(harness.Case):
    def setUp(self):
        super().setUp()
        subprocess.run([os.environ["ISOSCALE_SAMPLE"], self.path("run.h5")], check=True)

    def report(self, *arguments):
        return self.run_ok("report", "run.h5", *arguments).stdout

    def test_it_fits_on_a_screen(self):
        shown = [(most, self.on_terminal("report", "run.h5", stream="stdout", columns=columns))
                 for most, columns in ((80, 80), (110, 200))]
        for columns, text in ((110, self.report()), *shown):
            lines = text.replace("\r\n", "\n").splitlines()
            self.assertLessEqual(len(lines), 40)
            self.assertLessEqual(max(map(len, lines)), columns, text)

    def test_sections_have_all_that_the_whole_has(self):
        whole = self.report("--detail")
        self.assertGreater(len(whole.splitlines()), 40)
        self.assertEqual(whole, self.report("--detail", "all"))
        self.assertEqual(whole, self.report("--detail", ",".join(SECTIONS)))
        self.assertEqual(whole, self.run_ok("report", "--detail", "run.h5").stdout)
        parts = [self.report("--detail", section) for section in SECTIONS]
        self.assertEqual(numbers(whole) - set().union(*map(numbers, parts)), set())

    def test_micro_benchmarks_have_a_stored_calibration_and_no_steps(self):
        self.assertIn("# Avg bus bandwidth", self.report("--format", "nccl-tests"))
        run = self.run_of()
        calibration, points = run["calibration"], {point["workload"]: point for point in run["points"]}
        self.assertEqual(calibration["curves"][0]["latency"]["upper"], 1.1e-6)
        self.assertEqual(calibration["growth"][0]["law"], "log2 n")
        # The ceiling is the best row of its type, whatever an older rule has stored.
        for ceiling, flops in zip(calibration["ceilings"], (60e9, 20e9), strict=True):
            best = max(row["flops"] for row in points["gemm"]["rows"] if row["dtype"] == ceiling["dtype"])
            self.assertEqual((ceiling["flops"], best), (flops, flops))
        for workload in ("collectives", "gemm", "p2p", "memory", "overlap"):
            self.assertIsNone(points[workload]["efficiency"])
            self.assertIsNone(points[workload]["step_time"]["median"])

    def test_what_has_no_sections_is_refused(self):
        for arguments, needles in (
                (["--detail", "waterfal"], ["'waterfal'", "did you mean", *SECTIONS]),
                (["--detail", "curves,,pop"], SECTIONS),
                (["--detail", "curves", "--format", "json"], ["--detail", "json"]),
                (["--detail", "--index"], ["--detail", "--index"])):
            with self.subTest(arguments=arguments):
                self.assert_refused(self.isoscale("report", "run.h5", *arguments), *needles)


class OfARun(harness.Case):
    def test_a_run_ends_with_its_summary(self):
        said = self.run_ok("run", *QUICK, ranks=2).stdout
        self.assertIn("wrote run.h5", said)
        efficiency = re.search(r"^ *tp .* (\d+\.\d%)", said, re.M)
        self.assertIsNotNone(efficiency, said)
        self.assertIn(efficiency[1], self.run_ok("report", "run.h5").stdout)
