# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""--device: which plugin is opened, what is said when there is none, and runs on GPUs.

Environment, beside that of the harness: ISOSCALE_CORE = libisoscale.so; and, empty where they are
not built, ISOSCALE_PLUGIN = libisoscale_cuda.so, ISOSCALE_PLUGIN_OTHER = one of another build,
ISOSCALE_PLUGIN_STANDIN = one that plays on the host in place of GPUs.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time

import harness

# Stand-ins are slow, and so are programs that are started many times.
MODEL = "hidden = 32\nffn = 64\nheads = 4\nlayers = 4\nsequence = 16\nvocabulary = 64\n"
QUICK = "--max-time 0.05s --model small.toml --set batch=4 --set microbatch=2".split()


class Case(harness.Case):
    """An installation of its own: the program and its library, and the plugin that a test gives."""

    def setUp(self):
        super().setUp()
        self.installation = self.path("bin")
        os.mkdir(self.installation)
        self.program = shutil.copy(harness.PROGRAM, self.installation)
        shutil.copy(os.environ["ISOSCALE_CORE"], self.installation)
        self.dir = self.path("work")
        os.mkdir(self.dir)
        self.write("small.toml", MODEL)

    def install(self, variable):
        """Installs the plugin that an environment variable names."""
        plugin = os.environ.get(variable, "")
        if not plugin:
            self.skipTest(f"{variable} is not built")
        shutil.copy(plugin, os.path.join(self.installation, "libisoscale_cuda.so"))


