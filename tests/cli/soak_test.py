# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""--soak: a step replayed bit for bit, and the rank that a flipped bit is found on."""

import harness

POINT = ["run", "--workload", "dp", "--model", "tiny", "--ranks", "3", "--max-time", "0.5s",
         "--precision", "20%", "--set", "batch=6", "--set", "microbatch=1"]


class Soaked(harness.Case):
    def point(self):
        [point] = self.run_of()["points"]
        return point

    def test_replays_that_are_alike_are_counted(self):
        self.run_ok(*POINT, "--soak", "1s", "--output", self.path("run.h5"), ranks=3)
        soak = self.point()["soak"]
        self.assertGreater(soak["replays"], 0)
        self.assertGreaterEqual(soak["seconds"], 1)
        self.assertEqual(soak["differing"], [])
        self.assertRegex(self.run_ok("report", "run.h5", "--detail").stdout,
                         r"soak +3 ranks: \d+ replays of one step in .*: all left the same bits")

    def test_flipped_bits_fail_the_point_and_name_the_rank(self):
        done = self.isoscale(*POINT, "--soak", "2s", "--inject", "flip=2", "--output",
                             self.path("run.h5"), ranks=3)
        self.assertEqual(done.returncode, 1, done.stderr)
        point = self.point()
        self.assertEqual(point["status"], "failed")
        self.assertFalse(point["verified"])
        self.assertRegex(point["reason"], r"soak: \d+ of \d+ replays of one step in .* differ; in "
                                          r"replay 2 rank 2 (computed|received) other bits")
        self.assertEqual(len(point["soak"]["differing"]), point["soak"]["replays"] // 2)
        for found in point["soak"]["differing"]:
            self.assertRegex(found, r"^replay \d+: rank 2 ")

    def test_bits_are_not_flipped_where_nobody_looks(self):
        self.assert_refused(self.isoscale(*POINT, "--inject", "flip=2", "--output", "run.h5"),
                            "give that too")
