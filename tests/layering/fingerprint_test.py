#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""A plugin is refused when any header that it shares with the program has changed.

Usage: fingerprint_test.py CMAKE CXX ROOT. The compiler says which headers the plugin's sources include;
it needs no CUDA for that.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CMAKE, CXX, ROOT = sys.argv[1:4] if len(sys.argv) > 3 else ("cmake", "c++", ".")
PLUGIN = "src/executor/cuda/"


class Fingerprint(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="isoscale-fingerprint-")
        cls.addClassCleanup(scratch.cleanup)
        cls.root = pathlib.Path(scratch.name)
        for tree in ("src", "workloads", "results", "analysis"):
            for path in pathlib.Path(ROOT, tree).rglob("*"):
                if path.suffix in (".hpp", ".cpp", ".cu", ".cuh", ".cmake"):
                    copy = cls.root / path.relative_to(ROOT)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, copy)

    def fingerprint(self):
        output = self.root / "fingerprint.hpp"
        subprocess.run([CMAKE, f"-DSOURCE_DIR={self.root}", f"-DOUTPUT={output}",
                        "-DISOSCALE_VERSION=1", "-P",
                        self.root / "src/cmake/fingerprint.cmake"], check=True)
        return re.search(r'= "(.*)"', output.read_text(encoding="utf-8"))[1]

    def shared_headers(self):
        """Those of ours that the compiler meets in the plugin's sources, the plugin's own left out."""
        found = set()
        for source in sorted((self.root / PLUGIN).glob("*.cpp")):
            said = subprocess.run([CXX, "-std=c++20", "-M", "-MG", "-DNCCL_VERSION(a,b,c)=0",
                                   "-I", self.root / "src", "-I",
                                   self.root, source], capture_output=True, text=True, check=True)
            for name in said.stdout.replace("\\\n", " ").split()[2:]:
                path = pathlib.Path(name)
                if path.is_relative_to(self.root):
                    found.add(path.relative_to(self.root).as_posix())
        return {name for name in found if not name.startswith(PLUGIN)}

    def changes_with(self, name):
        path, before = self.root / name, self.fingerprint()
        text = path.read_text(encoding="utf-8")
        path.write_text(text + "// changed\n", encoding="utf-8")
        after = self.fingerprint()
        path.write_text(text, encoding="utf-8")
        self.assertEqual(self.fingerprint(), before)
        return after != before

    def test_a_change_of_a_shared_header_in_any_folder_changes_it(self):
        of_folder = {pathlib.Path(name).parent: name for name in sorted(self.shared_headers())}
        self.assertGreater(len(of_folder), 8, of_folder)
        for folder, name in of_folder.items():
            with self.subTest(folder):
                self.assertTrue(self.changes_with(name), name)

    def test_headers_that_the_plugin_does_not_see_leave_it_alone(self):
        for name in ("src/runner/run.hpp", "analysis/report.hpp", PLUGIN + "session.hpp"):
            with self.subTest(name):
                self.assertFalse(self.changes_with(name))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
