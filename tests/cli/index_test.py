# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT
"""The index of many runs, files of older schemas, and the blocks of Python in docs/reading-results.md,
which read a made run."""

import contextlib
import csv
import io
import json
import lzma
import os
import pathlib
import re
import shutil
import sys
import unittest

import harness

try:
    import h5py
except ImportError as error:
    print(f"skipped: {error} (Debian: apt-get install python3-h5py)")
    sys.exit(77)
import run_digest  # noqa: E402
try:
    import pandas
except ImportError:
    pandas = None


def empty_rows(group):
    """Takes the rows out of a point, as a workload that plays steps has none."""
    for name, member in list(group.items()):
        if isinstance(member, h5py.Group):
            for key in list(member):
                del member[key]
            continue
        kept, attributes = member[:1 if name.endswith("_begin") else 0], dict(member.attrs)
        del group[name]
        group.create_dataset(name, data=kept)
        for key, value in attributes.items():
            group[name].attrs.create(key, value, dtype=h5py.string_dtype())


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        self.sample("sample.h5")

    def make(self, name, run_id, faster=1.0, is_short=False):
        """A copy of the sample as a run of its own. Its part stays that of another run; a short one
        has its first point alone."""
        shutil.copy(self.path("sample.h5"), self.path(name))
        with run_digest.changed(self.path(name)) as run:
            run.attrs["id"] = run_id
            for point in list(run["points"]):
                if point == "0001" or (is_short and point != "0000"):
                    del run["points"][point]
            del run["points/0000/labels"]
            run["points/0000"].create_dataset("labels", shape=(0,), dtype="S1")
            empty_rows(run["points/0000/rows"])
            run["points/0000/step_times"][...] /= faster
        return name

    def json(self, *arguments):
        return self.json_of("report", *arguments)

    def text(self, *arguments):
        return self.run_ok("report", *arguments).stdout


class Index(Case):
    def test_a_stored_summary_says_what_the_whole_file_says(self):
        def without_names(document):
            return [{**run, "file": ""} for run in document["index"]], document["machines"]

        for name in ("copy.h5", "bare.h5"):
            shutil.copy(self.path("sample.h5"), self.path(name))
        with open(self.path("bare.h5"), "r+b") as file:  # loses its summary, as if HDF5 wrote it
            end = file.seek(-256, os.SEEK_END)
            file.truncate(end - int(re.search(rb"\nbytes (\d+)", file.read()).group(1)))
        run_digest.renew(self.path("bare.h5"))
        stored, bare = (without_names(self.json("--index", name))
                        for name in ("copy.h5", "bare.h5"))
        self.assertEqual(stored, bare)
        self.assertEqual(stored, without_names(self.json("sample.h5")))
        os.remove(self.path("sample.part0001.h5"))
        self.assertIn("sample.part0001.h5", self.ended(2, "report --index copy.h5").stderr)

    def test_more_than_32_files_are_an_index_the_same_on_one_core_and_on_many(self):
        files = [self.make(f"{i}.h5", f"run{i}", faster=1 + i / 100, is_short=True)
                 for i in range(34)]
        few = self.json(*files[:32])
        self.assertEqual((few["index_only"], len(few["index"])), (False, 32))
        self.assertIn("points", few["runs"][0])
        os.truncate(self.path("7.h5"), 5000)
        core = str(min(os.sched_getaffinity(0)))  # there it reads all summaries on one thread
        said = {}
        for form in ("text", "json", "csv", "markdown"):
            with self.subTest(format=form):
                done = self.run_ok("report", *files, "--format", form)
                self.assertIn("not read: 7.h5", done.stderr)
                said[form] = done.stdout
                if form in ("text", "json"):
                    alone = self.run_ok("report", *files, "--format", form,
                                        by=["taskset", "-c", core])
                    self.assertEqual((alone.stdout, alone.stderr), (done.stdout, done.stderr))
        self.assert_shown(said["text"], "33 runs on 1 machine", "more than 32 files")
        self.assertNotIn("over launches", said["text"])
        self.assertIn("33 runs on 1 machine", said["markdown"])
        self.assertTrue(json.loads(said["json"])["index_only"])
        self.assertEqual({row["run"] for row in csv.DictReader(io.StringIO(said["csv"]))},
                         {f"run{i}" for i in range(34) if i != 7})

    def test_what_needs_more_than_an_index_is_refused(self):
        before = self.files()
        for arguments in (["--format", "nccl-tests"], ["--trace", "t.json"],
                          ["--baseline", "node"]):
            with self.subTest(arguments=arguments):
                done = self.isoscale("report --index sample.h5", *arguments)
                self.assert_refused(done, "--index", arguments[0])
                self.assertEqual(self.files(), before)

    def test_a_file_that_cannot_be_read_is_not_the_end(self):
        self.make("good.h5", "good")
        with open(self.path("bad.h5"), "wb") as file:
            file.write(b"\x89HDF\r\n\x1a\n and no more")
        self.make("newer.h5", "newer")
        with run_digest.changed(self.path("newer.h5")) as run:
            run.attrs["schema_version"] = "2.0"
        files = ("bad.h5", "good.h5", "newer.h5")
        for how in (["--index"], []):
            done = self.run_ok("report", *how, *files, "--format json")
            document = json.loads(done.stdout)
            self.assertEqual([run["id"] for run in document["index"]], ["good"])
            self.assertEqual([at["file"] for at in document["unreadable"]], ["bad.h5", "newer.h5"])
            self.assertIn("newer Isoscale", document["unreadable"][1]["reason"])
            self.assertIn("bad.h5", done.stderr)
            self.assertIn("not read: newer.h5", self.text(*how, *files))
        self.ended(2, "report --index bad.h5")
        self.assertIn("none of the 2", self.ended(2, "report bad.h5 newer.h5").stderr)


