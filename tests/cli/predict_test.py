# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Predictions from a run and from a data sheet: every format, and what is refused."""

import os
import shlex

import harness

SYSTEMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "analysis", "systems")
RUN = ["run", "--device", "host", "--workload", "dp,calibrate", "--model", "tiny", "--ranks", "1,2",
       "--max-time", "1s"]


class Predicting(harness.Case):
    def predict(self, *arguments, code=0):
        done = self.isoscale("predict", *arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def json(self, *arguments):
        return self.json_of("predict", *arguments)

    def check_point(self, point):
        """What holds of every point, whatever its numbers are."""
        step = point["step_time"]
        self.assertLess(step["lower"], step["value"])
        self.assertLess(step["value"], step["upper"])
        parts = point["breakdown"]
        self.assertAlmostEqual(
            sum(parts[name] for name in ("compute", "copies", "transfer", "wait", "bubble", "gap",
                                         "other")) / step["value"], 1, places=4)
        if point["waterfall"] is not None:
            fall = point["waterfall"]
            self.assertAlmostEqual((fall["ideal"] + sum(fall["lost"].values())) / step["value"], 1,
                                   places=4)


class OfSheets(Predicting):
    def sheet(self, name="a100-hdr.toml"):
        return os.path.join(SYSTEMS, name)

    def ask(self, *arguments):
        return [self.sheet(), "--model", "gpt-1.3b", "--ranks", "8,64,512", "--set", "batch=2048",
                *arguments]

    def test_a_curve_with_its_causes(self):
        document = self.json(*self.ask())
        self.assertEqual(document["baseline"], 8)
        self.assertEqual(document["measured"], [])
        points = document["curve"]["points"]
        self.assertEqual([point["ranks"] for point in points], [8, 64, 512])
        for point in points:
            self.check_point(point)
            self.assertEqual(point["options"]["batch"], "2048")
        self.assertEqual(points[0]["efficiency"]["value"], 1)
        self.assertLess(points[2]["efficiency"]["value"], 1)
        self.assertTrue(document["limits"])

    def test_a_sheet_is_named_like_a_model(self):
        listed = self.isoscale("list", "systems").stdout
        self.assertIn("a100-hdr ", listed)
        for numbers in ("nodes of 72 ranks", "74.5 GiB", "989 TFLOP/s in bf16"):
            self.assertIn(numbers, listed)
        by_name = self.json("a100-hdr", *self.ask()[1:])
        self.assertEqual(by_name["curve"], self.json(*self.ask())["curve"])
        self.assert_refused(self.isoscale("predict", "h100", *self.ask()[1:]), "h100-ndr")

    def test_a_count_that_does_not_divide_is_refused_alone(self):
        asked = [self.sheet(), "--model", "gpt-1.3b", "--mesh", "tp=8", "--ranks", "8,12,64"]
        points = self.json(*asked)["curve"]["points"]
        self.assertEqual([point["refused"] is None for point in points], [True, False, True])
        self.assertRegex(points[1]["refused"], "8 (and|or) 16")
        self.assertIn("12", self.predict(*asked).stdout)

    def test_the_batch_is_said_and_a_single_count_has_no_efficiency(self):
        asked = [self.sheet(), "--model", "gpt-1.3b", "--ranks", "64"]
        document = self.json(*asked)
        self.assertEqual(document["batch"], 512)
        self.assertEqual(document["tokens_per_step"], 512 * 2048)
        point = document["curve"]["points"][0]
        self.assertAlmostEqual(point["throughput_per_rank"]["value"] * 64,
                               point["throughput"]["value"], places=3)
        text = self.predict(*asked, "--set", "gemm=1.3x").stdout
        self.assertIn("512", text)
        self.assertNotIn("100.0%", text)
        self.assertNotIn("fficiency", text)
        self.assertFalse(document["has_efficiency"])

    def test_few_microbatches_are_warned_of(self):
        asked = [self.sheet(), "--model", "gpt-1.3b", "--ranks", "8", "--mesh", "pp=8"]
        few = self.json(*asked, "--set", "batch=32", "--set", "microbatch=4")
        self.assertTrue(any("two microbatches" in text for text in few["warnings"]))
        many = self.json(*asked, "--set", "batch=256", "--set", "microbatch=4")
        self.assertFalse(any("two microbatches" in text for text in many["warnings"]))

    def test_the_best_is_a_command(self):
        document = self.json(self.sheet(), "--model", "gpt-1.3b", "--ranks", "8", "--best",
                             "--set", "batch=64")
        command = document["best_command"].split()
        self.assertEqual(command[:5], ["mpirun", "-np", "8", "isoscale", "run"])
        best = document["best"][0]
        for key in ("zero", "microbatch", "batch"):
            self.assertEqual(best["options"][key],
                             dict(word.split("=") for word in command if "=" in word
                                  and "," not in word).get(key, best["options"][key]))

    def test_the_page_of_model_keys_is_the_table_that_the_reader_has(self):
        with open(os.path.join(SYSTEMS, "..", "..", "docs", "models.md"), encoding="utf-8") as file:
            rows = [line.split("|")[1:4] for line in file if line.startswith("| `")]
        documented = [(key.strip(" `"), default.strip(), meaning.strip())
                      for key, default, meaning in rows]
        listed = []
        for line in self.isoscale("list", "keys", "model").stdout.splitlines():
            key, rest = line.split(None, 1)
            meaning, default = rest.rsplit(" [", 1)
            listed.append((key, default.rstrip("]"), meaning))
        self.assertEqual(documented, listed)
        for what, key in (("system", "memory.capacity"), ("suite", "max_time")):
            self.assertIn(key, self.isoscale("list", "keys", what).stdout)

    def test_what_if_is_beside_the_base(self):
        document = self.json(*self.ask("--set", "link.inter=4x", "--set", "gemm=2x,memory=2x"))
        self.assertEqual([curve["title"] for curve in document["what_if"]],
                         ["link.inter=4x", "gemm=2x,memory=2x"])
        for curve in document["what_if"]:
            for base, changed in zip(document["curve"]["points"], curve["points"]):
                self.assertLessEqual(changed["step_time"]["value"], base["step_time"]["value"])
        text = self.predict(*self.ask("--set", "link.inter=4x")).stdout
        for words in ("if link.inter=4x", "lost time, from ideal to predicted", "pp transfer",
                      "90% interval", "limit"):
            self.assertIn(words, text)

    def test_a_page_holds_the_prediction_and_is_not_written_over(self):
        data = self.page_of("predict", *self.ask())
        self.assertEqual((data["kind"], data["prediction"]), ("predict", self.json(*self.ask())))
        self.assertLess(os.path.getsize(self.path("page.html")), 8_000_000)

    def test_csv_has_a_row_for_each_rank_count_and_curve(self):
        rows = self.csv_of("predict", *self.ask("--set", "gemm=2x"))
        self.assertEqual([(row["curve"], row["ranks"]) for row in rows],
                         [(curve, ranks) for curve in (rows[0]["curve"], "gemm=2x")
                          for ranks in ("8", "64", "512")])
        self.assertLess(float(rows[3]["step_time"]), float(rows[0]["step_time"]))

    def test_refusals(self):
        def refused(*arguments):
            *options, needles = arguments
            self.assert_refused(self.isoscale("predict", *options), *needles)

        refused(["run file"])
        refused(self.sheet(), ["--ranks"])
        refused(self.sheet(), "--ranks", "8", ["--model"])
        refused("absent.toml", "--ranks", "8", "--model", "tiny", ["absent.toml"])
        refused(*self.ask("--mesh", "tp=3"), ["nearest mesh that works"])
        refused(*self.ask("--set", "link.intre=2x"), ["did you mean"])
        refused(*self.ask("--baseline", "3"), ["--baseline 3", "8, 64, 512"])
        refused(*self.ask("--best", "--mesh", "tp=2,pp=2,dp=2"), ["--best"])
        refused(*self.ask("--workload", "gemm"), ["no step"])
        self.write("broken.toml", self.read(self.sheet()) + "\nnonsense = 1\n")
        refused("broken.toml", "--ranks", "8", "--model", "tiny", ["broken.toml:", "nonsense"])


class OfRuns(Predicting):
    def setUp(self):
        super().setUp()
        self.measured("run.h5", *RUN, ranks=2)

    def test_a_curve_beyond_what_was_measured(self):
        document = self.json("run.h5", "--ranks", "2,4,8", "--nodes-of", "8")
        # On a busy machine the first point may have too few steps for a baseline.
        measured = {point["ranks"]: point for point in document["measured"]}
        self.assertEqual(list(measured), [1, 2])
        self.assertAlmostEqual(measured[document["baseline"]]["efficiency"], 1)
        points = document["curve"]["points"]
        self.assertEqual([point["ranks"] for point in points], [2, 4, 8])
        self.assertEqual([point["nodes"] for point in points], [1, 1, 1])
        for point in points:
            self.check_point(point)
            self.assertFalse(point["extrapolated"])
            self.assertAlmostEqual(
                point["step_time"]["value"],
                document["correction"] * (point["simulated"] + point["delay"]))
            self.assertIn("beyond the model", point["waterfall"]["lost"])
        # The measured point and its prediction are of one machine.
        ratio = points[0]["step_time"]["value"] / document["measured"][1]["step_time"]
        self.assertGreater(ratio, 0.5)
        self.assertLess(ratio, 2)

    def test_what_is_far_is_marked(self):
        document = self.json("run.h5", "--ranks", "64,128", "--nodes-of", "128",
                             "--set", "batch=1024")
        self.assertEqual([point["extrapolated"] for point in document["curve"]["points"]],
                         [False, True])
        self.assertTrue(any("128 ranks" in warning for warning in document["warnings"]))
        # Another batch is other work, so that the measured points are no baseline.
        self.assertEqual(document["measured"], [])
        self.assertEqual(document["baseline"], 64)
        text = self.predict("run.h5", "--ranks", "128", "--nodes-of", "128", "--set",
                            "batch=1024").stdout
        self.assertIn("extrapolated", text)

    def test_one_configuration_has_one_step_time(self):
        document = self.json("run.h5", "--ranks", "2", "--nodes-of", "2", "--best")
        self.assertAlmostEqual(document["best"][0]["step_time"]
                               / document["curve"]["points"][0]["step_time"]["value"], 1, places=6)
        # The command is one that a run accepts.
        command = document["best_command"].split()
        self.run_ok(*command[command.index("isoscale") + 1:], "--dry-run", ranks=2)

    def check_commands(self, run):
        """The printed commands can be run, at least as far as a dry run goes."""
        document = self.json(run, "--ranks", "4", "--nodes-of", "4", "--best")
        commands = [document["best_command"]]
        if document["next"] is not None:
            commands.append(document["next"]["command"])
        for command in commands:
            words = shlex.split(command)
            self.run_ok(*words[words.index("isoscale") + 1:], "--dry-run", ranks=int(words[2]))
        return document

    def test_its_commands_name_the_model_file_of_the_run(self):
        keys = "layers = 2\nhidden = 64\nheads = 4\nsequence = 32\n"
        measured = ["--device", "host", "--workload", "dp,calibrate", "--ranks", "1,2",
                    "--max-time", "1s"]
        os.mkdir(self.path("my models"))
        self.write("my models/even.toml", keys)
        self.run_ok("run", *measured, "--model=my models/even.toml", "--output", "file.h5", ranks=2)
        self.assertIn("--model 'my models/even.toml'",
                      self.check_commands("file.h5")["best_command"])
        self.write("plan.toml", f"[model]\nname = 'mine'\n{keys}")
        self.run_ok("run", "plan.toml", *measured, "--output", "table.h5", ranks=2)
        document = self.json("table.h5", "--ranks", "4", "--nodes-of", "4", "--best")
        told = [text for text in document["warnings"] if "mine.toml" in text]
        self.assertEqual(len(told), 1, document["warnings"])
        self.write("mine.toml", told[0].split("one a line: ")[1].replace("; ", "\n"))
        self.check_commands("table.h5")

    def test_a_network_of_a_sheet_joins_nodes_of_a_run(self):
        refused = self.json("run.h5", "--ranks", "2,4")["curve"]["points"]
        self.assertIsNone(refused[0]["refused"])
        self.assertIn("between nodes", refused[1]["refused"])
        document = self.json("run.h5", "--ranks", "2,4", "--network", "h100-ndr")
        self.assertEqual([point["nodes"] for point in document["curve"]["points"]], [1, 2])
        self.assertIsNone(document["curve"]["points"][1]["refused"])
        for name in ("h100-ndr", "run.h5", "5.0%"):
            self.assertIn(name, document["network"])
        text = self.predict("run.h5", "--ranks", "2,4", "--network", "h100-ndr").stdout
        self.assertIn(document["network"], " ".join(text.split()))
        # The interval includes the error that the sheet may have.
        alone = self.json("run.h5", "--ranks", "2")["curve"]["points"][0]
        joined = document["curve"]["points"][0]
        self.assertGreaterEqual(joined["uncertainty"]["fit"], 0.05)
        self.assertGreater(joined["step_time"]["upper"] / joined["step_time"]["value"],
                           alone["step_time"]["upper"] / alone["step_time"]["value"])
        self.assert_refused(self.isoscale("predict", "run.h5", "--ranks", "4", "--network",
                                          "run.h5"), "--network run.h5")
        self.assert_refused(self.isoscale("predict", "h100-ndr", "--model", "tiny", "--ranks", "4",
                                          "--network", "h100-ndr"), "--network")

    def test_text_shows_the_measured_points_too(self):
        text = self.predict("run.h5", "--ranks", "4", "--nodes-of", "4", "--set",
                            "latency=0.5x").stdout
        for words in ("measured", "noise", "launch", "model", "if latency=0.5x", "beyond the model"):
            self.assertIn(words, text)

    def test_refusals(self):
        isoscale = self.isoscale
        self.assert_refused(isoscale("predict", "run.h5", "--ranks", "1,4"), "--ranks 1",
                            "up to 2 ranks")
        # The run measured nothing between nodes, and the prediction makes nothing up.
        self.assert_refused(isoscale("predict", "run.h5", "--ranks", "4"), "between nodes",
                            "--nodes-of")
        same = isoscale("predict", "run.h5", "--ranks", "4,8")
        self.assertEqual(same.stderr.count("between nodes"), 1, same.stderr)
        self.assert_refused(isoscale("predict", "run.h5", "--ranks", "4", "--workload", "tp"),
                            "--workload tp")
        self.run_ok("run", "--device", "host", "--workload", "dp", "--ranks", "1", "--max-time",
                    "0.2s", "--output", "bare.h5")
        self.assert_refused(isoscale("predict", "bare.h5", "--ranks", "4"), "calibrate")
