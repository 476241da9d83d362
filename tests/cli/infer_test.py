# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Workload infer from the command line, on the host."""

import harness

EXPERIMENTS = """
ranks = [4]
max_time = "1s"

[[experiment]]
workload = "infer"
mesh = { tp = 2, dp = 2 }
set = { batch = "1,4", output = 4 }

[[experiment]]
workload = "infer"
mesh = { pp = 2, dp = 2 }
set = { batch = "1,4", output = 4 }
"""


class Infer(harness.Case):
    def measured(self, *arguments, ranks=4):
        self.run_ok("run", "--device", "host", "--workload", "infer", "--model", "tiny",
                    "--max-time", "1s", "--output", "run.h5", *arguments, ranks=ranks)
        return self.run_of("run.h5")

    def test_a_mesh_has_a_row_for_each_batch_size(self):
        run = self.measured("--mesh", "tp=2,dp=2", "--ranks", "4", "--set", "batch=1,2,8",
                            "--set", "output=6")
        (point,) = run["points"]
        self.assertEqual(point["status"], "ok")
        self.assertTrue(point["verified"])
        self.assertEqual([row["batch"] for row in point["rows"]], [1, 2, 8])
        for row in point["rows"]:
            for key in ("ttft", "tpot"):
                self.assertLessEqual({"median", "lower", "upper"}, set(row[key]))
                self.assertGreater(row[key]["median"], 0)
            tokens = 2 * row["batch"] / row["tpot"]["median"]
            self.assertAlmostEqual(row["tokens_per_second"] / tokens, 1)
            self.assertAlmostEqual(row["tokens_per_second_per_rank"] * 4 / tokens, 1)
            # keys and values, 8 layers, 8 of 16 heads of 4, 16 + 6 positions, f32
            self.assertEqual(row["cache_bytes"], 2 * 8 * row["batch"] * 8 * 4 * (16 + 6) * 4)
        self.check_frontier(point["rows"])

    def check_frontier(self, rows):
        """As the definition has it, from the numbers of the rows alone."""
        at = [(row["tpot"]["median"], row["tokens_per_second_per_rank"]) for row in rows]
        for row, (time, rate) in zip(rows, at):
            beaten = any(t <= time and r >= rate and (t, r) != (time, rate) for t, r in at)
            self.assertEqual(row["on_frontier"], not beaten, rows)

    def test_the_frontier_is_over_the_meshes_of_a_run(self):
        self.write("two.toml", EXPERIMENTS)
        self.run_ok("run", "two.toml", "--device", "host", "--model", "tiny", "--output", "run.h5",
                    ranks=4)
        run = self.run_of("run.h5")
        rows = [row for point in run["points"] for row in point["rows"]]
        self.assertEqual(len(rows), 4)
        self.assertTrue(all(point["verified"] for point in run["points"]))
        self.check_frontier(rows)
        lines = self.csv_of("report", "run.h5")
        self.assertEqual(len(lines), 8)
        marked = {(line["index"], line["batch"]) for line in lines if line["on_frontier"] == "yes"}
        self.assertEqual(len(marked), sum(row["on_frontier"] for row in rows))

    def test_a_single_rank_decodes_without_a_launcher(self):
        run = self.measured("--set", "batch=2", "--set", "vocabulary=off", ranks=None)
        self.assertEqual(run["points"][0]["rows"][0]["decode_tokens"], 16)
        self.assertEqual(run["points"][0]["rows"][0]["decode_position"], 16 + (64 - 16) // 2)
