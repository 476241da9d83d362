# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""A link whose rate is known is measured truly, and found among others.

Environment: ISOSCALE = the program, ISOSCALE_BARE_LOOP = tests/cluster/bare_loop.cpp. Exit 77, which
ctest shows as skipped, where namespaces may not be made.
"""

import os
import sys
import unittest

import cluster

try:
    from run_rows import rows_of
except ImportError as error:
    cluster.skip(f"{error} (Debian: apt-get install python3-h5py)")

cluster.enter()

BARE_LOOP = os.environ["ISOSCALE_BARE_LOOP"]
RATE = 1e9 / 8  # bytes per second of the link, of which Ethernet, IP and TCP take 66 of 1514
LOWEST, HIGHEST = 0.94, 0.98


def ends(row):
    return int(row["src"]), int(row["dst"])


def bandwidths(rows):
    """{ends: bytes per second} of the rows that measure it."""
    return {ends(row): row["bytes"] / row["time"] for row in rows if row["kind"] == "bandwidth"}


class ShapedLink(cluster.Case):
    def measured(self, made, ranks_of, *options):
        return rows_of(self.run_to_file(made, ranks_of, "--ranks", str(sum(ranks_of.values())),
                                        *options))

    def bare_share(self, made):
        """What a bare loop of sends reaches, of the rate."""
        done = made.mpirun({"a": 1, "b": 1}, BARE_LOOP)
        self.assert_exit(0, done)
        return float(done.stdout) / RATE

    def test_is_measured_truly(self):
        made = self.cluster_of("ab", rates={("a", "b"): "1gbit"})
        before = self.bare_share(made)
        rows = self.measured(made, {"a": 1, "b": 1}, "--workload", "p2p", "--max-time", "30s")
        after = self.bare_share(made)
        print(f"a bare loop: {before:.4f} before, {after:.4f} after")
        for row in rows:
            self.assertEqual((row["status"], row["wrong"]), (0, 0))
            if row["kind"] == "bandwidth":
                self.assertEqual(row["class"], "other node")
        shares = {of: bandwidth / RATE for of, bandwidth in bandwidths(rows).items()}
        self.assertEqual(set(shares), {(0, 1), (1, 0)})
        self.assertLess(max(shares.values()), HIGHEST, shares)
        slowest = min(shares.values())
        if slowest < LOWEST and min(before, after) < LOWEST:
            self.skipTest(f"something else uses this machine: a bare loop of sends reaches "
                          f"{min(before, after):.1%} of the rate as well")
        self.assertGreater(slowest, LOWEST)

    def test_is_found_among_others(self):
        """Of three hosts two have a slow link between them."""
        made = self.cluster_of("abc", rates={("a", "b"): "200mbit"})
        rows = self.measured(made, dict.fromkeys("abc", 1), "--workload", "p2p", "--max-time",
                             "10s", "--set", "kinds=bandwidth,latency")
        links = bandwidths(rows)
        self.assertEqual(len(links), 6)
        slow = {of for of, bandwidth in links.items() if bandwidth < 200e6 / 8}
        self.assertEqual(slow, {(0, 1), (1, 0)})
        self.assertLess(max(links[of] for of in slow),
                        0.2 * min(links[of] for of in set(links) - slow))
        report = self.run_ok("report", made.path("run.h5"), "--detail").stdout
        named = [line for line in report.splitlines() if line.split()[:1] == ["SLOW"]]
        # By bandwidth in each direction; by latency as well where the queue of the rate shows.
        self.assertEqual(len([line for line in named if ": bandwidth " in line]), 2, report)
        for line in named:
            self.assert_shown(line, "rank 0 on hosta", "rank 1 on hostb", "(other node)")
        # The check of the least bandwidth that a link must have names both of its ends.
        done = made.mpirun(dict.fromkeys("abc", 1), self.program, "run", "--quiet", "--ranks", "3",
                           "--workload", "p2p", "--max-time", "5s", "--set", "expect=50MB",
                           "--set", "kinds=bandwidth", "--output", made.path("x.h5"))
        self.assert_exit(1, done)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
