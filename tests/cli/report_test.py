# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Tests of the output of `isoscale report`: the summary of one screen, the sections that --detail
names, files that another program changed, and a whole node as baseline."""

import json
import os
import re
import subprocess

import h5py

import harness

SECTIONS = ("curves", "breakdown", "efficiency", "waterfall", "pop", "strategies", "phases",
            "layers", "soak", "nodes", "devices", "findings", "warnings", "preflight", "rows",
            "calibration", "legend")
QUICK = ["--workload dp,tp --max-time 0.2s --output run.h5", *harness.LITTLE]
LAUNCH = ["run --workload dp --max-time 0.2s", *harness.LITTLE]


def numbers(text):
    return set(re.findall(r"\d[\d.]*", text))


class Summary(harness.Case):
    def setUp(self):
        super().setUp()
        self.sample()

    def report(self, *arguments):
        return self.run_ok("report run.h5", *arguments).stdout

    def test_it_fits_on_a_screen(self):
        shown = [(most, self.on_terminal("report run.h5", stream="stdout", columns=columns))
                 for most, columns in ((80, 80), (110, 200))]
        for columns, text in ((110, self.report()), *shown):
            lines = text.replace("\r\n", "\n").splitlines()
            self.assertLessEqual(len(lines), 40)
            self.assertLessEqual(max(map(len, lines)), columns, text)

    def test_sections_have_all_that_the_whole_has(self):
        whole = self.report("--detail")
        self.assertGreater(len(whole.splitlines()), 40)
        self.assertEqual(whole, self.report("--detail all"))
        self.assertEqual(whole, self.report("--detail", ",".join(SECTIONS)))
        self.assertEqual(whole, self.run_ok("report --detail run.h5").stdout)
        parts = [self.report("--detail", section) for section in SECTIONS]
        self.assertEqual(numbers(whole) - set().union(*map(numbers, parts)), set())

    def test_what_has_no_sections_is_refused(self):
        for arguments, needles in (
                (["--detail", "waterfal"], ["'waterfal'", "did you mean", *SECTIONS]),
                (["--detail", "curves,,pop"], SECTIONS),
                (["--detail", "curves", "--format", "json"], ["--detail", "json"]),
                (["--detail", "--index"], ["--detail", "--index"])):
            with self.subTest(arguments=arguments):
                self.assert_refused(self.isoscale("report run.h5", *arguments), *needles)


class OfARun(harness.Case):
    def test_a_run_ends_with_its_summary(self):
        said = self.run_ok("run", *QUICK, ranks=2).stdout
        self.assertIn("wrote run.h5", said)
        efficiency = re.search(r"^ *tp .* (\d+\.\d%)", said, re.M)
        self.assertIsNotNone(efficiency, said)
        self.assertIn(efficiency[1], self.run_ok("report run.h5").stdout)
        run = self.run_of()
        self.assertEqual(run["planned"], len(run["points"]))


class Altered(harness.Case):
    """A file that another program has changed is refused; of several files the others are read."""

    def setUp(self):
        super().setUp()
        for seed, name in enumerate(("whole.h5", "changed.h5")):
            subprocess.run([os.environ["ISOSCALE_RICH"], self.path(name), "2", str(seed), "4"],
                           check=True)
        with h5py.File(self.path("changed.h5"), "r+") as run:
            run.attrs["git_hash"] = "changed"

    def test_every_command_refuses_it(self):
        for command in ("report changed.h5", "report --index changed.h5",
                        "compare whole.h5 changed.h5", "predict changed.h5 --ranks 4",
                        "run --resume changed.h5"):
            with self.subTest(command=command):
                self.assert_refused(self.isoscale(command), "changed.h5: is not as Isoscale wrote",
                                    "copy it again", "tail -c +513 FILE > NEW")

    def test_of_several_the_others_are_reported(self):
        for how in ([], ["--index"]):
            done = self.run_ok("report whole.h5 changed.h5 --format json", *how)
            self.assertIn("not read: changed.h5", done.stderr)
            document = json.loads(done.stdout)
            self.assertEqual([at["file"] for at in document["unreadable"]], ["changed.h5"])
            self.assertEqual(len(document["index"]), 1)

    def test_without_its_digest_it_is_read(self):
        with open(self.path("read.h5"), "wb") as new:
            subprocess.run(["tail", "-c", "+513", self.path("changed.h5")], stdout=new, check=True)
        run = self.run_of("read.h5")
        self.assertEqual((run["system"]["git_hash"], run["altered"]), ("changed", []))
        self.run_ok("compare whole.h5 read.h5")


class Baselines(harness.Case):
    def test_a_whole_node_is_the_baseline_or_is_refused(self):
        for name, ranks in (("one.h5", 1), ("two.h5", 2)):
            self.measured(name, *LAUNCH, "--ranks", str(ranks), ranks=ranks)
        run = self.run_of("two.h5", "--baseline", "node")
        self.assertEqual(run["curves"][0]["baseline"], 2)
        self.assertEqual(run["curves"][0]["baseline_unit"], "node")
        self.assertEqual((run["points"][0]["speedup"], run["points"][0]["efficiency"]), (1, 1))
        self.assertEqual(run["points"][0]["ranks_per_node"], {"fewest": 2, "most": 2})
        self.run_ok(*LAUNCH, "--ranks 1 --output half.h5", ranks=2)
        self.assert_refused(self.isoscale("report half.h5 --baseline node"),
                            "--baseline node", "whole node")
        self.assert_refused(self.isoscale("report two.h5 --baseline nodes"), "--baseline")
        for index in ([], ["--index"]):
            refused = self.isoscale("report one.h5 two.h5 --baseline 3", *index)
            self.assert_refused(refused, "--baseline 3", "3 ranks")
            self.assertEqual("name one of 1, 2" in refused.stderr, index == [], refused.stderr)
