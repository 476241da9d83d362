# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Micro-benchmarks of memory and of NCCL's algorithms, as whole programs: on the host, and on GPUs
that are stand-ins, so no time means anything. Environment: see device_test.py.
"""

import os
import unittest

import device_test
import harness

try:
    import h5py
except ImportError:
    h5py = None

QUICK = ["--max-time", "2s", "--force", "--output", "run.h5"]


def rows_of(path):
    """The rows of the last point of a run file, as dictionaries."""
    with h5py.File(path, "r") as file:
        points = file["points"]
        rows = points[max(points, key=int)]["rows"]
        columns = {name: column.asstr()[:] for name, column in rows["text"].items()}
        columns |= {name: column[:] for name, column in rows["number"].items()}
        columns["reason"] = rows["reason"].asstr()[:]
        columns |= {name: rows[name][:] for name in ("status", "wrong", "plays")}
        return [{name: column[i] for name, column in columns.items()}
                for i in range(len(columns["status"]))]


OK, FAILED, SKIPPED = range(3)


@unittest.skipIf(h5py is None, "h5py is not installed")
class Memory(device_test.Case):
    """workload memory: rows that fit what was asked for, right on every device."""

    def test_host(self):
        self.run_ok("run", "--device", "host", "--workload", "memory", "--ranks", "2", "--set",
                    "sizes=64KiB,1MiB", *QUICK, ranks=2)
        rows = rows_of(self.path("run.h5"))
        self.assertEqual(len(rows), 2 * 2 * 2)  # copy and triad, alone and together, two sizes
        self.assertEqual({row["kind"] for row in rows}, {"copy", "triad"})
        for row in rows:
            arrays = 2 if row["kind"] == "copy" else 3
            self.assertEqual(row["bytes"], arrays * row["array_bytes"])
            self.assertEqual((row["status"], row["wrong"]), (OK, 0))
            self.assertGreater(row["plays"], 0)

    def test_a_numa_node_that_is_not_there_is_skipped_with_its_reason(self):
        self.run_ok("run", "--device", "host", "--workload", "memory", "--ranks", "1", "--set",
                    "sizes=64KiB", "--set", "numa=0,777", "--set", "kinds=copy", *QUICK)
        there, nowhere = rows_of(self.path("run.h5"))
        self.assertEqual((there["status"], there["numa"]), (OK, 0))
        self.assertEqual((nowhere["status"], nowhere["numa"]), (SKIPPED, 777))
        self.assertIn("no NUMA node 777", nowhere["reason"])

    def test_gpus(self):
        self.install("ISOSCALE_PLUGIN_STANDIN")
        self.run_ok("run", "--device", "cuda", "--workload", "memory", "--ranks", "2", "--set",
                    "sizes=64KiB", "--set", "together=all", *QUICK, ranks=2)
        rows = rows_of(self.path("run.h5"))
        self.assertEqual(len(rows), 11)
        for row in rows:
            self.assertEqual(row["status"], OK, row)
            self.assertEqual(row["wrong"], 0, row)

    def test_refusals(self):
        for option in ["sizes=2", "sizes=1MB..2", "numa=some", "kinds=l2"]:
            with self.subTest(option=option):
                self.assert_refused(
                    self.isoscale("run", "--device", "host", "--workload", "memory", "--ranks", "1",
                                  "--set", option, *QUICK), option.split("=", maxsplit=1)[0])


@unittest.skipIf(h5py is None, "h5py is not installed")
class Pairs(device_test.Case):
    """workload p2p: every pair in both directions, with its class, right on every device."""

    def measured(self, device, ranks):
        self.run_ok("run", "--device", device, "--workload", "p2p", "--ranks", str(ranks), "--set",
                    "size=64KiB", "--set", "renew=2", *QUICK, ranks=ranks)
        rows = rows_of(self.path("run.h5"))
        self.assertEqual(len(rows), 2 * ranks * (ranks - 1) + 2)
        for row in rows:
            self.assertEqual((row["status"], row["wrong"]), (OK, 0), row)
            self.assertGreater(row["plays"], 0)
        ends = {(row["src"], row["dst"]) for row in rows if row["kind"] == "bandwidth"}
        self.assertEqual(len(ends), ranks * (ranks - 1))
        classes = {row["class"] for row in rows if row["src"] == row["src"]}
        self.assertEqual({row["class"] for row in rows} - classes, {"one node"})
        return classes

    def test_host(self):
        self.assertEqual(self.measured("host", 3), {"same node"})

    def test_gpus(self):
        self.install("ISOSCALE_PLUGIN_STANDIN")
        for name in self.measured("cuda", 4):
            self.assertTrue(name.startswith("same node"), name)

    def test_a_pair_below_what_is_expected_fails_the_run(self):
        done = self.isoscale("run", "--device", "host", "--workload", "p2p", "--ranks", "2",
                             "--set", "expect=900TB", "--set", "kinds=bandwidth", *QUICK, ranks=2)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        rows = rows_of(self.path("run.h5"))
        self.assertEqual({row["status"] for row in rows}, {FAILED})
        for row in rows:
            for needle in (f"rank {row['src']:.0f} (", f"rank {row['dst']:.0f} (", "900 TB/s"):
                self.assertIn(needle, row["reason"])
            self.assertGreater(row["plays"], 0)  # what was measured is kept


@unittest.skipIf(h5py is None, "h5py is not installed")
class Algorithms(device_test.Case):
    """workload algorithms: about NCCL, and so about GPUs only."""

    def test_the_host_has_none(self):
        self.assert_refused(self.isoscale("run", "--device", "host", "--workload", "algorithms",
                                          *QUICK, ranks=2), "algorithms", "cuda")
        self.assertNotIn("run.h5", self.files())

    def test_gpus(self):
        self.install("ISOSCALE_PLUGIN_STANDIN")
        self.run_ok("run", "--device", "cuda", "--workload", "algorithms", "--ranks", "2", "--set",
                    "sizes=4KiB", "--set", "small_sizes=64", "--set", "op=all_reduce,all_gather",
                    "--set", "algorithms=ring,nvls,pat", "--set", "protocols=ll,simple", "--set",
                    "rotate=64KiB", *QUICK, ranks=2, ISOSCALE_STANDIN_REFUSES="NVLS")
        rows = rows_of(self.path("run.h5"))
        found = {(row["op"], row["algorithm"], row["protocol"], row["registration"]): row
                 for row in rows}
        expected = {(op, *choice, "none") for op in ("all_reduce", "all_gather")
                    for choice in (("library", "library"), ("ring", "ll"), ("ring", "simple"),
                                   ("nvls", "simple"))}
        expected.add(("all_gather", "pat", "simple", "none"))
        expected |= {(op, "library", "library", how) for how in ("none", "local", "symmetric")
                     for op in ("all_reduce", "all_gather", "sendrecv")}
        self.assertEqual(set(found), expected)
        for (op, algorithm, _, _), row in found.items():
            if algorithm == "nvls":
                self.assertEqual(row["status"], SKIPPED, row)
                self.assertIn("with algorithm nvls", row["reason"])
                continue
            self.assertEqual((row["status"], row["wrong"]), (OK, 0), row)
            self.assertEqual(row["chosen"], "unknown" if algorithm == "library" else algorithm)
            if op != "sendrecv":  # as the stand-in has it: 10 us and 1 GB/s, of what a rank gives
                share = 1 if op == "all_reduce" else 1 / row["members"]
                self.assertAlmostEqual(row["estimate"], (10 + row["bytes"] * share / 1e3) * 1e-6,
                                       places=10)
            else:
                self.assertNotEqual(row["estimate"], row["estimate"])  # NaN: it says nothing


if __name__ == "__main__":
    unittest.main()