class OlderSchemas(Case):
    def test_each_has_the_same_index_whole_and_as_a_summary(self):
        """tests/stored has the numbers of these files."""
        stored = sorted(pathlib.Path(__file__).parent.glob("../stored/schema-1.*.h5.xz"))
        self.assertGreater(len(stored), 5)
        with_throughput = 0
        for packed in stored:
            with self.subTest(packed.stem):
                unpacked = lzma.decompress(packed.read_bytes())
                pathlib.Path(self.path(packed.stem)).write_bytes(unpacked)
                index = self.json("--index", packed.stem)["index"]
                self.assertEqual(self.json(packed.stem)["index"], index)
                self.assertTrue(index[0]["experiments"])
                with_throughput += any(at["throughput"]["value"] for at in index[0]["experiments"])
        self.assertEqual(with_throughput, len(stored) - 1)  # the points of schema-1.4 are made up

    def test_what_an_own_version_must_have_is_missed(self):
        name = self.make("new.h5", "one")
        with run_digest.changed(self.path(name)) as run:
            del run["points/0000"].attrs["looks_planned"]
        for how in ([], ["--index"]):
            self.assertIn("looks_planned", self.ended(2, "report", *how, name).stderr)


@unittest.skipUnless(pandas, "it takes python3-pandas")
class Reading(harness.Case):
    def setUp(self):
        super().setUp()
        self.sample()
        for name, arguments in (("report.csv", ["--format", "csv"]),
                                ("report.json", ["--format", "json"]),
                                ("index.csv", ["--index", "--format", "csv"])):
            self.write(name, self.run_ok("report run.h5", *arguments).stdout)

    def test_every_block_of_the_page_runs_and_prints(self):
        page = os.path.join(os.environ["ISOSCALE_DOCUMENTS"], "docs/reading-results.md")
        blocks = re.findall(r"^```python\n(.*?)^```$", self.read(page), re.M | re.S)
        self.assertGreaterEqual(len(blocks), 6)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.dir)
        for number, block in enumerate(blocks):
            with self.subTest(block=number):
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile(block, f"block {number}", "exec"), {})  # noqa: S102
                self.assertTrue(printed.getvalue().strip(), block)
