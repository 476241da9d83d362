# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Workload tiles from the command line: run, verified, reported."""

import harness

SMALL = ["--set", "image=32", "--set", "channels=8", "--set", "layers=3", "--set", "batch=2"]
RUN = ["run", "--device", "host", "--workload", "tiles", "--max-time", "0.3s", "--output", "run.h5"]


class Measured(harness.Case):
    def test_every_rank_count_is_measured_and_verified(self):
        self.run_ok(*RUN, "--ranks", "all", *SMALL, ranks=4)
        points = self.run_of()["points"]
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
        points = self.run_of()["points"]
        self.assertEqual([p["ranks"] for p in points], [1, 2, 4])
        for point in points:
            self.assertTrue(point["verified"], point)
            self.assertAlmostEqual(point["throughput"]["value"] * point["step_time"]["median"],
                                   32 * 32 * 2 * point["ranks"])
            self.assertEqual(point["options"]["image"], "32")
            self.assertIsNotNone(point["efficiency"], point)
