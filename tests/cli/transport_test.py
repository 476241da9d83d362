# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Option transport as whole programs: two transports as two points of one run, skipped with its
reason where one cannot run. Environment: see device_test.py.
"""

import device_test

PAIR = ["run", "--workload", "hybrid", "--mesh", "tp=2", "--ranks", "2", "--set",
        "transport=nccl,symmetric", *device_test.QUICK]
RUN = ["--force", "--output", "run.h5"]


class Transport(device_test.Case):
    """transport=nccl,symmetric: an A/B pair."""

    def test_host_skips_the_one_it_lacks(self):
        self.run_ok(*PAIR, "--device", "host", *RUN, ranks=2)
        plain, symmetric = self.run_of()["points"]
        self.assertEqual((plain["options"]["transport"], plain["status"]), ("nccl", "ok"))
        self.assertEqual((symmetric["options"]["transport"], symmetric["status"]),
                         ("symmetric", "skipped"))
        self.assertIn("needs NCCL's symmetric windows: --device cuda", symmetric["reason"])
        self.assertIsNone(symmetric["verified"])

    def test_dry_run_says_so_beforehand(self):
        done = self.run_ok(*PAIR, "--device", "host", "--dry-run", ranks=2)
        self.assertIn("skipped: transport=symmetric needs NCCL's symmetric windows", done.stdout)

    def test_alone_on_the_host_there_is_nothing_to_run(self):
        alone = [word.replace("nccl,symmetric", "symmetric") for word in PAIR]
        self.assert_refused(self.isoscale(*alone, "--device", "host", *RUN, ranks=2),
                            "nothing is left to run", "symmetric windows")

    def test_an_unknown_transport_is_named(self):
        wrong = [word.replace("nccl,symmetric", "nccl,smoke") for word in PAIR]
        self.assert_refused(self.isoscale(*wrong, "--device", "host", *RUN, ranks=2), "smoke")

    def test_gpus_play_both(self):
        self.install("ISOSCALE_PLUGIN_STANDIN")
        self.run_ok(*PAIR, "--device", "cuda", *RUN, ranks=2)
        for point, transport in zip(self.run_of()["points"], ["nccl", "symmetric"], strict=True):
            self.assertEqual((point["options"]["transport"], point["status"], point["verified"]),
                             (transport, "ok", True), point["reason"])

    def test_a_type_without_kernel_is_skipped(self):
        self.install("ISOSCALE_PLUGIN_STANDIN")
        self.run_ok(*PAIR, "--device", "cuda", "--dtype", "f64", *RUN, ranks=2)
        plain, symmetric = self.run_of()["points"]
        self.assertEqual((plain["status"], symmetric["status"]), ("ok", "skipped"))
        self.assertIn("no symmetric kernel for all_reduce of f64", symmetric["reason"])

    def test_pairs_by_puts(self):
        self.install("ISOSCALE_PLUGIN_STANDIN")
        self.run_ok("run", "--workload", "p2p", "--device", "cuda", "--ranks", "2", "--set",
                    "transport=nccl,symmetric", "--set", "size=64KiB", "--max-time", "2s", *RUN,
                    ranks=2)
        for point in self.run_of()["points"]:
            self.assertEqual((point["status"], point["verified"]), ("ok", True), point["reason"])
