# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""A thousand points in one launch: what a rank holds does not grow with them.

ISOSCALE_POINTS: how many (default 1000).
"""

import os
import time

import harness
from hang_test import is_running, ranks_of


def held_by(process):
    """What a process holds: resident KiB, threads, file descriptors."""
    with open(f"/proc/{process}/status", encoding="utf-8") as file:
        lines = dict(line.split(":", 1) for line in file if ":" in line)
    return {"KiB": int(lines["VmRSS"].split()[0]), "threads": int(lines["Threads"]),
            "descriptors": len(os.listdir(f"/proc/{process}/fd"))}


class Case(harness.Case):
    def write_experiments(self, count):
        self.write("many.toml",
                   'max_time = "1ms"\nprecision = "50%"\nranks = [2]\ntrace_steps = 0\n' + "".join(
            f'[[experiment]]\nworkload = "tp"\nmodel = "tiny"\nseed = {number}\n'
            'set = { microbatch = 1, microbatches = 1 }\n' for number in range(count)))


@harness.needs_failing_calls
class Communicators(Case):
    def left_over(self, points):
        """How many communicators a launch of so many points made and did not free."""
        self.write_experiments(points)
        self.run_ok("run many.toml --output run.h5 --force", ranks=2, by=self.with_failing_calls(1))
        calls = self.counted_calls()
        made = sum(calls.get(f"MPI_Comm_{call}", 0) for call in ("dup", "split", "split_type"))
        self.assertGreater(made, points)
        return made - calls["MPI_Comm_free"]

    def test_points_leave_none(self):
        self.assertEqual(self.left_over(2), self.left_over(12))


class Many(Case):
    def test_nothing_grows(self):
        count = int(os.environ.get("ISOSCALE_POINTS", "1000"))
        self.write_experiments(count)
        output = self.path("run.h5")
        log = self.path("log")
        with open(log, "wb") as errors:
            launcher = self.started("run many.toml --output", output, ranks=2, stderr=errors)
        seen = []  # (points done, by rank what it holds)
        while launcher.poll() is None:
            time.sleep(0.5)
            with open(log, encoding="utf-8", errors="replace") as file:
                done = file.read().count("stopped by")
            try:
                ranks = ranks_of(output)
                seen.append((done, {rank: held_by(process) for rank, process in ranks.items()
                                    if is_running(process)}))
            except (OSError, KeyError):  # a rank has just ended
                pass
        with open(log, encoding="utf-8", errors="replace") as file:
            self.assertEqual(launcher.returncode, 0, file.read()[-2000:])
        early = next(held for done, held in seen if done >= count // 5 and len(held) == 2)
        late = [held for done, held in seen if len(held) == 2][-1]
        for rank in (0, 1):
            print(f"rank {rank}: after a fifth {early[rank]}, at last {late[rank]}")
            self.assertLessEqual(late[rank]["threads"], early[rank]["threads"])
            self.assertLessEqual(late[rank]["descriptors"], early[rank]["descriptors"] + 2)
            # Rank 0 keeps what the file has of each point; a leak of a point is more than 50 KiB.
            self.assertLess(late[rank]["KiB"] - early[rank]["KiB"], 50 * count)
