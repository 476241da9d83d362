# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Runs that end early, by a budget or by being killed, and what goes on with them."""

import math
import os
import re
import signal
import time

import harness
from hang_test import end_ranks_of, ranks_of

CURVES = [*"run --workload dp,tp --max-time 0.2s --precision 20%".split(), *harness.LITTLE]

RANKS = 4
# 12 points: four experiments on 1, 2 and 4 ranks. A curve of hybrid keeps its tensor ranks, so its
# point on 1 rank is skipped.
TOML = "".join(f"""
[[experiment]]
workload = "{workload}"
model = "tiny"
set = {{ microbatch = 1, microbatches = 4 }}
""" for workload in ("dp", "tp", "pp", "hybrid"))
POINTS = 11


class Resumed(harness.Case):
    def content(self):
        with open(self.path("run.h5"), "rb") as file:
            return file.read()

    def killed_run(self, finished):
        """SIGKILL of the launcher after so many points; its ranks have ended when this returns."""
        output = self.path("run.h5")
        launcher = self.started(*CURVES, "--output", output, ranks=2)
        for _ in range(finished):
            self.said_until(launcher, "stopped by")
        launcher.kill()
        launcher.wait(timeout=60)
        self.assertEqual(launcher.returncode, -signal.SIGKILL)
        end_ranks_of(output)

    def test_a_killed_run_is_completed(self):
        self.killed_run(finished=2)
        before = self.run_of()
        self.assertEqual(before["status"], "partial")
        self.assertLess(len(before["points"]), 4)
        self.run_ok("run --resume run.h5", ranks=2)
        after = self.run_of()
        self.assertEqual((after["status"], after["id"]), ("complete", before["id"]))
        self.assertEqual(self.ok_points_in(), [0, 1, 2, 3])
        for kept in before["points"]:  # not measured again
            self.assertEqual(after["points"][kept["index"]]["step_time"], kept["step_time"])
        self.assertIn("resumed", str(after["warnings"]))
        self.run_ok(*CURVES, "--output whole.h5", ranks=2)
        whole = self.run_of("whole.h5")
        self.assertEqual(set(after), set(whole))
        same = ("workload", "ranks", "mesh", "options", "status", "verified")
        for one, other in zip(after["points"], whole["points"]):
            self.assertEqual(set(one), set(other))
            self.assertEqual([one[key] for key in same], [other[key] for key in same])
        self.assertEqual(self.files(), ["run.h5", "whole.h5"])

    def test_a_complete_run_is_left_alone(self):
        self.run_ok(*CURVES, "--output run.h5 --ranks 1")
        before = self.content()
        self.assertIn("nothing is left", self.run_ok("run --resume run.h5").stdout)
        self.assertEqual(self.content(), before)
        self.assertEqual(self.run_ok("run --resume run.h5 --quiet").stdout, "")

    def test_another_launch_is_refused(self):
        self.measured("run.h5", *CURVES, "--budget 1ms", ranks=2)
        before = self.content()
        self.assert_refused(self.isoscale("run --resume run.h5"), "1 rank, not 2")
        self.assert_refused(self.isoscale("run --resume run.h5 --max-time 1s", ranks=2),
                            "--max-time")
        self.assert_refused(self.isoscale("run --resume none.h5"), "none.h5")
        self.assert_refused(self.isoscale("run --resume run.h5", ranks=2, NCCL_ALGO="Ring",
                                          UCX_TLS="tcp,self"), "NCCL_ALGO 'Ring', not unset",
                            "UCX_TLS 'tcp,self', not unset")
        self.assertEqual(self.content(), before)


class Budget(harness.Case):
    def test_what_does_not_fit_is_skipped_and_measured_later(self):
        done = self.run_ok(*CURVES, "--budget 1ms --output run.h5", ranks=2)
        run = self.run_of()
        for told in (done.stderr, str(run["warnings"])):  # there is no curve
            self.assertRegex(told, "--budget 1 ms .* 4 points")
        self.assertEqual(run["status"], "complete")
        self.assertEqual([(p["status"], p["reason"]) for p in run["points"]],
                         [("skipped", "budget")] * 4)
        for point in run["points"]:
            self.assertEqual(math.prod(point["mesh"].values()), point["ranks"])
        self.run_ok("run --resume run.h5", ranks=2)
        run = self.run_of()
        self.assertEqual({p["status"] for p in run["points"]}, {"ok"})
        self.assertEqual([p["ranks"] for p in run["points"]], [1, 2, 1, 2])

    def test_a_job_that_ends_too_early_is_warned_of(self):
        arguments = ["run --workload dp --max-time 60s --precision 50%", *harness.LITTLE, "--output"]
        end = str(int(time.time()) + 50)
        done = self.run_ok(*arguments, "a.h5", SLURM_JOB_END_TIME=end)
        self.assertRegex(done.stderr,
                         r"expected to take .* \(SLURM_JOB_END_TIME\).*--budget [0-9]+s")
        end = str(int(time.time()) + 50)
        done = self.run_ok(*arguments, "b.h5 --budget 5s", SLURM_JOB_END_TIME=end)
        self.assertNotIn("SLURM_JOB_END_TIME", done.stderr)


class Killed(harness.Case):
    """Killed at any moment: what was finished is kept, and completed later. ISOSCALE_KILLS: how
    many (default 200). ISOSCALE_SEED: of them."""

    def test_kills(self):
        draw, count = self.draw("kills", 200)
        self.write("points.toml", 'max_time = "0.05s"\nprecision = "50%"\n' + TOML)
        for number in range(count):
            after, whom = draw.uniform(0.3, 9), draw.choice(["rank 0", "a rank", "mpirun", "all"])
            with self.subTest(number=number, whom=whom, after=after):
                finished = self.killed_run(after, whom, draw)
                self.assertLessEqual(finished, set(self.ok_points_in()))
                if os.path.exists(self.path("run.h5")):
                    self.run_ok("run --resume run.h5", ranks=RANKS)
                    self.assertEqual(len(self.ok_points_in()), POINTS)
            for name in self.files():
                if name != "points.toml":
                    os.remove(self.path(name))

    def killed_run(self, after, whom, draw):
        """Indices of the points that were said to have ended before the kill."""
        output = self.path("run.h5")
        log = self.path("log")
        with open(log, "wb") as errors:
            launcher = self.started("run points.toml --output", output, ranks=RANKS, stderr=errors)
        time.sleep(after)
        ranks = ranks_of(output)
        victims = {"rank 0": [ranks.get(0)], "mpirun": [launcher.pid],
                   "all": [launcher.pid, *ranks.values()],
                   "a rank": [draw.choice(sorted(ranks.values()))] if ranks else []}[whom]
        for victim in victims:
            try:
                if victim is not None:
                    os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:  # it has just ended
                pass
        launcher.wait(timeout=60 * harness.PATIENCE)
        end_ranks_of(output)
        with open(log, encoding="utf-8", errors="replace") as file:
            said = file.read()
        return {int(number) - 1 for number in re.findall(r"point (\d+) of 12: .*stopped by", said)}
