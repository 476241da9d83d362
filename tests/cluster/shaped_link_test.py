# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""A link whose rate is known is measured truly, and found among others.

Environment: ISOSCALE = the program, ISOSCALE_BARE_LOOP = tests/cluster/bare_loop.cpp. Exit 77, which ctest shows as skipped, where namespaces may not
be made.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import unittest

import cluster

try:
    import h5py
except ImportError as error:
    cluster.skip(f"{error} (Debian: apt-get install python3-h5py)")

cluster.enter()

PROGRAM = os.environ["ISOSCALE"]
BARE_LOOP = os.environ["ISOSCALE_BARE_LOOP"]
LOWEST, HIGHEST = 0.94, 0.98  # Ethernet, IP and TCP take 66 bytes of 1514


def text(data, name):
    return [value.decode() if isinstance(value, bytes) else value for value in data[name][()]]


class Row:
    """One row of a run file."""

    def __init__(self, rows, i):
        self.text = {name: text(rows["text"], name)[i] for name in rows["text"]}
        self.number = {name: float(rows["number"][name][i]) for name in rows["number"]}
        self.wrong = int(rows["wrong"][i])
        self.status = int(rows["status"][i])
        calls, plays = int(rows["calls"][i]), int(rows["plays"][i])
        times = rows["time"][int(rows["time_begin"][i]):int(rows["time_begin"][i + 1])]
        times = times.reshape(plays, -1).max(axis=1) / calls if plays else []
        self.time = statistics.median(times) if plays else None  # of one call
        self.plays = plays

    @property
    def bandwidth(self):
        """Bytes per second."""
        return self.number["bytes"] / self.time

    @property
    def ends(self):
        return int(self.number["src"]), int(self.number["dst"])


def rows_of(path):
    """Rows of all points."""
    with h5py.File(path, "r") as file:
        points = [file["points"][name] for name in file["points"]]
        tables = [point["rows"] for point in points if "rows" in point]
        return [Row(rows, i) for rows in tables for i in range(len(rows["status"]))]


class ShapedLink(unittest.TestCase):
    def hosts(self, hosts, rates):
        scratch = tempfile.TemporaryDirectory(prefix="isoscale-cluster-")
        self.addCleanup(scratch.cleanup)
        made = cluster.Cluster(scratch.name, hosts, rates)
        self.addCleanup(made.stop)
        return made

    def measured(self, made, ranks_of, *options):
        path = made.path("run.h5")
        done = made.mpirun(ranks_of, PROGRAM, "run", "--quiet", "--output", path, "--force",
                           "--device", "host", "--ranks", str(sum(ranks_of.values())), *options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return rows_of(path)

    def bare_share(self, made, bytes_per_second):
        """What a bare loop of sends reaches, of the rate."""
        done = made.mpirun({"a": 1, "b": 1}, BARE_LOOP)
        self.assertEqual(done.returncode, 0, done.stderr)
        return float(done.stdout) / bytes_per_second

    def assert_truly_measured(self, rate, bytes_per_second):
        made = self.hosts("ab", {("a", "b"): rate})
        before = self.bare_share(made, bytes_per_second)
        rows = self.measured(made, {"a": 1, "b": 1}, "--workload", "p2p", "--max-time", "30s")
        after = self.bare_share(made, bytes_per_second)
        print(rate, f"a bare loop: {before:.4f} before, {after:.4f} after")
        for row in rows:
            self.assertEqual((row.status, row.wrong), (0, 0))
            print(rate, row.text["kind"], row.number.get("src"), row.number.get("dst"), row.plays,
                  f"{row.time * 1e6:.1f} us", f"{row.bandwidth / bytes_per_second:.4f}")
        links = {row.ends: row for row in rows if row.text["kind"] == "bandwidth"}
        self.assertEqual(set(links), {(0, 1), (1, 0)})
        for ends, row in links.items():
            self.assertEqual(row.text["class"], "other node")
            self.assertLess(row.bandwidth / bytes_per_second, HIGHEST, ends)
        slowest = min(row.bandwidth for row in links.values()) / bytes_per_second
        if slowest < LOWEST and min(before, after) < LOWEST:
            self.skipTest(f"something else uses this machine: a bare loop of sends reaches "
                          f"{min(before, after):.1%} of {rate} as well")
        self.assertGreater(slowest, LOWEST)

    def test_at_1_gbit(self):
        self.assert_truly_measured("1gbit", 1e9 / 8)

    def test_at_5_gbit(self):
        self.assert_truly_measured("5gbit", 5e9 / 8)

    def test_is_found_among_others(self):
        """Of three hosts two have a slow link between them."""
        made = self.hosts("abc", {("a", "b"): "200mbit"})
        rows = self.measured(made, dict.fromkeys("abc", 1), "--workload", "p2p", "--max-time",
                             "10s", "--set", "kinds=bandwidth,latency")
        links = {row.ends: row.bandwidth for row in rows if row.text["kind"] == "bandwidth"}
        self.assertEqual(len(links), 6)
        slow = {ends for ends, bandwidth in links.items() if bandwidth < 200e6 / 8}
        self.assertEqual(slow, {(0, 1), (1, 0)})
        self.assertLess(max(links[ends] for ends in slow),
                        0.2 * min(links[ends] for ends in set(links) - slow))
        report = subprocess.run([PROGRAM, "report", made.path("run.h5"), "--detail"], capture_output=True,
                                text=True, check=True).stdout
        named = [line for line in report.splitlines() if line.split()[:1] == ["SLOW"]]
        # By bandwidth in each direction; by latency as well where the queue of the rate shows.
        self.assertEqual(len([line for line in named if ": bandwidth " in line]), 2, report)
        for line in named:
            for needle in ("rank 0 on hosta", "rank 1 on hostb", "(other node)"):
                self.assertIn(needle, line)
        # The check of the least bandwidth that a link must have names both of its ends.
        done = made.mpirun(dict.fromkeys("abc", 1), PROGRAM, "run", "--quiet", "--ranks", "3",
                           "--workload", "p2p", "--max-time", "5s", "--set", "expect=50MB",
                           "--set", "kinds=bandwidth", "--output", made.path("x.h5"))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)

    def test_classes_of_links(self):
        made = self.hosts("ab", {})
        rows = self.measured(made, {"a": 2, "b": 1}, "--workload", "p2p,collectives", "--max-time",
                             "2s", "--set", "sizes=1KiB", "--set", "size=4KiB")
        pairs = {row.ends: row.text["class"] for row in rows if row.text["op"] == "p2p"
                 and row.text["kind"] in ("latency", "bandwidth", "bidirectional")}
        self.assertEqual(pairs, {(0, 1): "same node", (1, 0): "same node", (0, 2): "other node",
                                 (2, 0): "other node", (1, 2): "other node", (2, 1): "other node"})
        groups = {row.text["class"] for row in rows if row.text["op"] != "p2p"}
        self.assertEqual(groups, {"several nodes"})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
