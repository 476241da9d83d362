# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""From a run to its file to its report."""

import re
import statistics

import h5py

import harness

CURVE = [*"run --workload dp,pp --max-time 0.2s".split(), *harness.LITTLE]


class Measured(harness.Case):
    def test_json_report_agrees_with_the_file_and_with_its_own_definitions(self):
        self.measured("run.h5", *CURVE, ranks=2)
        self.assertEqual(self.files(), ["run.h5"])
        run = self.run_of()
        self.assertEqual((run["status"], run["ranks"], run["device"]), ("complete", 2, "host"))
        points = run["points"]
        self.assertEqual([(p["workload"], p["ranks"]) for p in points],
                         [("dp", 1), ("dp", 2), ("pp", 1), ("pp", 2)])
        self.assert_verified(*points)
        for point in points:
            self.assertAlmostEqual(sum(point["breakdown"].values()), point["traced_step"],
                                   delta=1e-9)
        one, two = points[0], points[1]
        ratio = two["throughput"]["value"] / one["throughput"]["value"]
        self.assertAlmostEqual(two["efficiency"], ratio / 2)
        self.assertAlmostEqual(two["speedup"], ratio)
        self.assertAlmostEqual(one["throughput"]["value"] * one["step_time"]["median"],
                               8 * 16)  # tokens: batch x sequence of tiny

    def test_h5py_reads_step_times_that_give_the_reported_median(self):
        self.measured("run.h5", *CURVE, ranks=2)
        point = self.points_in()[1]
        with h5py.File(self.path("run.h5"), "r") as file:
            group = file["points/0001"]
            times = group["step_times"][()]
            counted = [max(step) for i, step in enumerate(times)
                       if i >= group.attrs["warm_up_steps"] and not group["step_traced"][i]
                       and not group["step_dropped"][i]]
            for name, data in group.items():
                if isinstance(data, h5py.Dataset):
                    self.assertIn("unit", data.attrs, name)
                    self.assertIn("description", data.attrs, name)
        self.assertEqual(times.shape[1], 2)
        time = point["step_time"]
        self.assertEqual(time["steps"], len(counted))
        if time["lower"] is not None:  # median and interval are those of means over blocks of steps
            block = time["steps_per_block"]
            counted = [statistics.mean(counted[i:i + block])
                       for i in range(0, len(counted) - block + 1, block)]
        self.assertAlmostEqual(statistics.median(counted), time["median"])

    def test_every_point_of_the_quick_suite_has_an_interval(self):
        # It may be wide. Steps of a machine that others load can be too correlated for one: then
        # the loop has gone on to its bound, three times --max-time less what it does between steps.
        most = 1
        bound = 2.7 * most
        done = self.run_ok(f"run --suite quick --precision 99% --max-time {most}s --output run.h5",
                           *harness.FEW_CASES, ranks=2)
        counts = re.findall(r"(\d+) of (\d+) steps count, stopped", done.stderr)
        points = self.points_in()
        self.assertEqual([p["status"] for p in points], ["ok"] * 10)
        timed = [p for p in points if p["workload"] != "calibrate"]
        self.assertEqual(len(timed), 8)
        for point, (counted, played) in zip(timed, counts[-len(timed):]):
            with h5py.File(self.path("run.h5")) as file:
                measured = file[f"points/{point['index']:04d}"].attrs["measured_seconds"]
            if measured < bound:
                self.assertNotIn("few-steps", point["labels"])
                self.assertIsNotNone(point["step_time"]["lower"], point)
                self.assertGreaterEqual(int(counted), 6)
            self.assertEqual(point["step_time"]["steps"], int(counted))
            self.assertGreater(int(played), int(counted))

    def test_quiet_says_nothing(self):
        for ranks in (None, 2):
            done = self.run_ok("run --workload dp --max-time 0.1s --quiet --force --output run.h5",
                               *harness.LITTLE, ranks=ranks)
            self.assertEqual(done.stdout, "")
            if ranks is None:  # mpiexec may have something to say
                self.assertEqual(done.stderr, "")


class ProgressLines(harness.Case):
    ARGUMENTS = ["run --workload dp --max-time 0.2s --output run.h5", *harness.LITTLE]

    def test_plain_lines_when_piped(self):
        done = self.run_ok(*self.ARGUMENTS)
        self.assertRegex(done.stderr, r"point 1 of 1: dp tiny .*1 rank.*elapsed")
        first, second = done.stdout.splitlines()[:2]
        self.assertRegex(first, "^device: ")
        self.assertLess(len(first), 100)
        self.assertRegex(second, "^1 rank: .*mpirun -np ")
        self.assertNotIn("\r", done.stderr)

    def test_one_live_line_on_a_terminal(self):
        shown = self.on_terminal(*self.ARGUMENTS, stream="stderr")
        self.assert_shown(shown, "\r", "point 1 of 1", "measuring")
        self.assertNotIn("\n", shown.rstrip("\r\n"))


class Large(harness.Case):
    """Label long: what takes a minute or more."""

    def test_sixty_four_ranks_on_one_machine_complete(self):
        self.run_ok("run --ranks 1,4,16,64 --model tiny --output run.h5", ranks=64)
        run = self.run_of()
        self.assertEqual(run["status"], "complete")
        largest = [p for p in run["points"] if p["ranks"] == 64 and p["status"] == "ok"]
        self.assertLessEqual({"dp", "hybrid"}, {p["workload"] for p in largest})
        self.assertTrue(all(p["verified"] for p in largest))
