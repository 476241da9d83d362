# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Micro-benchmarks, and two transports as two points of one run: on the host, and on GPUs that are
stand-ins, so no time means anything. Environment: see device_test.py.
"""

import device_test
from run_rows import rows_of

QUICK = "--max-time 0.2s --precision 50%".split()
OK, SKIPPED = 0, 2


class Case(device_test.Case):
    def rows(self, *arguments, ranks=2, **environment):
        """The rows of a run."""
        self.points_of("run", *arguments, *QUICK, ranks=ranks, **environment)
        return rows_of(self.path("run.h5"))

    def right_rows(self, *arguments, **how):
        """The rows of a run, each of which was measured and is right; a barrier has no result."""
        rows = self.rows(*arguments, **how)
        for row in rows:
            self.assertEqual((row["status"], row["wrong"]),
                             (OK, -1 if row["op"] == "barrier" else 0), row)
        return rows

    def pairs(self, device, ranks):
        """The classes of all pairs, which are measured in both directions."""
        rows = self.right_rows("--device", device, "--workload p2p --ranks", str(ranks),
                               "--set size=64KiB --set renew=2 --allow shared-cores", ranks=ranks)
        self.assertEqual(len(rows), 2 * ranks * (ranks - 1) + 2)
        self.assertGreater(min(row["plays"] for row in rows), 0)
        ends = {(row["src"], row["dst"]) for row in rows if row["kind"] == "bandwidth"}
        self.assertEqual(len(ends), ranks * (ranks - 1))
        classes = {row["class"] for row in rows if row["src"] == row["src"]}
        self.assertEqual({row["class"] for row in rows} - classes, {"one node"})
        return classes

    def collectives(self, *arguments, ranks):
        return self.right_rows("--workload collectives --ranks", str(ranks), "--set rotate=8KiB",
                               *arguments, ranks=ranks)


class OnHost(Case):
    """Every operation compared bit for bit."""

    def test_memory_has_rows_that_fit_what_was_asked_for(self):
        rows = self.right_rows("--device host --workload memory --ranks 2 --set sizes=64KiB,1MiB")
        self.assertEqual(len(rows), 2 * 2 * 2)  # copy and triad, alone and together, two sizes
        self.assertEqual({row["kind"] for row in rows}, {"copy", "triad"})
        for row in rows:
            arrays = 2 if row["kind"] == "copy" else 3
            self.assertEqual(row["bytes"], arrays * row["array_bytes"])
            self.assertGreater(row["plays"], 0)

    def test_pairs_have_their_class(self):
        self.assertEqual(self.pairs("host", 3), {"same node"})

    def test_collectives_are_compared_bit_for_bit(self):
        rows = self.collectives("--device host --set sizes=1KiB --set "
                                "implementation=library,ring,tree,recursive-doubling", ranks=3)
        found = {(row["op"], row["implementation"]) for row in rows}
        self.assertEqual(len({op for op, _ in found}), 10)
        self.assertIn(("all_reduce", "tree"), found)
        self.assertNotIn(("all_reduce", "recursive-doubling"), found)  # 3 is no power of two

    def test_an_axis_has_groups_at_once_and_alone(self):
        rows = self.collectives("--device host --mesh dp=2,tp=2 --set axis=tp --set groups=both "
                                "--set sizes=1KiB", ranks=4)
        self.assertEqual({(row["groups"], row["members"]) for row in rows},
                         {("all", 2), ("one", 2)})


class Parts(Case):
    """workloads gemm, overlap and calibrate, and what a report makes of them."""

    SHAPES = ["--set", "shapes=64x64x64,32x48x16x2"]

    def test_gemm_on_every_device(self):
        self.install("ISOSCALE_PLUGIN_STANDIN")
        for device, dtype in (("host", "f64"), ("cuda", "bf16"), ("cuda", "fp8")):
            with self.subTest(device=device, dtype=dtype):
                [point] = self.points_of("run --workload gemm --ranks 2 --set rotate=64KiB",
                                         "--device", device, "--dtype", dtype, *self.SHAPES, *QUICK,
                                         ranks=2)
                self.assertTrue(point["verified"])
                self.assertEqual(len(point["rows"]), 4)
                self.assertEqual([row["wrong"] for row in rows_of(self.path("run.h5"))], [0] * 4)
                for row in point["rows"]:
                    # A host's BLAS does not say; the stand-in names no fp8 inputs.
                    said = row.get("arithmetic", "")
                    self.assertEqual("tensor cores" in said, device == "cuda", said)
                    self.assertEqual("bf16 inputs" in said, dtype == "bf16", said)
                    flop = 2 * row["m"] * row["n"] * row["k"] * row["batch"]
                    self.assertAlmostEqual(row["flops"], flop / row["time"]["median"],
                                           delta=1e-6 * row["flops"])

    def test_overlap_has_each_part_alone_and_together(self):
        rows = self.rows("--device host --workload overlap --ranks 2", *self.SHAPES,
                         "--set sizes=4KiB")
        self.assertEqual([row["part"] for row in rows[:5]],
                         ["gemm", "gemm traced", "collective", "collective traced", "together"])
        self.assertEqual({row["wrong"] for row in rows}, {0})
        self.assertIn("hidden", self.run_ok("report run.h5 --detail").stdout)

    def test_a_multiplication_that_only_waits_is_not_compared(self):
        [point] = self.points_of("run --device host --workload gemm --ranks 1", *self.SHAPES,
                                 "--inject delay=20GFLOP/s", *QUICK)
        self.assertIsNone(point["verified"])
        self.assertEqual({row["wrong"] for row in rows_of(self.path("run.h5"))}, {-1})

    def test_a_calibrated_run_has_its_ceiling(self):
        self.run_ok("run --device host --workload calibrate,dp --model tiny --ranks 2 --set "
                    "sizes=8..4MiB*64 --set shapes=256x256x256 --set rotate=1MiB --set batch=8",
                    "--output run.h5", *QUICK, ranks=2)
        run = self.run_of()
        ceiling = run["calibration"]["ceilings"][0]["flops"]
        dp = next(point for point in run["points"] if point["workload"] == "dp")
        self.assertAlmostEqual(dp["mfu"], dp["flops_per_rank"] / ceiling, delta=1e-6)
        self.assertIn("the link reaches alone", self.run_ok("report run.h5 --detail").stdout)


PAIR = ["run", "--workload", "hybrid", "--mesh", "tp=2", "--ranks", "2", "--set",
        "transport=nccl,symmetric", *device_test.QUICK]


class Nccl(Case):
    """workload algorithms, and transport=nccl,symmetric: an A/B pair."""

    def test_algorithms_are_told_apart(self):
        self.install("ISOSCALE_PLUGIN_STANDIN")
        rows = self.rows("--device cuda --workload algorithms --ranks 2 --set sizes=4KiB "
                         "--set small_sizes=64 --set op=all_reduce,all_gather --set rotate=64KiB "
                         "--set algorithms=ring,nvls,pat --set protocols=ll,simple",
                         ISOSCALE_STANDIN_REFUSES="NVLS")
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

    def test_host_skips_the_one_it_lacks(self):
        plain, symmetric = self.points_of(*PAIR, "--device host", ranks=2)
        self.assertEqual((plain["options"]["transport"], plain["status"]), ("nccl", "ok"))
        self.assertEqual((symmetric["options"]["transport"], symmetric["status"]),
                         ("symmetric", "skipped"))
        self.assertIn("symmetric windows: --device cuda", symmetric["reason"])
        self.assertIsNone(symmetric["verified"])

    def test_dry_run_says_so_beforehand(self):
        done = self.run_ok(*PAIR, "--device host --dry-run", ranks=2)
        self.assertIn("skipped: transport=symmetric", done.stdout)

    def test_alone_on_the_host_there_is_nothing_to_run(self):
        alone = [word.replace("nccl,symmetric", "symmetric") for word in PAIR]
        self.assert_refused(self.isoscale(*alone, "--device host", ranks=2),
                            "nothing is left", "symmetric windows")

    def test_gpus_play_both(self):
        self.install("ISOSCALE_PLUGIN_STANDIN")
        points = self.points_of(*PAIR, "--device cuda", ranks=2)
        self.assert_verified(*points)
        self.assertEqual([point["options"]["transport"] for point in points],
                         ["nccl", "symmetric"])


class InOtherWays(Case):
    """The same on GPUs, and copies that fill the machine."""

    def setUp(self):
        super().setUp()
        self.install("ISOSCALE_PLUGIN_STANDIN")

    def test_memory(self):
        self.assertEqual(len(self.right_rows("--device cuda --workload memory --ranks 2 --set "
                                             "sizes=64KiB --set together=all")), 11)

    def test_pairs(self):
        for name in self.pairs("cuda", 4):
            self.assertTrue(name.startswith("same node"), name)

    def test_collectives_of_every_type(self):
        rows = self.collectives("--device cuda --set sizes=1KiB --set reduction=sum,max --set "
                                "types=f32,f16,bf16,e4m3,e5m2,i32,u8", ranks=2)
        self.assertEqual(len({row["dtype"] for row in rows} - {"none"}), 7)
        self.collectives("--device cuda --set sizes=1KiB --set "
                         "implementation=ring,tree,recursive-doubling --set "
                         "op=all_reduce,all_gather,reduce_scatter --allow shared-cores", ranks=4)

    def test_ranks_that_share_a_gpu_are_compared_and_not_measured(self):
        for row in self.rows("--device cuda --share-gpu --workload collectives --ranks 2 --set "
                             "sizes=1KiB --set rotate=1KiB", ISOSCALE_STANDIN_GPUS="1"):
            self.assertEqual((row["status"], row["plays"]), (SKIPPED, 0), row)
            self.assertEqual(row["wrong"], -1 if row["op"] == "barrier" else 0, row)

    def test_copies_fill_the_machine(self):
        self.collectives("--device host --fill replicas --set sizes=1KiB", ranks=1)
        self.rows("--device host --workload collectives --ranks 2 --fill replicas --set sizes=1KiB",
                  ranks=4)

    def test_pairs_by_puts(self):
        self.assert_verified(*self.points_of("run --workload p2p --device cuda --ranks 2 --set "
                                             "transport=nccl,symmetric --set size=64KiB", *QUICK,
                                             ranks=2))
