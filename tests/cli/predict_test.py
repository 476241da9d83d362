# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Predictions from a run and from a data sheet: every format, and what is refused."""

import lzma
import os
import shlex

import harness

SHEET = os.path.join(os.environ["ISOSCALE_DOCUMENTS"], "analysis/systems/a100-hdr.toml")
STORED = os.path.join(os.environ["ISOSCALE_DOCUMENTS"], "tests/stored/calibrate.h5.xz")
RUN = ["run --device host --workload dp,calibrate --model tiny --ranks 1,2 --max-time 0.5s",
       *harness.FEW_CASES]


class Predicting(harness.Case):
    def text(self, *arguments):
        return self.run_ok("predict", *arguments).stdout

    def refused(self, *arguments):
        """The last argument lists texts that the message must hold; the others are the
        command's."""
        *options, needles = arguments
        with self.subTest(options=options):
            self.assert_refused(self.isoscale("predict", *options), *needles)

    def json(self, *arguments):
        return self.json_of("predict", *arguments)

    def check_point(self, point):
        """What holds of every point, whatever its numbers are."""
        step = point["step_time"]
        self.assertLess(step["lower"], step["value"])
        self.assertLess(step["value"], step["upper"])
        parts = "compute copies transfer wait bubble gap other".split()
        sums = [sum(point["breakdown"][name] for name in parts)]
        if fall := point["waterfall"]:
            sums.append(fall["ideal"] + sum(fall["lost"].values()))
        for of_parts in sums:
            self.assertAlmostEqual(of_parts / step["value"], 1, places=4)


class OfSheets(Predicting):
    def ask(self, *arguments):
        return [SHEET, "--model", "gpt-1.3b", "--ranks", "8,64,512", "--set", "batch=2048",
                *arguments]

    def test_collectives_have_the_columns_of_nccl_tests(self):
        asked = ("h100-ndr --workload collectives --ranks 8 --set op=all_reduce "
                 "--set sizes=1GiB").split()
        row = self.json(*asked)["rows"][0]
        # 4029 us on 8 H100 (NVIDIA/dgxc-benchmarking)
        self.assertAlmostEqual(row["time"] / 4029e-6, 1, delta=0.05)
        cells = self.text(*asked).splitlines()[-1].split()
        self.assertEqual(cells[:5], ["1073741824", "536870912", "bfloat16", "sum", "-1"])
        self.assertAlmostEqual(float(cells[5]) * 1e-6 / row["time"], 1, places=4)
        self.assertEqual(self.text(*asked, "--format", "csv").splitlines()[1].split(",")[4],
                         "all_reduce")
        self.refused(*asked, "--best", ["--best", "collectives"])

    def test_a_sheet_is_named_like_a_model(self):
        self.assert_shown(self.run_ok("list systems").stdout, "a100-hdr ", "72 ranks",
                          "74.5 GiB", "989 TFLOP/s in bf16")
        self.assert_shown(self.run_ok("list software").stdout, "nemo-2025 ", "megatron-2021 ")
        by_name = self.json("a100-hdr", *self.ask()[1:])
        self.assertEqual(by_name["curve"], self.json(*self.ask())["curve"])
        self.refused("h100", *self.ask()[1:], ["h100-ndr"])

    def test_few_microbatches_are_warned_of(self):
        asked = [SHEET, "--model", "gpt-1.3b", "--ranks", "8", "--mesh", "pp=8"]
        for batch, is_warned in ((32, True), (256, False)):
            document = self.json(*asked, "--set", f"batch={batch}", "--set microbatch=4")
            self.assertEqual("two microbatches" in str(document["warnings"]), is_warned, batch)

    def test_the_page_of_model_keys_is_the_table_that_the_reader_has(self):
        page = self.read(os.path.join(os.environ["ISOSCALE_DOCUMENTS"], "docs/models.md"))
        rows = [line.split("|")[1:4] for line in page.splitlines() if line.startswith("| `")]
        documented = [(key.strip(" `"), default.strip(), meaning.strip())
                      for key, default, meaning in rows]
        listed = []
        for line in self.run_ok("list keys model").stdout.splitlines():
            key, rest = line.split(None, 1)
            meaning, default = rest.rsplit(" [", 1)
            listed.append((key, default.rstrip("]"), meaning))
        self.assertEqual(documented, listed)
        for what, key in (("system", "memory.capacity"), ("suite", "max_time"),
                          ("software", "traffic.KIND")):
            self.assertIn(key, self.run_ok("list keys", what).stdout)

    def test_a_page_holds_the_prediction_and_is_not_written_over(self):
        data = self.page_of("predict", *self.ask())
        self.assertEqual((data["kind"], data["prediction"]), ("predict", self.json(*self.ask())))
        self.assertLess(os.path.getsize(self.path("page.html")), 8_000_000)

    def test_refusals(self):
        self.refused(["run file"])
        self.refused(SHEET, ["--ranks"])
        self.refused(SHEET, "--ranks 8", ["--model"])
        self.refused("absent.toml --ranks 8 --model tiny", ["absent.toml"])
        self.refused(*self.ask("--mesh tp=3"), ["nearest mesh that works"])
        self.refused(*self.ask("--set link.intre=2x"), ["did you mean"])
        self.refused(*self.ask("--baseline 3"), ["--baseline 3", "8, 64, 512"])
        self.refused(*self.ask("--best --mesh tp=2,pp=2,dp=2"), ["--best"])
        self.refused(*self.ask("--workload gemm"), ["no step"])
        self.write("broken.toml", self.read(SHEET) + "\nnonsense = 1\n")
        self.refused("broken.toml --ranks 8 --model tiny", ["broken.toml:", "nonsense"])


