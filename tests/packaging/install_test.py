# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""An installed tree that was moved afterwards works, and remembers nothing of its build."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from support import BARE, BUILD, CMAKE, SOURCE, run, run_ok, sample_run

NOT_INSTALLED = {"checkout.sh", "install-packages.sh", "packages.txt", "demo.sh",
                 "machine.sh", "tarball.sh"}


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="isoscale-install-")
        cls.addClassCleanup(scratch.cleanup)
        cls.scratch = pathlib.Path(scratch.name)
        first = cls.scratch / "first place"
        run_ok(CMAKE, "--install", BUILD, "--prefix", first)
        cls.tree = cls.scratch / "moved"
        first.rename(cls.tree)
        cls.program = cls.tree / "bin" / "isoscale"

    def test_every_part_is_there(self):
        for name in ("bin/isoscale", "lib/libisoscale.so", "share/doc/isoscale/LICENSE",
                     "share/doc/isoscale/README.md", "share/doc/isoscale/results/SCHEMA.md",
                     "share/doc/isoscale/docs/building.md",
                     "share/isoscale/workloads/models/tiny.toml",
                     "share/isoscale/workloads/suites/quick.toml",
                     "share/bash-completion/completions/isoscale",
                     "share/zsh/site-functions/_isoscale"):
            self.assertTrue((self.tree / name).is_file(), name)
        plugin = self.tree / "lib" / "libisoscale_cuda.so"
        self.assertEqual(plugin.is_file(), os.environ["ISOSCALE_HAS_PLUGIN"] == "ON")

    def test_links_between_documents_hold(self):
        links = 0
        for document in (self.tree / "share/doc/isoscale").rglob("*.md"):
            for link in re.findall(r"\]\(([^)#]+)", document.read_text(encoding="utf-8")):
                if not link.startswith("http"):
                    links += 1
                    self.assertTrue((document.parent / link).exists(), f"{document}: {link}")
        self.assertGreater(links, 5)

    def test_scripts_come_with_the_right_to_run(self):
        installed = self.tree / "share/isoscale/launch"
        names = {path.name for path in installed.iterdir()}
        self.assertFalse(names & {*NOT_INSTALLED, "container", "spack"}, names)
        for source in (SOURCE / "launch").iterdir():
            if source.is_file() and source.name not in NOT_INSTALLED:
                copy = installed / source.name
                self.assertTrue(copy.is_file(), source.name)
                self.assertEqual(os.access(copy, os.X_OK), os.access(source, os.X_OK), source.name)

    def test_it_lists_and_reports_in_an_empty_environment(self):
        listing = run_ok(self.program, "list", "models", env=BARE)
        self.assertIn("gpt-13b", listing)
        text = run_ok(self.program, "report", sample_run(self.scratch), "--format", "json",
                      env=BARE)
        self.assertEqual(len(json.loads(text)["runs"]), 1)

    def test_examples_are_read_as_they_lie(self):
        model = self.tree / "share/isoscale/workloads/models/tiny.toml"
        plan = run(self.program, "run", "--dry-run", "--model", model, "--workload", "dp",
                   "--ranks", "1", "--device", "host", env=BARE)
        if "without MPI" in plan.stderr:
            self.skipTest("this build has no MPI")
        self.assertEqual(plan.returncode, 0, plan.stderr)

    def test_the_plugin_is_found(self):
        if os.environ["ISOSCALE_HAS_PLUGIN"] != "ON":
            self.skipTest("the plugin is not built here")
        # With a GPU this is measured, without one refused for the lack of it, and nothing else.
        done = subprocess.run(
            [self.program, "run", "--device", "cuda", "--workload", "gemm", "--max-time", "100ms"],
            capture_output=True, text=True, timeout=100, cwd=self.scratch, check=False,
            env={**BARE, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
        self.assertNotIn("no CUDA plugin", done.stderr)
        self.assertNotIn("another build", done.stderr)
        self.assertNotIn("not an Isoscale plugin", done.stderr)
        self.assertRegex(done.stderr, r"GPU|driver")

    def test_libraries_are_beside_the_program_and_not_in_the_build_or_of_one_mpi(self):
        if not os.environ["ISOSCALE_READELF"]:
            self.skipTest("there is no readelf")
        for file in (self.program, *sorted(self.tree.glob("lib/*.so*"))):
            text = run_ok(os.environ["ISOSCALE_READELF"], "--dynamic", "--wide", file)
            # RUNPATH, which LD_LIBRARY_PATH precedes; an RPATH would win over it.
            self.assertNotIn("(RPATH)", text, file)
            paths = re.findall(r"\(RUNPATH\).*\[(.*)\]", text)
            self.assertEqual(len(paths), 1, text)
            self.assertTrue(paths[0].startswith("$ORIGIN"), paths[0])
            self.assertNotIn(str(BUILD), text)
            self.assertNotIn(f"{SOURCE}/", text)
            self.assertNotRegex(text, r"libmpi_cxx|libmpichcxx")  # bindings of one MPI
