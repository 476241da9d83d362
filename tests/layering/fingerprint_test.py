#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""A plugin is refused when any header that it may share with the program has changed.

Usage: fingerprint_test.py CMAKE ROOT.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CMAKE, ROOT = sys.argv[1:3] if len(sys.argv) > 2 else ("cmake", ".")


class Fingerprint(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="isoscale-fingerprint-")
        cls.addClassCleanup(scratch.cleanup)
        cls.root = pathlib.Path(scratch.name)
        for tree in ("src", "workloads", "results", "analysis"):
            for path in pathlib.Path(ROOT, tree).rglob("*.?pp"):
                copy = cls.root / path.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, copy)

    def fingerprint(self):
        output = self.root / "fingerprint.hpp"
        subprocess.run([CMAKE, f"-DSOURCE_DIR={self.root}", f"-DOUTPUT={output}",
                        "-DISOSCALE_VERSION=1", "-P",
                        pathlib.Path(ROOT, "src/cmake/fingerprint.cmake")], check=True)
        return re.search(r'= "(.*)"', output.read_text(encoding="utf-8"))[1]

    def changes_with(self, name):
        path, before = self.root / name, self.fingerprint()
        text = path.read_text(encoding="utf-8")
        path.write_text(text + "// changed\n", encoding="utf-8")
        after = self.fingerprint()
        path.write_text(text, encoding="utf-8")
        self.assertEqual(self.fingerprint(), before)
        return after != before

    def test_a_change_of_a_header_in_any_tree_changes_it(self):
        for name in ("src/executor/executor.hpp", "src/base/error.hpp",
                     "workloads/api/options.hpp", "results/records/fields.hpp"):
            with self.subTest(name):
                self.assertTrue(self.changes_with(name))

    def test_what_the_plugin_does_not_share_leaves_it_alone(self):
        for name in ("src/base/text.cpp", "analysis/report.hpp",
                     "src/executor/cuda/session.hpp"):
            with self.subTest(name):
                self.assertFalse(self.changes_with(name))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