class Plugin(Case):
    """Absent, broken, foreign, or without a GPU: one message with the fix, never another device."""

    def test_absent(self):
        for ranks in (None, 2):
            self.assert_refused(self.isoscale("run --device cuda", ranks=ranks),
                                "no CUDA plugin", self.installation, "--device host")
        self.assertEqual(self.files(), ["small.toml"])

    def test_in_lib_beside_bin(self):
        os.mkdir(self.path("../lib"))
        self.write("../lib/libisoscale_cuda.so", "not a library\n")
        self.assert_refused(self.isoscale("run --device cuda"), "lib/libisoscale_cuda.so",
                            "cannot be opened")

    def test_no_plugin_or_one_of_another_build(self):
        for plugin, *needles in (
                ("ISOSCALE_CORE", "is not an Isoscale plugin", "remove it"),
                ("ISOSCALE_PLUGIN_OTHER", "of another build", "from one build")):
            with self.subTest(plugin):
                self.install(plugin)
                self.assert_refused(self.isoscale("run --device cuda"), *needles)

    def test_without_a_driver(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("this machine has an NVIDIA driver")
        self.install("ISOSCALE_PLUGIN")
        self.assert_refused(self.isoscale("run --device cuda"), "driver", "--device host")
        self.assertEqual(self.files(), ["small.toml"])

    def test_auto_says_shortly_what_it_took_and_reports_need_no_plugin(self):
        done = self.run_ok("run --workload dp --output a.h5", *QUICK)
        self.assertRegex(done.stdout, r"device: host \(no GPU \w+\)\n")
        self.assertNotIn("plugin", done.stdout)
        self.run_ok("report a.h5")

    def test_auto_refuses_what_only_gpus_have(self):
        for option in ["--graph", "--share-gpu"]:
            with self.subTest(option=option):
                self.assert_refused(self.isoscale("run --workload dp", option, *QUICK),
                                    option, "no CUDA plugin")
                self.assertEqual(self.files(), ["small.toml"])

    def test_a_plan_for_gpus_needs_none(self):
        done = self.run_ok("run --device cuda --dry-run --workload hybrid --model gpt-13b --dtype "
                           "bf16 --ranks 32 --mesh tp=8,pp=4")
        self.assertIn("tp=8,pp=4", done.stdout)
        self.assertEqual(self.files(), ["small.toml"])


class FirstContact(Case):
    """tests/gpu/first_contact.py, as far as it needs no GPU."""

    def contact(self, *parts, launch=os.environ["ISOSCALE_MPIEXEC"]):
        script = os.path.join(os.environ["ISOSCALE_DOCUMENTS"], "tests/gpu/first_contact.py")
        return subprocess.Popen([sys.executable, script, "--build", self.installation, "--launch",
                                 launch, "--output", "contact", *parts], cwd=self.dir,
                                env={**os.environ, "PYTHONPATH": self.dir},
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def steps(self):
        """What its archive tells of each step."""
        with tarfile.open(self.path("contact.tar.gz")) as archive:
            told = json.load(archive.extractfile("contact/first_contact.json"))
        return {step["name"]: step for step in told["steps"]}

    def played(self, *parts, **how):
        """The exit status and the verdicts by step."""
        status = self.contact(*parts, **how).wait()
        return status, {name: step["verdict"] for name, step in self.steps().items()}

    def test_keeps_a_run_file_and_goes_on(self):
        self.install("ISOSCALE_PLUGIN_STANDIN")
        status, verdicts = self.played("0", "7", "8")
        self.assertEqual(status, 0, verdicts)
        for step in ("a plan", "point", "run files can be read"):
            self.assertEqual(verdicts[step], "passed", verdicts)
        self.assertEqual(verdicts["bench/bench_cuda_costs"], "skipped", verdicts)
        self.run_ok("report contact/reference/point.h5")

    def test_tells_what_failed(self):
        status, verdicts = self.played("0", "8")
        self.assertEqual(status, 1, verdicts)
        self.assertEqual((verdicts["point"], verdicts["run files can be read"]),
                         ("FAILED", "skipped"))
        self.assertRegex(self.steps()["point"]["why"], "^exit 2: isoscale: .*no CUDA plugin")

    def test_goes_on_after_an_exception(self):
        self.write("torch.py", "raise RuntimeError('broken')\n")
        status, verdicts = self.played("4", "8", launch="false")
        self.assertEqual((status, verdicts["torch"], verdicts["graph"]), (1, "FAILED", "FAILED"))
        self.assertEqual(self.steps()["torch"]["why"], "RuntimeError: broken")

    def test_ended_it_ends_what_it_started_and_keeps_what_it_has(self):
        self.write("launch", "#!/bin/sh\ntrap 'touch ended; exit' TERM\n"
                   "touch begun\nsleep 100 & wait\n")
        os.chmod(self.path("launch"), 0o700)
        contact = self.contact("0", launch="./launch")
        while contact.poll() is None and "begun" not in self.files():
            time.sleep(0.1)
        contact.terminate()
        self.assertEqual(contact.wait(), 1)
        self.assertIn("ended", self.files())
        self.assertEqual(self.steps()["what the machine lacks"]["why"], "ended by SIGTERM")


class Stuck(Case):
    """A GPU that does not come to an end, or fails: what it was at is told."""

    how = ()

    def setUp(self):
        super().setUp()
        self.install("ISOSCALE_PLUGIN_STANDIN")

    def end(self, **environment):
        """Two ranks of a point, of which the second does what the stand-in was told."""
        self.ended(4, "run --device cuda --output run.h5 --force", *QUICK[2:],
                   "--max-time 60s --ranks 2 --workload dp --timeout", f"{10 * harness.PATIENCE}s",
                   *self.how, ranks=2, **environment)
        points = self.points_in()
        self.assertEqual([point["status"] for point in points], ["failed"])
        return points[0]["reason"], json.loads(self.read("run.h5.hang.json"))

    def test_a_kernel_that_does_not_end_is_named(self):
        reason, hang = self.end(ISOSCALE_STANDIN_ENDLESS="1:3000")
        self.assertRegex(reason, r"^hang: rank 1 is in gemm, (forward|backward), layer \d")
        self.assertRegex(hang["first_op"], r"^all_reduce of .* along dp, .*\(play \d+, call \d+\)")
        self.assertEqual((hang["waiting"], hang["absent"]), ([0], [1]))
        self.assertEqual([rank["rank"] for rank in hang["ranks"]], [0, 1])

    def test_a_communicator_that_is_never_ready_ends_the_run_and_is_named(self):
        limit, name = 2 * harness.PATIENCE, "dp+cp+ep on dp"
        self.ended(4, "run --device cuda --output run.h5", *QUICK, *self.how,
                   "--ranks 2 --workload dp,tp --timeout", f"{limit}s", ranks=2,
                   ISOSCALE_STANDIN_ENDLESS_COMMUNICATOR=name)
        [point] = self.points_in()
        self.assertEqual(point["status"], "failed")
        self.assertRegex(point["reason"],
                         "^hang: rank 0 failed: .*"
                         + re.escape(f"{name} was not ready after {round(limit * 0.9, 3):g} s"))

    def test_a_gpu_that_fails_ends_the_run_and_is_named(self):
        reason, hang = self.end(ISOSCALE_STANDIN_FAULTY="1:3000")
        self.assertRegex(reason, "^hang: rank 1 failed: .*illegal memory")
        self.assertEqual([one["rank"] for one in hang["culprits"]], [1])


class StuckInGraphs(Stuck):
    how = ("--graph",)


class OnGpus(Case):
    """The whole program on GPUs: stand-ins that compute on the host, so no time means anything."""

    def setUp(self):
        super().setUp()
        self.install("ISOSCALE_PLUGIN_STANDIN")

    def play(self, *arguments, ranks=2, **environment):
        done = self.run_ok("run --output run.h5 --force", *QUICK, *arguments, ranks=ranks,
                           **environment)
        return done, self.run_of()


class Played(OnGpus):
    def test_curves_of_every_workload_verify(self):
        _, run = self.play("--device cuda --workload dp,tp,pp,hybrid --dtype bf16")
        self.assertEqual(run["device"], "cuda")
        self.assertEqual(len(run["points"]), 8)
        self.assert_verified(*run["points"])
        for point in run["points"]:
            self.assertGreater(point["step_time"]["median"], 0)
            self.assertGreater(point["op_time"]["gemm"], 0)
            self.assertEqual(point["graph"], "off")

    def test_auto_takes_the_gpus_and_facts_of_each_rank_name_its_own(self):
        done, run = self.play("--workload tp --ranks 2")
        self.assertIn("device: cuda", done.stdout)
        facts = [rank["text"] for rank in run["system"]["ranks"]]
        self.assertEqual(len({fact["gpu_uuid"] for fact in facts}), 2)
        for fact in facts:
            for key in ["gpu_name", "gpu_pci", "cuda_driver", "cuda_runtime", "cublas", "nccl"]:
                self.assertIn(key, fact)
        world, tp = run["points"][0]["communicators"]
        self.assertEqual((world["name"], tp["name"]), ("world", "tp on compute"))
        self.assertIsNone(world["first_call"])  # the others come from it; nothing is sent over it
        self.assertGreater(tp["first_call"], 0)

    def test_graphs(self):
        _, run = self.play("--device cuda --workload hybrid --ranks 2 --graph")
        point = run["points"][0]
        self.assertEqual((point["graph"], point["verified"]), ("on", True))
        self.assertIsNotNone(point["traced_step"])

    def test_a_later_run_uses_the_algorithms_of_an_earlier_one(self):
        played = "--device cuda --workload dp --ranks 1"
        self.play(played, ranks=None)
        os.rename(self.path("run.h5"), self.path("first.h5"))
        again, _ = self.play(played, "--gemm-algorithms first.h5", ranks=None)
        self.assertNotIn("chosen by timing", again.stderr)
        other, _ = self.play(played, "--dtype f16 --gemm-algorithms first.h5", ranks=None)
        self.assertIn("chosen by timing", other.stderr)

    def test_ranks_that_share_a_gpu_are_refused_or_only_verified(self):
        alone = {"ISOSCALE_STANDIN_GPUS": "1"}
        self.assert_refused(self.isoscale("run --device cuda --workload dp", *QUICK,
                                          ranks=2, **alone), "--share-gpu")
        _, run = self.play("--device cuda --workload dp --ranks 2 --share-gpu", **alone)
        point = run["points"][0]
        self.assertEqual((point["status"], point["verified"]), ("skipped", True))
        self.assertEqual(point["labels"], ["shared-gpu"])
        self.assertIsNone(point["step_time"]["median"])


class PlayedInOtherWays(OnGpus):
    def test_training_can_register_the_memory_of_a_step(self):
        _, run = self.play("--device cuda --workload tp --ranks 2 --set registration=none,local")
        self.assertEqual([(point["status"], point["verified"], point["options"]["registration"])
                          for point in run["points"]],
                         [("ok", True, "none"), ("ok", True, "local")])
        done = self.isoscale("run --device host --workload tp", *QUICK,
                             "--output host.h5 --set registration=local", ranks=2)
        self.assertIn("registers no memory", done.stdout + done.stderr)

    def test_fp8_reports_the_time_of_its_casts(self):
        _, run = self.play("--device cuda --workload tp --dtype fp8")
        self.assert_verified(*run["points"])
        for point in run["points"]:
            self.assertGreater(point["op_time"]["cast"], 0)
        self.assertIn("casts and transposes", self.run_ok("report run.h5 --detail").stdout)

    def test_the_quick_suite_takes_a_model_that_suits_the_gpu(self):
        for memory, model in [(80, "gpt-6.7b"), (40, "gpt-1.3b"), (8, "gpt-125m")]:
            done = self.run_ok("run --dry-run", ISOSCALE_STANDIN_MEMORY=str(memory * 2**30))
            self.assertIn(f"model: {model} in bf16", done.stdout)
            self.assertRegex(done.stdout, rf"dp +{model} +1 ")
        # On a GPU too small for any, the run takes the last and skips it. What it calibrates with
        # by default is too large as well: nothing is left to run.
        tight = {"ISOSCALE_STANDIN_MEMORY": str(2**30)}
        self.assert_refused(self.isoscale("run --output run.h5", **tight),
                            "gpt-125m on mesh 1 needs")
        done = self.run_ok("run --max-time 0.2s --output run.h5", *harness.FEW_CASES, **tight)
        self.assertIn("model: gpt-125m in bf16", done.stdout)
        self.assertEqual({(p["model"], p["dtype"], p["status"]) for p in self.points_in()[1:]},
                         {("gpt-125m", "bf16", "skipped")})
        self.run_ok("run --resume run.h5", **tight)
