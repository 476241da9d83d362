# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""Run files whose texts try to be more than text: what every format makes of them."""

import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unicodedata

import harness
import hostile_run

csv.field_size_limit(1 << 24)
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
#: What a terminal acts on, or what hides or reorders other text; a newline is none.
UNSAFE = re.compile("[" + "".join(
    re.escape(character) for character in map(chr, range(sys.maxunicode + 1))
    if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp",
                                           "Cs") and character != "\n") + "]")


def unsafe(text):
    """The first such character of the text and what stands around it, or None."""
    found = UNSAFE.search(text)
    return found and text[max(0, found.start() - 40):found.end() + 40]


class Formats(harness.Case):
    every = 4  # of the files that have each payload in each field

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="isoscale-hostile-")
        cls.addClassCleanup(folder.cleanup)
        cls.source = os.path.join(folder.name, "run.h5")
        subprocess.run([os.environ["ISOSCALE_SAMPLE"], cls.source], check=True)
        cls.hostile = hostile_run.write_all(cls.source, folder.name, cls.every)

    def reports(self, form):
        """The name of each hostile run, and its report in this format."""
        for file in self.hostile:
            name = os.path.basename(file)
            how = ["--detail"] if form == "detail" else ["--format", form]
            done = subprocess.run([self.program, "report", name, *how], cwd=os.path.dirname(file),
                                  capture_output=True, timeout=120 * harness.PATIENCE, check=False)
            self.assertEqual(done.returncode, 0, (name, done.stderr[-2000:]))
            self.assertIsNone(unsafe(done.stderr.decode()), name)
            yield name, done.stdout.decode()

    def test_every_text_of_the_file_was_replaced(self):
        fields = hostile_run.rewrite(self.source, self.path("some.h5"),
                                     lambda at, old: b"x" + old, hostile_run.NEEDED)
        for field in ("@id", "/ranks/host", "/points/#@model", "/points/#@reason", "/warnings",
                      "/environment/value", "/command_line", "/points/#/rows/text/implementation",
                      "/preflight/what"):
            self.assertIn(field, fields)
        self.assertTrue(any(field.startswith("/points/#/options@") for field in fields), fields)
        self.assertGreater(len(fields), 60)

    def test_for_terminals_only_newlines_are_left(self):
        for form in ("text", "detail", "markdown", "nccl-tests"):
            for name, said in self.reports(form):
                self.assertIsNone(unsafe(said), (form, name))
                if form == "detail":
                    self.assertGreater(len(said.splitlines()), 40, name)
                elif form == "markdown":  # rows of tables show what would be markup as it is
                    rows = "".join(re.findall(r"^\|.*", said, re.M)).replace("\\<", "")
                    for markup in ("<img", "<svg", "<script", "<b>", "<!--"):
                        self.assertNotIn(markup, rows, name)

    def test_no_cell_of_csv_is_a_formula(self):
        for name, said in self.reports("csv"):
            self.assertIsNone(unsafe(said), name)
            rows = list(csv.reader(io.StringIO(said)))
            self.assertGreater(len(rows), 20, name)
            for row in rows:
                self.assertEqual(len(row), len(rows[0]), name)
                for cell in row:
                    if cell[:1] in tuple("=+-@\t\r"):
                        self.assertTrue(NUMBER.fullmatch(cell), (name, cell[:80]))

    def test_json_is_ascii_and_holds_the_texts_as_they_are(self):
        found = set()
        for name, said in self.reports("json"):
            self.assertTrue(said.isascii(), name)
            self.assertIsNone(unsafe(said), name)
            run = json.loads(said)["runs"][0]
            for point in run["points"]:
                found.update(point["options"])
            self.assertEqual(len(run["points"]), 8, name)
            found.update(run["system"]["ranks"][0]["text"])
            found.add(run["system"]["command_line"])
        self.assert_shown(found, "__proto__", "constructor", "=1+1", "\x1b[31mred", "\ufffd\ufffd")
        self.assertTrue(any(text.startswith("</script><img") for text in found))


class AllFormats(Formats):
    every = 1
