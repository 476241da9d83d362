# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Runs whose processes are killed at any moment: what was finished is kept, and completed later.

ISOSCALE_KILLS: how many (default 200 in Many, 3 in Few). ISOSCALE_SEED: of them.
"""

import json
import os
import random
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
        seed = int(os.environ.get("ISOSCALE_SEED", time.time_ns() % 1_000_000))
        count = int(os.environ.get("ISOSCALE_KILLS", default))
        print(f"seed {seed}, {count} kills", flush=True)
        draw = random.Random(seed)
        self.write("points.toml", 'max_time = "0.05s"\nprecision = "50%"\n' + TOML)
        lost = unread = incomplete = 0
        for number in range(count):
            after, whom = draw.uniform(0.3, 9), draw.choice(["rank 0", "a rank", "mpirun", "all"])
            finished = self.killed_run(after, whom, draw)
            kept = self.points_of("run.h5")
            if kept is None:
                unread += 1
                print(f"kill {number}: {whom} after {after:.2f} s: the file cannot be read")
                continue
            lost += sum(point not in kept for point in finished)
            if os.path.exists(self.path("run.h5")):
                done = self.isoscale("run", "--resume", "run.h5", ranks=RANKS)
                whole = self.points_of("run.h5")
                if done.returncode != 0 or whole is None or len(whole) != POINTS:
                    incomplete += 1
                    print(f"kill {number}: {whom} after {after:.2f} s: {done.stderr[-400:]}")
            for name in self.files():
                if name != "points.toml":
                    os.remove(self.path(name))
        print(f"{count} kills: {lost} finished points lost, {unread} files not to be read, "
              f"{incomplete} runs not completed")
        self.assertEqual((lost, unread, incomplete), (0, 0, 0))

    def points_of(self, name):
        """Indices of the points that are ok; None where the file cannot be read."""
        if not os.path.exists(self.path(name)):
            return []
        done = self.isoscale("report", name, "--format", "json")
        if done.returncode != 0:
            return None
        [run] = json.loads(done.stdout)["runs"]
        return [point["index"] for point in run["points"] if point["status"] == "ok"]

    def killed_run(self, after, whom, draw):
        """Indices of the points that were said to have ended before the kill."""
        output = self.path("run.h5")
        log = self.path("log")
        with open(log, "wb") as errors:
            launcher = self.started("run", "points.toml", "--output", output, ranks=RANKS, stderr=errors)
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
        return [int(number) - 1 for number in
                re.findall(r"point (\d+) of 12: .*stopped by", said)]


class Few(Case):
    def test_kills(self):
        self.kill_many(3)


class Many(Case):
    def test_kills(self):
        self.kill_many(200)
