# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Reports of several launches: one curve, copies, and a whole node for a baseline."""

import shutil
import statistics

import harness

RUN = ["run", "--workload", "dp", "--max-time", "0.3s"]


class Joined(harness.Case):
    def setUp(self):
        super().setUp()
        self.launches = ["one_a.h5", "one_b.h5", "two.h5"]
        for name, ranks in zip(self.launches, (1, 1, 2)):
            self.measured(name, *RUN, "--ranks", str(ranks), ranks=ranks, launch=name)

    def report(self, *arguments):
        return self.json_of("report", *arguments)

    def test_files_of_one_rank_count_each_make_one_curve(self):
        document = self.report(*self.launches)
        self.assertEqual(len(document["runs"]), 3)
        self.assertEqual(document["warnings"], [])
        points = [run["points"][0] for run in document["runs"]]
        self.assertEqual(len(document["curves"]), 1, document["curves"])
        curve = document["curves"][0]
        # Where there is one core, two ranks share it, and are no part of a curve.
        clean = [point for point in points if not set(point["labels"]) - {"few-steps"}]
        self.assertEqual([at["ranks"] for at in curve["points"]],
                         sorted({point["ranks"] for point in clean}))
        self.assertEqual(len(curve["left_out"]), len(points) - len(clean))
        one = curve["points"][0]
        times = [point["step_time"]["median"] for point in points[:2]]
        self.assertEqual([at["file"] for at in one["launches"]], self.launches[:2])
        self.assertAlmostEqual(one["step_time"]["median"], statistics.median(times))
        self.assertAlmostEqual(one["spread"], (max(times) - min(times)) / statistics.median(times))
        self.assertIsNone(one["step_time"]["lower"])
        for two in curve["points"][1:]:
            ideal = one["throughput"]["value"] * 2
            self.assertAlmostEqual(two["efficiency"], two["throughput"]["value"] / ideal)
            self.assertIsNone(two["spread"])
        rows = self.csv_of("report", *self.launches)[:2]
        self.assertEqual([row["launches"] for row in rows], ["2", "2"])
        self.assertEqual(rows[0]["joined_step_time"], rows[1]["joined_step_time"])
        self.assertNotEqual(rows[0]["step_time_median"], rows[1]["step_time_median"])

    def test_a_launch_given_twice_counts_once(self):
        shutil.copy(self.path("one_a.h5"), self.path("copy.h5"))
        once = self.run_ok("report", "one_a.h5", "--detail")
        twice = self.run_ok("report", "one_a.h5", "copy.h5", "one_a.h5", "--detail")
        self.assertIn("copy.h5 holds run", twice.stderr)
        self.assertIn("one_a.h5 was given more than once", twice.stderr)
        self.assertIn("WARNING", twice.stdout)
        self.assertEqual([line for line in twice.stdout.splitlines() if "WARNING" not in line],
                         [line for line in once.stdout.splitlines() if "WARNING" not in line])
        document = self.report("one_a.h5", "copy.h5")
        self.assertEqual(len(document["runs"]), 1)
        self.assertEqual(len(document["curves"][0]["points"][0]["launches"]), 1)

    def test_a_whole_node_is_the_baseline_or_is_refused(self):
        run = self.report("two.h5", "--baseline", "node")["runs"][0]
        self.assertEqual(run["curves"][0]["baseline"], 2)
        self.assertEqual(run["curves"][0]["baseline_unit"], "node")
        self.assertEqual((run["points"][0]["speedup"], run["points"][0]["efficiency"]), (1, 1))
        self.assertEqual(run["points"][0]["ranks_per_node"], {"fewest": 2, "most": 2})
        self.run_ok(*RUN, "--ranks", "1", "--output", "half.h5", ranks=2)
        self.assert_refused(self.isoscale("report", "half.h5", "--baseline", "node"),
                            "--baseline node", "whole node")
        self.assert_refused(self.isoscale("report", "two.h5", "--baseline", "nodes"), "--baseline")
        for index in ([], ["--index"]):
            refused = self.isoscale("report", "one_a.h5", "two.h5", "--baseline", "3", *index)
            self.assert_refused(refused, "--baseline 3", "3 ranks")
            self.assertEqual("name one of 1, 2" in refused.stderr, index == [], refused.stderr)
