# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Runs whose processes are killed at any moment: what was finished is kept, and completed later.

ISOSCALE_KILLS: how many (default 200 in Many, 3 in Few). ISOSCALE_SEED: of them.
"""

import os
import re
import signal
import time

import harness
from hang_test import end_ranks_of, ranks_of

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


class Case(harness.Case):
    def kill_many(self, default):
        draw, count = self.draw("kills", default)
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


class Few(Case):
    def test_kills(self):
        self.kill_many(3)


class Many(Case):
    def test_kills(self):
        self.kill_many(200)
