# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Comparisons of real launches: every format, what is refused, and the gate's exit codes."""

import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree

import harness
import run_digest

RUN = ["run --ranks 1,2 --max-time 0.1s", *harness.LITTLE, "--workload"]
A = ["a1.h5", "a2.h5", "a3.h5"]
LAUNCHES = {**{name: [] for name in (*A, "b1.h5")}, "f64.h5": ["--dtype", "f64"]}


class Comparing(harness.Case):
    def compare(self, *arguments, code=0):
        return self.ended(code, "compare", *arguments)

    def json(self, *arguments, code=0):
        return json.loads(self.compare(*arguments, "--format json", code=code).stdout)


class Compared(Comparing):
    def setUp(self):
        super().setUp()
        for name, options in LAUNCHES.items():
            self.measured(name, *RUN, "dp", *options, ranks=2, launch=name)

    def test_every_format_can_be_read(self):
        sides = [",".join(A), "b1.h5"]
        document = self.json(*sides)
        self.assertEqual([side["name"] for side in document["sides"]], ["a", "b1"])
        curve = document["curves"][0]
        self.assertEqual(curve["baseline"], 1)
        self.assertEqual([point["ranks"] for point in curve["sides"][0]["points"]], [1, 2])
        for at in document["differences"]:
            self.assertEqual(at["verdict"], "one launch")
            self.assertIsNone(at["throughput"]["lower"])
        two = document["differences"][1]
        self.assertAlmostEqual(sum(cause["points"] for cause in two["why"]),
                               two["efficiency"]["points"])
        self.assertEqual(document["gate"], None)
        rows = self.csv_of("compare", *sides)
        self.assertEqual([(row["side"], row["ranks"]) for row in rows],
                         [("a", "1"), ("a", "2"), ("b1", "1"), ("b1", "2")])
        self.assertEqual(rows[0]["throughput_ratio"], "")
        self.assertAlmostEqual(float(rows[3]["throughput_ratio"]),
                               float(rows[3]["throughput"]) / float(rows[1]["throughput"]))
        suite = xml.etree.ElementTree.fromstring(self.compare(*sides, "--format junit").stdout)
        self.assertEqual(len(suite.findall(".//testcase")), 2)
        self.assertEqual(len(suite.findall(".//skipped")), 2)
        self.assertEqual(document["overall"][0]["points"], 2)
        self.assertTrue(self.compare(*sides).stdout.startswith("b1 is "))
        self.assertEqual([side["name"] for side in self.json(*sides, "--names new,old")["sides"]],
                         ["new", "old"])
        for names in ("new", "a,b,c", "a,a", "a,<b>"):
            self.assert_refused(self.isoscale("compare", *sides, "--names", names), "--names")
        markdown = self.compare(*sides, "--format markdown --gate 5%").stdout
        self.assertRegex(markdown, r"(?m)^\|[^|]+\| 2 \| b1 \| [-+]?\d+\.\d%")  # the gate's table

    def test_a_page_holds_the_comparison(self):
        data = self.page_of("compare a1.h5 b1.h5")
        self.assertEqual((data["kind"], data["compare"]), ("compare", self.json("a1.h5 b1.h5")))

    def test_what_is_unlike_is_refused_line_by_line(self):
        done = self.compare("a1.h5 f64.h5", code=2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(re.findall(r"^  (\w+): f32 .*, f64 ", done.stderr, re.M), ["dtype"])
        self.assertEqual(self.json("a1.h5 f64.h5", code=2)["refused"][0]["what"], "dtype")
        document = self.json("a1.h5 f64.h5 --anyway")
        self.assertEqual(document["curves"][0]["marks"], ["dtype"])
        self.assertIn("UNLIKE dtype", self.compare("a1.h5 f64.h5 --anyway").stdout)

    def test_a_run_on_two_sides_is_refused_and_a_copy_counts_once(self):
        shutil.copy(self.path("a1.h5"), self.path("copy.h5"))
        self.assert_refused(self.isoscale("compare a1.h5 copy.h5"), "a run with itself")
        self.assert_refused(self.isoscale("compare a1.h5 b1.h5 --baseline 7"), "--baseline 7")
        done = self.compare("a1.h5,copy.h5,a2.h5 b1.h5 --format json")
        self.assertIn("copy.h5", done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["sides"][0]["launches"]), 2)

    def test_the_gate_says_when_it_cannot_tell(self):
        done = self.compare(",".join(A), "b1.h5 --gate 5%")
        self.assertRegex(done.stderr, "gate .* 2 points.* 3 launches")
        self.assertIn("gate 5.0%: undecided", done.stdout.splitlines()[-1])
        strict = self.compare(",".join(A), "b1.h5 --gate 5% --strict --format junit", code=3)
        self.assertEqual(len(xml.etree.ElementTree.fromstring(strict.stdout)
                             .findall(".//failure")), 2)


class Gated(Comparing):
    """Launches that were simulated, so that nothing hangs on how busy this machine is."""

    def made(self, name, seed, slower=1.0):
        """A launch; slowed, it says so."""
        subprocess.run([os.environ["ISOSCALE_RICH"], self.path(name), "2", str(seed), "4"],
                       check=True)
        with run_digest.changed(self.path(name)) as run:
            for point in run["points"].values():
                point["step_times"][...] *= slower
                if slower != 1 and point.attrs["status"] == "ok":
                    for of, text in ("labels", b"injected"), ("injections", b"slow-rank=0:2"):
                        del point[of]
                        point.create_dataset(of, data=[text], dtype=f"S{len(text)}")
        return name

    def test_the_gate_finds_a_regression(self):
        before = ",".join(self.made(f"made{seed}.h5", seed) for seed in (1, 2, 3))
        same = ",".join(self.made(f"made{seed}.h5", seed) for seed in (4, 5, 6))
        slowed = ",".join(self.made(f"made{seed}.h5", seed, slower=1.5) for seed in (7, 8, 9))
        gate = "--anyway --gate 5%".split()
        document = self.json(before, slowed, *gate, code=3)
        found = [at for at in document["differences"] if at["verdict"] == "regression"]
        self.assertGreater(len(found), 2)
        self.assertEqual(document["gate"]["regressions"], len(found))
        for at in found:
            self.assertEqual(min(at["launches"].values()), 3)
            self.assertLess(at["throughput"]["lower"], 0.7)
            self.assertLess(at["throughput"]["upper"], 0.95)
            self.assertEqual(at["marks"], ["labels", "injected"])
        text = self.compare(before, slowed, *gate, code=3).stdout
        self.assertTrue(text.splitlines()[-1].startswith("gate 5.0%: "), text)
        self.assertEqual(self.json(before, same, *gate)["gate"]["regressions"], 0)