class OfRuns(Predicting):
    def setUp(self):
        super().setUp()
        self.measured("run.h5", *RUN, ranks=2)

    def test_a_curve_beyond_what_was_measured(self):
        document = self.json("run.h5 --ranks 2,4,8 --nodes-of 8")
        # On a busy machine the first point may have too few steps for a baseline.
        measured = {point["ranks"]: point for point in document["measured"]}
        self.assertEqual(list(measured), [1, 2])
        self.assertAlmostEqual(measured[document["baseline"]]["efficiency"], 1)
        points = document["curve"]["points"]
        self.assertEqual([(point["ranks"], point["nodes"]) for point in points],
                         [(2, 1), (4, 1), (8, 1)])
        for point in points:
            self.check_point(point)
            self.assertFalse(point["extrapolated"])
            self.assertAlmostEqual(point["step_time"]["value"],
                                   document["correction"] * (point["simulated"] + point["delay"]))
            self.assertIn("beyond the model", point["waterfall"]["lost"])

    def unpack(self):
        with lzma.open(STORED) as stored, open(self.path("stored.h5"), "wb") as file:
            file.write(stored.read())

    def test_a_point_that_an_idle_machine_measured(self):
        # The measured point and its prediction are of one machine. A run of now may be disturbed
        # between its calibration and its steps.
        self.unpack()
        document = self.json("stored.h5 --ranks 2 --nodes-of 2")
        [predicted] = document["curve"]["points"]
        ratio = predicted["step_time"]["value"] / document["measured"][1]["step_time"]
        self.assertAlmostEqual(ratio, 1, delta=0.05)
        self.assertAlmostEqual(document["correction"], 1, delta=0.05)

    def test_what_is_far_is_marked(self):
        document = self.json("run.h5 --ranks 64,128 --nodes-of 128 --set batch=1024")
        self.assertEqual([point["extrapolated"] for point in document["curve"]["points"]],
                         [False, True])
        self.assertIn("128 ranks", str(document["warnings"]))
        # Another batch is other work, so that the measured points are no baseline.
        self.assertEqual((document["baseline"], document["measured"]), (64, []))
        self.assertIn("extrapolated",
                      self.text("run.h5 --ranks 128 --nodes-of 128 --set batch=1024"))

    def test_one_configuration_has_one_step_time_and_commands_that_can_be_run(self):
        document = self.json("run.h5 --ranks 2 --nodes-of 2 --best")
        commands = [document["best_command"]]
        if document["next"] is not None:
            commands.append(document["next"]["command"])
        for command in commands:
            words = shlex.split(command)
            self.run_ok(shlex.join(words[words.index("isoscale") + 1:]), "--dry-run",
                        ranks=int(words[2]))
        self.assertAlmostEqual(document["best"][0]["step_time"]
                               / document["curve"]["points"][0]["step_time"]["value"], 1, places=6)

    def test_a_sheet_takes_the_links_between_nodes_from_another(self):
        self.assert_shown(self.text("h100-ndr --model gpt-6.7b --ranks 64 --mesh tp=1",
                                    "--network ethernet"), "between nodes: ethernet",
                          "software: NeMo")
        # Slower links take longer, and switches that reduce take part as in the sheet they are from.
        self.write("sharp.toml", """base = "h100-ndr"
name = "H100 with SHARP"
[network]
algorithms = ["ring", "tree", "multicast", "collnet"]
[network.collnet]
reached = 0.52
latency = 44e-6
across_latency = 1e-6
""")
        training = ("--workload dp --model gpt-6.7b --ranks 512 --set batch=512 --set zero=0 "
                    "--set overlap=off")
        own, slow, sharp, whole = (
            self.json(source, training)["curve"]["points"][0]["step_time"]["value"]
            for source in ("h100-ndr", "h100-ndr --network ethernet",
                           "h100-ndr --network sharp.toml", "./sharp.toml"))
        self.assertGreater(slow, 1.5 * own)
        self.assertEqual(sharp, whole)
        self.assertLess(sharp, 0.99 * own)
        # The run has one node.
        self.refused("h100-ndr --model tiny --ranks 16 --network run.h5", ["--network run.h5"])

    def test_text_shows_the_measured_points_too(self):
        self.assert_shown(self.text("run.h5 --ranks 4 --nodes-of 4 --set latency=0.5x"), "measured",
                          "noise", "launch", "model", "if latency=0.5x", "beyond the model")

    def test_refusals(self):
        self.refused("run.h5 --ranks 1,4", ["--ranks 1", "up to 2 ranks"])
        # The run measured nothing between nodes, and the prediction makes nothing up.
        self.refused("run.h5 --ranks 4", ["between nodes", "--nodes-of"])
        same = self.isoscale("predict run.h5 --ranks 4,8")
        self.assertEqual(same.stderr.count("between nodes"), 1, same.stderr)
        self.refused("run.h5 --ranks 4 --workload tp", ["--workload tp"])
        self.run_ok("run --device host --workload dp --ranks 1 --max-time 0.2s --output bare.h5")
        self.refused("bare.h5 --ranks 4", ["calibrate"])
