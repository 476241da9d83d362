# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Tests of the output of `isoscale report`: the summary of one screen, the sections that --detail
names, files that were changed, and a whole node as baseline."""

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
    """A file that another program has changed: every output of report and compare says so."""

    def setUp(self):
        super().setUp()
        for seed, name in enumerate(("whole.h5", "changed.h5")):
            subprocess.run([os.environ["ISOSCALE_RICH"], self.path(name), "2", str(seed), "4"],
                           check=True)
        with h5py.File(self.path("changed.h5"), "r+") as run:
            for point in run["points"].values():
                point["step_times"][...] /= 2

    def said(self, text):
        return [line for line in text.splitlines() if "changed.h5" in line and "digest" in line]

    def check(self, *arguments, silent=(), forms):
        """Each form but the silent ones names the file; those of the others stand on stderr."""
        for form in forms:
            with self.subTest(command=arguments[0], form=form):
                done = self.run_ok(*arguments, "--format", form)
                self.assertEqual(len(self.said(done.stdout)) > 0, form not in silent)
                if form in silent or form == "json":
                    self.assertEqual(len(self.said(done.stderr)), 1, done.stderr)

    def test_report(self):
        forms = ("text", "json", "csv", "markdown")
        silent = ("csv", "nccl-tests")
        self.check("report whole.h5 changed.h5", silent=silent, forms=(*forms, "nccl-tests"))
        self.check("report --index whole.h5 changed.h5", silent=silent, forms=forms)
        self.assertTrue(self.said(self.run_ok("report --detail changed.h5").stdout))
        runs = self.json_of("report whole.h5 changed.h5")["runs"]
        self.assertEqual([len(run["altered"]) for run in runs], [0, 1])
        self.assertEqual(runs[1]["warnings"][0], runs[1]["altered"][0])
        self.assertEqual(self.run_ok("report whole.h5").stderr, "")

    def test_compare_and_its_gate(self):
        self.check("compare whole.h5 changed.h5 --gate 5%", silent=("csv",),
                   forms=("text", "json", "csv", "junit", "markdown"))
        document = self.json_of("compare whole.h5 changed.h5 --gate 5%")
        self.assertEqual([len(side["launches"][0]["altered"]) for side in document["sides"]],
                         [0, 1])

    def test_pages(self):
        for command, find in (
                ("report changed.h5", lambda page: page["report"]["runs"][0]["altered"]),
                ("report --index changed.h5", lambda page: page["report"]["warnings"]),
                ("compare whole.h5 changed.h5", lambda page: page["compare"]["warnings"])):
            with self.subTest(command=command):
                self.assertTrue(self.said("\n".join(find(self.page_of(command)))))
                os.remove(self.path("page.html"))


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
