# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Workload tiles from the command line: run, verified, reported; and what it refuses."""

import json
import unittest

import harness

SMALL = ["--set", "image=32", "--set", "channels=8", "--set", "layers=3", "--set", "batch=2"]
RUN = ["run", "--device", "host", "--workload", "tiles", "--max-time", "0.3s", "--output", "run.h5"]


class Measured(harness.Case):
    def points(self):
        done = self.run_ok("report", "run.h5", "--format", "json")
        return json.loads(done.stdout)["runs"][0]["points"]

    def test_every_rank_count_is_measured_and_verified(self):
        self.run_ok(*RUN, "--ranks", "all", *SMALL, ranks=4)
        points = self.points()
        self.assertEqual([p["ranks"] for p in points], [1, 2, 3, 4])
        self.assertEqual([p["status"] for p in points], ["ok", "ok", "skipped", "ok"])
        self.assertIn("32", points[2]["reason"])  # rows do not divide by 3
        measured = [points[0], points[1], points[3]]
        self.assertEqual([(p["mesh"]["cp"], p["mesh"]["tp"]) for p in measured],
                         [(1, 1), (2, 1), (2, 2)])
        for point in measured:
            self.assertTrue(point["verified"], point)
            self.assertEqual(point["model"], "none")
            self.assertEqual(point["throughput"]["unit"], "pixels/s")
            self.assertAlmostEqual(point["throughput"]["value"] * point["step_time"]["median"],
                                   32 * 32 * 2)
            self.assertIsNotNone(point["efficiency"])  # one curve
        text = self.run_ok("report", "run.h5", "--detail").stdout
        for word in ("tiles", "pixels/s", "verified"):
            self.assertIn(word, text)

    def test_weak_scaling_is_one_curve_of_growing_images(self):
        self.run_ok(*RUN, "--scaling", "weak", "--set", "boundary=fixed", *SMALL, ranks=4)
        points = self.points()
        self.assertEqual([p["ranks"] for p in points], [1, 2, 4])
        for point in points:
            self.assertTrue(point["verified"], point)
            self.assertAlmostEqual(point["throughput"]["value"] * point["step_time"]["median"],
                                   32 * 32 * 2 * point["ranks"])
            self.assertEqual(point["options"]["image"], "32")
            self.assertIsNotNone(point["efficiency"], point)

    def test_what_cannot_be_built_is_refused_with_what_works(self):
        self.assert_refused(self.isoscale(*RUN, "--ranks", "2", "--set", "image=3", ranks=2),
                            "rows of the image", "cp=2")
        self.assert_refused(self.isoscale(*RUN, "--ranks", "2", "--set", "image=2",
                                          "--set", "kernel=5", ranks=2),
                            "2 rows over cp=2", "image of 4 rows or more")
        self.assert_refused(self.isoscale(*RUN, "--ranks", "1", "--set", "image=big"),
                            "image = 'big'", "256x512")
        self.assert_refused(self.isoscale(*RUN, "--set", "boundary=open"), "periodic|fixed")
        self.assert_refused(self.isoscale(*RUN, "--ranks", "2", "--mesh", "pp=2", ranks=2),
                            "does not use pp", "dp+tp+cp")

    def test_options_are_listed(self):
        text = self.run_ok("list", "options", "tiles").stdout
        for word in ("image", "channels", "kernel", "layers", "batch", "boundary", "overlap",
                     "bucket", "optimizer"):
            self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main()
